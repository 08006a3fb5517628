"""Tables for dense blocks on a GPU: matrix fragments, places in a tile, parts for a library product.

In: targets, controls, a matrix. Out: arrays and records as `dense_block.cu` and `block_gather.cu` read them. No GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.cuda_program import runs_of
from qsim_ozaki.jit import DENSE_MACROS, KERNELS
from qsim_ozaki.ops import ComplexArray, Kind, Op

GROUP_BITS = 3  # of the columns of a group: those of one product of the tensor cores
GROUP_COLUMNS = 1 << GROUP_BITS
MOVED_BITS, MOVING_BITS = 10, 8  # log2 of the elements of a tile of `block_gather.cu`, and of its threads
RUNS = np.dtype([("count", "u4"), ("start", "u1", 31), ("length", "u1", 32), ("pad", "u1")], align=True)
DENSE_TILE = np.dtype(
    [
        ("num_groups", "u8"),
        ("fixed", "u8"),
        ("column", "u8"),
        ("second_slots", "u4"),
        ("exchange", "u4"),
        ("runs", RUNS),
    ],
    align=True,
)
BLOCK = np.dtype([("num_tiles", "u8"), ("fixed", "u8"), ("tile_size", "u4")], align=True)


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How `dense_block.cu` lays one width of matrix out; its macros.

    Attributes:
        threads: of a block.
        groups: of 8 columns, in a tile. Every tile reads the whole matrix from L2, which delivers about 6.5 TB/s (H200,
            2026-11): a matrix of 4 MiB (k = 9) wants as many columns as shared memory holds.
        warp_groups: that a warp multiplies at a time; as many as registers hold the sums of.
        buffers: tiles in shared memory.
        products: real products of a complex one. Three where the tensor cores bound the time; four where memory does,
            for they keep exact zeros of complex states.
        blocks: that share a processor.
        real: `double` for complex128 states, `float` for complex64.
    """

    threads: int
    groups: int
    warp_groups: int
    buffers: int
    products: int
    blocks: int
    real: str

    def macros(self, k: int) -> dict[str, str]:
        """The kernel's instance for matrices on ``k`` qubits."""
        return {"K": str(k)} | {name.upper(): str(getattr(self, name)) for name in self.__slots__}

    @property
    def line_qubits(self) -> int:
        """log2 of the amplitudes in 128 bytes."""
        return 3 if self.real == "double" else 4

    def shared_bytes(self, k: int) -> int:
        """Dynamic shared memory of one block."""
        return self.buffers * self.groups * (128 * GROUP_COLUMNS << k) >> self.line_qubits


def shapes(real: str) -> dict[int, BlockShape]:
    """The kernel's instances for one type of amplitude, by number of targets."""
    found = {}
    for row in KERNELS["dense_block"].instances:
        threads, groups, warp_groups, buffers, products, blocks = (int(row[name]) for name in DENSE_MACROS[2:])
        if row["REAL"] == real:
            found[int(row["K"])] = BlockShape(threads, groups, warp_groups, buffers, products, blocks, real)
    return found


BLOCK_SHAPES = {"double": shapes("double"), "single": shapes("float")}


@dataclass(frozen=True, slots=True)
class DenseTables:
    """What one launch of `dense_block` needs: fragments of the matrix, places, and the tile record."""

    matrix: ComplexArray
    places: NDArray[np.uint64]
    tile: NDArray[Any]
    num_groups: int


def runs_record(qubits: Sequence[int]) -> NDArray[Any]:
    """A `Runs` struct over ``qubits``."""
    record = np.zeros((), RUNS)
    runs = runs_of(qubits)
    record["count"] = len(runs)
    for i, (start, length) in enumerate(runs):
        record["start"][i], record["length"][i] = start, length
    return record


def widened(op: Op, zero_qubits: Sequence[int], num_qubits: int) -> Op:
    """``op`` on one more qubit, the lowest that is free, where there is one: the kernel's least matrix is 16 x 16."""
    taken = {*op.qubits, *zero_qubits}
    free = next((q for q in range(num_qubits) if q not in taken), None)
    if free is None:
        return op
    matrix = np.asarray(np.kron(np.eye(2), op.matrix()), complex)
    return Op(Kind.UNITARY, (*op.targets, free), matrix, op.controls, op.ctrl_state)


def sorted_matrix(matrix: ComplexArray, targets: Sequence[int]) -> ComplexArray:
    """The matrix with its index bits in ascending order of the targets."""
    k = len(targets)
    order = [int(i) for i in np.argsort(targets)]
    index = np.arange(1 << k)
    old = np.zeros_like(index)
    for new, b in enumerate(order):
        old |= (index >> new & 1) << b
    return np.asarray(matrix[np.ix_(old, old)], complex)


def fragments(matrix: ComplexArray) -> ComplexArray:
    """Real and imaginary parts as lanes of m16n8k16 hold A: [row block, column block, part, vector, lane].

    Each double2 holds the entries of rows g and g + 8 in column 4 i + t, for lane 4 g + t and vector i.
    """
    blocks = len(matrix) // 16
    tiles = matrix.reshape(blocks, 2, 8, blocks, 4, 4)  # row block, half, g, column block, i, t
    parts = np.stack([tiles.real, tiles.imag])  # part first
    order = parts.transpose(1, 4, 0, 5, 3, 6, 2)  # row block, column block, part, i, g, t, half
    return np.ascontiguousarray(order).reshape(-1, 2).view(np.complex128).reshape(-1)


def dense_tables(
    matrix: ComplexArray, targets: Sequence[int], fixed: dict[int, int], num_qubits: int, shape: BlockShape
) -> DenseTables:
    """Tables of one block.

    Lanes read 4 rows x 2 columns at a time, write 8 neighbours of the state, and store 4 columns x 8 rows. Where one of
    the two lowest qubits is a row, neighbours are rows: the lowest row then goes to the upper half of the product, and
    lanes exchange it for a column before they store.

    Args:
        matrix: ``(2**k, 2**k)``, k from 4 to 9, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: value of each qubit at which the block acts (controls and qubits known to be |0>).
        num_qubits: width of the state; k, the columns of a group and the fixed qubits must fit.
        shape: of a tile.
    """
    k = len(targets)
    rows = sorted(targets)
    columns = [q for q in range(num_qubits) if q not in fixed and q not in rows][:GROUP_BITS]
    assert len(columns) == GROUP_BITS, f"{num_qubits} qubits are too few for a block of {k} with {len(fixed)} fixed"
    union = sorted(rows + columns)
    exchange = bool({*union[:2]} & {*rows})
    out_rows = [*rows[1:4], rows[0], *rows[4:]] if exchange else rows
    reading = [rows[0], rows[1], columns[2], columns[1] if exchange else columns[0]][: shape.line_qubits]
    slot = slots(union, rows, columns, reading)
    late = rows[shape.threads.bit_length() - 1 - GROUP_BITS :]  # each iteration brings whole rows
    early = [q for q in union if q not in late]
    places = np.concatenate(
        [
            np.resize(sums([(1 << q, slot[q]) for q in early], np.bitwise_xor), (shape.threads, 2)).reshape(-1),
            sums([(1 << q, 0) for q in late])[:, 0],
            sums([(1 << q, 0) for q in out_rows[4:]])[:, 0],
            *lane_places(rows, out_rows, columns, slot),
        ]
    )
    num_groups = 1 << (num_qubits - len(union) - len(fixed))
    tile = np.zeros(1, DENSE_TILE)
    tile["num_groups"] = num_groups
    tile["fixed"] = sum(value << q for q, value in fixed.items())
    tile["column"] = 1 << columns[2]
    tile["second_slots"] = slot[rows[2]]
    tile["exchange"] = exchange
    tile["runs"] = runs_record([*union, *fixed])
    order = [rows.index(q) for q in out_rows]
    by_rows = sorted_matrix(matrix, targets)[sums([(1 << b, 0) for b in order])[:, 0].astype(np.int64)]
    return DenseTables(fragments(by_rows), places, tile, num_groups)


def lane_places(
    rows: Sequence[int], out_rows: Sequence[int], columns: Sequence[int], slot: dict[int, int]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Of each lane: the two offsets at which it stores, and the slot at which it reads."""
    exchange = out_rows is not rows
    across = (columns[1], columns[0]) if exchange else (columns[0], columns[1])  # of lane bits 0 and 1 as they store
    order = (rows[0] if exchange else across[0], across[1], *out_rows[:3])
    lanes = sums([(1 << q, 0) for q in order])[:, 0]
    traded = np.uint64(1 << (across[0] if exchange else out_rows[3]))
    # a lane keeps the column of its own number and gets the other's
    first = lanes + (np.arange(32, dtype=np.uint64) & 1) * traded if exchange else lanes
    reads = sums([(slot[q], 0) for q in (rows[0], rows[1], columns[2], *across)], np.bitwise_xor)[:, 0]
    return np.stack([first, first ^ traded], axis=1).reshape(-1), reads


def slots(union: Sequence[int], rows: Sequence[int], columns: Sequence[int], reading: Sequence[int]) -> dict[int, int]:
    """What each qubit of a group adds, by XOR, to a slot of one amplitude in shared memory.

    The lowest qubits choose among the slots of a 128-byte line, as many as there are in ``reading``: those by which
    lanes that read together differ. Where one of these is not among the lowest, it changes as well one bit of a line
    that no other has, so that these lanes read from distinct slots. Rows from the fourth on are plain bits.
    """
    lowest = [q for q in union[: len(reading)] if q not in rows[GROUP_BITS:]]
    others = sorted(q for q in (*columns, *rows[:GROUP_BITS]) if q not in lowest)
    others.sort(key=lambda q: q == rows[2])  # the third row highest
    order = [*lowest, *others, *rows[GROUP_BITS:]]
    slot = {q: 1 << b for b, q in enumerate(order)}
    free = [slot[q] for q in order[: len(reading)] if q not in reading]
    for q in reading:
        if q in order[len(reading) :]:
            slot[q] |= free.pop()
    return slot


def sums(steps: Sequence[tuple[int, int]], add: np.ufunc = np.add) -> NDArray[np.uint64]:
    """For each index, the steps of its set bits, added up (or combined by another ``add``), both components."""
    index = np.arange(1 << len(steps))
    out = np.zeros((len(index), 2), np.uint64)
    for b, step in enumerate(steps):
        out = add(out, (index >> b & 1).astype(np.uint64)[:, None] * np.array(step, np.uint64))
    return out


@dataclass(frozen=True, slots=True)
class PartTables:
    """How parts of a state become matrices of 2^k rows and back.

    Attributes:
        places: as `block_gather.cu` reads them, the same for every part.
        parts: one `Block` record each.
        num_columns: of the matrix of one part.
    """

    places: NDArray[np.uint64]
    parts: NDArray[Any]
    num_columns: int


def part_tables(
    targets: Sequence[int], fixed: dict[int, int], num_qubits: int, max_elements: int, line_qubits: int
) -> PartTables:
    """Parts that cover the state, each at most ``max_elements`` amplitudes, split over the top columns.

    Args:
        targets: distinct qubits; bit b of a row is ``targets[b]``.
        fixed: value of each qubit at which the block acts.
        num_qubits: width of the state.
        max_elements: a power of two, at least one column.
        line_qubits: log2 of the amplitudes in a 128-byte line.
    """
    k = len(targets)
    columns = [q for q in range(num_qubits) if q not in fixed and q not in targets]
    held = max(k + len(columns) - (max_elements.bit_length() - 1), 0)
    assert held <= len(columns), f"{max_elements} amplitudes do not hold one column of {1 << k}"
    top = columns[len(columns) - held :]
    columns = columns[: len(columns) - held]
    in_block = {q: 1 << b for b, q in enumerate((*columns, *targets))}
    free = sorted(in_block)
    near = {*free[:line_qubits], *columns[:line_qubits]}
    union = sorted([*near, *(q for q in free if q not in near)][:MOVED_BITS])
    by_block = sorted(union, key=in_block.__getitem__)
    slot = {q: 1 << b for b, q in enumerate(union)}
    spare = [slot[q] for q in union[:line_qubits] if q not in by_block[:line_qubits]]
    for q in by_block[:line_qubits]:
        if q not in union[:line_qubits]:
            slot[q] |= spare.pop()
    in_state = {q: 1 << q for q in free}
    sides = []
    for order, offset in ((union, in_state), (by_block, in_block)):
        steps = [(offset[q], slot[q]) for q in order]
        sides.append(np.resize(sums(steps[:MOVING_BITS], np.bitwise_xor), (1 << MOVING_BITS, 2)))
        sides.append(np.resize(sums(steps[MOVING_BITS:], np.bitwise_xor), (1 << MOVED_BITS - MOVING_BITS, 2)))
    tiles = sums([(1 << q, in_block[q]) for q in free if q not in union])
    parts = np.zeros(1 << held, BLOCK)
    parts["num_tiles"], parts["tile_size"] = len(tiles), 1 << len(union)
    base = sum(value << q for q, value in fixed.items())
    parts["fixed"] = sums([(1 << q, 0) for q in top])[:, 0] | np.uint64(base)
    return PartTables(np.concatenate([*sides, tiles]).reshape(-1), parts, 1 << len(columns))
