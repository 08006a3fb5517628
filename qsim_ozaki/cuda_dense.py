"""Tables for dense blocks on a GPU: matrix fragments, places in a tile, parts for a library product.

In: targets, controls, a matrix. Out: arrays and records as `dense_block.cu` and `block_gather.cu` read them. No GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.cuda_program import runs_of
from qsim_ozaki.ops import ComplexArray, Kind, Op

THREADS = 256
RUNS = np.dtype([("count", "u4"), ("start", "u1", 31), ("length", "u1", 32), ("pad", "u1")], align=True)
DENSE_TILE = np.dtype([("num_tiles", "u8"), ("fixed", "u8"), ("runs", RUNS)], align=True)
BLOCK = np.dtype(
    [
        ("num_elements", "u8"),
        ("fixed", "u8"),
        ("num_columns", "u8"),
        ("num_targets", "u4"),
        ("target", "u1", 32),
        ("fixed_runs", RUNS),
        ("target_runs", RUNS),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class DenseTables:
    """What one launch of `dense_block` needs: fragments of the matrix, places, and the tile record."""

    matrix: ComplexArray
    places: NDArray[np.uint64]
    tile: NDArray[Any]
    num_tiles: int
    shared_bytes: int


def runs_record(qubits: Sequence[int]) -> NDArray[Any]:
    """A `Runs` struct over ``qubits``."""
    record = np.zeros((), RUNS)
    runs = runs_of(qubits)
    record["count"] = len(runs)
    for i, (start, length) in enumerate(runs):
        record["start"][i], record["length"][i] = start, length
    return record


def column_bits(k: int) -> int:
    """log2 of a tile's columns, as `dense_block.cu` has it."""
    return {4: 7, 5: 6, 6: 6, 7: 5, 8: 5, 9: 4}[k]


def buffers(k: int) -> int:
    """Tiles that a block holds, as `dense_block.cu` has it."""
    return 2 if k <= 5 else 1


def blocks_per_processor(k: int) -> int:
    """Blocks that share a processor, each doing tiles in turn."""
    return 1 if k >= 8 else 2


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


def dense_tables(matrix: ComplexArray, targets: Sequence[int], fixed: dict[int, int], num_qubits: int) -> DenseTables:
    """Tables of one block.

    Args:
        matrix: ``(2**k, 2**k)``, k from 4 to 9, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: value of each qubit at which the block acts (controls and qubits known to be |0>).
        num_qubits: width of the state; k, the columns and the fixed qubits must fit.
    """
    k = len(targets)
    rows = sorted(targets)
    columns = [q for q in range(num_qubits) if q not in fixed and q not in rows][: column_bits(k)]
    assert len(columns) == column_bits(k), f"{num_qubits} qubits are too few for a block of {k} with {len(fixed)} fixed"
    union = sorted(rows + columns)
    stride = 2 * (1 << len(columns)) + 4
    steps = [(1 << q, (1 << rows.index(q)) * stride if q in rows else (1 << columns.index(q)) * 2) for q in union]
    low, high = steps[:8], steps[8:]
    places = np.concatenate(
        [
            sums(low).reshape(-1),
            sums(high).reshape(-1),
            sums([(1 << q, 0) for q in rows])[:, 0],
            sums([(1 << q, 0) for q in columns])[:, 0],
        ]
    )
    tile = np.zeros(1, DENSE_TILE)
    num_tiles = 1 << (num_qubits - len(union) - len(fixed))
    tile["num_tiles"] = num_tiles
    tile["fixed"] = sum(value << q for q, value in fixed.items())
    tile["runs"] = runs_record([*union, *fixed])
    shared_bytes = buffers(k) * (stride << k) * 8
    return DenseTables(fragments(sorted_matrix(matrix, targets)), places, tile, num_tiles, shared_bytes)


def sums(steps: Sequence[tuple[int, int]]) -> NDArray[np.uint64]:
    """For each index, the sum of the steps of its set bits, both components."""
    index = np.arange(1 << len(steps))
    out = np.zeros((len(index), 2), np.uint64)
    for b, step in enumerate(steps):
        out += (index >> b & 1).astype(np.uint64)[:, None] * np.array(step, np.uint64)
    return out


def block_parts(
    targets: Sequence[int], fixed: dict[int, int], num_qubits: int, max_elements: int
) -> Iterator[NDArray[Any]]:
    """`Block` records that cover the state: each at most ``max_elements`` amplitudes, split over the top columns."""
    k = len(targets)
    columns = [q for q in range(num_qubits) if q not in fixed and q not in targets]
    held = max(k + len(columns) - (max_elements.bit_length() - 1), 0)
    assert held <= len(columns), f"{max_elements} amplitudes do not hold one column of {1 << k}"
    top = columns[len(columns) - held :]
    free = [q for q in range(num_qubits) if q not in fixed and q not in top]
    record = np.zeros(1, BLOCK)
    record["num_elements"] = 1 << len(free)
    record["num_columns"] = 1 << (len(free) - k)
    record["num_targets"] = k
    record["target"][0, :k] = [free.index(q) for q in targets]
    record["fixed_runs"] = runs_record([*fixed, *top])
    record["target_runs"] = runs_record([free.index(q) for q in targets])
    base = sum(value << q for q, value in fixed.items())
    for part in range(1 << held):
        record["fixed"] = base | sum((part >> i & 1) << q for i, q in enumerate(top))
        yield record.copy()
