"""Fusion keeps the product, makes lean cores and never grows a matrix beyond what it was told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_ops import ALL_KINDS, random_op, random_state, random_unitary
from support.reference import apply_op, tolerance

import qsim_ozaki._native as _native
from qsim_ozaki.ir import EMPTY, Kind, Op
from qsim_ozaki.planner.fuse import fuse

X = np.array([1, 0])


def product(ops, state):
    for op in ops:
        state = apply_op(state, op)
    return state


def cx(control, target):
    return Op(Kind.PERMUTATION, (target,), np.ones(2, complex), (control,), 1, X, "cx")


@given(seed=st.integers(0, 2**32 - 1), num_qubits=st.integers(1, 6), count=st.integers(0, 40))
def test_the_product_is_unchanged(seed, num_qubits, count):
    rng = np.random.default_rng(seed)
    ops = [random_op(rng, num_qubits, max_targets=3, kinds=ALL_KINDS) for _ in range(count)]
    state = random_state(rng, num_qubits)
    fused = fuse(ops, num_qubits)
    assert np.linalg.norm(product(fused, state) - product(ops, state)) <= tolerance(4 * len(ops) + 4)


@given(seed=st.integers(0, 2**32 - 1))
def test_circuits_of_rotations_and_cx_lose_nothing_when_cx_becomes_cz(seed):
    rng = np.random.default_rng(seed)
    ops = []
    for _ in range(30):
        a, b = (int(q) for q in rng.permutation(4)[:2])
        ops.append(cx(a, b) if rng.integers(2) else Op(Kind.UNITARY, (a,), random_unitary(rng, 2)))
    state = random_state(rng, 4)
    fused = fuse(ops, 4)
    assert np.linalg.norm(product(fused, state) - product(ops, state)) <= tolerance(200)


def test_no_matrix_grows_beyond_the_limit(rng):
    ops = [random_op(rng, 8, max_targets=2) for _ in range(300)]
    for limit in (1, 2):
        assert all(len(op.targets) <= 2 for op in fuse(ops, 8, limit) if op.kind is not Kind.PARITY)


@pytest.mark.parametrize("angle", [0.0, 1e-17, 1e-9, 0.3, np.pi / 4, np.pi / 2, np.pi, 3.0])
def test_split_is_exact_in_form_and_right_in_value(rng, angle):
    c, s = np.cos(angle), np.sin(angle)
    for left, right in [(1, 1), tuple(np.exp(1j * rng.uniform(0, 6, 2)))]:
        for matrix in ([[c, -s], [s, c]], [[c, s], [s, -c]], [[c, -1j * s], [-1j * s, c]]):
            u = np.diag([1, left]) @ np.array(matrix, complex) @ np.diag([right, 1])
            after, core, before = (np.array(part).reshape(2, 2) for part in _native.split(list(u.reshape(-1))))
            assert np.max(np.abs(after @ core @ before - u)) < 1e-15
            a, b, d, e = core.reshape(-1)
            assert a.imag == 0
            assert e.imag == 0
            assert (a == e and b == -d) or (a == -e and b == d) or (a == e and b == d and b.real == 0)


def test_layers_of_one_qubit_gates_become_one_op_per_qubit():
    ops = [Op(Kind.HADAMARD, (q,), EMPTY) for _ in range(9) for q in range(5)]
    fused = fuse(ops, 5)
    assert len(fused) == 5
    assert all(op.kind is Kind.UNITARY for op in fused)


def test_gates_that_cancel_leave_nothing():
    ops = [Op(Kind.HADAMARD, (q,), EMPTY) for _ in range(2) for q in range(3)]
    assert len(fuse(ops, 3)) == 0


def test_a_matrix_absorbs_its_neighbours(rng):
    pair = Op(Kind.UNITARY, (2, 0), random_unitary(rng, 4))
    ops = [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in (0, 2)] + [pair]
    ops += [Op(Kind.UNITARY, (0, 2), random_unitary(rng, 4)), Op(Kind.HADAMARD, (0,), EMPTY)]
    fused = fuse(ops, 3)
    assert len(fused) == 1
    state = random_state(rng, 3)
    assert np.linalg.norm(product(fused, state) - product(ops, state)) <= tolerance(20)
