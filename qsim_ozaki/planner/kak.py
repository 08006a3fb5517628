"""KAK decomposition of two-qubit unitaries: one-qubit gates around a canonical gate that preserves parity.

In: fused operators in order. Out: operators with the same product and three quarters of the multiplications. It may not
choose tiles. The one-qubit gates after a canonical gate wait for the next gate on their qubit, so they cost nothing
until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import PARITY_PRESERVING, ComplexArray, Kind, Op

MAGIC_ROWS: ComplexArray = np.array([[1, 1j, 0, 0], [0, 0, 1j, 1], [0, 0, 1j, -1], [1, -1j, 0, 0]])
MAGIC: ComplexArray = MAGIC_ROWS / np.sqrt(2)
# Weights of the real part against the imaginary part of the matrices whose eigenvectors diagonalise both parts.
DIAGONALIZATION_WEIGHTS = (0.36, 0.64, 0.93)
MAX_OFF_DIAGONAL = 2.0**-46  # largest entry beside the diagonal of an accurate diagonalisation
MIN_ENTRY = 1e-12  # a matrix is dense if the magnitudes of all its entries are larger
# For the index of a matrix on two qubits: its bit 0, and its bit 1.
INDEX_BITS = (np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))
# left0, left1, canonical gate, right0, right1
KakFactors: TypeAlias = tuple[ComplexArray, ComplexArray, ComplexArray, ComplexArray, ComplexArray]


def split_two_qubit_gates(ops: Sequence[Op], num_qubits: int) -> list[Op]:
    """Returns ``ops`` with dense two-qubit unitaries split by their KAK decompositions.

    Every qubit may keep one-qubit gates at the end, so fewer two-qubit unitaries than qubits stay as they are.
    """
    rows = list(ops)
    dense = [op for op in rows if _is_dense_two_qubit_gate(op)]
    if len(dense) < max(num_qubits, 1):
        return rows
    factors = iter(kak_decompositions(np.array([op.data for op in dense])))
    splitter = _Splitter(num_qubits)
    for op in rows:
        splitter.add(op, next(factors) if _is_dense_two_qubit_gate(op) else None)
    return splitter.finish()


def kak_decompositions(unitaries: ComplexArray) -> list[KakFactors | None]:
    """Decomposes unitaries as ``(left1 x left0) canonical (right1 x right0)``; index bit 0 is qubit 0.

    Args:
        unitaries: ``(count, 4, 4)``.

    Returns:
        For each unitary its factors, or None where rounding spoils them.

    Source: Kraus and Cirac, quant-ph/0011050; Makhlin, quant-ph/0002045: in the magic basis local gates are real.
    """
    inner = MAGIC.conj().T @ unitaries @ MAGIC
    square = inner.swapaxes(1, 2) @ inner
    bases = np.stack([np.linalg.eigh(w * square.real + (1 - w) * square.imag)[1] for w in DIAGONALIZATION_WEIGHTS])
    off_diagonal = np.stack([_largest_off_diagonal(basis, square) for basis in bases])
    basis = bases[np.argmin(off_diagonal, axis=0), np.arange(len(unitaries))]
    basis[np.linalg.det(basis) < 0, :, 0] *= -1
    diagonal = np.einsum("nji,njk,nki->ni", basis, square, basis)
    phases = np.exp(0.5j * np.angle(diagonal))
    outer = (inner @ basis / phases[:, None, :]).real
    mirrored = np.linalg.det(outer) < 0
    outer[mirrored, :, 0] *= -1
    phases[mirrored, 0] *= -1
    left1, left0 = _tensor_factors(MAGIC @ outer @ MAGIC.conj().T)
    right1, right0 = _tensor_factors(MAGIC @ basis.swapaxes(1, 2) @ MAGIC.conj().T)
    # In floating point the square of sqrt(1/2) is below 1/2: with MAGIC, every canonical gate would lose that much
    # norm.
    canonical = np.asarray((MAGIC_ROWS * phases[:, None, :]) @ MAGIC_ROWS.conj().T / 2, complex)
    # exact: every vector of the magic basis has one parity
    canonical[:, [0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2]] = 0
    accurate = (np.min(off_diagonal, axis=0) <= MAX_OFF_DIAGONAL).tolist()
    factors = zip(left0, left1, canonical, right0, right1, strict=True)
    return [row if row_is_accurate else None for row, row_is_accurate in zip(factors, accurate, strict=True)]


def _largest_off_diagonal(basis: NDArray[np.float64], square: ComplexArray) -> NDArray[np.float64]:
    """Returns for each matrix the largest magnitude beside the diagonal, after a change to ``basis``."""
    rotated = np.abs(basis.swapaxes(1, 2) @ square @ basis)
    rotated[:, np.arange(4), np.arange(4)] = 0
    return np.asarray(rotated.max((1, 2)), float)


def _tensor_factors(products: ComplexArray) -> tuple[ComplexArray, ComplexArray]:
    """Returns the factors a and b of each Kronecker product of two unitaries."""
    blocks = products.reshape(-1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4)
    flat = blocks.reshape(-1, 4, 2, 2)
    inner = flat[np.arange(len(flat)), np.argmax(np.abs(flat).max((2, 3)), axis=1)]
    inner = inner / np.sqrt(np.linalg.det(inner))[:, None, None]
    return np.einsum("nijkl,nkl->nij", blocks, inner.conj()) / 2, inner


def _euler(matrix: ComplexArray) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Returns after, rotation, before with ``matrix = diag(after) rotation diag(before)`` and a real rotation."""
    (a, b), (c, d) = matrix.tolist()
    norm = float(np.hypot(abs(a), abs(c)))
    cos, sin = abs(a) / norm, abs(c) / norm
    first = a / abs(a) if a else 1.0
    second = c / abs(c) if c else 1.0
    inner = d / second if cos >= sin else -b / first
    rotation = np.array([[cos, -sin], [sin, cos]], complex)
    return np.array([first, second]), rotation, np.array([1, inner / abs(inner)])


def _is_dense_two_qubit_gate(op: Op) -> bool:
    """Returns whether ``op`` is a two-qubit unitary without controls and without zeros."""
    is_two_qubit_unitary = op.kind is Kind.UNITARY and len(op.targets) == 2 and not op.controls
    return is_two_qubit_unitary and bool(np.all(np.abs(op.data) > MIN_ENTRY))


class _Splitter:
    """Splits operators one after the other and delays the one-qubit gates that follow a canonical gate."""

    def __init__(self, num_qubits: int) -> None:
        self.out: list[Op] = []
        self.delayed: list[ComplexArray | None] = [None] * num_qubits  # one-qubit matrix that waits on each qubit
        # For each qubit: the index in `out` of the canonical gate that acted on it last.
        self.last_canonical: list[int | None] = [None] * num_qubits

    def add(self, op: Op, factors: KakFactors | None) -> None:
        """Takes the next operator; ``factors`` is its decomposition, or None for an operator that stays whole."""
        if factors is None:
            self.flush(op.qubits)
            self.out.append(op)
            return
        left0, left1, canonical, right0, right1 = factors
        delayed0, delayed1 = (self.delayed[q] for q in op.targets)
        after0 = self.emit_rotation(op.targets[0], right0 if delayed0 is None else right0 @ delayed0)
        after1 = self.emit_rotation(op.targets[1], right1 if delayed1 is None else right1 @ delayed1)
        for q, left in zip(op.targets, (left0, left1), strict=True):
            self.delayed[q], self.last_canonical[q] = left, len(self.out)
        matrix = canonical * (after1[:, None] * after0).reshape(4)
        self.out.append(Op(Kind.UNITARY, op.targets, matrix, name=PARITY_PRESERVING))

    def emit_rotation(self, qubit: int, matrix: ComplexArray) -> ComplexArray:
        """Emits the rotation in ``matrix`` and returns the phases after it.

        The phases before it are multiplied into the last canonical gate on the qubit, if there is one.
        """
        after, rotation, before = _euler(matrix)
        number = self.last_canonical[qubit]
        if number is None:
            self.out.append(Op(Kind.DIAGONAL, (qubit,), before, name="phase"))
        else:
            gate = self.out[number]
            bit = gate.targets.index(qubit)
            row_phases = before[INDEX_BITS[bit]]
            self.out[number] = Op(Kind.UNITARY, gate.targets, row_phases[:, None] * gate.data, name=PARITY_PRESERVING)
        self.out.append(Op(Kind.UNITARY, (qubit,), rotation, name="rotation"))
        return after

    def flush(self, qubits: Sequence[int]) -> None:
        """Emits the delayed gates on ``qubits``."""
        for q in qubits:
            matrix = self.delayed[q]
            if matrix is not None:
                after = self.emit_rotation(q, matrix)
                self.out.append(Op(Kind.DIAGONAL, (q,), after, name="phase"))
            self.delayed[q] = self.last_canonical[q] = None

    def finish(self) -> list[Op]:
        """Emits all delayed gates and returns all operators."""
        self.flush(range(len(self.delayed)))
        return self.out
