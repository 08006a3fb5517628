"""The CUDA engine: tables and tile programs against NumPy, and on a GPU what the common engine tests do not reach."""

import ctypes
import weakref
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pytest
from support import kernels_host, straight_host, tile_twin
from support.random_ops import SMALL_KINDS, random_op, random_state, random_swaps, random_unitary, swap_ops
from support.reference import apply_op, tolerance

from qsim_ozaki.engines.cuda import interpreter, pauli
from qsim_ozaki.engines.cuda.dense import tables
from qsim_ozaki.engines.cuda.device import shapes
from qsim_ozaki.engines.cuda.device.state import COUNTER_AMPS, COUNTER_BYTES, DTYPES, CudaState
from qsim_ozaki.engines.cuda.engine import CACHED_PROGRAMS, CudaEngine
from qsim_ozaki.engines.cuda.tile import items as cuda_lower
from qsim_ozaki.engines.cuda.tile import layout, schedule
from qsim_ozaki.errors import CapacityError, EngineError
from qsim_ozaki.ir import EMPTY, DenseBlock, HadamardPass, Kind, Op, Path, Prepare, TilePass, string_values

PRECISIONS = ["double", "single"]


def reference(state, ops):
    for op in ops:
        state = apply_op(state, op)
    return state


@pytest.fixture
def cuda():
    from qsim_ozaki.engines.cuda.engine import create

    try:
        return create()
    except EngineError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [5, 8, 11, 14])
def test_tile_programs_do_what_their_ops_do(rng, num_qubits, precision):
    shape = shapes.SHAPES[precision]
    for _ in range(8):
        size = int(rng.integers(1, min(num_qubits, shape.tile_qubits) + 1))
        tile = tuple(sorted(int(q) for q in rng.permutation(num_qubits)[:size]))
        count, width = int(rng.integers(1, 25)), shape.register_qubits
        ops = tuple(random_op(rng, num_qubits, tile, max_targets=width, kinds=SMALL_KINDS) for _ in range(count))
        state = random_state(rng, num_qubits)
        swaps = random_swaps(rng, tile)
        program = interpreter.compile_tile(layout.Tile(tile, (), swaps), ops, num_qubits, precision)
        kind = np.complex128 if precision == "double" else np.complex64
        got = tile_twin.run(program, state.astype(kind), precision)
        assert np.linalg.norm(got - reference(state, (*ops, *swap_ops(swaps)))) <= tolerance(len(ops), precision), (
            tile,
            swaps,
            [op.kind for op in ops],
        )


def test_zero_qubits_leave_out_tiles(rng):
    num_qubits, zeros = 15, (13, 14)
    state = random_state(rng, num_qubits)
    state[np.arange(state.size) >> 13 != 0] = 0
    ops = tuple(random_op(rng, num_qubits, (2, 5, 12), kinds=SMALL_KINDS) for _ in range(10))
    program = interpreter.compile_tile(layout.Tile((2, 5, 12), zeros), ops, num_qubits, "double")
    assert program.num_tiles == 2
    assert np.linalg.norm(tile_twin.run(program, state, "double") - reference(state, ops)) <= tolerance(10)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_fresh_qubits_are_zero_whatever_memory_holds(rng, precision):
    num_qubits, zeros, fresh = 14, (9, 13), (2, 12)
    unread = sum(1 << q for q in (*zeros, *fresh))
    state = random_state(rng, num_qubits)
    state[np.arange(state.size) & unread != 0] = 0
    ops = tuple(random_op(rng, num_qubits, (2, 5, 7, 12), kinds=SMALL_KINDS) for _ in range(10))
    expected = reference(state, ops)
    garbage = state.astype(np.complex128 if precision == "double" else np.complex64)
    garbage[np.arange(state.size) & unread != 0] = np.nan
    tile = layout.Tile((2, 5, 7, 12), zeros, (), fresh)
    program = interpreter.compile_tile(tile, ops, num_qubits, precision)
    got = tile_twin.run(program, garbage, precision)
    got[np.arange(state.size) & sum(1 << q for q in program.zero_qubits) != 0] = 0
    assert np.linalg.norm(got - expected) <= tolerance(10, precision)


def test_qft_phases_become_runs(rng):
    """The angles of a QFT double from qubit to qubit: one product per target instead of one term per pair."""
    n = 14
    tile = (0, 1, 2, *range(5, 14))
    ops = [Op(Kind.HADAMARD, (13,), EMPTY)]
    ops += [Op(Kind.DIAGONAL, (13, q), np.array([1, 1, 1, np.exp(1j * np.pi / 2 ** (13 - q))])) for q in range(13)]
    state = random_state(rng, n)
    program = interpreter.compile_tile(layout.Tile(tile), ops, n, "double")
    assert np.linalg.norm(tile_twin.run(program, state, "double") - reference(state, ops)) <= tolerance(len(ops))
    codes = [int(w) & 255 for w in program.words[program.first_op :]]
    factors = [int(w) for w in program.words[program.first_op :] if int(w) & 255 == interpreter.FACTOR]
    assert codes.count(interpreter.FACTOR) == 1
    assert factors[0] >> 13 & 0x7FF <= 2  # terms


def test_a_widened_matrix_acts_alike(rng):
    op = Op(Kind.UNITARY, (5, 1, 0), random_unitary(rng, 8), (3,), 0)
    wider = tables.with_free_target(op, (2,), 7)
    assert wider.targets == (5, 1, 0, 4)
    state = random_state(rng, 7)
    assert np.linalg.norm(apply_op(state, wider) - apply_op(state, op)) <= tolerance(1)
    assert tables.with_free_target(op, (2, 4, 6), 7) is op


@pytest.mark.parametrize("count", [2, 6, 60, 400])
def test_the_interpreter_s_stages_are_searched_briefly_and_are_few(rng, count):
    """At most a fifth more than the search finds that looks at many; nothing is left out, as `schedule` asserts."""
    few = many = 0
    for _ in range(6):
        ops = [random_op(rng, 12, tuple(range(12)), kinds=SMALL_KINDS) for _ in range(count)]
        items = [item for item in cuda_lower.lower(ops, 5) if item.kind in ("terms", "rotate", "hadamard", "flip")]
        frame = schedule.TileFrame(tuple(range(12)), 5, 3)
        few += len(schedule.schedule(items, frame, schedule.Style(brief=True)))
        many += len(schedule.schedule(items, frame, schedule.Style(straight=True)))
    assert many > 0
    assert few <= 1.2 * many + 6  # one more each where lines must not be in registers at the load


def test_many_rotations_do_not_leave_the_range_of_single(rng):
    ops = [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for _ in range(200) for q in range(6)]
    state = random_state(rng, 6)
    program = interpreter.compile_tile(layout.Tile(tuple(range(6))), ops, 6, "single")
    got = tile_twin.run(program, state.astype(np.complex64), "single")
    assert np.linalg.norm(got - reference(state, ops)) <= tolerance(len(ops), "single")


def test_angles_are_exact_where_phases_are():
    angles = cuda_lower.angles_of(np.array([1, 1j, -1, -1j]))
    assert angles == [0, 1 << 62, 1 << 63, 3 << 62]
    np.testing.assert_array_equal(cuda_lower.phases_of(angles), [1, 1j, -1, -1j])


@pytest.mark.parametrize("num_qubits", [5, 12])
def test_every_pass_draws_its_tiles_from_a_counter_at_zero(num_qubits):
    amps = np.full(1 << num_qubits, 1 + 1j).view(kernels_host.Array)
    state = CudaState(num_qubits, "double", amps)
    counters = {}
    for _ in range(3 * COUNTER_AMPS * 2):
        address = int(state.new_tickets())
        counter = ctypes.c_uint64.from_address(address)
        assert counter.value == 0
        counter.value = 77  # what a pass leaves
        counters[address] = counter
    assert len(counters) == min(amps.size, COUNTER_AMPS) * 16 // COUNTER_BYTES
    assert np.all(amps == 1 + 1j)


class CountingLauncher(kernels_host.Launcher):
    """A launcher of kernels on the host that counts the arrays it uploads."""

    max_memory_bytes = 0

    def __init__(self):
        super().__init__()
        self.uploads = 0
        self.memory = SimpleNamespace(release_kept_buffer=lambda: None)
        host = kernels_host.Launcher.cupy
        self.cupy = SimpleNamespace(asarray=self.asarray, empty=host.empty, zeros=host.zeros, asnumpy=np.array)

    def asarray(self, values):
        self.uploads += 1
        return kernels_host.Launcher.cupy.asarray(values)

    def function(self, name, instance):
        return lambda blocks, threads, args: kernels_host.launch(name, instance, blocks, threads, args)

    def launch_function(self, function, blocks, threads, args, shared_bytes=0):
        function(max(blocks, 1), threads, args)


@pytest.fixture
def host_engine():
    """The CUDA engine over kernels on the host."""
    if straight_host.compiler() is None:
        pytest.skip("no C++ compiler")
    engine = CudaEngine(CountingLauncher())
    engine.threads = 1
    engine.ahead = []  # precisions whose kernels were compiled ahead
    engine.compiler.compile_first = engine.ahead.append
    return engine


@pytest.mark.parametrize("num_qubits", [10, 20])
def test_a_compiled_pass_holds_no_state(host_engine, num_qubits):
    """Passes are cached; a state that one of them held would never leave the GPU's memory."""
    state = CudaState(num_qubits, "double", np.zeros(32, complex).view(kernels_host.Array))
    launches = host_engine._launches(state, TilePass((3,), (Op(Kind.HADAMARD, (3,), EMPTY),)))
    held = weakref.ref(state)
    del state
    assert held() is None
    assert len(launches) == 1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [3, 13])
def test_a_new_state_is_all_zeros_and_an_amplitude_alone_is_put_there(host_engine, num_qubits, precision):
    size = 1 << max(num_qubits, shapes.SHAPES[precision].register_qubits)
    for _ in range(2):
        state = host_engine.allocate(num_qubits, precision)
        assert np.array_equal(np.array(state.amps), np.eye(1, size)[0])
    assert host_engine.launcher.uploads == 1
    host_engine.run_step(state, Prepare(np.full((num_qubits, 2), [0.6j, 0.8]), alone=True))
    assert abs(state.amps[0] - (0.6j) ** num_qubits) <= tolerance(num_qubits, precision)


def test_kernels_of_a_precision_are_compiled_ahead_once(host_engine):
    for precision in ("double", "double", "single", "double"):
        host_engine.expect(precision)
        host_engine.allocate(3, precision)
    assert host_engine.ahead == ["double", "single"]


def with_nan(state):
    """Memory that holds no number, before the state's start is written."""
    state._amps.fill(np.nan)
    return state


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [3, 13])
def test_a_start_is_written_when_it_is_used(host_engine, num_qubits, precision):
    size = 1 << max(num_qubits, shapes.SHAPES[precision].register_qubits)
    zero = np.eye(1, size)[0]
    assert np.array_equal(np.array(with_nan(host_engine.allocate(num_qubits, precision)).amps), zero)
    copied = host_engine.copy(with_nan(host_engine.allocate(num_qubits, precision)))
    assert np.array_equal(np.array(copied.amps), zero)
    assert np.array_equal(host_engine.vector(with_nan(host_engine.allocate(num_qubits, precision)))[:2], [1, 0])
    state = with_nan(host_engine.allocate(num_qubits, precision))
    host_engine.run_step(state, Prepare(np.full((num_qubits, 2), 0.5 + 0j)))
    expected = np.zeros(size)
    expected[: 1 << num_qubits] = 0.5**num_qubits
    assert np.array_equal(np.array(state.amps), expected)


def test_an_amplitude_alone_leaves_the_others_as_they_are(host_engine):
    state = with_nan(host_engine.allocate(13, "double"))
    host_engine.run_step(state, Prepare(np.full((13, 2), [1j, 0]), alone=True))
    assert state.amps[0] == 1j
    assert np.isnan(np.array(state.amps)[1:]).all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [3, 13])
def test_a_step_is_compiled_once_for_all_states_of_its_width(host_engine, rng, num_qubits, precision):
    dtype, size = DTYPES[precision], 1 << max(num_qubits, shapes.SHAPES[precision].register_qubits)
    steps = [Prepare(rng.normal(size=(num_qubits, 2)) + 0j) for _ in range(2)]
    for turn in range(2):  # another state each time
        amps = np.full(size, 5, dtype).view(kernels_host.Array)
        for step in steps:
            host_engine.run_step(CudaState(num_qubits, precision, amps), step)
            expected = np.zeros(size, complex)
            expected[: 1 << num_qubits] = reduce(np.kron, step.factors[::-1])
            assert np.linalg.norm(amps - expected) <= tolerance(num_qubits, precision) * np.linalg.norm(expected)
        assert host_engine.launcher.uploads == 6, turn
    host_engine.forget()
    host_engine.run_step(CudaState(num_qubits, precision, amps), steps[0])
    assert host_engine.launcher.uploads == 9


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [12, 14])
def test_values_of_pauli_strings(host_engine, rng, num_qubits, precision, monkeypatch):
    """The kernel on the host beside the CPU engine's: pairs of chunks, of one chunk, several launches."""
    monkeypatch.setattr(pauli, "BATCHES", 2)
    amps = random_state(rng, num_qubits).astype(DTYPES[precision])
    state = CudaState(num_qubits, precision, amps.view(kernels_host.Array))
    some = rng.integers(0, 1 << num_qubits, 8).tolist()
    flips = np.array([0, 1, 1 << num_qubits - 1, (1 << num_qubits) - 1, 5, *some])
    x = rng.choice(flips, 300).astype(np.uint64)
    z = rng.integers(0, 1 << num_qubits, x.size).astype(np.uint64)
    wanted = string_values(amps[None], x, z, 1)[0]
    for most in (1 << 28, 8 * 2 * 7):
        monkeypatch.setattr(pauli, "PARTIAL_BYTES", most)
        np.testing.assert_allclose(host_engine.pauli_values(state, x, z), wanted, atol=1e-13)
    few, (x, z) = CudaState(3, precision, amps[:32].view(kernels_host.Array)), (x & np.uint64(7), z & np.uint64(7))
    np.testing.assert_allclose(host_engine.pauli_values(few, x, z), string_values(amps[None, :8], x, z, 1)[0])


def test_an_emulated_block_is_made_once_for_states_of_every_width(host_engine, rng, monkeypatch):
    made, seen = [], []

    def block(launcher, matrix, targets, fixed, num_moduli):
        made.append((targets, fixed, num_moduli))
        return SimpleNamespace(run=lambda amps, instance: (seen.append((amps.size, instance["REAL"])), (0, 0.0))[1])

    monkeypatch.setattr("qsim_ozaki.engines.cuda.engine.EmulatedBlock", block)
    step = DenseBlock(Op(Kind.UNITARY, (2, 0), random_unitary(rng, 4)), Path.OZAKI, 9)
    for num_qubits, precision in ((5, "double"), (6, "double"), (5, "double"), (5, "single")):
        amps = np.zeros(1 << num_qubits, DTYPES[precision]).view(kernels_host.Array)
        host_engine.run_step(CudaState(num_qubits, precision, amps), step)
    assert made == [((2, 0), {}, 9)] * 2  # once for each precision
    assert seen == [(32, "double"), (64, "double"), (32, "double"), (32, "float")]


def test_the_oldest_steps_are_forgotten_first(host_engine):
    amps = np.zeros(32, complex).view(kernels_host.Array)
    state = CudaState(3, "double", amps)
    steps = [Prepare(np.eye(2, dtype=complex)[[0, 0, 1]]) for _ in range(CACHED_PROGRAMS + 1)]
    for step in (*steps[:-1], steps[0], steps[-1]):
        host_engine.run_step(state, step)
    made = host_engine.launcher.uploads
    host_engine.run_step(state, steps[0])
    assert host_engine.launcher.uploads == made
    host_engine.run_step(state, steps[1])
    assert host_engine.launcher.uploads == made + 3


@pytest.mark.cuda
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [16, 18])
def test_random_passes_at_many_tiles(cuda, rng, num_qubits, precision):
    """More tiles than blocks: every block fetches its next tile while it works on one."""
    shape = shapes.SHAPES[precision]
    for _ in range(6):
        tile = tuple(sorted({*range(shape.line_qubits), *(int(q) for q in rng.permutation(num_qubits)[:8])}))
        ops = tuple(random_op(rng, num_qubits, tile) for _ in range(20))
        state = random_state(rng, num_qubits)
        register, swaps = cuda.load(state, precision), random_swaps(rng, tile)
        cuda.run_step(register, TilePass(tile, ops, swaps=swaps))
        want = reference(state, (*ops, *swap_ops(swaps)))
        assert np.linalg.norm(cuda.vector(register) - want) <= tolerance(len(ops), precision)


@pytest.mark.cuda
@pytest.mark.parametrize("precision", PRECISIONS)
def test_dense_blocks_at_every_place(cuda, rng, precision):
    n = 15
    for k in range(3, 11):
        matrix = random_unitary(rng, 1 << k)
        places = [range(k), range(n - k, n), [int(q) for q in rng.permutation(n)[:k]]]
        for targets in places:
            rest = [q for q in range(n) if q not in targets]
            for controls in ((), (rest[0],), (rest[-1], rest[1])):
                ctrl_state = int(rng.integers(1 << len(controls)))
                op = Op(Kind.UNITARY, tuple(targets), matrix, controls, ctrl_state)
                state = random_state(rng, n)
                register = cuda.load(state, precision)
                cuda.run_step(register, DenseBlock(op))
                error = np.linalg.norm(cuda.vector(register) - apply_op(state, op))
                assert error <= tolerance(4, precision), (k, targets, controls)


@pytest.mark.cuda
def test_hadamard_passes_restore_a_state(cuda, rng):
    n = 22
    state = random_state(rng, n)
    register = cuda.load(state, "double")
    for _ in range(2):
        for qubits in (range(12), range(12, 21), range(21, 22)):
            cuda.run_step(register, HadamardPass(tuple(qubits)))
    assert np.linalg.norm(cuda.vector(register) - state) <= tolerance(2 * n)


@pytest.mark.cuda
def test_capacity_error_has_numbers(cuda):
    with pytest.raises(CapacityError, match=r"40 qubits need .* GiB.*Use at most \d+ qubits"):
        cuda.allocate(40, "double")
