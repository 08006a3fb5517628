"""Two-qubit unitaries as two rotations and a core that keeps the parity: three quarters of the multiplications.

In: fused ops in order. Out: ops with the same product. What a gate does to one qubit alone after its core waits for the
next gate on that qubit, so it costs nothing until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from qsim_ozaki.ops import CORE, ComplexArray, Kind, Op

MAGIC: ComplexArray = np.array([[1, 1j, 0, 0], [0, 0, 1j, 1], [0, 0, 1j, -1], [1, -1j, 0, 0]]) / np.sqrt(2)
MIXES = (0.36, 0.64, 0.93)  # weights at which real and imaginary part are diagonalised together
GOOD = 2.0**-46
Parts: TypeAlias = tuple[ComplexArray, ComplexArray, ComplexArray, ComplexArray, ComplexArray]


def split_pairs(ops: Sequence[Op], num_qubits: int) -> list[Op]:
    """``ops`` with dense two-qubit unitaries split, where there are enough of them to repay what is left at the end."""
    pairs = sum(_is_dense_pair(op) for op in ops)
    if pairs < num_qubits:
        return list(ops)
    splitter = _Splitter(num_qubits)
    for op in ops:
        splitter.take(op)
    return splitter.finish()


def canonical(unitary: ComplexArray) -> Parts | None:
    """``unitary = (left1 x left0) core (right1 x right0)``, None where rounding spoils it; index bit 0 is qubit 0.

    Source: Kraus and Cirac, quant-ph/0011050; Makhlin, quant-ph/0002045: in the magic basis local gates are real.
    """
    inner = MAGIC.conj().T @ unitary @ MAGIC
    square = inner.T @ inner
    basis = min(
        (np.linalg.eigh(w * square.real + (1 - w) * square.imag)[1] for w in MIXES), key=lambda p: _off(p, square)
    )
    if _off(basis, square) > GOOD:
        return None
    if np.linalg.det(basis) < 0:
        basis[:, 0] *= -1
    phases = np.exp(0.5j * np.angle(np.diagonal(basis.T @ square @ basis)))
    outer = (inner @ basis / phases).real
    if np.linalg.det(outer) < 0:
        outer[:, 0] *= -1
        phases[0] *= -1
    left1, left0 = _factors(MAGIC @ outer @ MAGIC.conj().T)
    right1, right0 = _factors(MAGIC @ basis.T @ MAGIC.conj().T)
    core = np.asarray((MAGIC * phases) @ MAGIC.conj().T, complex)
    core[[0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2]] = 0  # exact: each basis vector has one parity
    return left0, left1, core, right0, right1


def _off(basis: ComplexArray, square: ComplexArray) -> float:
    rotated = basis.T @ square @ basis
    return float(np.abs(rotated - np.diag(np.diagonal(rotated))).max())


def _factors(product: ComplexArray) -> tuple[ComplexArray, ComplexArray]:
    """a, b of a Kronecker product of two unitaries."""
    blocks = product.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    i, j = divmod(int(np.argmax(np.abs(blocks).max((2, 3)))), 2)
    inner = blocks[i, j] / np.sqrt(complex(np.linalg.det(blocks[i, j])))
    return np.einsum("ijkl,kl->ij", blocks, inner.conj()) / 2, inner


def _euler(matrix: ComplexArray) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """``matrix = diag(after) rotation diag(before)`` with a real rotation."""
    (a, b), (c, d) = matrix.tolist()
    norm = float(np.hypot(abs(a), abs(c)))
    cos, sin = abs(a) / norm, abs(c) / norm
    first = a / abs(a) if a else 1.0
    second = c / abs(c) if c else 1.0
    inner = d / second if cos >= sin else -b / first
    rotation = np.array([[cos, -sin], [sin, cos]], complex)
    return np.array([first, second]), rotation, np.array([1, inner / abs(inner)])


def _is_dense_pair(op: Op) -> bool:
    return (
        op.kind is Kind.UNITARY and len(op.targets) == 2 and not op.controls and bool(np.all(np.abs(op.data) > 1e-12))
    )


class _Splitter:
    """Holds back what acts on one qubit alone after a core."""

    def __init__(self, num_qubits: int) -> None:
        self.out: list[Op] = []
        self.waiting: list[ComplexArray | None] = [None] * num_qubits
        self.core: list[int | None] = [None] * num_qubits  # number in `out` of the core that ended on the qubit

    def take(self, op: Op) -> None:
        if not _is_dense_pair(op):
            self.release(op.qubits)
            self.out.append(op)
            return
        low, high = (self.waiting[q] for q in op.targets)
        before = np.kron(np.eye(2) if high is None else high, np.eye(2) if low is None else low)
        parts = canonical(op.data @ before)
        if parts is None:
            self.release(op.targets)
            self.out.append(op)
            return
        left0, left1, core, right0, right1 = parts
        after0 = self.turn(op.targets[0], right0)
        after1 = self.turn(op.targets[1], right1)
        for q, left in zip(op.targets, (left0, left1), strict=True):
            self.waiting[q], self.core[q] = left, len(self.out)
        self.out.append(Op(Kind.UNITARY, op.targets, core * np.kron(after1, after0), name=CORE))

    def turn(self, qubit: int, matrix: ComplexArray) -> ComplexArray:
        """Emits the rotation in ``matrix``; the phases before it go into the last core, those after it are returned."""
        after, rotation, before = _euler(matrix)
        number = self.core[qubit]
        if number is None:
            self.out.append(Op(Kind.DIAGONAL, (qubit,), before, name="phase"))
        else:
            core = self.out[number]
            bit = core.targets.index(qubit)
            rows = before[np.arange(4) >> bit & 1]
            self.out[number] = Op(Kind.UNITARY, core.targets, rows[:, None] * core.data, name=CORE)
        self.out.append(Op(Kind.UNITARY, (qubit,), rotation, name="rotation"))
        return after

    def release(self, qubits: Sequence[int]) -> None:
        """Emits what waits on ``qubits``."""
        for q in qubits:
            matrix = self.waiting[q]
            if matrix is not None:
                after = self.turn(q, matrix)
                self.out.append(Op(Kind.DIAGONAL, (q,), after, name="phase"))
            self.waiting[q] = self.core[q] = None

    def finish(self) -> list[Op]:
        self.release(range(len(self.waiting)))
        return self.out
