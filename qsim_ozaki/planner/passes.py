"""Passes: the search for tiles that do the most work first, and the steps for the tiles; large matrices are separate.

In: fused operators on physical qubits, in parts; the part of the state in use before them; a `Device`. Out: steps with
predictions. It chooses tiles and may not divide operators into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

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
from qsim_ozaki.planner.arithmetic import dense_block, least_block_qubits
from qsim_ozaki.planner.cost_dense import predict_matrix, predict_pass
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.options import PlanOptions

# A block works on this many lowest qubits for any targets, because their amplitudes share a vector register.
VECTOR_QUBITS = 2
# A second search, for a part whose first tile may hold any qubits, pays only if the part has at most this many passes,
# of which it may save one.
FEW_PASSES = 3

# For every pass: the mask of its tile, the mask of the tile's qubits at the lowest places, and the native list of its
# ops.
Tiles: TypeAlias = Sequence[tuple[int, int, Any]]


@dataclass(frozen=True, slots=True)
class PreviousPass:
    """The pass before a part.

    Attributes:
        tile: mask of its qubits; the next tile must share at least ``line_qubits`` of them.
        low: mask of its qubits at the lowest places.
        free: its operators leave so much room in the tile that it can also hold a line of any other qubits.
    """

    tile: int
    low: int
    free: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """The steps for chosen tiles.

    Attributes:
        steps: steps in order.
        place: for each physical qubit before the steps, the one where it is after them.
    """

    steps: Sequence[Step]
    place: tuple[int, ...]


class TileSearch:
    """Chooses the tiles of passes over one part after the other.

    If the device can move qubits, a pass stores qubits of the next tile at the lowest places. Then a tile is any set of
    qubits that shares at least ``line_qubits`` qubits with the tile before.

    Args:
        num_qubits: number of qubits of the state.
        ops: the operators of all parts.
        device: a measured device, or one that a test makes up.
        options: their precision, arithmetic, accuracy and whether the order of the qubits is restored.
        effort: share of the time that a search may take; at 1 it lasts as long as fewer passes can repay it.
    """

    def __init__(
        self, num_qubits: int, ops: Sequence[OpList], device: Device, options: PlanOptions, effort: float
    ) -> None:
        self.num_qubits = num_qubits
        self.device = device
        self.options = options
        self.effort = effort
        self.line = min(device.line_for(options.precision), num_qubits)
        self.size = min(max(device.tile_for(options.precision), self.line + 1), num_qubits)
        least = least_block_qubits(options.arithmetic)
        large = any(part.native.large_matrices(least) for part in ops)
        self.moves = device.abilities.moves_qubits and not large and not options.restore_order

    def first(self) -> PreviousPass:
        """Returns the stand-in for the pass before the first one: all qubits are at their own places."""
        return PreviousPass((1 << self.line) - 1, (1 << self.line) - 1)

    def tiles(self, part: OpList, live: int, after: PreviousPass) -> Tiles:
        """Returns the tiles for ``part``.

        Args:
            part: fused operators in order, on physical qubits.
            live: mask of the qubits that earlier operators changed.
            after: the pass before the part.
        """
        live |= part.native.mixed_mask()
        live_bytes = state_bytes(live.bit_count(), self.options.precision)
        seconds = self.effort * 2 * live_bytes / self.device.memory.bandwidth_bytes_per_s
        search = part.native.search_tiles
        if not self.moves:
            after = self.first()
        tiles: Tiles = search(self.num_qubits, self.size, after.low, seconds, self.moves, after.tile)
        if after.free and 1 < len(tiles) <= FEW_PASSES:
            all_qubits = (1 << self.num_qubits) - 1
            free_tiles: Tiles = search(self.num_qubits, self.size, after.low, seconds, self.moves, all_qubits)
            return free_tiles if len(free_tiles) < len(tiles) else tiles
        return tiles

    def chain(self, parts: Sequence[OpList], live: int) -> Tiles:
        """Returns the tiles for one part after the other; ``live`` masks the qubits that changed before them."""
        out: list[tuple[int, int, Any]] = []
        for part in parts:
            out += self.tiles(part, live, self.end(out) if out else self.first())
            live |= part.native.mixed_mask()
        return out

    def end(self, tiles: Tiles) -> PreviousPass:
        """Returns the last pass of ``tiles``, which the next part follows."""
        tile, low, members = tiles[-1]
        room = self.size - (members.mixed_mask() | low).bit_count()
        return PreviousPass(tile, low, room >= self.line)

    def passes(self, tiles: Tiles, used: Footprint) -> Passes:
        """Returns the passes with ``tiles``, with predictions, on a state of which ``used`` is in use."""
        builder = _PassBuilder(replace(used), self.size, self.device, self.options)
        place = builder.add_tiles(tiles, self.line if self.moves else 0)
        return Passes(builder.steps, place)


def _placed(mask: int, place: Sequence[int]) -> int:
    """Returns the mask of the places ``place[q]`` of the qubits q in ``mask``."""
    return mask_of(p for q, p in enumerate(place) if mask >> q & 1)


def _line_swaps(low: int, line: int) -> tuple[tuple[int, int], ...]:
    """Returns swaps of physical qubits that bring the qubits of ``low`` to the lowest ``line`` places."""
    leaving = [p for p in range(line) if not low >> p & 1]
    coming = [p for p in range(line, low.bit_length()) if low >> p & 1]
    return tuple(zip(leaving, coming, strict=True))


def _after_swaps(place: Sequence[int], swaps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Returns the places ``place`` after the places of each pair of ``swaps`` are exchanged."""
    moves = {}
    for p, q in swaps:
        moves[p], moves[q] = q, p
    return tuple(moves.get(p, p) for p in place)


class _PassBuilder:
    """Turns chosen tiles into steps and tracks which part of the state is in use.

    Args:
        used: the part of the state in use before the first step; the builder updates it.
        tile_qubits: number of qubits of a full tile.
        device: as for `TileSearch`.
        options: as for `TileSearch`.
    """

    def __init__(self, used: Footprint, tile_qubits: int, device: Device, options: PlanOptions) -> None:
        self.used = used
        self.tile_qubits = tile_qubits
        self.device = device
        self.options = options
        self.steps: list[Step] = []

    def add_tiles(self, tiles: Tiles, moved: int) -> tuple[int, ...]:
        """Adds the passes with ``tiles``.

        Every pass but the last stores the lowest qubits of the next tile at the lowest places.

        Args:
            tiles: tiles in order.
            moved: number of lowest places whose qubits may change; 0 where no qubit moves.

        Returns:
            For each physical qubit before the passes, the one where it is after them.
        """
        start = place = tuple(range(self.used.num_qubits))
        for (_, low, members), after in zip(tiles, [*tiles[1:], None], strict=False):
            next_low = after[1] if after and moved else 0
            tile = members.mixed_mask() | low | next_low  # any other qubits may fill the rest of the tile
            if place != start:
                tile, (members, place) = _placed(tile, place), members.relabel_swaps(list(place))
            swaps = _line_swaps(_placed(next_low, place), moved) if next_low else ()
            self.add_pass(tile, OpList(members), swaps)
            place = _after_swaps(place, swaps)
        return tuple(place)

    def add_pass(self, tile: int, ops: OpList, swaps: tuple[tuple[int, int], ...]) -> None:
        """Adds one pass with ``ops``, or several passes with the large matrices as separate steps between them."""
        begin = 0
        for number in ops.native.large_matrices(least_block_qubits(self.options.arithmetic)):
            self.add_tile_pass(tile, OpList(ops.native.part(begin, number)))
            self.add_block(ops[number])
            begin = number + 1
        self.add_tile_pass(tile, OpList(ops.native.part(begin, len(ops))) if begin else ops, swaps)

    def add_tile_pass(self, tile: int, ops: OpList, swaps: tuple[tuple[int, int], ...] = ()) -> None:
        """Adds a tile pass, or a Hadamard pass where that does the same; an empty list of ops adds nothing."""
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
        """Returns ``tile`` filled up with the lowest live qubits: memory runs get longer, and tiles fewer."""
        for q in range(self.used.num_qubits):
            if tile.bit_count() >= self.tile_qubits:
                break
            if self.used.live >> q & 1:
                tile |= 1 << q
        return tile

    def add_block(self, op: Op) -> None:
        """Adds the matrix ``op`` as a dense block."""
        mask = mask_of(op.targets)
        zeros, ones = self.used.fixed_qubits(mask)
        extent = self.used.extent(mask | (1 << VECTOR_QUBITS) - 1)
        prediction = predict_matrix(op, extent, self.used.num_qubits, self.options.precision, self.device)
        size = 1 << len(op.targets)
        native = DenseBlock(op, Path.NATIVE, 0, zeros, ones, prediction, f"{size} x {size} matrix product")
        self.steps.append(dense_block(native, extent.worked, self.used.num_qubits, self.options, self.device))
        self.used.mix(mask, len(op.targets))

    def predict(self, tile: int, ops: OpList) -> Prediction:
        """Returns the prediction of a pass with ``tile``; the footprint then counts its memory as touched."""
        extent = self.used.extent(tile)
        return predict_pass(ops, extent, self.used.num_qubits, self.options.precision, self.device)
