"""Vectors on the host: products with a prepared factor, idle qubits, density matrices and reordering.

In: amplitudes as NumPy arrays. Out: new arrays. It may not depend on an engine, a plan or a circuit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.complexfloating[Any, Any]]


def unitary_with_first_column(vector: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """A unitary that takes |0...0> to ``vector``: minus a Householder reflection, times the first amplitude's phase.

    With v = vector / phase, so that v[0] >= 0, and w = e0 + v: (2 w w^H / |w|^2 - 1) e0 = v. No digits cancel, because
    |w|^2 >= 2.
    """
    phase = vector[0] / abs(vector[0]) if vector[0] != 0 else 1.0
    w = vector / phase
    w[0] += 1
    scale = 2 / np.vdot(w, w).real
    return np.asarray(phase * (scale * np.outer(w, w.conj()) - np.eye(len(vector))), complex)


def with_factor(vector: Vector, places: Sequence[int], factor: NDArray[np.complex128]) -> Vector:
    """The product of ``factor`` on the qubits ``places``, which are |0> in ``vector``, with the rest of ``vector``."""
    num_qubits = vector.size.bit_length() - 1
    axes = [num_qubits - 1 - place for place in reversed(places)]  # axis 0 is the highest qubit
    rest = vector.reshape((2,) * num_qubits)[
        tuple(slice(0, 1) if a in axes else slice(None) for a in range(num_qubits))
    ]
    order = np.argsort(axes)  # the factor's axes in the order they have in the state
    spread = factor.reshape((2,) * len(places)).transpose(order)
    shape = [2 if axis in axes else 1 for axis in range(num_qubits)]
    return (rest * spread.reshape(shape)).astype(vector.dtype, copy=False).reshape(-1)


def with_idle_qubits(vector: Vector, qubits: Sequence[int]) -> Vector:
    """``vector`` among qubits that stay 0: bit j of the new index is idle where ``qubits[j]`` is -1."""
    if not any(qubit >= 0 for qubit in qubits):
        vector = vector[:1]
    full = np.zeros(1 << len(qubits), vector.dtype)
    view = full.reshape((2,) * len(qubits))
    view[tuple(0 if qubit < 0 else slice(None) for qubit in reversed(qubits))] = vector.reshape(
        (2,) * sum(qubit >= 0 for qubit in qubits)
    )
    return full


def reduced_density_matrix(vector: Vector, places: Sequence[int]) -> NDArray[np.complex128]:
    """The density matrix of some qubits: bit j of an index is qubit ``places[j]``, or an idle |0> where that is -1."""
    num_qubits = vector.size.bit_length() - 1
    real = [place for place in places if place >= 0]
    axes = [num_qubits - 1 - place for place in reversed(real)]
    axes += [axis for axis in range(num_qubits) if axis not in axes]
    matrix = vector.reshape((2,) * num_qubits).transpose(axes).reshape(1 << len(real), -1).astype(complex)
    density = np.asarray(matrix @ matrix.conj().T)
    if len(real) == len(places):
        return density
    full = np.zeros((1 << len(places),) * 2, complex)
    rows = np.array([0])  # of the full matrix, that hold the density of the real qubits
    for bit, place in enumerate(places):
        if place >= 0:
            rows = np.concatenate([rows, rows | 1 << bit])
    full[np.ix_(rows, rows)] = density
    return full


def reordered(vector: Vector, qubits: Sequence[int]) -> Vector:
    """``vector`` with bit ``qubits[j]`` of its index as bit j of the new one, -1 for a bit that is always 0."""
    active = [qubit for qubit in qubits if qubit >= 0]
    num_qubits = vector.size.bit_length() - 1
    rest = [qubit for qubit in range(num_qubits) if qubit not in set(active)]  # all |0>
    axes = [num_qubits - 1 - qubit for qubit in reversed(active + rest)]
    moved = vector.reshape((2,) * num_qubits).transpose(axes).reshape(-1)[: 1 << len(active)]
    return with_idle_qubits(moved, qubits) if -1 in qubits else np.ascontiguousarray(moved)
