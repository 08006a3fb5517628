"""Layouts of a tile between two exchanges: which qubits number a thread's registers, and which number the threads.

In: the register qubits of a stage. Out: a `Layout`. It may not depend on an operator.
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
CACHED_LAYOUTS = 256  # a layout has at most 20 KiB; passes differ in angles more often than in qubits

StageQubits: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # a stage's registers, its pair


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile of a pass.

    Attributes:
        qubits: the tile's qubits, ascending.
        zero_qubits: qubits outside the tile that are |0>.
        swaps: pairs of ``qubits`` that change places at the store.
        fresh_qubits: those of ``qubits`` that are |0>. An amplitude where one of them is 1 is 0, whatever memory holds.
    """

    qubits: tuple[int, ...]
    zero_qubits: tuple[int, ...] = ()
    swaps: tuple[tuple[int, int], ...] = ()
    fresh_qubits: tuple[int, ...] = ()

    def filled(self, count: int, num_qubits: int) -> Tile:
        """Returns the tile filled up to ``count`` qubits with the lowest other qubits."""
        assert len(self.qubits) <= count, f"a tile of {len(self.qubits)} qubits does not fit {count}"
        others = (q for q in range(num_qubits) if q not in set(self.qubits))
        qubits = tuple(sorted([*self.qubits, *(next(others) for _ in range(count - len(self.qubits)))]))
        return self.with_qubits(qubits)

    def with_qubits(self, qubits: tuple[int, ...]) -> Tile:
        """Returns a tile of other ``qubits``, which include those of ``swaps``; known |0> qubits stay known."""
        zeros = (*self.zero_qubits, *self.fresh_qubits)
        outside = tuple(q for q in zeros if q not in qubits)
        return Tile(qubits, outside, self.swaps, tuple(q for q in zeros if q in qubits))


def swizzle(index: NDArray[np.int64] | int, line: int) -> NDArray[np.int64]:
    """Returns the slot in shared memory of a tile index; the map is linear over GF(2).

    Lanes that differ in positions of distinct residues modulo ``line`` access different banks.
    """
    e = np.asarray(index, np.int64)
    low = (1 << line) - 1
    return np.asarray(e ^ (e >> line & low) ^ (e >> 2 * line & low) ^ (e >> 3 * line & low), np.int64)


def slot_of(qubit: int, frame: TileFrame, shape: Shape) -> int:
    """Returns the byte offset in shared memory that a qubit of the tile adds by exclusive or.

    For a padded tile it is the offset before padding.
    """
    if shape.padded:
        return shape.amp_bytes << frame.tile.index(qubit)
    return int(swizzle(1 << frame.tile.index(qubit), shape.line_qubits)) * shape.amp_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One layout of a tile.

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
        """Returns a mask of qubits as a mask of the bits of a thread's number."""
        return sum(1 << i for i, q in enumerate(self.lanes) if mask >> q & 1)

    def offsets(self, frame: TileFrame, stored: bool = False) -> NDArray[np.uint64]:
        """Returns, for each thread, the basis state of its first amplitude inside the tile at the load or the store."""
        return _offsets(tuple(frame.stored_at(q) for q in self.lanes) if stored else self.lanes)

    def lane_slots(self, frame: TileFrame, shape: Shape) -> list[int]:
        """Returns the byte offset in shared memory that each bit of a thread's number adds by exclusive or."""
        return [slot_of(q, frame, shape) for q in self.lanes]

    def slots(self, frame: TileFrame, shape: Shape) -> NDArray[np.uint32]:
        """Returns, for each thread, the byte offset in shared memory of its first amplitude."""
        thread = np.arange(1 << len(self.lanes))
        positions = ((thread >> i & 1) << frame.tile.index(q) for i, q in enumerate(self.lanes))
        index = sum(positions, np.zeros_like(thread))
        return (swizzle(index, shape.line_qubits) * shape.amp_bytes).astype(np.uint32)

    def register_slots(self, frame: TileFrame, shape: Shape) -> list[int]:
        """Returns the byte offset in shared memory that each register bit adds by exclusive or."""
        return [slot_of(q, frame, shape) for q in self.registers]


@lru_cache(maxsize=CACHED_LAYOUTS)
def _offsets(positions: tuple[int, ...]) -> NDArray[np.uint64]:
    """Returns, for each number, the number whose bit ``positions[i]`` is its bit i."""
    number = np.arange(1 << len(positions), dtype=np.uint64)
    bits = ((number >> np.uint64(i) & np.uint64(1)) << np.uint64(p) for i, p in enumerate(positions))
    out = sum(bits, np.zeros_like(number))
    out.setflags(write=False)
    return out


def stage_layout(frame: TileFrame, registers: tuple[int, ...], loads: bool, stores: bool) -> Layout:
    """Returns the layout of one stage of the interpreter.

    At a load, the threads take the other qubits in ascending order. At a store and inside the pass they take them in
    an order in which neighbouring threads use distinct banks.

    Args:
        frame: the tile.
        registers: register qubits of the stage.
        loads: whether it is the first stage.
        stores: whether it is the last stage.
    """
    return Layout(registers, _lane_qubits(frame, [q for q in frame.tile if q not in registers], loads, stores))


@lru_cache(maxsize=CACHED_LAYOUTS)
def load_layout(frame: TileFrame) -> Layout:
    """Returns the layout at a straight-line kernel's load: the highest qubits number registers, the others threads."""
    count = len(frame.tile) - frame.register_qubits
    return Layout(frame.tile[count:], frame.tile[:count])


def stage_layouts(frame: TileFrame, stages: Sequence[Stage]) -> list[Layout]:
    """Returns the layouts of consecutive stages.

    The same qubits number the warps for as long as no stage needs one of them. Between two layouts with the same
    ``warps``, a warp exchanges only its own amplitudes and waits for no other warp.

    Args:
        frame: the tile.
        stages: the stages, in order.
    """
    return list(_stage_layouts(frame, tuple((stage.registers, stage.pair) for stage in stages)))


@lru_cache(maxsize=CACHED_LAYOUTS)
def _stage_layouts(frame: TileFrame, stage_qubits: tuple[StageQubits, ...]) -> tuple[Layout, ...]:
    """Returns the layouts of stages with these registers and pairs."""
    last = len(stage_qubits) - 1
    warp_bits = max(len(frame.tile) - frame.register_qubits - LANE_BITS, 0)
    inside_warp = [mask_of(registers + pair) for registers, pair in stage_qubits]  # qubits that must not number warps
    # The last stage also keeps the lowest qubits of the store inside a warp, as far as the warps leave room.
    for q in sorted(members(frame.lines(stored=True)), key=frame.stored_at):
        if len(frame.tile) - (inside_warp[last] | 1 << q).bit_count() >= warp_bits:
            inside_warp[last] |= 1 << q
    out: list[Layout] = []
    while len(out) <= last:
        first, held = len(out), 0
        end = first
        while end <= last and len(frame.tile) - (held | inside_warp[end]).bit_count() >= warp_bits:
            held |= inside_warp[end]
            end += 1
        assert end > first, "a stage's registers and lines leave no qubits that number warps"
        others = [q for q in frame.tile if not held >> q & 1]
        warps = _warp_qubits(frame, stage_qubits[first:end], others, warp_bits, out[0].warps if out else ())
        for i in range(first, end):
            registers, pair = stage_qubits[i]
            rest = [q for q in frame.tile if q not in registers + pair + warps]
            lanes = (
                (*pair, *_new_banks_first(frame, pair, rest)) if pair else _lane_qubits(frame, rest, False, i == last)
            )
            out.append(Layout(registers, (*lanes, *warps)))
    return tuple(out)


def _new_banks_first(frame: TileFrame, pair: tuple[int, ...], rest: list[int]) -> list[int]:
    """Returns ``rest``, first the qubits that add a bank other than those of ``pair`` and of the qubits before."""
    seen = {frame.tile.index(q) % frame.line_qubits for q in pair}
    front = []
    for q in rest:
        if frame.tile.index(q) % frame.line_qubits not in seen:
            seen.add(frame.tile.index(q) % frame.line_qubits)
            front.append(q)
    return front + [q for q in rest if q not in front]


def _warp_qubits(
    frame: TileFrame, stage_qubits: Sequence[StageQubits], others: list[int], count: int, preferred: tuple[int, ...]
) -> tuple[int, ...]:
    """Returns the ``count`` qubits of ``others`` that number the warps.

    They leave the lanes all banks in as many stages as possible; of equal choices, ``preferred`` is taken.
    """
    classes = [mask_of(frame.tile[i :: frame.line_qubits]) for i in range(frame.line_qubits)]

    def worth(chosen: tuple[int, ...]) -> tuple[int, bool]:
        taken = [mask_of(registers) | mask_of(chosen) for registers, _ in stage_qubits]
        return sum(all(same & ~mask for same in classes) for mask in taken), chosen == preferred

    return max(combinations(others, count), key=worth)


def _lane_qubits(frame: TileFrame, rest: list[int], loads: bool, stores: bool) -> tuple[int, ...]:
    """Returns the qubits ``rest``, given in ascending order, in the order in which they number the threads."""
    if loads and not (stores and frame.swaps):
        return tuple(rest)
    if not stores:
        front = _one_per_bank(frame, rest, rest, frame.line_qubits)
        return (*front, *(q for q in rest if q not in front))
    rest.sort(key=frame.stored_at)
    if not frame.swaps:
        return tuple(rest)
    lines = [q for q in rest if frame.lines(stored=True) >> q & 1]
    front = _one_per_bank(frame, lines, rest, LANE_BITS - len(lines))
    front += [q for q in lines if q not in front]
    return (*front, *(q for q in rest if q not in front))


def _one_per_bank(frame: TileFrame, preferred: list[int], rest: list[int], others: int) -> list[int]:
    """Returns qubits whose positions in the tile differ modulo a line: one qubit per bank.

    Qubits of ``preferred`` come before others, and at most ``others`` qubits are not preferred.
    """
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
