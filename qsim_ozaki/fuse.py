"""Fusion: fewer and leaner operators with the same product.

In: unitary ops in order. Out: ops in order. One-qubit gates are merged and split into diagonals, which cost next to
nothing, around one real rotation; CX gates between rotations become CZ. It knows no device and never reorders ops that
do not commute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from qsim_ozaki.ops import HADAMARD_MATRIX, ComplexArray, Kind, Op

Matrix: TypeAlias = tuple[complex, complex, complex, complex]  # row-major 2x2

IDENTITY: Matrix = (1 + 0j, 0j, 0j, 1 + 0j)
H: Matrix = tuple(complex(z) for z in HADAMARD_MATRIX.reshape(-1))  # type: ignore[assignment]
CZ: ComplexArray = np.array([1, 1, 1, -1], complex)
CZ.setflags(write=False)
ROUNDING = 4 * 2.0**-53  # parts of a matrix entry below this are rounding of exact zeros


def fuse(ops: Sequence[Op], num_qubits: int, max_fused_qubits: int = 2) -> list[Op]:
    """The product of ``ops`` as fewer, cheaper ops.

    Args:
        ops: unitary operators in order.
        num_qubits: qubits they act on.
        max_fused_qubits: matrices on at most this many qubits absorb neighbouring gates.
    """
    fusion = _Fusion(num_qubits, max_fused_qubits, _next_mixes_alone(ops, num_qubits))
    for number, op in enumerate(ops):
        fusion.take(number, op)
    return fusion.finish()


def one_qubit_matrix(op: Op) -> Matrix | None:
    """The 2x2 matrix of an uncontrolled one-qubit op, else None."""
    if op.controls or len(op.targets) != 1:
        return None
    if op.kind is Kind.HADAMARD:
        return H
    if op.kind is Kind.UNITARY:
        (a, b), (c, d) = op.data.tolist()
        return a, b, c, d
    first, second = op.data.tolist()
    if op.kind is Kind.DIAGONAL or (op.permutation is not None and op.permutation[0] == 0):
        return first, 0j, 0j, second
    return 0j, second, first, 0j


def multiply(a: Matrix, b: Matrix) -> Matrix:
    """The product ``a b``: b acts first."""
    return (
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
    )


def split(u: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """``u = left core right`` with diagonal ``left``, ``right`` and a core that costs two operations per amplitude.

    The core is real orthogonal, or has a real diagonal and equal imaginary entries off it; entries that must agree
    agree exactly.
    """
    a, b, c, d = u
    core = _exact_core(u)
    if core is not None:
        return IDENTITY, core, IDENTITY
    cosine, sine = abs(a), abs(c)
    norm = math.hypot(cosine, sine)
    cosine, sine = cosine / norm, sine / norm
    if cosine < ROUNDING:
        return (-_unit(b), 0j, 0j, _unit(c)), (0j, -1 + 0j, 1 + 0j, 0j), IDENTITY
    left0, left1 = _unit(a), _unit(c)
    right1 = _unit(d / left1) if cosine >= sine else _unit(-b / left0)
    real = (complex(cosine), complex(-sine), complex(sine), complex(cosine))
    return (left0, 0j, 0j, left1), real, (1 + 0j, 0j, 0j, right1)


def _unit(z: complex) -> complex:
    return z / abs(z) if z else 1 + 0j


def _exact_core(u: Matrix) -> Matrix | None:
    """``u`` with its rounding removed where it already has a core's form, else None."""
    a, b, c, d = u
    if abs(a.imag) > ROUNDING or abs(d.imag) > ROUNDING:
        return None
    if abs(b.imag) <= ROUNDING and abs(c.imag) <= ROUNDING:
        sign = 1.0 if a.real * d.real - b.real * c.real > 0 else -1.0
        p, q = (a.real + sign * d.real) / 2, (b.real - sign * c.real) / 2
        return complex(p), complex(q), complex(-sign * q), complex(sign * p)
    unequal = abs(a.real - d.real) + abs(b.imag - c.imag)
    if abs(b.real) <= ROUNDING and abs(c.real) <= ROUNDING and unequal <= 8 * ROUNDING:
        p, q = (a.real + d.real) / 2, (b.imag + c.imag) / 2
        return complex(p), complex(0, q), complex(0, q), complex(p)
    return None


def _is_diagonal(u: Matrix) -> bool:
    return abs(u[1]) <= ROUNDING and abs(u[2]) <= ROUNDING


def _next_mixes_alone(ops: Sequence[Op], num_qubits: int) -> list[bool]:
    """For each op: whether the next op on its first target is a one-qubit gate that mixes it."""
    following: list[Op | None] = [None] * num_qubits
    out = [False] * len(ops)
    for number in range(len(ops) - 1, -1, -1):
        op = ops[number]
        if len(op.targets) == 1:
            later = following[op.targets[0]]
            out[number] = later is not None and len(later.qubits) == 1 and later.kind is not Kind.DIAGONAL
        if len(op.qubits) == 1 and op.kind is Kind.DIAGONAL:
            continue  # a phase merges into whatever comes next
        for q in op.qubits:
            following[q] = op
    return out


class _Fusion:
    """Holds back one-qubit gates per qubit until an op that does not commute with them arrives."""

    def __init__(self, num_qubits: int, max_fused_qubits: int, mixes_next: Sequence[bool]) -> None:
        self.pending: list[Matrix | None] = [None] * num_qubits
        self.last_dense: list[int | None] = [None] * num_qubits  # number in `out` of a matrix nothing has followed
        self.out: list[Op] = []
        self.phase = 1 + 0j
        self.max_fused_qubits = max_fused_qubits
        self.mixes_next = mixes_next

    def take(self, number: int, op: Op) -> None:
        matrix = one_qubit_matrix(op)
        if matrix is not None:
            self.take_one_qubit(op.targets[0], matrix)
        elif op.kind is Kind.HADAMARD and not op.controls:
            for q in op.targets:
                self.take_one_qubit(q, H)
        elif not op.qubits:
            self.phase *= complex(op.data[0])
        elif self.is_cx(op) and self.mixes_next[number] and self.mixes(op.targets[0]):
            self.take_one_qubit(op.targets[0], H)
            pair = (op.targets[0], op.controls[0])
            diagonal = CZ if op.ctrl_state else np.array([1, -1, 1, 1], complex)
            self.emit(Op(Kind.DIAGONAL, pair, diagonal, name="cz"))
            self.take_one_qubit(op.targets[0], H)
        elif op.kind is Kind.UNITARY and not op.controls and len(op.targets) <= self.max_fused_qubits:
            self.take_dense(op)
        else:
            self.emit(op)

    def take_one_qubit(self, q: int, matrix: Matrix) -> None:
        before = self.pending[q]
        number = self.last_dense[q]
        if before is None and number is not None:
            dense = self.out[number]
            wide = _embed(matrix, dense.targets.index(q), len(dense.targets))
            self.out[number] = self.replaced(dense, wide @ dense.data)
        else:
            self.pending[q] = matrix if before is None else multiply(matrix, before)

    def take_dense(self, op: Op) -> None:
        """A small matrix absorbs what is held back on its qubits, and the matrix before it on the same qubits."""
        data = op.data
        for j, q in enumerate(op.targets):
            before = self.pending[q]
            if before is not None:
                data = data @ _embed(before, j, len(op.targets))
                self.pending[q] = None
        numbers = {self.last_dense[q] for q in op.targets}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is not None and set(self.out[number].targets) == set(op.targets):
            earlier = self.out[number]
            self.out[number] = self.replaced(earlier, _reorder(data, op.targets, earlier.targets) @ earlier.data)
            return
        fused = self.replaced(op, data)
        self.note(fused)
        self.out.append(fused)
        for q in op.targets:
            self.last_dense[q] = len(self.out) - 1

    def emit(self, op: Op) -> None:
        """Appends ``op`` after what must come before it."""
        for q in op.mixed_qubits:
            self.flush(q, keep_phase=False)
        if len(op.qubits) > len(op.mixed_qubits):
            for q in op.controls if op.mixed_qubits else op.qubits:
                self.flush(q, keep_phase=True)
        self.note(op)
        self.out.append(op)

    def flush(self, q: int, keep_phase: bool) -> None:
        """Emits what is held back on ``q``; a phase may stay where the next op is diagonal on the qubit."""
        matrix = self.pending[q]
        if matrix is None:
            return
        if _is_diagonal(matrix):
            if not keep_phase:
                self.pending[q] = None
                self.emit_diagonal(q, matrix)
            return
        left, core, right = split(matrix)
        self.emit_diagonal(q, right)
        self.append(Op(Kind.UNITARY, (q,), np.array(core).reshape(2, 2), name="rotation"))
        self.pending[q] = left if keep_phase else None
        if not keep_phase:
            self.emit_diagonal(q, left)

    def emit_diagonal(self, q: int, matrix: Matrix) -> None:
        first, second = matrix[0], matrix[3]
        self.phase *= first
        ratio = second / first
        if ratio != 1:
            self.append(Op(Kind.DIAGONAL, (q,), np.array([1, ratio]), name="phase"))

    def append(self, op: Op) -> None:
        self.note(op)
        self.out.append(op)

    def note(self, op: Op) -> None:
        for q in op.qubits:
            self.last_dense[q] = None

    def finish(self) -> list[Op]:
        for q in range(len(self.pending)):
            self.flush(q, keep_phase=False)
        phase = self.phase / abs(self.phase)
        if abs(phase - 1) > ROUNDING:
            self.out.append(Op(Kind.DIAGONAL, (), np.array([phase]), name="phase"))
        return self.out

    def mixes(self, q: int) -> bool:
        matrix = self.pending[q]
        return matrix is not None and not _is_diagonal(matrix)

    @staticmethod
    def is_cx(op: Op) -> bool:
        if op.kind is not Kind.PERMUTATION or len(op.targets) != 1 or len(op.controls) != 1:
            return False
        assert op.permutation is not None
        return bool(op.permutation[0] == 1 and op.data[0] == 1 and op.data[1] == 1)

    @staticmethod
    def replaced(op: Op, data: ComplexArray) -> Op:
        return Op(op.kind, op.targets, data, name=op.name)


def _embed(matrix: Matrix, position: int, count: int) -> ComplexArray:
    """``matrix`` on bit ``position`` of ``count`` bits."""
    out = np.ones((1, 1), complex)
    for j in range(count):
        out = np.kron(np.array(matrix).reshape(2, 2) if j == position else np.eye(2), out)
    return out


def _reorder(data: ComplexArray, targets: Iterable[int], wanted: Sequence[int]) -> ComplexArray:
    """The matrix on ``targets`` as a matrix on the same qubits in the order ``wanted``."""
    count = len(wanted)
    order = list(targets)
    source = np.zeros(1 << count, np.int64)
    for j, q in enumerate(wanted):
        source |= ((np.arange(1 << count) >> j) & 1) << order.index(q)
    return data[np.ix_(source, source)]
