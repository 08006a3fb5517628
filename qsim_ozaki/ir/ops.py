"""Operators: the structure of their data, and the qubits they act on.

In: tuples and NumPy arrays. Out: frozen dataclasses that every later stage reads. It may not use Qiskit, touch a state
or choose anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

ComplexArray: TypeAlias = NDArray[np.complex128]
IndexArray: TypeAlias = NDArray[np.int64]


class Kind(Enum):
    """The strongest structure that an operator has; it selects the kernel that applies the operator."""

    DIAGONAL = auto()  # data: (2**k,) factors; k = 0 is a global phase
    PERMUTATION = auto()  # data: amplitude j goes to permutation[j] and is multiplied by phases[j]
    HADAMARD = auto()  # no data: H on each target
    UNITARY = auto()  # data: (2**k, 2**k) row-major matrix
    PARITY = auto()  # data: factors where the sum of the targets' bits is even and odd: exp(i angle Z...Z), say
    PAULI = auto()  # data: a and b of a I + b P, where P is a Pauli string on all targets: exp(-i angle P), say


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operator on a few qubits: ``data`` on ``targets`` where the ``controls`` read ``ctrl_state``.

    Attributes:
        kind: the structure of ``data``.
        targets: k distinct qubits; ``targets[0]`` is bit 0 of the matrix index.
        data: complex128; UNITARY ``(2**k, 2**k)``, DIAGONAL ``(2**k,)``, PERMUTATION ``(2**k,)`` phases,
            HADAMARD empty, PARITY and PAULI ``(2,)``.
        controls: distinct qubits, none of them a target; a PARITY or a PAULI has none.
        ctrl_state: bit b is the value at which ``controls[b]`` is satisfied.
        permutation: int64; PERMUTATION ``(2**k,)``: amplitude j goes to ``permutation[j]``, times ``data[j]``; PAULI
            ``(k,)``: the letter of each target, 1 for X, 2 for Y, 3 for Z.
        name: the gate's name, which only plans and messages show.
    """

    kind: Kind
    targets: tuple[int, ...]
    data: ComplexArray
    controls: tuple[int, ...] = ()
    ctrl_state: int = 0
    permutation: IndexArray | None = None
    name: str = ""

    @property
    def qubits(self) -> tuple[int, ...]:
        """The targets, then the controls."""
        return self.targets + self.controls

    @property
    def mixed_qubits(self) -> tuple[int, ...]:
        """The qubits whose value the operator changes (none for a diagonal): a tile must contain them."""
        if self.kind is Kind.PAULI:
            assert self.permutation is not None, "a PAULI has letters"
            return tuple(q for q, letter in zip(self.targets, self.permutation, strict=True) if letter != LETTER_Z)
        return () if self.kind in DIAGONAL_KINDS else self.targets

    def matrix(self) -> ComplexArray:
        """Returns the ``(2**k, 2**k)`` matrix on the targets, without the controls."""
        size = 1 << len(self.targets)
        if self.kind is Kind.UNITARY:
            return self.data
        if self.kind is Kind.DIAGONAL:
            return np.asarray(np.diag(self.data), complex)
        if self.kind is Kind.PAULI:
            assert self.permutation is not None, "a PAULI has letters"
            string = np.ones((1, 1), complex)
            for letter in self.permutation:
                string = np.asarray(np.kron(PAULI_MATRICES[letter - 1], string), complex)
            return np.asarray(self.data[0] * np.eye(size) + self.data[1] * string, complex)
        if self.kind is Kind.PARITY:
            return np.asarray(np.diag(self.data[[j.bit_count() & 1 for j in range(size)]]), complex)
        if self.kind is Kind.PERMUTATION:
            out = np.zeros((size, size), complex)
            out[self.permutation, np.arange(size)] = self.data
            return out
        out = np.ones((1, 1), complex)
        for _ in self.targets:
            out = np.asarray(np.kron(HADAMARD_MATRIX, out), complex)
        return out


PAULI_MATRICES: ComplexArray = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])  # X, Y, Z
LETTER_Z = 3
DIAGONAL_KINDS = (Kind.DIAGONAL, Kind.PARITY)  # they only multiply each amplitude by a factor
HADAMARD_MATRIX: ComplexArray = np.array([[1, 1], [1, -1]], complex) / np.sqrt(2)
# Name of a two-qubit unitary that preserves parity: its matrix has two 2x2 blocks, on {00, 11} and on {01, 10}.
PARITY_PRESERVING = "core"
EMPTY: ComplexArray = np.empty(0, complex)
for _constant in (HADAMARD_MATRIX, PAULI_MATRICES, EMPTY):
    _constant.setflags(write=False)
