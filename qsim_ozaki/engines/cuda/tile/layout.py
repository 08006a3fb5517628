"""Where the amplitudes of a tile are between two exchanges: which qubits number registers, which the threads.

In: register qubits of a stage. Out: a `Place`. It knows no operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.shapes import Shape
from qsim_ozaki.engines.cuda.tile.items import members
from qsim_ozaki.engines.cuda.tile.schedule import TileFrame
from qsim_ozaki.engines.cuda.tile.stages import Stage
from qsim_ozaki.ir import mask_of

LANE_BITS = 5  # threads of a warp load and store together
CACHED_LAYOUTS = 256  # of 20 KiB at most: passes differ in angles more often than in qubits

Held: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # a stage's registers, its pair


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile of a pass.

    Attributes:
        qubits: ascending.
        zero_qubits: qubits outside that are |0>.
        swaps: pairs of ``qubits`` that change places at the store.
        fresh_qubits: those of ``qubits`` that are |0>: amplitudes where one of them is 1 are 0, whatever memory holds.
    """

    qubits: tuple[int, ...]
    zero_qubits: tuple[int, ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()
    fresh_qubits: tuple[int, ...] = ()

    def filled(self, count: int, num_qubits: int) -> Tile:
        """With the lowest other qubits, up to ``count``."""
        assert len(self.qubits) <= count, f"a tile of {len(self.qubits)} qubits does not fit {count}"
        others = (q for q in range(num_qubits) if q not in set(self.qubits))
        qubits = tuple(sorted([*self.qubits, *(next(others) for _ in range(count - len(self.qubits)))]))
        return self.with_qubits(qubits)

    def with_qubits(self, qubits: tuple[int, ...]) -> Tile:
        """Other ``qubits``, that hold those of ``swaps``; what is known to be |0> stays known."""
        zeros = (*self.zero_qubits, *self.fresh_qubits)
        outside = tuple(q for q in zeros if q not in qubits)
        return Tile(qubits, outside, self.swaps, tuple(q for q in zeros if q in qubits))


def swizzle(index: NDArray[np.int64] | int, line: int) -> NDArray[np.int64]:
    """Slot of a tile index, linear over GF(2): lanes that differ in positions of distinct residue hit other banks."""
    e = np.asarray(index, np.int64)
    low = (1 << line) - 1
    return np.asarray(e ^ (e >> line & low) ^ (e >> 2 * line & low) ^ (e >> 3 * line & low), np.int64)


def slot_of(qubit: int, frame: TileFrame, shape: Shape) -> int:
    """The byte in shared memory that a qubit of the tile adds by exclusive or, of a padded tile before padding."""
    if shape.padded:
        return shape.amp_bytes << frame.tile.index(qubit)
    return int(swizzle(1 << frame.tile.index(qubit), shape.line_qubits)) * shape.amp_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One layout.

    Attributes:
        registers: qubits that number a thread's registers, ascending.
        lanes: qubits that number the threads; bit i of a thread's number is ``lanes[i]``.
    """

    registers: tuple[int, ...]
    lanes: tuple[int, ...]

    @property
    def warps(self) -> tuple[int, ...]:
        """The qubits that number the warps."""
        return self.lanes[LANE_BITS:]

    def bits(self, mask: int) -> int:
        """A mask of qubits as bits of a thread's number."""
        return sum(1 << i for i, q in enumerate(self.lanes) if mask >> q & 1)

    def offsets(self, frame: TileFrame, stored: bool = False) -> NDArray[np.uint64]:
        """For each thread the basis state of its first amplitude inside the tile, where it is loaded or stored."""
        return _offsets(tuple(frame.stored_at(q) for q in self.lanes) if stored else self.lanes)

    def lane_slots(self, frame: TileFrame, shape: Shape) -> list[int]:
        """The byte in shared memory that each bit of a thread's number adds by exclusive or."""
        return [slot_of(q, frame, shape) for q in self.lanes]

    def slots(self, frame: TileFrame, shape: Shape) -> NDArray[np.uint32]:
        """For each thread the byte in shared memory of its first amplitude."""
        thread = np.arange(1 << len(self.lanes))
        places = ((thread >> i & 1) << frame.tile.index(q) for i, q in enumerate(self.lanes))
        index = sum(places, np.zeros_like(thread))
        return (swizzle(index, shape.line_qubits) * shape.amp_bytes).astype(np.uint32)

    def register_slots(self, frame: TileFrame, shape: Shape) -> list[int]:
        """The same for each register bit."""
        return [slot_of(q, frame, shape) for q in self.registers]


@lru_cache(maxsize=CACHED_LAYOUTS)
def _offsets(positions: tuple[int, ...]) -> NDArray[np.uint64]:
    """For each number the one whose bit ``positions[i]`` is its bit i."""
    number = np.arange(1 << len(positions), dtype=np.uint64)
    bits = ((number >> np.uint64(i) & np.uint64(1)) << np.uint64(p) for i, p in enumerate(positions))
    out = sum(bits, np.zeros_like(number))
    out.setflags(write=False)
    return out


def place(frame: TileFrame, registers: tuple[int, ...], loads: bool, stores: bool) -> Place:
    """Threads take the other qubits ascending for a load; for a store and inside so that they use distinct banks.

    Args:
        frame: the tile.
        registers: of the stage.
        loads: whether it is the first stage.
        stores: whether it is the last.
    """
    return Place(registers, _lanes(frame, [q for q in frame.tile if q not in registers], loads, stores))


@lru_cache(maxsize=CACHED_LAYOUTS)
def load_place(frame: TileFrame) -> Place:
    """Where a straight-line kernel's threads load: the highest qubits number registers, the others threads."""
    count = len(frame.tile) - frame.register_qubits
    return Place(frame.tile[count:], frame.tile[:count])


def places(frame: TileFrame, stages: Sequence[Stage]) -> list[Place]:
    """Places of consecutive stages in which the same qubits number the warps for as long as none of them is needed.

    Between two of them with the same ``warps``, a warp exchanges what it holds itself, and waits for no other.

    Args:
        frame: the tile.
        stages: in order.
    """
    return list(_places(frame, tuple((stage.registers, stage.pair) for stage in stages)))


@lru_cache(maxsize=CACHED_LAYOUTS)
def _places(frame: TileFrame, held_by: tuple[Held, ...]) -> tuple[Place, ...]:
    """`places` of stages that hold these."""
    last = len(held_by) - 1
    warp_bits = max(len(frame.tile) - frame.register_qubits - LANE_BITS, 0)
    near = [mask_of(registers + pair) for registers, pair in held_by]
    for q in sorted(members(frame.lines(stored=True)), key=frame.stored_at):  # the lowest, as far as threads have room
        if len(frame.tile) - (near[last] | 1 << q).bit_count() >= warp_bits:
            near[last] |= 1 << q
    out: list[Place] = []
    while len(out) <= last:
        first, held = len(out), 0
        end = first
        while end <= last and len(frame.tile) - (held | near[end]).bit_count() >= warp_bits:
            held |= near[end]
            end += 1
        assert end > first, "a stage's registers and lines leave no qubits that number warps"
        others = [q for q in frame.tile if not held >> q & 1]
        warps = _warps(frame, held_by[first:end], others, warp_bits, out[0].warps if out else ())
        for i in range(first, end):
            registers, pair = held_by[i]
            rest = [q for q in frame.tile if q not in registers + pair + warps]
            lanes = (*pair, *_others_first(frame, pair, rest)) if pair else _lanes(frame, rest, False, i == last)
            out.append(Place(registers, (*lanes, *warps)))
    return tuple(out)


def _others_first(frame: TileFrame, pair: tuple[int, ...], rest: list[int]) -> list[int]:
    """``rest``, those first that lie in other banks than ``pair`` and each other."""
    seen = {frame.tile.index(q) % frame.line_qubits for q in pair}
    front = []
    for q in rest:
        if frame.tile.index(q) % frame.line_qubits not in seen:
            seen.add(frame.tile.index(q) % frame.line_qubits)
            front.append(q)
    return front + [q for q in rest if q not in front]


def _warps(
    frame: TileFrame, held_by: Sequence[Held], others: list[int], count: int, preferred: tuple[int, ...]
) -> tuple[int, ...]:
    """``count`` of ``others`` with which lanes reach all banks in most stages; ``preferred`` if it does as well."""
    classes = [mask_of(frame.tile[i :: frame.line_qubits]) for i in range(frame.line_qubits)]

    def worth(chosen: tuple[int, ...]) -> tuple[int, bool]:
        taken = [mask_of(registers) | mask_of(chosen) for registers, _ in held_by]
        return sum(all(same & ~mask for same in classes) for mask in taken), chosen == preferred

    return max(combinations(others, count), key=worth)


def _lanes(frame: TileFrame, rest: list[int], loads: bool, stores: bool) -> tuple[int, ...]:
    """The qubits ``rest``, ascending, in the order in which they number threads."""
    if loads and not (stores and frame.swaps):
        return tuple(rest)
    if not stores:
        front = _distinct(frame, rest, rest, frame.line_qubits)
        return (*front, *(q for q in rest if q not in front))
    rest.sort(key=frame.stored_at)
    if not frame.swaps:
        return tuple(rest)
    lines = [q for q in rest if frame.lines(stored=True) >> q & 1]
    front = _distinct(frame, lines, rest, LANE_BITS - len(lines))
    front += [q for q in lines if q not in front]
    return (*front, *(q for q in rest if q not in front))


def _distinct(frame: TileFrame, preferred: list[int], rest: list[int], others: int) -> list[int]:
    """Qubits whose places in the tile differ modulo a line, ``preferred`` first, at most ``others`` that are not."""
    line = frame.line_qubits
    out = []
    for i in range(line):
        same = [q for q in rest if frame.tile.index(q) % line == i]
        first_choice = [q for q in same if q in preferred]
        if first_choice:
            out.append(first_choice[0])
        elif same and others:
            out.append(same[0])
            others -= 1
    return out
