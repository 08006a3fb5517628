"""Operators, matrices and states for measurements of hardware; they resemble those of circuits.

In: qubits of a tile, numbers of operators, sizes, seeds. Out: operators and arrays. It may not measure anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qsim_ozaki.ir import ComplexArray, Kind, Op

NOTHING = (Op(Kind.DIAGONAL, (), np.ones(1, complex)),)  # a pass with these operators only reads and writes
CZ = np.array([1, 1, 1, -1], complex)
PART_QUBITS = 24  # 2**24 amplitudes are made or compared at a time: a gibibyte with all intermediate results


def rotations(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """Returns ``count`` layers of a real rotation on every one of ``qubits``."""
    matrix = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]], complex)
    return tuple(Op(Kind.UNITARY, (q,), matrix) for _ in range(count) for q in qubits)


def mixing_layers(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """Returns ``count`` rounds of three layers, as in random circuits, Trotter steps and quantum volume.

    The first layer has a random unitary on every qubit and CZ between neighbours. The second has a rotation on every
    qubit and phases between all neighbours. The third has a rotation on every qubit, then parity-preserving gates on
    random pairs.
    """
    rng, ops = np.random.default_rng(4), []
    for layer in range(count):
        ops += [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in qubits]
        ops += [Op(Kind.DIAGONAL, tuple(qubits[b : b + 2]), CZ) for b in range(layer % 2, len(qubits) - 1, 2)]
        ops += rotations(qubits, 1)
        angles = rng.uniform(0.1, 3, len(qubits) - 1)[:, None] * np.array([1, -1, -1, 1])
        ops += [Op(Kind.DIAGONAL, tuple(qubits[b : b + 2]), np.exp(1j * angle)) for b, angle in enumerate(angles)]
        ops += rotations(qubits, 1)
        pairs = rng.permutation(np.asarray(qubits)).reshape(-1, 2).tolist()
        ops += [Op(Kind.UNITARY, (a, b), _parity_preserving(rng)) for a, b in pairs]
    return tuple(ops)


def fourier(num_targets: int) -> ComplexArray:
    """Returns the matrix of the Fourier transform: it is unitary, has no zero and takes little time to make."""
    size = 1 << num_targets
    index = np.arange(size)
    roots = np.exp(2j * np.pi / size * index) * size**-0.5
    return np.asarray(roots[index[:, None] * index % size], complex)


def random_unitary(rng: np.random.Generator, size: int) -> ComplexArray:
    """Returns a random unitary matrix ``(size, size)``."""
    return np.asarray(np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))[0], complex)


def haar(size: int, seed: int) -> ComplexArray:
    """Returns a Haar-random unitary matrix ``(size, size)``."""
    rng = np.random.default_rng(seed)
    q, r = np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))
    return np.ascontiguousarray(q * (np.diag(r) / np.abs(np.diag(r))))


def fill(cupy: Any, amps: Any, seed: int | None = None) -> None:
    """Fills ``amps`` with random amplitudes of norm about 1, on the device.

    Args:
        cupy: the CuPy module that made ``amps``.
        amps: complex ``(2**n,)`` array on the device.
        seed: equal seeds give equal amplitudes; None continues the device's generator.
    """
    real = np.float32 if amps.dtype == np.complex64 else np.float64
    part = min(int(amps.size), 1 << PART_QUBITS)
    if seed is not None:
        cupy.random.seed(seed)
    for first in range(0, int(amps.size), part):
        values = cupy.random.standard_normal(2 * part, dtype=real)
        values *= real((2 * amps.size) ** -0.5)
        amps[first : first + part] = values.view(amps.dtype)


def _parity_preserving(rng: np.random.Generator) -> ComplexArray:
    """Returns a random two-qubit unitary that preserves parity, like those of `planner.kak.split_two_qubit_gates`."""
    matrix = np.zeros((4, 4), complex)
    matrix[::3, ::3], matrix[1:3, 1:3] = random_unitary(rng, 2), random_unitary(rng, 2)
    return matrix
