"""Builds records and tables that several kernels read: runs of qubits, sums over index bits, bytes of an argument.

In: qubits, matrices, NumPy records. Out: arrays as the kernels read them. It may not use a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import ComplexArray

SQRT_HALF = 0.7071067811865476
# H with the entries of the kernels' tables; the entries of `ir.HADAMARD_MATRIX` are one unit in the last place less.
HADAMARD: ComplexArray = np.array([[SQRT_HALF, SQRT_HALF], [SQRT_HALF, -SQRT_HALF]], complex)
HADAMARD.setflags(write=False)
RUNS = np.dtype([("count", "u4"), ("start", "u1", 31), ("length", "u1", 32), ("pad", "u1")], align=True)


def runs_of(qubits: Sequence[int]) -> list[tuple[int, int]]:
    """Returns ``qubits`` as (start, length) of runs of consecutive positions, ascending."""
    out: list[tuple[int, int]] = []
    for q in sorted(qubits):
        if out and q == out[-1][0] + out[-1][1]:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((q, 1))
    return out


def opaque(record: NDArray[Any]) -> NDArray[Any]:
    """Returns a kernel's argument as plain bytes: CuPy would describe its fields at every launch, 10 us for dozens."""
    return record.view(f"V{record.nbytes}")


def runs_record(qubits: Sequence[int]) -> NDArray[Any]:
    """Returns the `Runs` struct of ``qubits``."""
    record = np.zeros((), RUNS)
    runs = runs_of(qubits)
    record["count"] = len(runs)
    for i, (start, length) in enumerate(runs):
        record["start"][i], record["length"][i] = start, length
    return record


def sorted_matrix(matrix: ComplexArray, targets: Sequence[int]) -> ComplexArray:
    """Returns the matrix with its index bits in ascending order of the targets."""
    k = len(targets)
    order = [int(i) for i in np.argsort(targets)]
    index = np.arange(1 << k)
    old = np.zeros_like(index)
    for new, b in enumerate(order):
        old |= (index >> new & 1) << b
    return np.asarray(matrix[np.ix_(old, old)], complex)


def widened(matrix: ComplexArray, targets: Sequence[int], extra: Sequence[int]) -> tuple[ComplexArray, tuple[int, ...]]:
    """Returns the matrix extended to the targets ``extra``, on which it is the identity, and all its targets."""
    return np.asarray(np.kron(np.eye(1 << len(extra)), matrix), complex), (*targets, *extra)


def sums(steps: Sequence[tuple[int, int]], add: np.ufunc = np.add) -> NDArray[np.uint64]:
    """Returns, for every index, the sum of the steps of its set bits, in both components.

    Args:
        steps: two numbers per index bit.
        add: the ufunc that combines steps; ``np.bitwise_xor`` for slots.

    Returns:
        uint64, ``(2**len(steps), 2)``.
    """
    index = np.arange(1 << len(steps))
    out = np.zeros((len(index), 2), np.uint64)
    for b, step in enumerate(steps):
        out = add(out, (index >> b & 1).astype(np.uint64)[:, None] * np.array(step, np.uint64))
    return out
