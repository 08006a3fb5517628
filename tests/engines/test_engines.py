"""Every engine: each kind of op at each position and control pattern, in both precisions, against the reference."""

import itertools

import numpy as np
import pytest
from support.random_ops import ALL_KINDS, KINDS, data_of, kinds_of, random_op, random_state, random_unitary
from support.reference import apply_op, tolerance

from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import EMPTY, DenseBlock, HadamardPass, Kind, Op, Path, Prepare, TilePass

PRECISIONS = ["double", "single"]


def close(got, expected, num_ops, precision):
    limit = tolerance(num_ops, precision)
    error = np.linalg.norm(got - expected)
    assert error <= limit, f"error {error:.3g} above {limit:.3g}"


def run(engine, state, steps, precision="double"):
    register = engine.load(state, precision)
    for step in steps:
        engine.run_step(register, step)
    return np.array(engine.vector(register))


def reference(state, ops):
    for op in ops:
        state = apply_op(state, op)
    return state


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_position_and_control_pattern(engine, rng, kind, precision):
    num_qubits = 7
    qubits = tuple(range(num_qubits))
    for target, control in itertools.permutations(range(num_qubits), 2):
        patterns = [((), 0)] if kind is Kind.PARITY else [((), 0), ((control,), 0), ((control,), 1)]
        for controls, ctrl_state in patterns:
            data, permutation = data_of(rng, kind, 1)
            op = Op(kind, (target,), data, controls, ctrl_state, permutation)
            state = random_state(rng, num_qubits)
            close(run(engine, state, [TilePass(qubits, (op,))], precision), apply_op(state, op), 1, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_controls", [2, 3, 5])
def test_many_controls_at_every_value(engine, rng, num_controls, precision):
    num_qubits = 8
    for ctrl_state in range(1 << num_controls):
        order = [int(q) for q in rng.permutation(num_qubits)]
        op = Op(Kind.UNITARY, (order[0],), random_unitary(rng, 2), tuple(order[1 : 1 + num_controls]), ctrl_state)
        state = random_state(rng, num_qubits)
        step = TilePass(tuple(sorted(order[:1])), (op,))
        close(run(engine, state, [step], precision), apply_op(state, op), 1, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4, 5, 8, 11])
def test_random_tile_passes(engine, rng, num_qubits, precision):
    for _ in range(25):
        size = int(rng.integers(1, num_qubits + 1))
        tile = tuple(sorted(int(q) for q in rng.permutation(num_qubits)[:size]))
        ops = tuple(random_op(rng, num_qubits, tile, kinds=kinds_of(engine)) for _ in range(int(rng.integers(1, 25))))
        state = random_state(rng, num_qubits)
        got = run(engine, state, [TilePass(tile, ops)], precision)
        close(got, reference(state, ops), len(ops), precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_matrices_of_every_size(engine, rng, precision):
    for k in range(1, 9):
        for num_qubits in (k, k + 1, k + 3, 11):
            if num_qubits < k:
                continue
            targets = tuple(int(q) for q in rng.permutation(num_qubits)[:k])
            op = Op(Kind.UNITARY, targets, random_unitary(rng, 1 << k))
            state = random_state(rng, num_qubits)
            close(run(engine, state, [DenseBlock(op)], precision), apply_op(state, op), 1, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_emulated_matrices_of_every_size(engine, rng, precision):
    for k in range(1, 9):
        for num_qubits in (k, k + 1, 8, 12):
            if num_qubits < k:
                continue
            order = [int(q) for q in rng.permutation(num_qubits)]
            targets, rest = tuple(order[:k]), order[k:]
            controls = tuple(rest[: int(rng.integers(0, min(len(rest), 2) + 1))])
            op = Op(Kind.UNITARY, targets, random_unitary(rng, 1 << k), controls, int(rng.integers(1 << len(controls))))
            state = random_state(rng, num_qubits)
            zero = tuple(rest[len(controls) : len(controls) + 1])
            for qubit in zero:
                state[np.arange(state.size) >> qubit & 1 == 1] = 0
            register = engine.load(state, precision)
            engine.run_step(register, DenseBlock(op, Path.OZAKI, 15, zero))
            close(np.array(engine.vector(register)), apply_op(state, op), 1, precision)
            checks = engine.take_checks(register)
            assert checks.redone == 0
            assert 0 <= checks.residual < 1e-13
            assert engine.take_checks(register).residual == 0


@pytest.mark.parametrize("path", [Path.NATIVE, Path.OZAKI])
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("ctrl_state", [0, 1])
def test_matrices_whose_control_is_known(engine, rng, path, value, ctrl_state):
    """The control holds ``value`` in every amplitude that is not 0; the matrix acts where it equals ``ctrl_state``."""
    num_qubits, control = 6, 4
    op = Op(Kind.UNITARY, (0, 2, 5), random_unitary(rng, 8), (control,), ctrl_state)
    state = random_state(rng, num_qubits)
    state[np.arange(state.size) >> control & 1 != value] = 0
    known = ((control,), ()) if value == 0 else ((), (control,))
    step = DenseBlock(op, path, 15 if path is Path.OZAKI else 0, *known)
    close(run(engine, state, [step]), apply_op(state, op), 1, "double")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_diagonals_and_phases_of_every_width(engine, rng, precision):
    num_qubits = 11
    for k in range(num_qubits + 1):
        targets = tuple(int(q) for q in rng.permutation(num_qubits)[:k])
        op = Op(Kind.DIAGONAL, targets, data_of(rng, Kind.DIAGONAL, k)[0])
        mixing = Op(Kind.UNITARY, (3,), random_unitary(rng, 2))
        state = random_state(rng, num_qubits)
        step = TilePass((0, 1, 3, 5, 8, 9), (op, mixing, op))
        close(run(engine, state, [step], precision), reference(state, [op, mixing, op]), 3, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 2, 5, 9, 12])
def test_hadamard_pass_on_any_subset(engine, rng, num_qubits, precision):
    for _ in range(6):
        size = int(rng.integers(1, num_qubits + 1))
        qubits = tuple(sorted(int(q) for q in rng.permutation(num_qubits)[:size]))
        state = random_state(rng, num_qubits)
        expected = apply_op(state, Op(Kind.HADAMARD, qubits, EMPTY))
        close(run(engine, state, [HadamardPass(qubits)], precision), expected, size, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 4, 13])
def test_prepare_writes_a_product_state(engine, rng, num_qubits, precision):
    factors = rng.normal(size=(num_qubits, 2)) + 1j * rng.normal(size=(num_qubits, 2))
    factors[::3] = [1, 0]
    factors /= np.linalg.norm(factors, axis=1, keepdims=True)
    expected = np.ones(1, complex)
    for factor in factors:
        expected = np.kron(factor, expected)
    for register in (engine.allocate(num_qubits, precision), engine.load(random_state(rng, num_qubits), precision)):
        engine.run_step(register, Prepare(factors))
        close(engine.vector(register), expected, num_qubits, precision)


def test_a_tile_of_zeros_stays_zero_and_exact(engine):
    register = engine.allocate(12, "double")
    flip = Op(Kind.PERMUTATION, (11,), np.ones(2, complex), permutation=np.array([1, 0]))
    engine.run_step(register, TilePass((0, 1, 2, 11), (flip,)))
    expected = np.zeros(1 << 12, complex)
    expected[1 << 11] = 1
    np.testing.assert_array_equal(engine.vector(register), expected)


def test_permutations_and_signs_are_exact(engine, rng):
    state = random_state(rng, 9)
    permutation = Op(Kind.PERMUTATION, (8, 0, 4), np.ones(8, complex), (2,), 1, rng.permutation(8))
    sign = Op(Kind.DIAGONAL, (1, 7), np.array([1, -1, 1j, -1j]))
    for op in (permutation, sign):
        np.testing.assert_array_equal(run(engine, state, [TilePass((0, 4, 8), (op,))]), apply_op(state, op))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_probabilities_norm_and_collapse(engine, rng, precision):
    for num_qubits in (1, 3, 6, 14):
        state = random_state(rng, num_qubits)
        register = engine.load(state, precision)
        stored = np.abs(np.array(engine.vector(register), complex)) ** 2
        assert engine.norm(register) == pytest.approx(stored.sum(), rel=1e-12)
        for size in range(1, min(num_qubits, 5) + 1):
            qubits = [int(q) for q in rng.permutation(num_qubits)[:size]]
            index = np.arange(1 << num_qubits)
            outcome = sum(((index >> q) & 1) << j for j, q in enumerate(qubits))
            expected = np.bincount(outcome, stored, minlength=1 << size)
            np.testing.assert_allclose(engine.probabilities(register, qubits), expected, rtol=1e-12, atol=1e-15)
        for size in (1, min(num_qubits, 3)):
            qubits = [int(q) for q in rng.permutation(num_qubits)[:size]]
            register, chosen = engine.load(state, precision), int(rng.integers(1 << size))
            kept = sum(((np.arange(1 << num_qubits) >> q) & 1) << j for j, q in enumerate(qubits)) == chosen
            engine.collapse(register, qubits, chosen, 2.0)
            close(engine.vector(register), np.where(kept, 2 * state, 0), 2, precision)


def test_all_marginals_in_any_order(engine, rng):
    state = random_state(rng, 13)
    register = engine.load(state, "double")
    order = [int(q) for q in rng.permutation(13)]
    index = np.arange(1 << 13)
    expected = np.empty(1 << 13)
    expected[sum(((index >> q) & 1) << j for j, q in enumerate(order))] = np.abs(state) ** 2
    np.testing.assert_allclose(engine.probabilities(register, order), expected, rtol=1e-12)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 6, 11, 12, 13, 16])
def test_values_of_pauli_strings_and_single_amplitudes(engine, rng, num_qubits, precision):
    """Flips of no qubit, of any, of the highest alone; more signs for one set of flips than a block has threads."""
    state = random_state(rng, num_qubits)
    register = engine.load(state, precision)
    every = (1 << num_qubits) - 1
    for count in (1, 40, 700):
        flips = rng.integers(0, every + 1, max(count // 20, 1))
        flips[0] = rng.choice([0, 1 << num_qubits - 1, every])
        x, z = rng.choice(flips, count).astype(np.uint64), rng.integers(0, every + 1, count).astype(np.uint64)
        got = engine.pauli_values(register, x, z)
        assert got.shape == (count,)
        for value, flip, sign in zip(got, x.tolist(), z.tolist(), strict=True):
            index = np.arange(state.size)
            signs = 1 - 2.0 * (np.bitwise_count(index & sign) & 1)
            phase = 1j ** (flip & sign).bit_count()
            wanted = (phase * np.vdot(state[index ^ flip], signs * state)).real
            assert abs(value - wanted) <= tolerance(num_qubits, precision)
    assert engine.pauli_values(register, x[:0], z[:0]).shape == (0,)
    indices = rng.integers(0, every + 1, 5)
    close(engine.amplitudes(register, indices), state[indices], 1, precision)


def test_samples_invert_the_cumulative_distribution(engine, rng):
    for num_qubits in (1, 4, 13):
        state = random_state(rng, num_qubits)
        state[rng.random(state.size) < 0.3] = 0
        register = engine.load(state, "double")
        probability = np.abs(state) ** 2
        cumulative = np.cumsum(probability)
        uniforms = rng.random(2000)
        got = engine.sample(register, uniforms)
        assert np.all(probability[got] > 0)
        expected = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
        assert np.mean(got == expected) > 0.999  # sums in another order may differ in the last bit
        edges = engine.sample(register, np.array([0.0, np.nextafter(1.0, 0.0)]))
        assert edges[0] == np.flatnonzero(probability)[0]
        assert probability[edges[1]] > 0


def test_copies_are_independent(engine, rng):
    state = random_state(rng, 6)
    register = engine.load(state, "double")
    other = engine.copy(register)
    engine.collapse(register, [0], 0, 1.0)
    np.testing.assert_array_equal(engine.vector(other), state)


def test_any_number_of_threads_gives_the_same_bits(rng):
    from qsim_ozaki.engines.cpu.engine import create

    num_qubits = 17
    ops = tuple(random_op(rng, num_qubits, range(13), kinds=ALL_KINDS) for _ in range(40))
    state, uniforms = random_state(rng, num_qubits), rng.random(500)
    results = []
    for threads in (1, 2, 3, 5):
        engine = create(threads)
        register = engine.load(state, "double")
        engine.run_step(register, TilePass(tuple(range(13)), ops))
        results.append(
            (
                engine.vector(register).tobytes(),
                engine.norm(register),
                engine.probabilities(register, [3, 16, 0]).tobytes(),
                engine.sample(register, uniforms).tobytes(),
            )
        )
    assert all(result == results[0] for result in results)


def test_a_state_beyond_the_limit_is_refused_with_numbers():
    from qsim_ozaki.engines.cpu.engine import create

    with pytest.raises(
        CapacityError,
        match=r"20 qubits need 16 MiB in double precision; .* has 976.6 KiB available. Use at most 15 qubits",
    ):
        create(1, 1_000_000).allocate(20, "double")
    with pytest.raises(CapacityError, match="48 qubits need"):
        create(1).allocate(48, "double")
