"""The planner: which steps, on which tiles, by which path; and how to say so.

In: unitary ops of one segment, a `Device`, `PlanOptions`. Out: a `Plan`. A pure function: it measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qsim_ozaki import late
from qsim_ozaki.choose import Asked, dense_block, least_block_qubits
from qsim_ozaki.cost import Device, Footprint, predict_prepare, state_bytes, total
from qsim_ozaki.cost_blocks import predict_matrix, predict_pass
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.explain import explain_html, explain_steps, too_wide
from qsim_ozaki.fuse import absorb_product, fuse, relabel_swaps
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import (
    DenseBlock,
    HadamardPass,
    Kind,
    Op,
    Path,
    Prediction,
    Prepare,
    Relabel,
    Step,
    TilePass,
)
from qsim_ozaki.pairs import split_pairs

SWAP_PERMUTATION = (0, 2, 1, 3)
VECTOR_QUBITS = 2  # lowest qubits that a block works on whatever its targets: their amplitudes share a vector register
SECONDS_PER_OP = 2e-6  # of planning once more (EPYC 9004, 2026-11)
QUICK = 0.2  # effort of searches for passes that other ways to begin are compared with
SEARCH_GAIN = 0.05  # share of a run's time that fewer passes save, where a longer search finds them
NEAR = 1.02  # predictions as near as that cannot tell plans apart, passes can (benchmarks/h200_passes.md: each costs)
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
        return explain_steps(*self._told())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return explain_html(*self._told())

    def _told(self) -> tuple[int, Sequence[Step], Prediction, Device, str, int]:
        precision = self.options.precision
        return self.num_qubits, self.steps, self.prediction, self.device, precision, self.memory_bytes


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
    if num_qubits > MAX_QUBITS:
        raise CapacityError(too_wide(num_qubits, options.precision, device.name, device.memory_bytes))
    start = tuple(range(num_qubits)) if position is None else tuple(position)
    relabelled, final = relabel_swaps(ops, start)
    steps: list[Step] = []
    if final != start:
        steps.append(_relabel(start, final))
    fused = fuse(relabelled, num_qubits, options.max_fused_qubits)
    moved = order_swaps(final) if options.restore_order else []
    starts = _starts(fused, num_qubits, device, options)
    way = min((_best_way(start, moved, device, options) for start in starts), key=_Way.seconds)
    if way.seconds() * SEARCH_GAIN > SECONDS_PER_OP * sum(len(part) for part in way.parts):
        again = _planned(way.start, way.parts, device, options, effort=1.0)
        if again.seconds() < way.seconds() * (NEAR if again.passes() < way.passes() else 1):
            way = again
    passes, place = way.steps, way.place
    steps += passes
    final = tuple(place[q] for q in (range(num_qubits) if options.restore_order else final))
    prediction = total(step.prediction for step in steps)
    memory = state_bytes(num_qubits, options.precision)
    return Plan(num_qubits, tuple(steps), final, device, options, prediction, memory)


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """How a plan may begin: a product state or none, what it leaves to do, and where amplitudes may be then."""

    prepare: Prepare | None
    ops: OpList
    used: Footprint


def _starts(ops: OpList, num_qubits: int, device: Device, options: PlanOptions) -> list[_Start]:
    """The ways to begin ``ops``.

    From |0...0> the leading one-qubit gates may all be part of the first write, or be left to the passes: qubits are
    |0> for longer then, and passes before the last of them is touched work on a small part of the state.
    """
    every = (1 << num_qubits) - 1
    if not options.from_zero:
        return [_Start(None, ops, Footprint(num_qubits, options.precision, every))]
    starts = []
    for basis_states_only in (False, True):
        prepare, left, live, ones = absorb_product(ops, num_qubits, basis_states_only)
        used = Footprint(num_qubits, options.precision, live, ones, live.bit_count(), 0, device.skips_zeros)
        fresh = used.extent(0).fresh_bytes
        prediction = predict_prepare(num_qubits, live.bit_count(), options.precision, device, fresh)
        starts.append(
            _Start(replace(prepare, prediction=prediction, reason="one write of a product state"), left, used)
        )
        if not live or num_qubits <= device.tile_for(options.precision):
            break  # nothing to leave, or one tile does it all
        if late.share(ops, num_qubits, device.line_for(options.precision)) < late.LEAST_SHARE:
            break  # soon all qubits are needed
    return starts


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """A start, the operators after it in parts, the steps that do both, and where each physical qubit is after them."""

    start: _Start
    parts: Sequence[OpList]
    steps: Sequence[Step]
    place: tuple[int, ...]

    def seconds(self) -> float:
        """Predicted for all steps."""
        return sum(step.prediction.seconds for step in self.steps)

    def passes(self) -> float:
        """How often all of the state is read and written."""
        return sum(step.prediction.passes for step in self.steps)


def _best_way(start: _Start, moved: Sequence[Op], device: Device, options: PlanOptions) -> _Way:
    """The best way from ``start`` on, with ``moved`` as the last operators.

    Where qubits are |0> at the start, the operators are also tried in parts that need more and more of them.
    """
    n = start.used.num_qubits
    ops = OpList.of(split_pairs(start.ops, n)) if device.splits_pairs else start.ops
    if moved:
        ops = OpList.of([*ops, *moved])
    ways = [_planned(start, [ops], device, options)]
    if not start.used.live and n > device.tile_for(options.precision):
        parts = late.parts(ops, n, device.line_for(options.precision), ways[0].seconds())
        ways += [_planned(start, way, device, options) for way in parts]
    return min(ways, key=_Way.seconds)


def _planned(
    start: _Start, parts: Sequence[OpList], device: Device, options: PlanOptions, *, effort: float = QUICK
) -> _Way:
    """The steps from ``start`` on with what follows in ``parts``."""
    passes, place = choose_passes(parts, replace(start.used), device, options, effort=effort)
    prepare = start.prepare
    if prepare and device.skips_zeros and not start.used.live | start.used.ones and _need_no_zeros(passes):
        prediction = Prediction(device.launch_seconds, bound_by="launch")
        prepare = replace(
            prepare, prediction=prediction, reason="one amplitude, others when a pass comes to them", alone=True
        )
    return _Way(start, parts, [*([prepare] if prepare else []), *passes], place)


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


def choose_passes(
    parts: Sequence[OpList], used: Footprint, device: Device, options: PlanOptions, *, effort: float = QUICK
) -> tuple[list[Step], tuple[int, ...]]:
    """Steps that cover one part after the other: tiles that take the most work first, large matrices apart.

    Where the device can, passes bring those qubits to the lowest places that the next tile holds: a tile then is any
    set of qubits that shares a line's number of them with the tile before.

    Args:
        parts: ops in order, fused, on physical qubits.
        used: the state before the first op; it is changed to that after the last.
        device: measured or made up.
        options: what was asked.
        effort: 1 where passes are searched for as long as fewer may repay it; a share of that.

    Returns:
        The steps, and for each physical qubit of ``parts`` the one where it is after them.
    """
    n = used.num_qubits
    line = min(device.line_for(options.precision), n)
    size = min(max(device.tile_for(options.precision), line + 1), n)
    large = any(part.native.large_matrices(least_block_qubits(options.arithmetic)) for part in parts)
    moves = device.moves_qubits and not large and not options.restore_order
    chosen: list[tuple[int, int, Any]] = []  # tile, its qubits at the lowest places, ops
    before = held = (1 << line) - 1
    live = used.live
    for part in parts:
        live |= part.native.mixed_mask()
        seconds = effort * 2 * state_bytes(live.bit_count(), options.precision) / device.bandwidth_bytes_per_s
        chosen += part.native.search_tiles(n, size, held, seconds, moves, before)
        if moves and chosen:
            before, held, _ = chosen[-1]
    passes = _Passes(used, size, device, options)
    return passes.steps, passes.take(chosen, line if moves else 0)


def _placed(mask: int, place: Sequence[int]) -> int:
    return _mask([p for q, p in enumerate(place) if mask >> q & 1])


def _line_swaps(wanted: int, line: int) -> tuple[tuple[int, int], ...]:
    """Swaps of physical qubits that bring those of ``wanted`` to the lowest ``line`` places."""
    leaving = [p for p in range(line) if not wanted >> p & 1]
    coming = [p for p in range(line, wanted.bit_length()) if wanted >> p & 1]
    return tuple(zip(leaving, coming, strict=True))


class _Passes:
    """Turns chosen tiles into steps, keeping track of what they touch."""

    def __init__(self, used: Footprint, tile_qubits: int, device: Device, options: PlanOptions) -> None:
        self.used = used
        self.tile_qubits = tile_qubits
        self.device = device
        self.options = options
        self.steps: list[Step] = []

    def take(self, chosen: Sequence[tuple[int, int, Any]], moved: int) -> tuple[int, ...]:
        """The passes ``chosen``: their tiles, the qubits of these at the lowest places, their ops.

        Each but the last stores the next one's lowest qubits there, where ``moved`` of them may move.

        Returns:
            Where each qubit is in the end.
        """
        start = place = tuple(range(self.used.num_qubits))
        for (_, low, members), after in zip(chosen, [*chosen[1:], None], strict=False):
            following = after[1] if after and moved else 0
            tile = members.mixed_mask() | low | following  # what else was in it may be any qubits
            if place != start:
                tile, (members, place) = _placed(tile, place), members.relabel_swaps(list(place))
            swaps = _line_swaps(_placed(following, place), moved) if following else ()
            self.add(tile, OpList(members), swaps)
            place = tuple(dict([*swaps, *((q, p) for p, q in swaps)]).get(p, p) for p in place)
        return tuple(place)

    def add(self, tile: int, ops: OpList, swaps: tuple[tuple[int, int], ...]) -> None:
        """One pass with ``ops``, or several where matrices among them are large enough to be steps of their own."""
        begin = 0
        for number in ops.native.large_matrices(least_block_qubits(self.options.arithmetic)):
            self.close(tile, OpList(ops.native.part(begin, number)))
            self.block(ops[number])
            begin = number + 1
        self.close(tile, OpList(ops.native.part(begin, len(ops))) if begin else ops, swaps)

    def close(self, tile: int, ops: OpList, swaps: tuple[tuple[int, int], ...] = ()) -> None:
        if not ops:
            return
        tile = self.filled(tile)
        zeros, ones = self.used.fixed_qubits(tile)
        fresh = self.used.fresh_qubits(tile)
        prediction = self.predict(tile, ops)
        if not zeros and not ones and not fresh and not swaps and ops.native.only_hadamards():
            targets = tuple(sorted(op.targets[0] for op in ops))
            self.steps.append(HadamardPass(targets, prediction, "only Hadamards: additions, one scale"))
        else:
            qubits = tuple(q for q in range(self.used.num_qubits) if tile >> q & 1)
            reason = f"{len(ops)} ops fit a tile of {len(qubits)} qubits"
            if swaps:
                reason += f", stored with {', '.join(str(p) for _, p in swaps)} lowest"
            self.steps.append(TilePass(qubits, ops, zeros, ones, prediction, reason, swaps, fresh))
        self.used.mix(ops.native.mixed_mask(), ops.native.spread())
        self.used.swap(swaps)

    def filled(self, tile: int) -> int:
        """``tile`` with the lowest live qubits for which there is room: longer runs of memory, fewer tiles."""
        for q in range(self.used.num_qubits):
            if tile.bit_count() >= self.tile_qubits:
                break
            if self.used.live >> q & 1:
                tile |= 1 << q
        return tile

    def block(self, op: Op) -> None:
        mask = _mask(op.targets)
        zeros, ones = self.used.fixed_qubits(mask)
        extent = self.used.extent(mask | (1 << VECTOR_QUBITS) - 1)
        prediction = predict_matrix(op, extent, self.used.num_qubits, self.options.precision, self.device)
        size = 1 << len(op.targets)
        native = DenseBlock(op, Path.NATIVE, 0, zeros, ones, prediction, f"{size} x {size} matrix product")
        asked = Asked(self.options.precision, self.options.arithmetic, self.options.accuracy)
        self.steps.append(dense_block(native, extent.worked, self.used.num_qubits, asked, self.device))
        self.used.mix(mask, len(op.targets))

    def predict(self, tile: int, ops: OpList) -> Prediction:
        extent = self.used.extent(tile)
        return predict_pass(ops, extent, self.used.num_qubits, self.options.precision, self.device)


def _mask(qubits: Sequence[int]) -> int:
    out = 0
    for q in qubits:
        out |= 1 << q
    return out
