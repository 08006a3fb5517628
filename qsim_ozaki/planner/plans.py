"""The planner: which steps, on which tiles, by which path; and how to say so.

In: unitary ops of one segment, a `Device`, `PlanOptions`. Out: a `Plan`. A pure function: it measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import Device, Kind, Op, OpList, Prediction, Prepare, Relabel, Step, TilePass, state_bytes, too_wide
from qsim_ozaki.planner.arithmetic import Asked
from qsim_ozaki.planner.cost import predict_prepare, total
from qsim_ozaki.planner.explain import Explained, explain_html, explain_steps
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.fuse import absorb_product, fuse, relabel_swaps
from qsim_ozaki.planner.kak import split_pairs
from qsim_ozaki.planner.passes import Passes, PassRules, TileSearch
from qsim_ozaki.planner.zero_start import LEAST_EARLY, LateQubits, cheapest

SWAP_PERMUTATION = (0, 2, 1, 3)
SECONDS_PER_OP = 2e-6  # of planning once more (EPYC 9004, 2026-11)
QUICK = 0.2  # effort of searches for passes that other ways to begin are compared with
THOROUGH = 2.0  # the same for the way that is taken: what it finds pays in the second run at the latest
SEARCH_GAIN = 0.05  # share of a run's time that fewer passes save, where a longer search finds them
# Predictions as near as this cannot tell plans apart, passes can: each costs (docs/internals/what_bounds_a_pass.md).
NEAR = 1.02
MAX_QUBITS = 62  # a mask of qubits is one machine word; no memory holds so wide a state


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the user asked of the planner.

    Attributes:
        precision: ``"double"`` (complex128) or ``"single"`` (complex64).
        arithmetic: ``"auto"``, ``"native"`` or ``"emulated"``, for dense blocks.
        accuracy: requested error bound of an emulated block, over a column's norm; None asks for parity with
            ``precision``.
        from_zero: the segment starts from |0...0>, so the first step may write a product state.
        max_fused_qubits: matrices on at most this many qubits absorb neighbouring gates.
        restore_order: the plan ends with program qubit q on physical qubit q.
    """

    precision: str = "double"
    arithmetic: str = "auto"
    accuracy: float | None = None
    from_zero: bool = False
    max_fused_qubits: int = 2
    restore_order: bool = False


def plan_options(options: Mapping[str, Any]) -> PlanOptions:
    """The planner's part of a backend's ``options``."""
    return PlanOptions(options["precision"], options["arithmetic"], options["accuracy"])


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps of one segment, with predictions.

    Attributes:
        num_qubits: width of the state.
        steps: in order; they act on *physical* qubits.
        final_position: program qubit q ends on physical qubit ``final_position[q]`` (SWAPs were relabelled).
        device: what it was planned for.
        options: what was asked.
        prediction: totals over the steps.
        memory_bytes: bytes of the state.
    """

    num_qubits: int
    steps: tuple[Step, ...]
    final_position: tuple[int, ...]
    device: Device
    options: PlanOptions
    prediction: Prediction
    memory_bytes: int

    def explain(self) -> str:
        """A table: per step what it does, where, by which path and why, passes, bytes, seconds, bound; totals."""
        return explain_steps(self._explained())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return explain_html(self._explained())

    def _explained(self) -> Explained:
        precision = self.options.precision
        return Explained(self.num_qubits, self.steps, self.prediction, self.device, precision, self.memory_bytes)


def plan(
    ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int] | None = None
) -> Plan:
    """Fuses ``ops``, chooses tiles and paths, and predicts each step.

    Args:
        ops: unitary operators in order, on program qubits.
        num_qubits: width of the state.
        device: measured or made up.
        options: what was asked.
        position: physical qubit of each program qubit at the start (None: the same).

    Returns:
        The plan. Its steps cover the ops in an order that commutes.
    """
    return decide(prepare_task(ops, num_qubits, device, options, position))[0]


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """How a plan may begin: a product state or none, what it leaves to do, and where amplitudes may be then."""

    prepare: Prepare | None
    ops: OpList
    used: Footprint


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What is to be planned, as far as numbers matter: from here on only the structure of operators does.

    Attributes:
        num_qubits: width of the state.
        device: measured or made up.
        options: what was asked.
        position: physical qubit of each program qubit before the first operator.
        final: the same after the last one, if none of what follows moves qubits.
        starts: ways to begin; their operators, numbered, are fused and end with the order that was asked for.
    """

    num_qubits: int
    device: Device
    options: PlanOptions
    position: tuple[int, ...]
    final: tuple[int, ...]
    starts: tuple[Start, ...]


def prepare_task(
    ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int] | None = None
) -> Task:
    """What `plan` decides on, for its arguments."""
    if num_qubits > MAX_QUBITS:
        raise CapacityError(too_wide(num_qubits, options.precision, device.name, device.memory_bytes))
    before = tuple(range(num_qubits)) if position is None else tuple(position)
    relabelled, final = relabel_swaps(ops, before)
    fused = fuse(relabelled, num_qubits, options.max_fused_qubits)
    moved = order_swaps(final) if options.restore_order else []
    starts = []
    for start in _starts(fused, num_qubits, device, options):
        left = start.ops
        if device.abilities.splits_two_qubit_gates and left.native.large_matrices(2):
            left = OpList.of(split_pairs(left, num_qubits))
        if moved:
            left = OpList.of([*left, *moved])
        left.native.number()
        starts.append(replace(start, ops=left))
    return Task(num_qubits, device, options, before, final, tuple(starts))


def decide(task: Task) -> tuple[Plan, int]:
    """The plan of ``task``, and which of its starts it takes."""
    num_qubits, device, options, final = task.num_qubits, task.device, task.options, task.final
    steps: list[Step] = []
    if final != task.position:
        steps.append(_relabel(task.position, final))
    way = min((_best_way(start, device, options) for start in task.starts), key=_Way.seconds)
    if way.seconds() * SEARCH_GAIN > SECONDS_PER_OP * sum(len(part) for part in way.parts):
        search = _search(num_qubits, way.parts, device, options, THOROUGH)
        used = way.start.used
        again = _way(way.start, way.parts, search.passes(search.chain(way.parts, used.live), used), device)
        if again.seconds() < way.seconds() * (NEAR if again.passes() < way.passes() else 1):
            way = again
    steps += way.steps
    final = tuple(way.place[q] for q in (range(num_qubits) if options.restore_order else final))
    prediction = total(step.prediction for step in steps)
    memory = state_bytes(num_qubits, options.precision)
    made = Plan(num_qubits, tuple(steps), final, device, options, prediction, memory)
    return made, task.starts.index(way.start)


def _starts(ops: OpList, num_qubits: int, device: Device, options: PlanOptions) -> list[Start]:
    """The ways to begin ``ops``.

    From |0...0> the leading one-qubit gates may all be part of the first write, or be left to the passes: qubits are
    |0> for longer then, and passes before the last of them is touched work on a small part of the state.
    """
    every = (1 << num_qubits) - 1
    if not options.from_zero:
        return [Start(None, ops, Footprint(num_qubits, options.precision, every))]
    starts = []
    for basis_states_only in (False, True):
        prepare, left, live, ones = absorb_product(ops, num_qubits, basis_states_only)
        used = Footprint(num_qubits, options.precision, live, ones, live.bit_count(), 0, device.abilities.skips_zeros)
        fresh = used.extent(0).fresh_bytes
        prediction = predict_prepare(num_qubits, live.bit_count(), options.precision, device, fresh)
        starts.append(Start(replace(prepare, prediction=prediction, reason="one write of a product state"), left, used))
        if not live or num_qubits <= device.tile_for(options.precision):
            break  # nothing to leave, or one tile does it all
        if LateQubits(ops, num_qubits, device.line_for(options.precision)).share() < LEAST_EARLY:
            break  # soon all qubits are needed
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A start, the operators after it in parts, the steps that do both, and where each physical qubit is after them."""

    start: Start
    parts: Sequence[OpList]
    steps: Sequence[Step]
    place: tuple[int, ...]

    def seconds(self) -> float:
        """Predicted for all steps."""
        return sum(step.prediction.seconds for step in self.steps)

    def passes(self) -> float:
        """How often all of the state is read and written."""
        return sum(step.prediction.passes for step in self.steps)


def _best_way(start: Start, device: Device, options: PlanOptions) -> _Way:
    """The best way from ``start`` on.

    Where qubits are |0> at the start, the operators are also tried in parts that need more and more of them.
    """
    search = _search(start.used.num_qubits, [start.ops], device, options, QUICK)
    found = cheapest(start.ops, start.used, search)
    return _way(start, found.parts, found.passes, device)


def _search(
    num_qubits: int, parts: Sequence[OpList], device: Device, options: PlanOptions, effort: float
) -> TileSearch:
    asked = Asked(options.precision, options.arithmetic, options.accuracy)
    return TileSearch(num_qubits, parts, PassRules(device, asked, options.restore_order), effort)


def _way(start: Start, parts: Sequence[OpList], passes: Passes, device: Device) -> _Way:
    """``start`` and ``passes`` over ``parts``."""
    prepare = start.prepare
    from_zero = device.abilities.skips_zeros and not start.used.live | start.used.ones
    if prepare and from_zero and _need_no_zeros(passes.steps):
        prediction = Prediction(device.launch_seconds, bound_by="launch")
        prepare = replace(
            prepare, prediction=prediction, reason="one amplitude, others when a pass comes to them", alone=True
        )
    return _Way(start, parts, [*([prepare] if prepare else []), *passes.steps], passes.place)


def _need_no_zeros(steps: Sequence[Step]) -> bool:
    """Whether tile passes from |0...0> on write every amplitude before another step comes."""
    for step in steps:
        if not isinstance(step, TilePass):
            return False
        if not step.zero_qubits:
            return True
    return False


def _relabel(start: Sequence[int], final: Sequence[int]) -> Relabel:
    moved = [0] * len(start)
    for before, after in zip(start, final, strict=True):
        moved[before] = after
    return Relabel(tuple(moved), reason="SWAPs change names, no data")


def order_swaps(final: Sequence[int]) -> list[Op]:
    """SWAPs of physical qubits after which program qubit q is on physical qubit q."""
    holder = [0] * len(final)  # program qubit on each physical qubit
    for q, p in enumerate(final):
        holder[p] = q
    swaps = []
    for p in range(len(holder)):
        while holder[p] != p:
            other = holder[p]
            order = np.array(SWAP_PERMUTATION)
            swaps.append(Op(Kind.PERMUTATION, (p, other), np.ones(4, complex), permutation=order, name="swap"))
            holder[p], holder[other] = holder[other], holder[p]
    return swaps
