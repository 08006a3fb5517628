"""The planner: which steps, on which tiles, by which path; and how to say so.

In: unitary ops of one segment, a `Device`, `PlanOptions`. Out: a `Plan`. A pure function: it measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qsim_ozaki import late
from qsim_ozaki.choose import Asked, dense_block, least_block_qubits
from qsim_ozaki.cost import Device, Footprint, packing_seconds, predict_prepare, predict_tile, state_bytes, total
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
    passes, place = min((_planned(start, moved, device, options) for start in starts), key=_seconds)
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
    return starts


def _planned(
    start: _Start, moved: Sequence[Op], device: Device, options: PlanOptions
) -> tuple[list[Step], tuple[int, ...]]:
    """All steps from ``start`` on, with ``moved`` as the last operators, and where each physical qubit ends.

    Where qubits are |0> at the start, the operators are also tried in parts that need more and more of them.
    """
    n = start.used.num_qubits
    ops = OpList.of(split_pairs(start.ops, n)) if device.splits_pairs else start.ops
    if moved:
        ops = OpList.of([*ops, *moved])
    planned = [_in_parts([ops], start, device, options)]
    if not start.used.live and n > device.tile_for(options.precision):
        ways = late.parts(ops, n, device.line_for(options.precision), _seconds(planned[0]))
        planned += [_in_parts(way, start, device, options) for way in ways]
    return min(planned, key=_seconds)


def _in_parts(
    parts: Sequence[OpList], start: _Start, device: Device, options: PlanOptions
) -> tuple[list[Step], tuple[int, ...]]:
    """Steps of one part after the other from ``start`` on, and where each physical qubit is after them."""
    used = replace(start.used)
    steps: list[Step] = []
    place = tuple(range(used.num_qubits))
    for part in parts:
        ops = part if place == tuple(range(len(place))) else OpList(part.native.relabel_swaps(list(place))[0])
        passes, after = choose_passes(ops, used, device, options)
        steps += passes
        place = tuple(after[p] for p in place)
    prepare = start.prepare
    if prepare and device.skips_zeros and not start.used.live | start.used.ones and _need_no_zeros(steps):
        prediction = Prediction(device.launch_seconds, bound_by="launch")
        prepare = replace(
            prepare, prediction=prediction, reason="one amplitude, others when a pass comes to them", alone=True
        )
    return [*([prepare] if prepare else []), *steps], place


def _need_no_zeros(steps: Sequence[Step]) -> bool:
    """Whether tile passes from |0...0> on write every amplitude before another step comes."""
    for step in steps:
        if not isinstance(step, TilePass):
            return False
        if not step.zero_qubits:
            return True
    return False


def _seconds(planned: tuple[Sequence[Step], object]) -> float:
    return sum(step.prediction.seconds for step in planned[0])


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
    ops: OpList, used: Footprint, device: Device, options: PlanOptions
) -> tuple[list[Step], tuple[int, ...]]:
    """Steps that cover ``ops``: tiles that take the most work first, large matrices apart.

    Where the device can, passes bring those qubits to the lowest places that the next tile holds: a tile then is any
    set of qubits that shares a line's number of them with the tile before.

    Args:
        ops: fused, on physical qubits.
        used: the state before the first op; it is changed to that after the last.
        device: measured or made up.
        options: what was asked.

    Returns:
        The steps, and for each physical qubit of ``ops`` the one where it is after them.
    """
    n = used.num_qubits
    line = min(device.line_for(options.precision), n)
    tile = min(max(device.tile_for(options.precision), line + 1), n)
    large = bool(ops.native.large_matrices(least_block_qubits(options.arithmetic)))
    moves = device.moves_qubits and not large and not options.restore_order
    seconds = 2 * state_bytes(n, options.precision) / device.bandwidth_bytes_per_s
    chosen = ops.native.search_tiles(n, tile, (1 << line) - 1, seconds, moves)
    passes = _Passes(used, tile, device, options)
    place = tuple(range(n))
    for (mask, _, members), after in zip(chosen, [*chosen[1:], None], strict=False):
        if place != tuple(range(n)):
            moved, place = members.relabel_swaps(list(place))
            mask, members = _placed(mask, place), moved
        swaps = _line_swaps(_placed(after[1], place), line) if after and moves else ()
        passes.add(mask, OpList(members), swaps)
        place = tuple(dict([*swaps, *((q, p) for p, q in swaps)]).get(p, p) for p in place)
    return passes.steps, place


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
        fresh = tuple(q for q in range(self.used.num_qubits) if (tile & ~self.used.live & ~self.used.ones) >> q & 1)
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
        prediction = predict_tile([op], extent, self.used.num_qubits, self.options.precision, self.device)
        prediction = replace(prediction, seconds=prediction.seconds + packing_seconds(len(op.targets), self.device))
        size = 1 << len(op.targets)
        native = DenseBlock(op, Path.NATIVE, 0, zeros, ones, prediction, f"{size} x {size} matrix product")
        asked = Asked(self.options.precision, self.options.arithmetic, self.options.accuracy)
        self.steps.append(dense_block(native, extent.worked, self.used.num_qubits, asked, self.device))
        self.used.mix(mask, len(op.targets))

    def predict(self, tile: int, ops: Iterable[Op]) -> Prediction:
        extent = self.used.extent(tile)
        return predict_tile(ops, extent, self.used.num_qubits, self.options.precision, self.device)


def _mask(qubits: Sequence[int]) -> int:
    out = 0
    for q in qubits:
        out |= 1 << q
    return out
