"""Random operators for the scripts of this folder."""

import numpy as np

from qsim_ozaki.engines.probes import random_unitary
from qsim_ozaki.ir import EMPTY, Kind, Op


def gate(rng, n, kinds):
    """One random op of the first ``kinds`` kinds: 5 of them have straight-line kernels."""
    kind = rng.integers(kinds)
    qubits = [int(q) for q in rng.permutation(n)[:5]]
    if kind == 0:
        return Op(Kind.HADAMARD, tuple(qubits[: rng.integers(1, 4)]), EMPTY)
    if kind == 1:
        return Op(Kind.UNITARY, (qubits[0],), random_unitary(rng, 2), tuple(qubits[1 : 1 + rng.integers(3)]), 0)
    if kind == 2:
        return Op(Kind.UNITARY, tuple(qubits[:2]), random_unitary(rng, 4))
    if kind == 3:
        k = int(rng.integers(1, 4))
        return Op(Kind.DIAGONAL, tuple(qubits[:k]), np.exp(1j * rng.uniform(0, 2 * np.pi, 1 << k)))
    if kind == 4:
        return Op(Kind.PERMUTATION, (qubits[0],), np.ones(2, complex), (qubits[1],), 1, np.array([1, 0]))
    if kind == 5:
        k = int(rng.integers(2, 4))
        return Op(Kind.PERMUTATION, tuple(qubits[:k]), np.ones(1 << k, complex), permutation=rng.permutation(1 << k))
    k = int(rng.integers(3, 6))
    return Op(Kind.UNITARY, tuple(qubits[:k]), random_unitary(rng, 1 << k))
