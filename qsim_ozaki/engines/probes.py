"""The operators, matrices and states by which hardware is measured: like those of circuits.

In: qubits of a tile, numbers of operators, sizes, seeds. Out: operators, arrays. It measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qsim_ozaki.ir import ComplexArray, Kind, Op

NOTHING = (Op(Kind.DIAGONAL, (), np.ones(1, complex)),)  # a pass that only reads and writes
CZ = np.array([1, 1, 1, -1], complex)
PART_QUBITS = 24  # amplitudes made or compared at a time: a gibibyte with all intermediate results


def rotations(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """``count`` layers of real rotations."""
    matrix = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]], complex)
    return tuple(Op(Kind.UNITARY, (q,), matrix) for _ in range(count) for q in qubits)


def mixing_layers(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """``count`` layers as of random circuits, of Trotter steps and of quantum volume, in turn.

    A random unitary on every qubit and CZ between neighbours; a rotation on every qubit and phases between all
    neighbours; matrices that keep the parity on random pairs after a rotation on every qubit.
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
        ops += [Op(Kind.UNITARY, (a, b), _core(rng)) for a, b in pairs]
    return tuple(ops)


def fourier(num_targets: int) -> ComplexArray:
    """The matrix of the Fourier transform: unitary, without a zero, quickly made."""
    size = 1 << num_targets
    index = np.arange(size)
    roots = np.exp(2j * np.pi / size * index) * size**-0.5
    return np.asarray(roots[index[:, None] * index % size], complex)


def random_unitary(rng: np.random.Generator, size: int) -> ComplexArray:
    """A random unitary matrix."""
    return np.asarray(np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))[0], complex)


def haar(size: int, seed: int) -> ComplexArray:
    """A Haar-random matrix."""
    rng = np.random.default_rng(seed)
    q, r = np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))
    return np.ascontiguousarray(q * (np.diag(r) / np.abs(np.diag(r))))


def fill(cupy: Any, amps: Any, seed: int | None = None) -> None:
    """Random amplitudes of about norm 1, made on the device.

    Args:
        cupy: the module of ``amps``.
        amps: ``(2**n,)``, complex, on the device.
        seed: the same one gives the same amplitudes; None leaves the device's generator where it is.
    """
    real = np.float32 if amps.dtype == np.complex64 else np.float64
    part = min(int(amps.size), 1 << PART_QUBITS)
    if seed is not None:
        cupy.random.seed(seed)
    for first in range(0, int(amps.size), part):
        values = cupy.random.standard_normal(2 * part, dtype=real)
        values *= real((2 * amps.size) ** -0.5)
        amps[first : first + part] = values.view(amps.dtype)


def _core(rng: np.random.Generator) -> ComplexArray:
    """A random unitary on two qubits that keeps their parity, as `pairs.split_pairs` makes them."""
    matrix = np.zeros((4, 4), complex)
    matrix[::3, ::3], matrix[1:3, 1:3] = random_unitary(rng, 2), random_unitary(rng, 2)
    return matrix
