"""Memory of an earlier state, and pages that nobody wrote, count as zero in whatever is done first."""

import numpy as np
import pytest
from support.random_ops import ALL_KINDS, random_op, random_state
from support.reference import apply_op, tolerance

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cpu.engine import create
from qsim_ozaki.ir import Prepare, TilePass

NUM_QUBITS = 20  # 8 or 4 pages


@pytest.fixture(params=["double", "single"])
def precision(request):
    return request.param


@pytest.fixture
def recycled(rng, precision):
    """Makes a new state in memory that an earlier one left full of numbers; says where that was."""
    engine = create(2)

    def make():
        _native.release_kept_buffer()
        old = engine.allocate(NUM_QUBITS, precision)
        engine.vector(old)[:] = rng.normal(size=1 << NUM_QUBITS) + 1j
        address = engine.vector(old).ctypes.data
        del old
        new = engine.allocate(NUM_QUBITS, precision)
        return engine, new, address

    return make


def zero_state():
    return np.eye(1, 1 << NUM_QUBITS, dtype=complex)[0]


def test_the_memory_is_the_same_and_reads_as_zero(recycled):
    engine, state, address = recycled()
    assert engine.vector(state).ctypes.data == address
    assert np.array_equal(engine.vector(state), zero_state())


def test_kept_memory_is_given_back(recycled):
    engine, state, _ = recycled()
    size = engine.vector(state).nbytes
    del state
    assert _native.release_kept_buffer() == size
    assert _native.release_kept_buffer() == 0


@pytest.mark.parametrize("live", [(), (0, 3), (13, 14), (16, 19), (12, 17, 18), tuple(range(12)), tuple(range(20))])
def test_product_states(recycled, rng, precision, live):
    engine, state, _ = recycled()
    factors = np.zeros((NUM_QUBITS, 2), complex)
    factors[np.arange(NUM_QUBITS), rng.integers(2, size=NUM_QUBITS)] = 1
    for q in live:
        factors[q] = random_state(rng, 1)
    engine.run_step(state, Prepare(factors))
    expected = np.ones(1, complex)
    for factor in factors:
        expected = np.kron(factor, expected)
    assert np.linalg.norm(engine.vector(state) - expected) <= tolerance(NUM_QUBITS, precision)


@pytest.mark.parametrize("tile", [tuple(range(12)), (0, 1, 2, 17, 18, 19), (0, 1, 2, 3, 13, 15, 16, 18)])
def test_tile_passes(recycled, rng, precision, tile):
    engine, state, _ = recycled()
    expected = zero_state()
    for _ in range(3):
        ops = [random_op(rng, NUM_QUBITS, tile, max_targets=2, kinds=ALL_KINDS) for _ in range(4)]
        engine.run_step(state, TilePass(tile, ops))
        for op in ops:
            expected = apply_op(expected, op)
    assert np.linalg.norm(engine.vector(state) - expected) <= tolerance(40, precision)


def test_measurement_and_copies(recycled):
    engine, state, _ = recycled()
    assert engine.norm(state) == 1
    engine, state, _ = recycled()
    assert np.array_equal(engine.probabilities(state, [19, 2]), [1, 0, 0, 0])
    engine, state, _ = recycled()
    assert np.array_equal(engine.sample(state, np.array([0.1, 0.9])), [0, 0])
    engine, state, _ = recycled()
    engine.collapse(state, [18], 0, 1.0)
    assert np.array_equal(engine.vector(state), zero_state())
    engine, state, _ = recycled()
    assert np.array_equal(engine.vector(engine.copy(state)), zero_state())


def test_any_number_of_threads_gives_the_same_bits(recycled, rng, precision):
    ops = [random_op(rng, NUM_QUBITS, (0, 1, 2, 17, 18, 19), max_targets=2, kinds=ALL_KINDS) for _ in range(6)]
    vectors = []
    for threads in (1, 2, 5):
        _, state, _ = recycled()
        create(threads).run_step(state, TilePass((0, 1, 2, 17, 18, 19), ops))
        vectors.append(create(threads).vector(state).copy())
    assert np.array_equal(vectors[0], vectors[1])
    assert np.array_equal(vectors[0], vectors[2])
