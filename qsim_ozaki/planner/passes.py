"""Operators in order become passes: tiles that take the most work first, large matrices apart.

In: fused ops on physical qubits, in parts; the state before them; a `Device`. Out: steps with predictions. It chooses
tiles and no parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from qsim_ozaki.ir import (
    DenseBlock,
    Device,
    HadamardPass,
    Op,
    OpList,
    Path,
    Prediction,
    Step,
    TilePass,
    mask_of,
    state_bytes,
)
from qsim_ozaki.planner.arithmetic import Asked, dense_block, least_block_qubits
from qsim_ozaki.planner.cost_dense import predict_matrix, predict_pass
from qsim_ozaki.planner.footprint import Footprint

VECTOR_QUBITS = 2  # lowest qubits that a block works on whatever its targets: their amplitudes share a vector register
FEW = 3  # passes of a part, of which one may be saved where its first tile may hold more: else the search is not repaid

Tiles = Sequence[tuple[int, int, Any]]  # of passes: tile, its qubits at the lowest places, ops


@dataclass(frozen=True, slots=True)
class PassRules:
    """What passes are chosen for.

    Attributes:
        device: measured or made up.
        asked: of precision and arithmetic.
        stay: the ops end with each qubit where it was.
    """

    device: Device
    asked: Asked
    stay: bool


@dataclass(frozen=True, slots=True)
class PreviousPass:
    """The pass before a part.

    Attributes:
        tile: mask of its qubits: the next tile holds a line's number of them.
        low: mask of those at the lowest places.
        free: so few are needed that the tile may hold a line of any others too.
    """

    tile: int
    low: int
    free: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Steps by chosen tiles.

    Attributes:
        steps: in order.
        place: for each physical qubit before them the one where it is after them.
    """

    steps: Sequence[Step]
    place: tuple[int, ...]


class TileSearch:
    """Chooses the tiles of passes over one part after the other.

    Where the device can, passes bring those qubits to the lowest places that the next tile holds: a tile then is any
    set of qubits that shares a line's number of them with the tile before.

    Args:
        num_qubits: width of the state.
        ops: all that will be asked for.
        rules: what passes are chosen for.
        effort: 1 where passes are searched for as long as fewer may repay it; a share of that.
    """

    def __init__(self, num_qubits: int, ops: Sequence[OpList], rules: PassRules, effort: float) -> None:
        device, precision = rules.device, rules.asked.precision
        self.num_qubits = num_qubits
        self.rules = rules
        self.effort = effort
        self.line = min(device.line_for(precision), num_qubits)
        self.size = min(max(device.tile_for(precision), self.line + 1), num_qubits)
        least = least_block_qubits(rules.asked.arithmetic)
        large = any(part.native.large_matrices(least) for part in ops)
        self.moves = device.abilities.moves_qubits and not large and not rules.stay

    def first(self) -> PreviousPass:
        """What passes that come first follow."""
        return PreviousPass((1 << self.line) - 1, (1 << self.line) - 1)

    def tiles(self, part: OpList, live: int, after: PreviousPass) -> Tiles:
        """Those of ``part``.

        Args:
            part: ops in order, fused, on physical qubits.
            live: mask of the qubits that were changed before.
            after: the pass before.
        """
        live |= part.native.mixed_mask()
        state = state_bytes(live.bit_count(), self.rules.asked.precision)
        seconds = self.effort * 2 * state / self.rules.device.memory.bandwidth_bytes_per_s
        find = part.native.search_tiles
        if not self.moves:
            after = self.first()
        tiles: Tiles = find(self.num_qubits, self.size, after.low, seconds, self.moves, after.tile)
        if after.free and 1 < len(tiles) <= FEW:
            every = (1 << self.num_qubits) - 1
            others: Tiles = find(self.num_qubits, self.size, after.low, seconds, self.moves, every)
            return others if len(others) < len(tiles) else tiles
        return tiles

    def chain(self, parts: Sequence[OpList], live: int) -> Tiles:
        """Those of one part after the other, where the qubits of ``live`` were changed before."""
        out: list[tuple[int, int, Any]] = []
        for part in parts:
            out += self.tiles(part, live, self.end(out) if out else self.first())
            live |= part.native.mixed_mask()
        return out

    def end(self, tiles: Tiles) -> PreviousPass:
        """What follows ``tiles``."""
        tile, low, members = tiles[-1]
        room = self.size - (members.mixed_mask() | low).bit_count()
        return PreviousPass(tile, low, room >= self.line)

    def passes(self, tiles: Tiles, used: Footprint) -> Passes:
        """Those with ``tiles`` on the state ``used``, with predictions."""
        made = _Passes(replace(used), self.size, self.rules)
        place = made.take(tiles, self.line if self.moves else 0)
        return Passes(made.steps, place)


def _placed(mask: int, place: Sequence[int]) -> int:
    return mask_of(p for q, p in enumerate(place) if mask >> q & 1)


def _line_swaps(wanted: int, line: int) -> tuple[tuple[int, int], ...]:
    """Swaps of physical qubits that bring those of ``wanted`` to the lowest ``line`` places."""
    leaving = [p for p in range(line) if not wanted >> p & 1]
    coming = [p for p in range(line, wanted.bit_length()) if wanted >> p & 1]
    return tuple(zip(leaving, coming, strict=True))


class _Passes:
    """Turns chosen tiles into steps, keeping track of what they touch."""

    def __init__(self, used: Footprint, tile_qubits: int, rules: PassRules) -> None:
        self.used = used
        self.tile_qubits = tile_qubits
        self.device = rules.device
        self.asked = rules.asked
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
        for number in ops.native.large_matrices(least_block_qubits(self.asked.arithmetic)):
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
        mask = mask_of(op.targets)
        zeros, ones = self.used.fixed_qubits(mask)
        extent = self.used.extent(mask | (1 << VECTOR_QUBITS) - 1)
        prediction = predict_matrix(op, extent, self.used.num_qubits, self.asked.precision, self.device)
        size = 1 << len(op.targets)
        native = DenseBlock(op, Path.NATIVE, 0, zeros, ones, prediction, f"{size} x {size} matrix product")
        self.steps.append(dense_block(native, extent.worked, self.used.num_qubits, self.asked, self.device))
        self.used.mix(mask, len(op.targets))

    def predict(self, tile: int, ops: OpList) -> Prediction:
        extent = self.used.extent(tile)
        return predict_pass(ops, extent, self.used.num_qubits, self.asked.precision, self.device)
