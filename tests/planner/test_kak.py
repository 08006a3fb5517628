"""KAK decompositions: the product stays the same, and every two-qubit gate of the result preserves parity."""

import numpy as np
import pytest
from support.random_ops import phases, random_state, random_unitary
from support.reference import apply_op, tolerance

from qsim_ozaki.ir import PARITY_PRESERVING, Kind, Op
from qsim_ozaki.planner.kak import kak_decompositions, split_two_qubit_gates

SWAP = np.eye(4)[[0, 2, 1, 3]]


def special(rng):
    """Unitaries whose canonical angles coincide or vanish, where eigenvectors are not unique."""
    local = np.kron(random_unitary(rng, 2), random_unitary(rng, 2))
    other = np.kron(random_unitary(rng, 2), random_unitary(rng, 2))
    yield from (local, local @ SWAP @ other, local @ np.diag([1, 1, 1, -1]) @ other, np.eye(4), SWAP)
    yield local @ np.diag(np.exp(1e-9j * np.array([1, -1, -1, 1]))) @ other


def test_kak_factors_multiply_to_the_unitary(rng):
    matrices = np.array([*special(rng), *(random_unitary(rng, 4) for _ in range(50))], complex)
    for matrix, factors in zip(matrices, kak_decompositions(matrices), strict=True):
        left0, left1, canonical, right0, right1 = factors
        product = np.kron(left1, left0) @ canonical @ np.kron(right1, right0)
        assert np.abs(product - matrix).max() <= tolerance(4)
        assert not np.any(canonical[[0, 0, 1, 2, 3, 3, 1, 2], [1, 2, 0, 0, 1, 2, 3, 3]])


@pytest.mark.parametrize("num_qubits", [2, 6])
def test_split_gates_keep_the_product(rng, num_qubits):
    ops = []
    for _ in range(40):
        a, b = (int(q) for q in rng.permutation(num_qubits)[:2])
        kind = rng.integers(8)
        if kind == 0:
            ops.append(Op(Kind.DIAGONAL, (a, b), phases(rng, 4)))
        elif kind == 1:
            ops.append(Op(Kind.UNITARY, (a,), random_unitary(rng, 2), (b,), 1))
        else:
            ops.append(Op(Kind.UNITARY, (a, b), random_unitary(rng, 4)))
    out = split_two_qubit_gates(ops, num_qubits)
    assert sum(op.name == PARITY_PRESERVING for op in out) == sum(
        len(op.targets) == 2 and op.kind is Kind.UNITARY for op in ops
    )
    assert all(len(op.targets) < 2 or op.name == PARITY_PRESERVING for op in out if op.kind is Kind.UNITARY)
    state = random_state(rng, num_qubits)
    want = got = state
    for op in ops:
        want = apply_op(want, op)
    for op in out:
        got = apply_op(got, op)
    assert np.linalg.norm(got - want) <= tolerance(len(out))


def test_few_two_qubit_gates_stay_whole(rng):
    ops = [Op(Kind.UNITARY, (0, 1), random_unitary(rng, 4))]
    assert split_two_qubit_gates(ops, 4) == ops
