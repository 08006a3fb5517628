"""Plans: the steps of one segment, with tiles, paths and predictions, and the choice between plans.

In: unitary operators of one segment, a `Device`, `PlanOptions`. Out: a `Plan`, which depends on these alone. It may not
measure or run anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import Device, Kind, Op, OpList, Prediction, Prepare, Relabel, Step, TilePass, state_bytes, too_wide
from qsim_ozaki.planner.cost import predict_prepare, total
from qsim_ozaki.planner.explain import Explained, explain_steps
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.fuse import absorb_product, collect_rotations, fuse, relabel_swaps
from qsim_ozaki.planner.kak import split_two_qubit_gates
from qsim_ozaki.planner.notebook import MAX_ROWS, plan_html
from qsim_ozaki.planner.options import PlanOptions
from qsim_ozaki.planner.passes import Passes, TileSearch
from qsim_ozaki.planner.zero_start import LEAST_EARLY, LateQubits, cheapest_parts

SWAP_PERMUTATION = (0, 2, 1, 3)
SECONDS_PER_OP = 2e-6  # time to plan an operator once more (EPYC 9004, 2026-11)
QUICK = 0.2  # effort of the tile searches that compare the candidates
THOROUGH = 2.0  # effort of the search for the chosen candidate: fewer passes repay it in the second run at the latest
SEARCH_GAIN = 0.05  # share of a run's time that a longer search saves where it reaches fewer passes
# Within 2 % the plan with fewer passes is preferred: the predictions are not more exact than that, and every pass costs
# time (docs/internals/what_bounds_a_pass.md).
NEAR = 1.02
FEWER = 0.5  # share of the operators that is left where many Clifford gates undo each other
MAX_DIRECTION = 6  # qubits with X or Y of a Pauli rotation: wider ones fit few tiles with others
MAX_QUBITS = 62  # a mask of qubits is one machine word; no memory holds a wider state


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The steps of one segment, with predictions.

    Attributes:
        num_qubits: number of qubits of the state.
        steps: steps in order; they act on *physical* qubits.
        final_position: program qubit q ends on physical qubit ``final_position[q]``, because SWAPs only relabel.
        device: the device that the plan is for.
        options: the options that the plan follows.
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
        """Returns the plan as a table.

        A row shows a step's work, qubits, path, passes, bytes, seconds, bound and reason; the last lines show totals.
        """
        return explain_steps(self._explained())

    def _repr_html_(self) -> str:
        """Returns a timeline and the table of `explain` as HTML, for notebooks."""
        return self.html()

    def html(self, start: float = 0.0, whole: float = 0.0, max_rows: int = MAX_ROWS) -> str:
        """Returns the HTML of this plan as a part of a program; the arguments are those of `plan_html`."""
        return plan_html(self._explained(), start, whole, max_rows)

    def _explained(self) -> Explained:
        precision = self.options.precision
        return Explained(self.num_qubits, self.steps, self.prediction, self.device, precision, self.memory_bytes)


def plan(
    ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int] | None = None
) -> Plan:
    """Fuses ``ops``, chooses tiles and paths, and predicts the cost of each step.

    Args:
        ops: unitary operators in order, on program qubits.
        num_qubits: number of qubits of the state.
        device: a measured device, or one that a test makes up.
        options: the user's requests.
        position: physical qubit of each program qubit at the start; None puts every qubit on itself.

    Returns:
        The plan. Its steps apply all ops, in an order that commutes with the order of ``ops``.

    Raises:
        CapacityError: ``num_qubits`` is more than `MAX_QUBITS`.
        OptionError: no number of moduli meets the requested accuracy, and emulation is compulsory.
    """
    return decide(prepare_task(ops, num_qubits, device, options, position))[0]


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """One way to begin a plan.

    Attributes:
        prepare: the write of a product state, or None for a plan that starts from any state.
        ops: the operators that are left after it.
        used: the part of the state that may hold more than zeros after it.
        final: physical qubit of each program qubit after the last operator, if no pass moves qubits.
    """

    prepare: Prepare | None
    ops: OpList
    used: Footprint
    final: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The input of `decide`. The numbers in the operators are final: the decisions depend only on their structure.

    Attributes:
        num_qubits: number of qubits of the state.
        device: a measured device, or one that a test makes up.
        options: the user's requests.
        position: physical qubit of each program qubit before the first operator.
        starts: ways to begin. Their operators are fused and numbered, and restore the order of the qubits at the end
            if the options ask for it.
    """

    num_qubits: int
    device: Device
    options: PlanOptions
    position: tuple[int, ...]
    starts: tuple[Start, ...]


def prepare_task(
    ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int] | None = None
) -> Task:
    """Returns the task that `plan` decides on, for the same arguments.

    Raises:
        CapacityError: ``num_qubits`` is more than `MAX_QUBITS`.
    """
    if num_qubits > MAX_QUBITS:
        raise CapacityError(too_wide(num_qubits, options.precision, device.name, device.memory_bytes))
    before = tuple(range(num_qubits)) if position is None else tuple(position)
    columns = OpList.of(ops)
    starts = []
    for rewritten, final in _spellings(columns, before, _max_direction(device, options.precision)):
        fused = fuse(rewritten, num_qubits, options.max_fused_qubits)
        restoring_swaps = order_swaps(final) if options.restore_order else []
        for start in _starts(fused, num_qubits, device, options):
            remaining = start.ops
            if device.abilities.splits_two_qubit_gates and remaining.native.large_matrices(2):
                remaining = OpList.of(split_two_qubit_gates(remaining, num_qubits))
            if restoring_swaps:
                remaining = OpList.of([*remaining, *restoring_swaps])
            remaining.native.number()
            starts.append(replace(start, ops=remaining, final=final))
    return Task(num_qubits, device, options, before, tuple(starts))


def _spellings(ops: OpList, position: tuple[int, ...], max_direction: int) -> Iterator[tuple[OpList, tuple[int, ...]]]:
    """Yields ``ops`` on physical qubits, each with the qubits' places after it, in the ways that may be the cheapest.

    Where many Clifford gates undo each other, that way is the cheapest. Where few do, the rotations that they leave may
    cost more than they did.
    """
    collected, final = collect_rotations(ops, position, max_direction)
    yield collected, final
    if FEWER * len(ops) < len(collected) < len(ops):
        relabelled, after_swaps = relabel_swaps(ops, position)
        if len(relabelled) != len(collected):
            yield relabelled, after_swaps


def _max_direction(device: Device, precision: str) -> int:
    """Returns on how many qubits the strings of Pauli rotations may have X or Y: all of them must fit a tile."""
    if not device.abilities.rotates_paulis:
        return 0
    return max(0, min(MAX_DIRECTION, device.tile_for(precision) - device.line_for(precision)))


def decide(task: Task) -> tuple[Plan, int]:
    """Returns the plan of ``task`` and the index of the start that it takes."""
    num_qubits, device, options = task.num_qubits, task.device, task.options
    best = min((_best_candidate(start, device, options) for start in task.starts), key=_Candidate.seconds)
    if best.seconds() * SEARCH_GAIN > SECONDS_PER_OP * sum(len(part) for part in best.parts):
        search = TileSearch(num_qubits, best.parts, device, options, THOROUGH)
        used = best.start.used
        passes = search.passes(search.chain(best.parts, used.live), used)
        thorough = _candidate(best.start, best.parts, passes, device)
        limit = best.seconds() * (NEAR if thorough.passes() < best.passes() else 1)
        if thorough.seconds() < limit:
            best = thorough
    before, final = task.position, best.start.final
    steps: list[Step] = [] if final == before else [_relabel(before, final)]
    steps += best.steps
    final = tuple(best.place[q] for q in (range(num_qubits) if options.restore_order else final))
    prediction = total(step.prediction for step in steps)
    memory = state_bytes(num_qubits, options.precision)
    chosen = Plan(num_qubits, tuple(steps), final, device, options, prediction, memory)
    return chosen, task.starts.index(best.start)


def _starts(ops: OpList, num_qubits: int, device: Device, options: PlanOptions) -> list[Start]:
    """Returns the ways to begin ``ops``.

    From |0...0>, the first write can do all leading one-qubit gates. Or it leaves them to the passes: then qubits stay
    |0> for longer, and the passes before the last of these qubits changes work on a small part of the state.
    """
    all_qubits = (1 << num_qubits) - 1
    if not options.from_zero:
        return [Start(None, ops, Footprint(num_qubits, options.precision, all_qubits))]
    starts = []
    for basis_states_only in (False, True):
        prepare, remaining, live, ones = absorb_product(ops, num_qubits, basis_states_only)
        used = Footprint(num_qubits, options.precision, live, ones, live.bit_count(), 0, device.abilities.skips_zeros)
        fresh = used.extent(0).fresh_bytes
        prediction = predict_prepare(num_qubits, live.bit_count(), options.precision, device, fresh)
        prepare = replace(prepare, prediction=prediction, reason="one write of a product state")
        starts.append(Start(prepare, remaining, used))
        if not live or num_qubits <= device.tile_for(options.precision):
            break  # there is no gate to leave to the passes, or one tile does all gates
        if LateQubits(ops, num_qubits, device.line_for(options.precision)).share() < LEAST_EARLY:
            break  # too few operators can act while qubits are still |0>
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """One complete sequence of steps for a task.

    Attributes:
        start: how it begins.
        parts: the operators after the start, in parts.
        steps: the steps of the start and of the parts.
        place: for each physical qubit before the steps, the one where it is after them.
    """

    start: Start
    parts: Sequence[OpList]
    steps: Sequence[Step]
    place: tuple[int, ...]

    def seconds(self) -> float:
        """Returns the predicted time of all steps."""
        return sum(step.prediction.seconds for step in self.steps)

    def passes(self) -> float:
        """Returns how often the whole state is read and written."""
        return sum(step.prediction.passes for step in self.steps)


def _best_candidate(start: Start, device: Device, options: PlanOptions) -> _Candidate:
    """Returns the cheapest candidate that begins with ``start``.

    Where qubits are |0> after the start, the operators are also tried in parts that need more and more of these qubits.
    """
    search = TileSearch(start.used.num_qubits, [start.ops], device, options, QUICK)
    cheapest = cheapest_parts(start.ops, start.used, search)
    return _candidate(start, cheapest.parts, cheapest.passes, device)


def _candidate(start: Start, parts: Sequence[OpList], passes: Passes, device: Device) -> _Candidate:
    """Returns the candidate of ``start`` and ``passes`` over ``parts``."""
    prepare = start.prepare
    from_zero = device.abilities.skips_zeros and not start.used.live | start.used.ones
    if prepare and from_zero and _need_no_zeros(passes.steps):
        prediction = Prediction(device.launch_seconds, bound_by="launch")
        prepare = replace(
            prepare, prediction=prediction, reason="one amplitude, others when a pass comes to them", alone=True
        )
    steps = [prepare, *passes.steps] if prepare else list(passes.steps)
    return _Candidate(start, parts, steps, passes.place)


def _need_no_zeros(steps: Sequence[Step]) -> bool:
    """Returns whether, from |0...0> on, tile passes write every amplitude before a step of another kind comes."""
    for step in steps:
        if not isinstance(step, TilePass):
            return False
        if not step.zero_qubits:
            return True
    return False


def _relabel(start: Sequence[int], final: Sequence[int]) -> Relabel:
    """Returns the step that renames qubits from the places ``start`` to the places ``final`` of the program qubits."""
    permutation = [0] * len(start)
    for before, after in zip(start, final, strict=True):
        permutation[before] = after
    return Relabel(tuple(permutation), reason="SWAPs change names, no data")


def order_swaps(final: Sequence[int]) -> list[Op]:
    """Returns SWAPs of physical qubits that bring every program qubit q from ``final[q]`` to physical qubit q."""
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
