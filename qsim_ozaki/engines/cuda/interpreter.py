"""Packs a tile pass into the words that `tile/interpreter.cu` reads.

In: a tile's qubits, ops, the state's width and precision. Out: a `TileProgram` of NumPy arrays. It may not use a GPU.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.records import SQRT_HALF, runs_of
from qsim_ozaki.engines.cuda.device.shapes import SHAPES, Shape
from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, LEAST_COS, Item, angle_words, lower, phases_of
from qsim_ozaki.engines.cuda.tile.layout import CACHED_LAYOUTS, Tile, slot_of, stage_layout
from qsim_ozaki.engines.cuda.tile.schedule import Style, TileFrame, schedule
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.ir import ComplexArray, Op, mask_of

END, EXCHANGE, PERMUTE, MATRIX_ALL, PHASE_TABLE, FACTOR, SIGN, DIAGONAL, SCALE = range(9)
PREFETCH, HADAMARD_ALL, ROTATE_ALL, PARITY = range(9, 13)
HADAMARD, ROTATE, ROTATE_FAR, FLIP, MATRIX2, MATRIX4 = 16, 24, 32, 40, 48, 64
MAX_SELECT = 6  # most qubits that choose a column of a phase table: 2**6 columns are 16 KiB, which stay in L1


@dataclass(slots=True, eq=False)
class TileProgram:
    """The program of one launch of `tile_exec`.

    Attributes:
        words: the program as uint64: layouts, tables, operators.
        tables: (word index, array) pairs: the array's device address belongs at that word.
        num_tiles: number of tiles of the state.
        tile: the tile's qubits, ascending.
        zero_qubits: qubits outside the tile that are |0>; tiles where one of them is 1 are left out.
        fresh_qubits: qubits of the tile that are |0>.
        load_layout: word index of the first layout.
        first_op: word index of the first operator.
        scale: factor applied at the store.
    """

    words: NDArray[np.uint64]
    tables: list[tuple[int, NDArray[np.generic]]]
    num_tiles: int
    tile: tuple[int, ...]
    zero_qubits: tuple[int, ...]
    fresh_qubits: tuple[int, ...]
    load_layout: int
    first_op: int
    scale: float

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The qubits that the tile's number does not contain, as (start, length) of consecutive positions."""
        return runs_of([*self.tile, *self.zero_qubits])


def compile_tile(tile: Tile, ops: Sequence[Op], num_qubits: int, precision: str) -> TileProgram:
    """Returns the program of a tile pass; a tile smaller than the kernel's is filled up with the lowest other qubits.

    Args:
        tile: the tile of the step, at most as large as the kernel's.
        ops: the operators, in order; the qubits that they mix are inside the tile.
        num_qubits: width of the state, at least the kernel's register qubits.
        precision: ``"double"`` or ``"single"``.
    """
    shape = SHAPES[precision]
    tile = tile.filled(min(shape.tile_qubits, num_qubits), num_qubits)
    frame = TileFrame(tile.qubits, shape.register_qubits, shape.line_qubits, tile.swaps)
    stages = schedule(lower(ops, shape.register_qubits), frame, Style(brief=True))
    return _Packer(tile, num_qubits, shape, frame).pack(stages)


def float_bits(x: float) -> int:
    """Returns the 64 bits of a double as an integer."""
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


@lru_cache(maxsize=CACHED_LAYOUTS)
def layout_words(
    frame: TileFrame, shape: Shape, registers: tuple[int, ...], loads: bool, stores: bool
) -> tuple[int, ...]:
    """Returns the words of a layout: strides and slots of the register bits, then offset and slot of every thread."""
    layout = stage_layout(frame, registers, loads, stores)
    strides = [1 << (frame.stored_at(q) if stores else q) for q in layout.registers]
    table = np.stack([layout.offsets(frame, stores), layout.slots(frame, shape)], axis=1)
    words: list[int] = table.astype(np.int64).reshape(-1).tolist()
    return (*strides, *layout.register_slots(frame, shape), *words)


@dataclass(slots=True, eq=False)
class _Packer:
    """Packs the stages of one pass; a packer is used once.

    Attributes:
        tile: the tile of the pass.
        num_qubits: width of the state.
        shape: sizes of the kernel.
        frame: the tile, for the schedule's functions.
        data: words of layouts and tables so far.
        ops: one word per operator so far.
        tables: (word index, array) pairs, as in `TileProgram`.
        scale: real factor that every amplitude still lacks.
    """

    tile: Tile
    num_qubits: int
    shape: Shape
    frame: TileFrame
    data: list[int] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    tables: list[tuple[int, NDArray[np.generic]]] = field(default_factory=list)
    scale: float = 1.0

    def pack(self, stages: list[Stage]) -> TileProgram:
        """Packs all stages and the exchanges between; the next tile is fetched once this one leaves shared memory."""
        load = self._layout(stages[0], True, len(stages) == 1 and not self.frame.swaps)
        last_use = max([0, *(i for i, stage in enumerate(stages) if self._uses_shared_memory(stage))])
        for i, stage in enumerate(stages):
            if i:
                self._op(EXCHANGE, 0, self._layout(stage, False, i == len(stages) - 1 and not self.frame.swaps))
            moves = i == len(stages) - 1 and bool(self.frame.swaps)
            last = i == len(stages) - 1 and not moves
            if last and last_use != i:
                self._op(PREFETCH)
            self._work(stage)
            if moves:
                self._op(EXCHANGE, 0, self._layout(stage, False, True))
            if moves or (last and last_use == i):
                self._op(PREFETCH)
        self._op(END)
        self._op(END)  # the kernel reads one operator ahead
        self.data += [0] * (-len(self.data) % 4)
        first = len(self.data)
        words = np.array(self.data + self.ops, np.uint64)
        tile = self.tile
        num_tiles = 1 << (self.num_qubits - len(tile.qubits) - len(tile.zero_qubits))
        return TileProgram(
            words, self.tables, num_tiles, tile.qubits, tile.zero_qubits, tile.fresh_qubits, load, first, self.scale
        )

    def _uses_shared_memory(self, stage: Stage) -> bool:
        """Returns whether some work of ``stage`` may use shared memory."""
        return any(isinstance(w, Item) and (w.kind == "permute" or len(w.qubits) > 2) for w in stage.work)

    def _work(self, stage: Stage) -> None:
        """Packs the work of a stage; a run of H that covers every register, or of rotations, is one operator."""
        work = list(stage.work)
        while work:
            run = [w for w in work[: len(stage.registers)] if isinstance(w, Item) and w.kind == "hadamard"]
            if len(run) == len(stage.registers) == len({w.mixed for w in run}):
                self.scale *= SQRT_HALF ** len(run)
                self._op(HADAMARD_ALL)
                self._rescale()
                work = work[len(run) :]
                continue
            taken = self._rotations(work, stage.registers)
            if not taken:
                taken = 1
                first = work[0]
                if isinstance(first, PhaseTerms):
                    self._phases(first.terms, stage.registers)
                else:
                    assert isinstance(first, Item), "the interpreter knows no blocks on pairs"
                    self._item(first, stage.registers)
            work = work[taken:]

    def _rotations(self, work: Sequence[object], registers: tuple[int, ...]) -> int:
        """Packs the rotations at the head of ``work`` as one operator if they cover all registers but one at most.

        Returns:
            The number of rotations packed, 0 if there are too few.
        """
        tangents = dict.fromkeys(registers, 0.0)
        scale = 1.0
        taken = 0
        seen: set[int] = set()
        for item in work:
            if not isinstance(item, Item) or item.kind != "rotate" or item.mixed in seen:
                break
            cos, sin = item.angle
            if abs(cos) < LEAST_COS:
                break
            seen.add(item.mixed)
            tangents[item.qubits[0]] = sin / cos
            scale *= cos
            taken += 1
        if taken < len(registers) - 1:
            return 0
        self.scale *= scale
        self._op(ROTATE_ALL, 0, self._put([float_bits(t) for t in tangents.values()]))
        self._rescale()
        return taken

    def _rescale(self) -> None:
        """Multiplies the collected factor in before the factor can underflow and the amplitudes overflow."""
        if abs(self.scale) < self.shape.least_scale:
            self._op(SCALE, 0, self._put([float_bits(self.scale)]))
            self.scale = 1.0

    def _op(self, code: int, arg: int = 0, data: int = 0) -> None:
        """Appends an operator; ``data`` is the word index of its data."""
        assert arg < 1 << 24, f"operator {code} has too many terms"
        assert data < 1 << 32, "the program is too long"
        self.ops.append(code | arg << 8 | data << 32)

    def _put(self, words: Sequence[int]) -> int:
        """Appends data on a 32-byte boundary; returns its word index."""
        self.data += [0] * (-len(self.data) % 4)
        start = len(self.data)
        self.data += words
        return start

    def _amps(self, values: ComplexArray) -> list[int]:
        """Returns the words of ``values`` as amplitudes of the kernel, row by row."""
        dtype = np.complex128 if self.shape.amp_bytes == 16 else np.complex64
        words: list[int] = np.ascontiguousarray(values.reshape(-1), dtype).view(np.uint64).tolist()
        return words

    def _layout(self, stage: Stage, loads: bool, stores: bool) -> int:
        """Appends the words of a stage's layout; returns their index."""
        return self._put(layout_words(self.frame, self.shape, stage.registers, loads, stores))

    def _split_condition(self, condition: tuple[int, int], registers: tuple[int, ...]) -> tuple[int, int, int]:
        """Splits a condition into (register mask and value as an operator's argument, other mask, other value)."""
        mask, value = condition
        arg = 0
        for b, q in enumerate(registers):
            if mask >> q & 1:
                arg |= 1 << b | (value >> q & 1) << (5 + b)
                mask &= ~(1 << q)
        return arg, mask, value & mask

    def _item(self, item: Item, registers: tuple[int, ...]) -> None:
        arg, mask, value = self._split_condition(item.condition, registers)
        if item.kind == "hadamard":
            self.scale *= SQRT_HALF
            self._op(HADAMARD + registers.index(item.qubits[0]))
        elif item.kind == "rotate":
            cos, sin = item.angle
            near = abs(cos) >= LEAST_COS
            self.scale *= cos if near else sin
            tangent = self._put([float_bits(sin / cos if near else cos / sin)])
            self._op((ROTATE if near else ROTATE_FAR) + registers.index(item.qubits[0]), 0, tangent)
        elif item.kind == "flip":
            self._op(FLIP + registers.index(item.qubits[0]), arg, self._put([mask, value]))
        elif item.kind == "matrix":
            self._matrix(item, registers)
        elif item.kind == "parity":
            self._parity(item, registers)
        else:
            self._lookup(item, registers)
        self._rescale()

    def _matrix(self, item: Item, registers: tuple[int, ...]) -> None:
        assert item.data is not None
        arg, mask, value = self._split_condition(item.condition, registers)
        bits = [registers.index(q) for q in item.qubits]
        if len(bits) == 1:
            self._op(MATRIX2 + bits[0], arg, self._put([mask, value, *self._amps(item.data)]))
        elif len(bits) == 2:
            matrix = item.data
            if bits[0] > bits[1]:
                swap = [0, 2, 1, 3]
                matrix = matrix[np.ix_(swap, swap)]
            low, high = sorted(bits)
            self._op(MATRIX4 + 8 * low + high, arg, self._put([mask, value, *self._amps(matrix)]))
        else:
            full = self._embed(item.data, bits, arg)
            self._op(MATRIX_ALL, 0, self._put([mask, value, *self._amps(full)]))

    def _parity(self, item: Item, registers: tuple[int, ...]) -> None:
        """Packs a parity: the mask of its outer qubits, the register indices where it is odd, its two factors."""
        assert item.data is not None
        bits = sum(1 << b for b, q in enumerate(registers) if item.used >> q & 1)
        odd = sum(1 << r for r in range(1 << len(registers)) if (r & bits).bit_count() & 1)
        outer = item.used & ~mask_of(registers)
        self._op(PARITY, 0, self._put([outer, odd, *self._amps(item.data)]))

    def _embed(self, matrix: ComplexArray, bits: list[int], arg: int) -> ComplexArray:
        """Returns the matrix on all register bits: the identity where the register part of the condition fails."""
        size = 1 << self.shape.register_qubits
        index = np.arange(size)
        inner = np.zeros_like(index)
        for j, b in enumerate(bits):
            inner |= (index >> b & 1) << j
        outer = index & ~sum(1 << b for b in bits)
        same = outer[:, None] == outer[None, :]
        acts = (index & (arg & 31)) == (arg >> 5 & 31)
        full = np.where(same & acts[:, None], matrix[np.ix_(inner, inner)], 0)
        return np.asarray(full + np.diag(~acts).astype(complex), complex)

    def _lookup(self, item: Item, registers: tuple[int, ...]) -> None:
        """Packs a ``diagonal`` or ``permute`` item: its entries are in memory, indexed by the bits at the targets."""
        assert item.data is not None
        arg, mask, value = self._split_condition(item.condition, registers)
        k = len(item.qubits)
        parts = [1 << item.qubits.index(q) if q in item.qubits else 0 for q in registers]
        positions = [64 if q in registers else q for q in item.qubits]
        words = [mask, value, 0, 0, *parts, *positions]
        if item.kind == "permute":
            words += [slot_of(q, self.frame, self.shape) for q in item.qubits]
        start = self._put(words)
        dtype = np.complex128 if self.shape.amp_bytes == 16 else np.complex64
        self.tables.append((start + 2, np.ascontiguousarray(item.data, dtype)))
        if item.sources is not None:
            self.tables.append((start + 3, np.ascontiguousarray(item.sources, np.uint32)))
        self._op(PERMUTE if item.kind == "permute" else DIAGONAL, arg | k << 10, start)

    def _phases(self, terms: dict[int, int], registers: tuple[int, ...]) -> None:
        """Packs phases, grouped by register part: the register qubits of a product.

        Half turns of outer qubits on one register qubit flip signs. Parts whose outer qubits are few share one table.
        The kernel sums the angles of all other parts.
        """
        inside = mask_of(registers)
        groups: dict[int, dict[int, int]] = {}
        for key, angle in terms.items():
            groups.setdefault(key & inside, {})[key & ~inside] = angle
        table: dict[int, int] = {}
        select = 0
        for part, group in sorted(groups.items(), key=lambda kv: max(m.bit_count() for m in kv[1])):
            outside = 0
            for key in group:
                outside |= key
            if outside and part.bit_count() == 1 and all(a == HALF_TURN for a in group.values()):
                self._factor(SIGN, part, group, registers)
            elif (select | outside).bit_count() <= MAX_SELECT:
                select |= outside
                table |= {part | key: angle for key, angle in group.items()}
            else:
                self._factor(FACTOR, part, group, registers)
        if table:
            self._table(table, select, registers)

    def _table(self, terms: dict[int, int], select: int, registers: tuple[int, ...]) -> None:
        """Packs a table of phases: a row per register index, a column per value of the qubits ``select``."""
        chosen = [q for q in range(self.num_qubits) if select >> q & 1]
        bits = [*registers, *chosen]
        index = np.arange(1 << len(bits), dtype=np.int64)
        total = np.zeros(len(index), np.uint64)
        for key, angle in terms.items():
            key_bits = sum(1 << b for b, q in enumerate(bits) if key >> q & 1)
            total[(index & key_bits) == key_bits] += np.uint64(angle)  # wraps modulo one turn
        positions = sum(q << 8 * i for i, q in enumerate(chosen))
        # Columns are the inner dimension: lanes that select differently read neighbouring entries.
        phases = phases_of(total.tolist()).reshape(1 << len(chosen), -1).T
        needed: list[int] = np.flatnonzero((phases != 1).any(axis=1)).tolist()
        if 2 * len(needed) >= len(phases):
            needed = list(range(len(phases)))  # a product by one is cheaper than a branch around it
        self._op(PHASE_TABLE, len(chosen), self._put([sum(1 << r for r in needed), positions, *self._amps(phases)]))

    def _factor(self, code: int, part: int, group: dict[int, int], registers: tuple[int, ...]) -> None:
        """Packs phases of outer qubits whose angles the kernel sums, on the register indices that contain ``part``."""
        words = angle_words(group)
        mask = sum(1 << b for b, q in enumerate(registers) if part >> q & 1)
        self._op(code, mask | (len(words) - 2) // 4 << 5, self._put(words))
