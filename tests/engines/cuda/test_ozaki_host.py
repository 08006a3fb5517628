"""The GPU's kernels of the emulated block, on the host: residues and sums are the CPU twin's, bit for bit, in every
layout; one kernel writes back what two do; faults are found."""

import weakref

import numpy as np
import pytest
from support import straight_host
from support.random_ops import random_state, random_unitary
from support.reference import apply_op

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cuda.ozaki import block as cuda_ozaki
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, pipeline
from qsim_ozaki.engines.cuda.tuning import FINISHED
from qsim_ozaki.ir import Kind, Op
from qsim_ozaki.ozaki import moduli

pytestmark = pytest.mark.skipif(straight_host.compiler() is None, reason="no C++ compiler")
COUNT = 3  # moduli: few, so that it is quick; the kernels' loops over them are the same for any
ORDERS = (0, 16, 8)


@pytest.fixture(scope="module")
def host():
    from support import kernels_host

    return kernels_host.Launcher()


def block_on(host, rng, targets, whole, fixed=None, count=COUNT):
    matrix = random_unitary(rng, 1 << len(targets))
    return matrix, cuda_ozaki.EmulatedBlock(host, matrix, targets, fixed or {}, count, Pipeline(whole, 8))


def output_place(c, whole):
    """Byte of column c of 64 in a row of the product's output, as ozaki/ozaki.cuh says."""
    if whole == 0:
        return 4 * (c & 15) | c >> 4 & 3
    return c & 48 | (c & 3) << 2 | c >> 2 & 3 if whole == 16 else c & 56 | (c & 1) << 2 | c >> 1 & 3


def operand_rows(columns, whole):
    c = np.arange(columns)
    place = output_place(c & 63, whole)
    return c & ~63 | (place & 14) << 2 | (place & 48) >> 3 | place & 1


def operand_in_order(operand, planes, depth_blocks, rows, order):
    """``(planes, rows, K)`` of an operand's swizzled rows, row ``order[c]`` first for c."""
    image = operand.reshape(planes, depth_blocks, rows, 8, 16)
    row = np.arange(rows)
    parts = np.stack([image[:, :, row, part ^ (row & 7)] for part in range(8)], axis=3)
    words = parts.reshape(planes, depth_blocks, rows, 32, 4)  # byte 4 l + i is entry 32 i + l
    entries = words.transpose(0, 2, 1, 4, 3).reshape(planes, rows, depth_blocks * 128)
    return entries[:, order]


def output_in_order(out, planes, size, columns, whole):
    """``(planes, size, columns)`` of the product's output."""
    row, column = np.arange(size)[:, None], np.arange(columns)[None, :]
    place = output_place(column & 63, whole)
    quarter = place >> 4
    within = (row & 7) * 64 + place if whole == 0 else quarter * 128 + ((row ^ 2 * quarter) & 7) * 16 + (place & 15)
    at = (row & 48) * 256 + (row & 8) * 256 + (column >> 6 & 3) * 512 + within
    at = at + ((row >> 6) * (columns // 256) + (column >> 8)) * 64 * 256
    return out.reshape(planes, -1)[:, at]


def encoded(host, block, state, chunks):
    scratch = block._scratch(chunks.row_stride)
    chunk = chunks.columns_of(host.cupy.asarray(state), block.row_offset, 0)
    block._encode(chunk, {"REAL": "double"}, scratch)
    return scratch


@pytest.mark.parametrize("whole", ORDERS)
def test_operands_and_sums_are_those_of_the_cpu(host, rng, whole):
    targets, count = (8, 0, 5, 2, 7, 4, 1), COUNT
    _, block = block_on(host, rng, targets, whole)
    state = random_state(rng, 12) * 10.0 ** -rng.uniform(0, 3, 1 << 12)
    chunks = block._chunks(12)
    scratch = encoded(host, block, state, chunks)
    operand, residues = scratch.operand, scratch.residues
    planes, columns, size = 2 * count, 32, 128
    order = operand_rows(columns, whole)
    found = operand_in_order(operand[: planes * 256 * size], planes, 1, 256, order)
    scheme = block.block.scheme
    twin = _native.OzakiScheme(scheme.moduli, [scheme.matrix_bits, scheme.column_bits, 0], list(scheme.product))
    index = block.row_offset.astype(np.int64)[:, None] | chunks.offsets.astype(np.int64)[None, :]
    x = state[index]
    exponents = [int(np.frexp(np.linalg.norm(column))[1]) for column in x.T]
    scaled = (
        np.ldexp(x.real, scheme.column_bits - np.array(exponents)),
        np.ldexp(x.imag, scheme.column_bits - np.array(exponents)),
    )
    re, im = (np.ascontiguousarray(np.rint(part.T)).reshape(-1) for part in scaled)
    expected = twin.encode(re, im).reshape(planes, columns, size)
    assert np.array_equal(found, expected)
    block.multiply(operand, residues, chunks.row_stride, None)
    matrix = operand_in_order(np.array(block.operand), planes, 1, size, np.arange(size))
    out = output_in_order(residues[: planes * size * 256], planes, size, 256, whole)[:, :, :columns]
    for p in range(planes):
        sums = _native.ozaki_product(np.ascontiguousarray(matrix[p]), np.ascontiguousarray(expected[p]))
        reduced = twin.reduce(p // 2, sums.reshape(-1)).reshape(columns, size)
        assert np.array_equal(out[p].T, reduced), p


def how(columns):
    return Pipeline(columns, encode_depth=8)


def both_ways(host, rng, targets, num_qubits, whole, instance, how=how):
    """Amplitudes and checks by `ozaki_reconstruct` and `ozaki_commit`, and by `ozaki_finish`."""
    matrix = random_unitary(rng, 1 << len(targets))
    dtype = np.complex128 if instance["REAL"] == "double" else np.complex64
    state = random_state(rng, num_qubits).astype(dtype)
    state[:: 1 << 5] = 0
    found = []
    for columns in (0, whole):
        block = cuda_ozaki.EmulatedBlock(host, matrix, targets, {}, COUNT, how(columns))
        amps = host.cupy.asarray(state.copy())
        found.append((np.array(amps), block.run(amps, instance), amps))
    (_, first, one), (_, second, other) = found
    assert first[0] == second[0] == 0
    assert abs(first[1] - second[1]) <= 1e-12  # sums in another order
    expected = apply_op(state.astype(complex), Op(Kind.UNITARY, targets, matrix))
    assert np.max(np.abs(other - expected)) <= float(moduli.error_bound(COUNT, len(targets)))
    return one, other


@pytest.mark.parametrize(
    ("targets", "num_qubits", "whole"),
    [((6, 0, 1, 9, 3, 10, 4), 12, 16), ((2, 3, 4, 5, 6, 7, 8), 11, 8)],
)
def test_one_kernel_writes_back_what_two_do(host, rng, targets, num_qubits, whole):
    one, other = both_ways(host, rng, targets, num_qubits, whole, {"REAL": "double"})
    assert np.array_equal(one, other)
    assert host.launched[-1] == "ozaki_finish"


def test_chunks_take_turns_with_the_workspaces(host, rng):
    targets, n = (6, 0, 1, 9, 3, 10, 4), 17
    matrix, state = random_unitary(rng, 1 << 7), random_state(rng, n)
    block = cuda_ozaki.EmulatedBlock(host, matrix, targets, {}, COUNT, Pipeline(16, 8, 1 << 15))
    assert len(block.chunks(n).records) == 4
    amps = host.cupy.asarray(state.copy())
    assert block.run(amps, {"REAL": "double"})[0] == 0
    expected = apply_op(state, Op(Kind.UNITARY, targets, matrix))
    columns = np.abs(np.array(amps) - expected)
    assert np.max(columns) <= float(moduli.error_bound(COUNT, 7))


def test_single_precision_states(host, rng):
    one, other = both_ways(host, rng, (6, 0, 1, 9, 3, 10, 4), 12, 16, {"REAL": "float"})
    assert np.array_equal(one, other)


def test_columns_too_long_to_hold_when_they_are_encoded(host, rng):
    short = lambda columns: Pipeline(columns, encode_depth=0)  # noqa: E731
    one, other = both_ways(host, rng, (6, 0, 1, 9, 3, 10, 4), 12, 16, {"REAL": "double"}, short)
    assert "ozaki_scale" in host.launched
    assert np.array_equal(one, other)


def test_planted_faults_and_odd_columns_are_redone(host, rng):
    matrix, block = block_on(host, rng, (0, 1, 2, 3, 4, 5, 6), 16, count=9)
    state = random_state(rng, 12)
    for trial in range(2):
        at = int(rng.integers(block.operand.size))
        modulus, old = int(block.block.scheme.moduli[at // 128**2 // 2, 0]), int(block.operand[at])
        block.operand[at] = moduli.balanced(old + int(rng.integers(1, modulus)), modulus)
        amps = host.cupy.asarray(state.copy())
        redone, _ = block.run(amps, {"REAL": "double"})
        block.operand[at] = old
        assert redone > 0, trial
        assert np.max(np.abs(amps - apply_op(state, Op(Kind.UNITARY, tuple(range(7)), matrix)))) <= 1e-8
    odd = state.reshape(32, 128) * 10.0 ** -np.linspace(0, 300, 32)[:, None]
    odd[5], odd[9, 3] = 0, np.nan
    amps = host.cupy.asarray(odd.reshape(-1).copy())
    redone, _ = block.run(amps, {"REAL": "double"})
    assert redone == 1
    y = np.array(amps).reshape(32, 128)
    assert not np.isfinite(y[9]).any()
    for column in (0, 5, 8, 31):
        exact = matrix.astype(np.clongdouble) @ odd[column].astype(np.clongdouble)
        norm = np.linalg.norm(odd[column].astype(np.clongdouble))
        assert np.max(np.abs(y[column] - exact)) <= float(moduli.error_bound(9, 7)) * norm


def runs_of(host, block, amps, start, count, real="double"):
    """Amplitudes after each of some runs from ``start``, and how many launches the host made for each."""
    states, launches = [], []
    for _ in range(count):
        amps[...], before = start, len(host.launched)
        assert block.run(amps, {"REAL": real})[0] == 0
        states.append(np.array(amps))
        launches.append(len(host.launched) - before)
    return states, launches


def test_a_block_that_runs_again_on_a_state_is_one_launch(host, rng, monkeypatch):
    monkeypatch.setattr("qsim_ozaki.engines.cuda.ozaki.graph.MAX_GRAPHS", 2)
    matrix, block = block_on(host, rng, (6, 0, 1, 9, 3, 10, 4), 16)
    start = random_state(rng, 12)
    amps, other = (host.cupy.asarray(start.copy()) for _ in range(2))
    states, launches = runs_of(host, block, amps, start, 4)
    assert launches == [3, 3, 0, 0]  # in turn, noted for a graph, by it
    expected = apply_op(start, Op(Kind.UNITARY, (6, 0, 1, 9, 3, 10, 4), matrix))
    assert np.max(np.abs(states[0] - expected)) <= float(moduli.error_bound(COUNT, 7))
    assert all(np.array_equal(state, states[0]) for state in states)
    again = random_state(rng, 12)
    states, launches = runs_of(host, block, other, again, 3)  # elsewhere in memory
    assert launches == [3, 3, 0]
    assert all(np.array_equal(state, states[0]) for state in states)
    assert np.array_equal(runs_of(host, block, amps, again, 1)[0][0], states[0])
    assert runs_of(host, block, amps, again, 1)[1] == [0]  # two states are remembered
    single = host.cupy.asarray(start.astype(np.complex64))
    assert runs_of(host, block, single, start.astype(np.complex64), 3, "float")[1] == [3, 3, 0]
    assert runs_of(host, block, other, again, 1)[1] == [3]  # and no more
    held = weakref.ref(amps)
    del amps
    assert held() is None


def test_graphs_of_blocks_share_one_workspace(host, rng):
    start = random_state(rng, 12)
    blocks = [block_on(host, rng, targets, 16)[1] for targets in ((6, 0, 1, 9, 3, 10, 4), (5, 0, 1, 2, 3, 4, 8))]
    alone = []
    for block in blocks:
        amps = host.cupy.asarray(start.copy())
        alone.append(runs_of(host, block, amps, start, 1)[0][0])
    host.workspaces.clear()
    amps = host.cupy.asarray(start.copy())
    for _ in range(3):
        for block, expected in zip(blocks, alone, strict=True):
            assert np.array_equal(runs_of(host, block, amps, start, 1)[0][0], expected)
    assert len(host.workspaces) == 1
    del block, blocks
    assert len(host.workspaces) == 0


def test_faults_and_odd_columns_are_redone_where_a_graph_runs(host, rng):
    targets = (6, 0, 1, 9, 3, 10, 4)
    matrix, block = block_on(host, rng, targets, 16, count=9)
    start = random_state(rng, 12)
    amps, expected = host.cupy.asarray(start.copy()), apply_op(start, Op(Kind.UNITARY, targets, matrix))
    runs_of(host, block, amps, start, 2)
    for _ in range(2):
        at = int(rng.integers(block.operand.size))
        modulus, old = int(block.block.scheme.moduli[at // 128**2 // 2, 0]), int(block.operand[at])
        block.operand[at] = moduli.balanced(old + int(rng.integers(1, modulus)), modulus)
        amps[...], before = start, len(host.launched)
        redone, _ = block.run(amps, {"REAL": "double"})
        block.operand[at] = old
        assert redone > 0
        assert len(host.launched) == before
        assert np.max(np.abs(amps - expected)) <= 1e-8
    amps[...] = start
    amps[0] = np.nan
    assert block.run(amps, {"REAL": "double"})[0] == 1
    states, _ = runs_of(host, block, amps, start, 1)  # and the next run reports nothing
    assert np.max(np.abs(states[0] - expected)) <= 1e-8


def test_a_runtime_that_refuses_a_graph_gets_every_launch(host, rng, monkeypatch):
    monkeypatch.setattr("support.kernels_host.Capture.refuses", True)
    _, block = block_on(host, rng, (6, 0, 1, 9, 3, 10, 4), 16)
    start = random_state(rng, 12)
    states, launches = runs_of(host, block, host.cupy.asarray(start.copy()), start, 4)
    assert launches == [3, 3, 3, 3]
    assert all(np.array_equal(state, states[0]) for state in states)


@pytest.mark.parametrize("columns", [8, 16])
@pytest.mark.parametrize("quarter", range(4))
def test_entries_are_stored_without_bank_conflicts(columns, quarter):
    """Eight lanes store 16 bytes each to eight groups of four banks; all rows and columns are written once."""
    words, written = columns // 4, set()
    stride = 128 + 8 // words
    for warp in range(64 * words // 32 // 2):
        for first in range(0, 32, 8):
            for i in range(4):
                places = []
                for lane in range(first, first + 8):
                    word, slot = lane % words, lane // words & 7
                    row = 8 * (warp * (4 // words) + lane // (8 * words)) + (slot ^ 2 * quarter) % 8
                    places.append((word + words * i) * stride + row)
                assert len({place % 8 for place in places}) == 8
                written |= set(places)
    assert len(written) == 32 * columns


def test_columns_that_are_written_back_whole_fit_a_block(host, rng):
    for rows, columns in FINISHED.items():
        assert columns in (8, 16)
        assert 16 * columns * ((1 << rows) + 32 // columns) + 8192 <= 227 << 10  # of shared memory a block may have
    block = cuda_ozaki.EmulatedBlock(host, random_unitary(rng, 8), (0, 1, 2), {}, COUNT)
    assert block.how == pipeline(7, COUNT)
    small = type(host)(architecture=86)
    block = cuda_ozaki.EmulatedBlock(small, random_unitary(rng, 8), (0, 1, 2), {}, COUNT, Pipeline(64, 8))
    assert (block.how.columns, block.how.encode_depth) == (0, 4)
