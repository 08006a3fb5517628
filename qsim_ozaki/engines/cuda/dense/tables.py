"""Builds the shapes and tables of dense blocks on a GPU: fragments of the matrix and positions in a tile.

In: targets, controls, a matrix. Out: arrays and records as `dense/held.cu` and `dense/streamed.cu` read them. It may
not use a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.kernels import KERNELS
from qsim_ozaki.engines.cuda.device.records import RUNS, runs_record, sorted_matrix, sums, widened
from qsim_ozaki.ir import ComplexArray, Kind, Op

GROUP_BITS = 3  # log2 of the columns of a group: one product of the tensor cores has as many
GROUP_COLUMNS = 1 << GROUP_BITS
STREAMED_TILE = np.dtype(
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
HELD_TILE = np.dtype(
    [
        ("num_tiles", "u8"),
        ("fixed", "u8"),
        ("column", "u8"),
        ("fetch_offset", "u8", 16),
        ("group_offset", "u8", 16),
        ("block_offset", "u8", 4),
        ("fetch_slot", "u4", 16),
        ("second_slots", "u4"),
        ("exchange", "u4"),
        ("num_slots", "u4"),
        ("runs", RUNS),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class BlockShape:
    """Sizes of a dense kernel for one width of matrix; the fields are the kernel's macros.

    Attributes:
        real: `double` for complex128 states, `float` for complex64.
        threads: number of threads of a block.
        groups: number of groups of 8 columns in a tile.
        blocks: number of blocks that share a processor.
    """

    real: str
    threads: int
    groups: int
    blocks: int

    def macros(self, k: int) -> dict[str, str]:
        """Returns the kernel's instance for matrices on ``k`` qubits."""
        return {"K": str(k)} | {field.name.upper(): str(getattr(self, field.name)) for field in fields(self)}

    @property
    def line_qubits(self) -> int:
        """log2 of the amplitudes in 128 bytes."""
        return 3 if self.real == "double" else 4

    def tile_bytes(self, k: int) -> int:
        """Returns the bytes of shared memory of one tile."""
        return self.groups * (128 * GROUP_COLUMNS << k) >> self.line_qubits


@dataclass(frozen=True, slots=True)
class HeldShape(BlockShape):
    """Sizes of `dense/held.cu`, whose warps hold the matrix in registers.

    Attributes:
        warp_rows: number of blocks of 16 matrix rows that a warp holds, in 32 registers per 16 columns.
        stages: number of tiles in shared memory. A processor needs about 64 KiB in flight (H200, 2026-11).
        products: real products per complex product: three if the tensor cores bound the time; four if memory does,
            because four products keep exact zeros of complex states.
    """

    warp_rows: int
    stages: int
    products: int
    kernel: ClassVar[str] = "dense_held"

    def shared_bytes(self, k: int) -> int:
        """Returns the bytes of dynamic shared memory of one block."""
        return self.stages * self.tile_bytes(k)


@dataclass(frozen=True, slots=True)
class StreamedShape(BlockShape):
    """Sizes of `dense/streamed.cu`, which reads the matrix again for every tile.

    L2 delivers the matrix at about 6.5 TB/s (H200, 2026-11): for a matrix of 4 MiB (k = 9), a tile has as many groups
    as shared memory holds.

    Attributes:
        warp_groups: number of groups that a warp multiplies at a time; registers hold the sums of as many.
    """

    warp_groups: int
    kernel: ClassVar[str] = "dense_streamed"

    def shared_bytes(self, k: int) -> int:
        """Returns the bytes of dynamic shared memory of one block."""
        return self.tile_bytes(k)


DenseShape: TypeAlias = HeldShape | StreamedShape


def shapes(real: str) -> dict[int, DenseShape]:
    """Returns the shapes of the kernels' instances for one type of amplitude, by number of targets."""
    by_targets: dict[int, DenseShape] = {}
    kinds: tuple[type[HeldShape] | type[StreamedShape], ...] = (HeldShape, StreamedShape)
    for kind in kinds:
        for row in KERNELS[kind.kernel].instances:
            numbers = {name.lower(): int(value) for name, value in row.items() if name not in ("REAL", "K")}
            if row["REAL"] == real:
                by_targets[int(row["K"])] = kind(real=real, **numbers)
    return by_targets


BLOCK_SHAPES = {"double": shapes("double"), "single": shapes("float")}


@dataclass(frozen=True, slots=True)
class DenseTables:
    """The data of one launch of a dense kernel.

    Attributes:
        matrix: the matrix as fragments of tensor cores.
        places: positions in the state and in shared memory, in the order in which the kernel reads them.
        tile: the record of the tile, `HELD_TILE` or `STREAMED_TILE`.
        num_tiles: number of tiles of the state.
    """

    matrix: ComplexArray
    places: NDArray[np.uint64]
    tile: NDArray[Any]
    num_tiles: int


def with_free_target(op: Op, zero_qubits: Sequence[int], num_qubits: int) -> Op:
    """Returns ``op`` extended to the lowest free qubit, if there is one: the kernel's smallest matrix is 16 x 16."""
    taken = {*op.qubits, *zero_qubits}
    free = [q for q in range(num_qubits) if q not in taken]
    matrix, targets = widened(op.matrix(), op.targets, free[:1])
    return Op(Kind.UNITARY, targets, matrix, op.controls, op.ctrl_state) if free else op


def fragments(matrix: ComplexArray) -> ComplexArray:
    """Returns real and imaginary parts as the lanes of m16n8k16 hold A: [row block, column block, part, vector, lane].

    For lane 4 g + t and vector i, a double2 holds the entries of rows g and g + 8 in column 4 i + t.
    """
    blocks = len(matrix) // 16
    tiles = matrix.reshape(blocks, 2, 8, blocks, 4, 4)  # row block, half, g, column block, i, t
    parts = np.stack([tiles.real, tiles.imag])  # part first
    order = parts.transpose(1, 4, 0, 5, 3, 6, 2)  # row block, column block, part, i, g, t, half
    return np.ascontiguousarray(order).reshape(-1, 2).view(np.complex128).reshape(-1)


@dataclass(frozen=True, slots=True)
class GroupFrame:
    """The roles of the qubits in a group of columns.

    Lanes read 4 rows x 2 columns at a time, write 8 neighbours of the state, and store 4 columns x 8 rows. If one of
    the two lowest qubits is a row qubit, neighbours are rows. The lowest row then moves to the upper half of the
    product, and lanes exchange it for a column before they store.

    Attributes:
        rows: the targets, ascending.
        columns: the three lowest free qubits.
        out_rows: the qubit of every bit of a product's row.
        slot: the bits that a qubit adds, by XOR, to a slot of one amplitude in shared memory.
    """

    rows: list[int]
    columns: list[int]
    out_rows: list[int]
    slot: dict[int, int]

    @property
    def exchange(self) -> bool:
        """Whether lanes exchange rows for columns before they store."""
        return self.out_rows != self.rows

    def fragments(self, matrix: ComplexArray, targets: Sequence[int]) -> ComplexArray:
        """Returns the matrix as lanes hold it, with its rows in the order of ``out_rows``."""
        order = [(1 << self.rows.index(q), 0) for q in self.out_rows]
        return fragments(sorted_matrix(matrix, targets)[sums(order)[:, 0].astype(np.int64)])


def frame_of(targets: Sequence[int], free: Sequence[int], line_qubits: int) -> GroupFrame:
    """Returns the frame of a group; ``free`` are the qubits that are neither targets nor fixed, ascending."""
    rows, columns = sorted(targets), list(free[:GROUP_BITS])
    union = sorted(rows + columns)
    exchange = bool({*union[:2]} & {*rows})
    out_rows = [*rows[1:4], rows[0], *rows[4:]] if exchange else rows
    reading = [rows[0], rows[1], columns[2], columns[1] if exchange else columns[0]][:line_qubits]
    return GroupFrame(rows, columns, out_rows, slots(union, rows, columns, reading))


def dense_tables(
    matrix: ComplexArray, targets: Sequence[int], fixed: dict[int, int], num_qubits: int, shape: DenseShape
) -> DenseTables:
    """Returns the tables of one block.

    Args:
        matrix: ``(2**k, 2**k)``, k from 4 to 9, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: qubits with the value at which the block acts (controls, and qubits known to be |0>).
        num_qubits: width of the state; k, the columns of a group and the fixed qubits must fit.
        shape: sizes of the kernel.
    """
    free = [q for q in range(num_qubits) if q not in fixed and q not in targets]
    few = f"{num_qubits} qubits are too few for a block of {len(targets)} with {len(fixed)} fixed"
    assert len(free) >= GROUP_BITS, few
    frame = frame_of(targets, free, shape.line_qubits)
    held = isinstance(shape, HeldShape)
    # The qubits that number the groups of a tile.
    numbers = free[GROUP_BITS:][: shape.groups.bit_length() - 1] if held else []
    size = 1 << len(free) - GROUP_BITS - len(numbers)
    tile = np.zeros(1, HELD_TILE if held else STREAMED_TILE)
    tile["num_tiles" if held else "num_groups"] = size
    tile["fixed"] = sum(value << q for q, value in fixed.items())
    tile["column"] = 1 << frame.columns[2]
    tile["second_slots"] = frame.slot[frame.rows[2]]
    tile["exchange"] = frame.exchange
    tile["runs"] = runs_record([*frame.rows, *frame.columns, *numbers, *fixed])
    places = held_places(frame, numbers, shape, tile) if held else streamed_places(frame, shape)
    num_tiles = size if held else -(-size // shape.groups)
    return DenseTables(frame.fragments(matrix, targets), np.concatenate(places), tile, num_tiles)


def held_places(
    frame: GroupFrame, numbers: Sequence[int], shape: BlockShape, tile: NDArray[Any]
) -> list[NDArray[np.uint64]]:
    """Returns the positions of `dense/held.cu`; writes those of iterations, groups and rows into ``tile``."""
    slot = frame.slot | {q: GROUP_COLUMNS << len(frame.rows) + b for b, q in enumerate(numbers)}
    steps = [(1 << q, slot[q]) for q in sorted(slot)]
    together = shape.threads.bit_length() - 1
    iterations = sums(steps[together:], np.bitwise_xor)
    tile["fetch_offset"][0, : len(iterations)], tile["fetch_slot"][0, : len(iterations)] = iterations.T
    for name, qubits in (("group_offset", numbers), ("block_offset", frame.out_rows[4:])):
        tile[name][0, : 1 << len(qubits)] = sums([(1 << q, 0) for q in qubits])[:, 0]
    tile["num_slots"] = 1 << len(steps)
    return [in_threads(steps[:together], shape), *lane_places(frame)]


def streamed_places(frame: GroupFrame, shape: BlockShape) -> list[NDArray[np.uint64]]:
    """Returns the positions of `dense/streamed.cu`, whose iterations fetch whole rows."""
    late = frame.rows[shape.threads.bit_length() - 1 - GROUP_BITS :]
    early = [q for q in sorted(frame.slot) if q not in late]
    return [
        in_threads([(1 << q, frame.slot[q]) for q in early], shape),
        sums([(1 << q, 0) for q in late])[:, 0],
        sums([(1 << q, 0) for q in frame.out_rows[4:]])[:, 0],
        *lane_places(frame),
    ]


def in_threads(steps: Sequence[tuple[int, int]], shape: BlockShape) -> NDArray[np.uint64]:
    """Returns the offset in the state and the slot of every thread; with too few qubits, threads repeat positions."""
    return np.resize(sums(steps, np.bitwise_xor), (shape.threads, 2)).reshape(-1)


def lane_places(frame: GroupFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Returns, for every lane, the two offsets at which it stores, and the slot at which it reads."""
    rows, out_rows, columns, exchange = frame.rows, frame.out_rows, frame.columns, frame.exchange
    across = (columns[1], columns[0]) if exchange else (columns[0], columns[1])  # of lane bits 0 and 1 at the store
    order = (rows[0] if exchange else across[0], across[1], *out_rows[:3])
    lanes = sums([(1 << q, 0) for q in order])[:, 0]
    traded = np.uint64(1 << (across[0] if exchange else out_rows[3]))
    # A lane keeps the column with its number and receives the other lane's.
    first = lanes + (np.arange(32, dtype=np.uint64) & 1) * traded if exchange else lanes
    reads = sums([(frame.slot[q], 0) for q in (rows[0], rows[1], columns[2], *across)], np.bitwise_xor)[:, 0]
    return np.stack([first, first ^ traded], axis=1).reshape(-1), reads


def slots(union: Sequence[int], rows: Sequence[int], columns: Sequence[int], reading: Sequence[int]) -> dict[int, int]:
    """Returns the bits that every qubit of a group adds, by XOR, to a slot of one amplitude in shared memory.

    ``reading`` are the qubits in which lanes that read together differ. The lowest qubits, as many as ``reading`` has,
    choose among the slots of a 128-byte line. A qubit of ``reading`` that is not among the lowest also changes a bit of
    the line that no other qubit of ``reading`` changes, so that these lanes read from distinct slots. Row qubits from
    the fourth on are plain bits.
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
