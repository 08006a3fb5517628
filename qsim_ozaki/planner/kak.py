"""Two-qubit unitaries as two rotations and a core that keeps the parity: three quarters of the multiplications.

In: fused ops in order. Out: ops with the same product. What a gate does to one qubit alone after its core waits for the
next gate on that qubit, so it costs nothing until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import CORE, ComplexArray, Kind, Op

MAGIC_ROWS: ComplexArray = np.array([[1, 1j, 0, 0], [0, 0, 1j, 1], [0, 0, 1j, -1], [1, -1j, 0, 0]])
MAGIC: ComplexArray = MAGIC_ROWS / np.sqrt(2)
MIXES = (0.36, 0.64, 0.93)  # weights at which real and imaginary part are diagonalised together
GOOD = 2.0**-46
BITS = (np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))  # of the index of a matrix on two qubits
Parts: TypeAlias = tuple[ComplexArray, ComplexArray, ComplexArray, ComplexArray, ComplexArray]


def split_pairs(ops: Sequence[Op], num_qubits: int) -> list[Op]:
    """``ops`` with dense two-qubit unitaries split, where there are enough of them to repay what is left at the end."""
    rows = list(ops)
    pairs = [op for op in rows if _is_dense_pair(op)]
    if len(pairs) < max(num_qubits, 1):
        return rows
    parts = iter(canonical(np.array([op.data for op in pairs])))
    splitter = _Splitter(num_qubits)
    for op in rows:
        splitter.take(op, next(parts) if _is_dense_pair(op) else None)
    return splitter.finish()


def canonical(unitaries: ComplexArray) -> list[Parts | None]:
    """Each ``(left1 x left0) core (right1 x right0)``, None where rounding spoils it; index bit 0 is qubit 0.

    Source: Kraus and Cirac, quant-ph/0011050; Makhlin, quant-ph/0002045: in the magic basis local gates are real.
    """
    inner = MAGIC.conj().T @ unitaries @ MAGIC
    square = inner.swapaxes(1, 2) @ inner
    bases = np.stack([np.linalg.eigh(w * square.real + (1 - w) * square.imag)[1] for w in MIXES])
    off = np.stack([_off(basis, square) for basis in bases])
    each = np.arange(len(unitaries))
    basis = bases[np.argmin(off, axis=0), each]
    basis[np.linalg.det(basis) < 0, :, 0] *= -1
    diagonal = np.einsum("nji,njk,nki->ni", basis, square, basis)
    phases = np.exp(0.5j * np.angle(diagonal))
    outer = (inner @ basis / phases[:, None, :]).real
    mirrored = np.linalg.det(outer) < 0
    outer[mirrored, :, 0] *= -1
    phases[mirrored, 0] *= -1
    left1, left0 = _factors(MAGIC @ outer @ MAGIC.conj().T)
    right1, right0 = _factors(MAGIC @ basis.swapaxes(1, 2) @ MAGIC.conj().T)
    # sqrt(1/2) squared is below 1/2: with MAGIC itself, every core would lose as much of the norm
    core = np.asarray((MAGIC_ROWS * phases[:, None, :]) @ MAGIC_ROWS.conj().T / 2, complex)
    core[:, [0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2]] = 0  # exact: each basis vector has one parity
    good = (np.min(off, axis=0) <= GOOD).tolist()
    parts = zip(left0, left1, core, right0, right1, strict=True)
    return [part if fine else None for part, fine in zip(parts, good, strict=True)]


def _off(basis: NDArray[np.float64], square: ComplexArray) -> NDArray[np.float64]:
    rotated = np.abs(basis.swapaxes(1, 2) @ square @ basis)
    rotated[:, np.arange(4), np.arange(4)] = 0
    return np.asarray(rotated.max((1, 2)), float)


def _factors(products: ComplexArray) -> tuple[ComplexArray, ComplexArray]:
    """a, b of each Kronecker product of two unitaries."""
    blocks = products.reshape(-1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4)
    flat = blocks.reshape(-1, 4, 2, 2)
    inner = flat[np.arange(len(flat)), np.argmax(np.abs(flat).max((2, 3)), axis=1)]
    inner = inner / np.sqrt(np.linalg.det(inner))[:, None, None]
    return np.einsum("nijkl,nkl->nij", blocks, inner.conj()) / 2, inner


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

    def take(self, op: Op, parts: Parts | None) -> None:
        """The next op, and its parts where it has some."""
        if parts is None:
            self.release(op.qubits)
            self.out.append(op)
            return
        left0, left1, core, right0, right1 = parts
        low, high = (self.waiting[q] for q in op.targets)
        after0 = self.turn(op.targets[0], right0 if low is None else right0 @ low)
        after1 = self.turn(op.targets[1], right1 if high is None else right1 @ high)
        for q, left in zip(op.targets, (left0, left1), strict=True):
            self.waiting[q], self.core[q] = left, len(self.out)
        self.out.append(Op(Kind.UNITARY, op.targets, core * (after1[:, None] * after0).reshape(4), name=CORE))

    def turn(self, qubit: int, matrix: ComplexArray) -> ComplexArray:
        """Emits the rotation in ``matrix``; the phases before it go into the last core, those after it are returned."""
        after, rotation, before = _euler(matrix)
        number = self.core[qubit]
        if number is None:
            self.out.append(Op(Kind.DIAGONAL, (qubit,), before, name="phase"))
        else:
            core = self.out[number]
            bit = core.targets.index(qubit)
            rows = before[BITS[bit]]
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
