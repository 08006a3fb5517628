"""Columns of operators give back what went in."""

import pickle

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import unitary_group
from support.random_ops import random_op
from support.reference import tolerance, unitary_of

import qsim_ozaki._native as _native
from qsim_ozaki.ir import EMPTY, KIND_NUMBERS, Kind, Op, OpList
from qsim_ozaki.planner import relabel_swaps
from qsim_ozaki.planner.fuse import absorb_product


def assert_same(got, expected):
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        for name in ("kind", "targets", "controls", "ctrl_state", "name"):
            assert getattr(one, name) == getattr(other, name)
        assert np.array_equal(one.data, other.data)
        assert one.data.shape == other.data.shape
        assert (one.permutation is None) == (other.permutation is None)
        assert one.permutation is None or np.array_equal(one.permutation, other.permutation)


def test_operators_come_back_as_they_went_in(rng):
    ops = [random_op(rng, 7, max_targets=4) for _ in range(200)]
    columns = OpList.of(ops)
    assert_same(columns, ops)
    assert_same(columns[3:-5:2], ops[3:-5:2])
    assert_same([columns[-1], columns[0]], [ops[-1], ops[0]])
    assert_same(pickle.loads(pickle.dumps(columns)), ops)
    assert OpList.of(columns) is columns
    with pytest.raises(IndexError):
        columns[200]


def test_lists_join_and_name_their_qubits(rng):
    first, second = ([random_op(rng, 6, max_targets=3) for _ in range(20)] for _ in range(2))
    joined = OpList.of(first)
    joined.extend(OpList.of(second))
    assert_same(joined, first + second)
    assert joined.changed_qubits() == {q for op in first + second for q in op.mixed_qubits}
    assert joined.used_qubits() == {q for op in first + second for q in op.qubits}


def test_controls_beyond_a_machine_word():
    controls = tuple(range(1, 101))
    op = Op(Kind.PERMUTATION, (0,), np.ones(2, complex), controls, (1 << 99) + 5, np.array([1, 0]), "mcx")
    assert_same(OpList.of([op]), [op])


@pytest.mark.parametrize(
    ("kind", "size", "permutation"), [(Kind.UNITARY, 4, None), (Kind.DIAGONAL, 3, None), (Kind.HADAMARD, 1, None)]
)
def test_data_of_another_shape_is_refused(kind, size, permutation):
    with pytest.raises(ValueError, match="shape"):
        OpList.of([Op(kind, (0, 1), np.ones(size, complex), permutation=permutation)])


def test_rows_need_as_many_qubits_and_values_as_they_use():
    table = _native.GateTable()
    row = table.add(KIND_NUMBERS[Kind.DIAGONAL], 1, 1, 2, np.empty(0, complex), [], "cp")
    ops = OpList()
    assert ops.native.extend_rows(table, [row, row], [4, 2, 3, 0], [1, 1j, 1, -1])
    wanted = [Op(Kind.DIAGONAL, (t,), np.array([1, z]), (c,), 1, name="cp") for c, t, z in ((4, 2, 1j), (3, 0, -1))]
    assert_same(ops, wanted)
    assert not ops.native.extend_rows(table, [row], [0, 1], [1, complex("nan")])
    assert len(ops) == 2
    for qubits, values in (([0], [1, 1]), ([0, 1], [1]), ([0, 1, 2], [1, 1]), ([0, 1], [1, 1, 1])):
        with pytest.raises(ValueError, match="too"):
            ops.native.extend_rows(table, [row], qubits, values)
    with pytest.raises(TypeError):
        ops.native.extend_rows(table, [row], [0, 1], [1, "x"])


def test_swaps_become_names(rng):
    swap = np.array([0, 2, 1, 3])
    ops = []
    for _ in range(40):
        a, b = (int(q) for q in rng.permutation(4)[:2])
        is_swap = bool(rng.integers(2))
        ops.append(
            Op(Kind.PERMUTATION, (a, b), np.ones(4, complex), permutation=swap) if is_swap else random_op(rng, 4)
        )
    start = tuple(int(q) for q in rng.permutation(4))
    moved, final = relabel_swaps(ops, start)
    index = np.arange(16)

    def at(places):
        return sum(((index >> q) & 1) << places[q] for q in range(4))

    expected, got = unitary_of(ops, 4), unitary_of(list(moved), 4)
    assert np.max(np.abs(got[np.ix_(at(final), at(start))] - expected)) <= tolerance(40)


def test_leading_gates_become_a_product_state(rng):
    ops = [random_op(rng, 5, max_targets=2) for _ in range(30)]
    ops[:0] = [Op(Kind.HADAMARD, (q,), EMPTY) for q in range(5)]
    prepare, left, live, ones = absorb_product(ops, 5)
    assert live == sum(1 << q for q in range(5) if np.all(prepare.factors[q] != 0))
    assert ones == sum(1 << q for q in range(5) if prepare.factors[q, 0] == 0)
    state = np.ones(1, complex)
    for factor in prepare.factors:
        state = np.kron(factor, state)
    assert len(left) < len(ops) - 4
    expected = unitary_of(ops, 5)[:, 0]
    assert np.linalg.norm(unitary_of(list(left), 5) @ state - expected) <= tolerance(40)


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 5])
def test_a_unitary_matrix_is_appended_by_its_structure(num_qubits, rng):
    size = 1 << num_qubits
    phases = np.exp(1j * rng.uniform(0, 6, size))
    matrices = {
        Kind.UNITARY: unitary_group.rvs(size, random_state=rng),
        Kind.DIAGONAL: np.diag(phases),
        Kind.PERMUTATION: np.roll(np.eye(size), 1, 0) * phases,
        Kind.HADAMARD: hadamard(size) / np.sqrt(size),
    }
    targets = tuple(rng.permutation(9)[:num_qubits].tolist())
    for kind, matrix in matrices.items():
        ops = OpList()
        assert ops.append_unitary(np.asfortranarray(matrix), targets, "mine") < 1e-14
        (op,) = ops
        assert (op.kind, op.targets, op.controls, op.name) == (kind, targets, (), "mine")
        np.testing.assert_allclose(op.matrix(), matrix, rtol=0, atol=1e-15)


@pytest.mark.parametrize("size", [4, 16])
def test_a_matrix_that_is_not_unitary_is_not_appended(size, rng):
    ops = OpList()
    good = unitary_group.rvs(size, random_state=rng)
    for wrong in (good * (1 + 1e-7), np.where(good == good[0, 1], np.nan, good), good[:2], np.zeros((size, size))):
        assert ops.append_unitary(wrong, tuple(range(size.bit_length() - 1)), "wrong") > 1e-8
    assert not len(ops)
