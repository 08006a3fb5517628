"""Stacks of states and their adjoint sweep, Pauli strings: against matrices written out in full."""

from collections import Counter
from functools import reduce

import numpy as np
import pytest
from support.random_ops import SMALL_KINDS, random_op, random_state, slotted
from support.reference import apply_op, apply_ops, op_matrix, tolerance, zero_state

import qsim_ozaki._native as _native
from qsim_ozaki.ir import Kind, Op, OpList
from qsim_ozaki.runtime import StackRows, run_stack, sample_stacks, sampling, stack_program
from qsim_ozaki.runtime.sampling import seed_words

PAULIS = {"I": np.eye(2), "X": [[0, 1], [1, 0]], "Y": [[0, -1j], [1j, 0]], "Z": [[1, 0], [0, -1]]}


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_stack_equals_the_reference_row_by_row(rng, num_qubits, threads):
    for _ in range(8):
        ops = [random_op(rng, num_qubits, kinds=SMALL_KINDS) for _ in range(30)]
        placed, _, rows, each = slotted(rng, ops, 3)
        states = run_stack(stack_program(num_qubits, [placed]), num_qubits, rows, threads)
        for state, own in zip(states, each, strict=True):
            assert np.linalg.norm(state - apply_ops(zero_state(num_qubits), own)) <= tolerance(len(own))
        alone = run_stack(stack_program(num_qubits, [placed]), num_qubits, rows[1:2], threads)
        np.testing.assert_array_equal(alone[0], states[1])


def overlap_of(op, bra, ket):
    """conj(bra[row]) ket[column] summed over the other qubits, where the controls are satisfied; as the op's data."""
    out = np.zeros_like(op.data)
    for place in np.ndindex(op.data.shape):
        basis = np.zeros_like(op.data)
        basis[place] = 1
        part = Op(op.kind, op.targets, basis, op.controls, op.ctrl_state)
        only = Op(op.kind, op.targets, np.zeros_like(op.data), op.controls, op.ctrl_state)
        moved = apply_op(ket, part) - apply_op(np.zeros_like(ket), part)
        outside = apply_op(ket, only)  # what the controls leave alone
        out[place] = np.vdot(bra, moved - outside)
    return out.reshape(-1)


@pytest.mark.parametrize(("num_qubits", "tile"), [(1, None), (3, None), (5, None), (6, [0, 1, 2, 4]), (7, [0, 1, 2])])
@pytest.mark.parametrize("threads", [1, 3])
def test_overlaps_walk_back(rng, num_qubits, tile, threads):
    num_rows = 2 if tile is None else 1
    ops = [random_op(rng, num_qubits, tile, max_targets=3, kinds=SMALL_KINDS) for _ in range(20)]
    placed, offsets, rows, each = slotted(rng, ops, num_rows)
    kets = np.stack([random_state(rng, num_qubits) for _ in range(num_rows)])
    bras = np.stack([random_state(rng, num_qubits) for _ in range(num_rows)])
    before = kets.copy(), bras.copy()
    for row, own in enumerate(each):
        kets[row], bras[row] = apply_ops(kets[row], own), apply_ops(bras[row], own)
    ends = kets.copy(), bras.copy()
    out = np.zeros(rows.shape, complex)
    stack_program(num_qubits, [placed], tile).overlaps(rows, kets, bras, out, threads)
    np.testing.assert_allclose(kets, before[0], atol=tolerance(20))
    np.testing.assert_allclose(bras, before[1], atol=tolerance(20))
    for row, own in enumerate(each):
        ket, bra = ends[0][row], ends[1][row]
        for op, offset in zip(reversed(own), reversed(offsets), strict=True):
            inverse = Op(Kind.UNITARY, op.targets, op_matrix(op).conj().T, op.controls, op.ctrl_state)
            ket = apply_op(ket, inverse)
            if offset >= 0:
                want = overlap_of(op, bra, ket)
                np.testing.assert_allclose(out[row, offset : offset + want.size], want, atol=tolerance(40))
            bra = apply_op(bra, inverse)


def test_an_operator_outside_the_tile_is_refused():
    with pytest.raises(ValueError, match="outside the tile"):
        stack_program(5, [OpList.of([Op(Kind.UNITARY, (4,), np.eye(2, dtype=complex))])], [0, 1, 2])
    with pytest.raises(ValueError, match="at most 13"):
        stack_program(14, [])


def strings(rng, num_qubits, count):
    labels = ["".join(rng.choice(list("IXYZ"), num_qubits)) for _ in range(count)]
    x = np.array([sum(1 << q for q, p in enumerate(reversed(label)) if p in "XY") for label in labels], np.uint64)
    z = np.array([sum(1 << q for q, p in enumerate(reversed(label)) if p in "ZY") for label in labels], np.uint64)
    return labels, x, z


def dense(label):
    return reduce(np.kron, [np.array(PAULIS[letter], complex) for letter in label])


@pytest.mark.parametrize(("num_qubits", "count"), [(1, 4), (2, 30), (5, 40), (8, 12)])
def test_pauli_strings_equal_their_matrices(rng, num_qubits, count):
    labels, x, z = strings(rng, num_qubits, count)
    states = np.stack([random_state(rng, num_qubits) for _ in range(3)])
    out = np.empty((3, count))
    _native.pauli_expectations(states, x, z, out, 2)
    want = [[np.vdot(state, dense(label) @ state).real for label in labels] for state in states]
    np.testing.assert_allclose(out, want, atol=1e-14)
    weights = rng.normal(size=count)
    moved = np.empty_like(states)
    _native.pauli_sum(states, x, z, weights, moved, 2)
    matrix = sum(weight * dense(label) for weight, label in zip(weights, labels, strict=True))
    np.testing.assert_allclose(moved, states @ matrix.T, atol=1e-12)


@pytest.mark.parametrize("count", [3, 40])  # folds, and the whole transform
def test_pauli_strings_on_states_of_several_chunks(rng, count):
    num_qubits = 14
    _, x, z = strings(rng, num_qubits, count)
    x[: count // 2] = x[0]
    x[-1], z[-1] = 0, 1 << 13
    state = random_state(rng, num_qubits)
    index = np.arange(state.size, dtype=np.uint64)
    want = []
    for flips, signs in zip(x, z, strict=True):
        factor = 1j ** int(flips & signs).bit_count() * (-1.0) ** np.bitwise_count(index & signs)
        want.append(np.vdot(state[index ^ flips], factor * state).real)
    one, two = np.empty((1, count)), np.empty((1, count))
    _native.pauli_expectations(state[None], x, z, one, 1)
    _native.pauli_expectations(state[None], x, z, two, 3)
    np.testing.assert_allclose(one[0], want, atol=1e-14)
    np.testing.assert_array_equal(one, two)
    _native.pauli_expectations(state[None].astype(np.complex64), x, z, two, 2)
    np.testing.assert_allclose(two[0], want, atol=1e-6)
    weights = rng.normal(size=count)
    moved = np.empty((1, state.size), complex)
    _native.pauli_sum(state[None], x, z, weights, moved, 2)
    assert np.vdot(state, moved[0]).real == pytest.approx(weights @ want, abs=1e-13)


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32, 2**63 - 1, 2**64 + 5, 2**200 + 17])
def test_streams_are_numpys(seed):
    for index in (0, 1, 999, 2**32 - 1, 2**32 + 3):
        wanted = sampling.stream(seed, (index,)).random(300)
        np.testing.assert_array_equal(_native.uniforms(seed_words(seed), seed_words(index), 300), wanted)


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("memory", [False, True])
def test_shots_of_a_stack_are_those_of_each_state(rng, num_qubits, memory):
    shots, seed, first = 300, 2**40 + 3, 7
    placed, _, rows, _ = slotted(
        rng, [random_op(rng, num_qubits, max_targets=3, kinds=SMALL_KINDS) for _ in range(10)], 4
    )
    program = stack_program(num_qubits, [placed])
    measured = rng.permutation(num_qubits)[: rng.integers(1, num_qubits + 1)].tolist()
    reads = tuple((qubit, 2 * place) for place, qubit in enumerate([*measured, measured[0]]))
    stacks = [StackRows(program, rows[:1], reads, first), StackRows(program, rows[1:], reads, first + 1)]
    found = sample_stacks(stacks, seed, shots, memory, 2)
    for index, state in enumerate(run_stack(program, num_qubits, rows, 1)):
        cumulative = np.cumsum(np.abs(state) ** 2)
        uniforms = sampling.stream(seed, (first + index,)).random(shots)
        samples = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        values = [sum((int(sample) >> qubit & 1) << bit for qubit, bit in reads) for sample in samples]
        assert found[index].integers() == Counter(values)
        assert found[index].hexadecimal() == Counter(map(hex, values))
        if memory:
            assert found[index].memory() == list(map(hex, values))
            width = 2 * num_qubits + 2
            np.testing.assert_array_equal(
                found[index].bits(width), [[v >> j & 1 for j in range(width)] for v in values]
            )
        else:
            assert found[index].order is None


def test_a_state_that_is_almost_a_basis_state_is_sampled(rng):
    """All but 1e-30 of the norm in one state, the last amplitudes zero: no shot leaves it, none is lost."""
    tiny = Op(Kind.UNITARY, (1,), np.array([[1, -1e-15], [1e-15, 1]], complex))
    flip = Op(Kind.PERMUTATION, (0,), np.ones(2, complex), permutation=np.array([1, 0]))
    program = stack_program(3, [OpList.of([flip, tiny])])
    reads = ((0, 0), (1, 1), (2, 2))
    found = sample_stacks([StackRows(program, np.empty((1, 0), complex), reads, 0)], 5, 1000, False, 1)
    assert found[0].integers() == {1: 1000}
