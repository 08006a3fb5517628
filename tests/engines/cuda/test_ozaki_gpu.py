"""Emulated FP64 on a GPU: its constants by exact arithmetic; its layers, faults and odd inputs where there is a GPU."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from support.ozaki_forms import chunked
from support.random_ops import random_state, random_unitary
from support.reference import apply_op

from qsim_ozaki.engines import select
from qsim_ozaki.engines.cuda.device import kernels, records
from qsim_ozaki.engines.cuda.ozaki import block as cuda_ozaki
from qsim_ozaki.engines.cuda.ozaki import tables
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, Wgmma
from qsim_ozaki.errors import CapacityError, EngineError
from qsim_ozaki.ir import DenseBlock, Kind, Op, Path
from qsim_ozaki.ozaki import moduli
from qsim_ozaki.ozaki import scheme as ozaki

MODULI = moduli.complex_moduli(moduli.MAX_MODULI)


@pytest.fixture(scope="module")
def scheme():
    return tables.scheme_record(ozaki.block(np.eye(8, dtype=complex), moduli.MAX_MODULI))[0]


def test_a_float_reduces_every_integer_to_its_balanced_residue(rng, scheme):
    """float32 arithmetic as the kernels do it: one multiplication and addition, rounded once."""
    largest = tables.LARGEST_REDUCED
    for m, row in zip(MODULI, scheme["moduli"], strict=True):
        quotient = tables.float_quotient(m)
        relative = Fraction(float(row["inverse"])) * m - 1
        assert 2**23 <= quotient * m - largest < quotient * m + largest < 2**24
        assert quotient % 256 == 0  # so that the low byte of the bits is that of the integer
        assert row["shift"] == tables.FLOAT_ROUND - quotient
        # what the rounded inverse moves stays below the distance of v / m from a tie
        assert abs(relative) * (quotient * m + largest) / m < Fraction(1, 2 * m)
        values = np.concatenate([rng.integers(-largest, largest + 1, 2000), np.arange(-m, m), [largest, -largest]])
        exact = (quotient * m + values).astype(np.longdouble) * np.longdouble(row["inverse"]) + np.longdouble(
            row["shift"]
        )
        found = values - np.rint(exact - tables.FLOAT_ROUND).astype(int) * m
        assert np.array_equal(found, [moduli.balanced(int(v), m) for v in values])


def test_a_float_reduces_every_short_sum_to_its_balanced_residue(scheme):
    assert f"kShortDepth = {tables.SHORT_DEPTH};" in (kernels.SOURCES / "ozaki" / "ozaki.cuh").read_text()
    for m, row in zip(MODULI, scheme["moduli"], strict=True):
        largest = tables.SHORT_DEPTH * (m // 2) ** 2
        bias = int(row["short_bias"]) - 0x4B000000 + 2**23
        assert 2**23 <= bias - largest < bias + largest < 2**24
        assert bias % 256 == 0
        error = Fraction(float(row["short_inverse"])) * m - 1
        quotient = tables.FLOAT_ROUND - int(row["short_shift"])
        # off from quotient + s / m by less than the distance of s / m from a tie, times m
        assert max(abs(bias - quotient * m + (bias + s) * error) for s in (-largest, largest)) < Fraction(1, 2)
        ties = np.arange(-largest // m, largest // m + 1)[:, None] * m + np.array([-(m // 2), 0, m // 2])
        values = ties[np.abs(ties) <= largest]
        exact = (bias + values).astype(np.longdouble) * np.longdouble(row["short_inverse"])
        exact += np.longdouble(row["short_shift"])
        found = values - np.rint(exact - tables.FLOAT_ROUND).astype(int) * m
        assert np.array_equal(found, (values + m // 2) % m - m // 2)


def test_words_and_biases_give_the_residue_of_a_64_bit_integer(rng, scheme):
    for m, row in zip(MODULI, scheme["moduli"], strict=True):
        root = moduli.root_of_minus_one(m)
        bits = 0x4B000000 + tables.float_quotient(m) * m - 2**23
        values = [0, 1, -1, 2**60, -(2**60), *(int(v) for v in rng.integers(-(2**60), 2**60, 40))]
        for re, im in zip(values, values[::-1], strict=True):
            slot = b"".join(((part + 2**63) % 2**64).to_bytes(8, "little") for part in (re, im))
            data = np.frombuffer(slot, np.uint8).astype(int)
            for side, factor in enumerate((root, -root)):
                found = int(data @ row["words"][side].view(np.int8).astype(int)) + int(row["bias"][side]) - bits
                assert abs(found) <= tables.LARGEST_REDUCED
                assert (found - re - factor * im) % m == 0
        for value in [0, -1, *(int(v) for v in rng.integers(-(2**27), 2**27, 20))]:
            data = np.frombuffer((value + 2**31).to_bytes(4, "little"), np.uint8).astype(int)
            found = int(data @ row["sum_words"].reshape(1).view(np.int8).astype(int)) + int(row["sum_bias"]) - bits
            assert abs(found) <= tables.LARGEST_REDUCED
            assert (found - value) % m == 0


def test_a_launch_gets_a_record_s_bytes_and_no_fields():
    record = np.zeros(1, tables.COLUMNS)
    record["base"], record["depth_blocks"] = 2**40 + 3, 8
    bare = records.opaque(record)
    assert (bare.dtype.names, bare.size) == (None, 1)
    assert bare.tobytes() == record.tobytes()


def test_a_narrow_matrix_is_widened_by_qubits_that_it_leaves_alone(rng):
    matrix = random_unitary(rng, 8)
    wide, targets = records.widened(matrix, (4, 0, 9), [1, 2, 3, 5])
    assert targets == (4, 0, 9, 1, 2, 3, 5)
    state = random_state(rng, 10)
    expected = apply_op(state, Op(Kind.UNITARY, (4, 0, 9), matrix))
    assert np.allclose(apply_op(state, Op(Kind.UNITARY, targets, wide)), expected, rtol=0, atol=1e-15)


def test_columns_are_numbered_by_the_qubits_left():
    numbers = np.arange(16)
    expected = [(n & 1) | (n >> 1 & 3) << 3 | (n >> 3) << 6 for n in numbers]  # qubits 0, 3, 4 and 6
    assert np.array_equal(tables.insert_bits(numbers, [5, 1, 2]), expected)


def test_a_matrix_whose_residues_do_not_fit_is_refused_with_numbers():
    small = SimpleNamespace(free_bytes=lambda: 2**29, device_name="a small GPU")
    with pytest.raises(CapacityError, match=r"on 12 qubits needs 0.719 GiB .* 15 moduli; a small GPU has 0.5 GiB free"):
        cuda_ozaki.EmulatedBlock(small, np.empty((0, 0)), tuple(range(12)), {}, 15)


@pytest.fixture(scope="module")
def gpu():
    try:
        return select("cuda")
    except EngineError as error:
        pytest.skip(str(error))


def block_on(gpu, rng, targets, num_moduli, fixed=None, how=None):
    matrix = random_unitary(rng, 1 << len(targets))
    return matrix, cuda_ozaki.EmulatedBlock(gpu.launcher, matrix, targets, fixed or {}, num_moduli, how)


def in_order(out, planes, size, columns):
    """``(planes, size, columns)`` of the product's output, whose order ozaki/ozaki.cuh tells."""
    blocks = out.reshape(planes, size // 64, columns // 256, 4, 2, 4, 8, 64)
    rows = blocks.transpose(0, 1, 3, 4, 6, 2, 5, 7).reshape(planes, size, columns)
    column = np.arange(columns)
    return rows[..., column & ~63 | place_of(column)]


def place_of(column):
    """Byte of a column among the 64 of its group in the output."""
    return 4 * (column & 15) | column >> 4 & 3


@pytest.mark.cuda
def test_sums_and_residues_of_the_tensor_cores_are_the_naive_ones(gpu, rng):
    size, count, columns = 256, 3, 512
    _, block = block_on(gpu, rng, tuple(range(8)), count, how=Pipeline())
    cupy, planes = gpu.launcher.cupy, 2 * count
    matrix = cupy.asarray(rng.integers(-120, 121, planes * size * size).astype(np.int8))
    operand = cupy.asarray(rng.integers(-120, 121, planes * size * columns).astype(np.int8))
    naive = cupy.zeros(planes * size * columns, np.int32)
    gpu.launcher.launch(
        "ozaki_naive", {}, 512, 256, (matrix, operand, naive, np.uint64(naive.size), np.int32(size), np.uint64(columns))
    )
    c = np.arange(columns)
    place = place_of(c)
    row = c & ~63 | (place & 14) << 2 | (place & 48) >> 3 | place & 1  # as operand_row in ozaki/ozaki.cuh
    sums = naive.get().reshape(planes, size, columns)[:, :, row]
    block.operand = matrix
    raw = cupy.full(naive.size, -1, np.int32)
    product = tables.product_record(block.size, columns, planes)
    shared = cuda_ozaki.STAGES[gpu.launcher.architecture] * cuda_ozaki.STAGE_BYTES
    gpu.launcher.launch("ozaki_product", {"RAW": "1"}, 7, 256, (matrix, operand, raw, product, block.scheme), shared)
    assert np.array_equal(in_order(raw.get(), planes, size, columns), sums)
    residues = np.array(
        [[[moduli.balanced(int(v), MODULI[p // 2]) for v in r[:64]] for r in sums[p, :40]] for p in range(planes)]
    )
    for form in (None, *Wgmma) if gpu.launcher.architecture == 90 else (None,):
        out = cupy.full(naive.size, -99, np.int8)
        block.multiply(operand, out, columns, form)
        assert np.array_equal(in_order(out.get(), planes, size, columns)[:, :40, :64], residues), form


@pytest.mark.cuda
def test_chunks_on_any_streams_give_the_same_bits(gpu, rng):
    """Many short chunks, from a caller's stream that has work before and after the block."""
    cupy, targets, n = gpu.launcher.cupy, (3, 0, 7, 11, 5, 8, 1, 14, 9), 19
    matrix, start = random_unitary(rng, 1 << 9), cupy.asarray(random_state(rng, n))
    expected = None
    for how in chunked():
        block = cuda_ozaki.EmulatedBlock(gpu.launcher, matrix, targets, {}, 9, how)
        assert len(block.chunks(n).records) == 4
        for turn in range(4):
            with cupy.cuda.Stream(non_blocking=turn % 2 == 0) as stream:
                amps = cupy.zeros_like(start)
                amps += start
                redone, _ = block.run(amps, {"REAL": "double"})
                found = amps.copy()
                amps.fill(0)
            stream.synchronize()
            expected = found if expected is None else expected
            assert redone == 0, (how, turn)
            assert (found == expected).all(), (how, turn)


@pytest.mark.cuda
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("num_qubits", [9, 14, 21])
def test_a_graph_does_what_its_launches_do(gpu, rng, num_qubits, precision):
    """On the caller's stream, the default one and others, between other work; fresh amplitudes each time."""
    cupy, targets = gpu.launcher.cupy, (3, 0, 7, 6, 5, 8, 1)
    _, block = block_on(gpu, rng, targets, 9)
    amps = cupy.empty(1 << num_qubits, np.complex128 if precision == "double" else np.complex64)
    expected = cupy.empty_like(amps)  # elsewhere in memory
    instance = kernels.DOUBLE if precision == "double" else kernels.SINGLE
    for turn in range(5):
        start = cupy.asarray(random_state(rng, num_qubits).astype(amps.dtype))
        expected[...] = start
        block.run(expected, instance)
        cupy.cuda.Device().synchronize()
        with cupy.cuda.Stream(non_blocking=True) if turn % 2 else cupy.cuda.Stream.null as stream:
            amps[...] = start
            redone, _ = block.run(amps, instance)
            found = amps.copy()
            amps.fill(0)
        stream.synchronize()
        assert redone == 0, turn
        assert (found == expected).all(), turn
    replays = block.chunks(max(num_qubits, block.width)).replays
    assert replays._captures
    assert any(replays._graphs.values())


@pytest.mark.cuda
@pytest.mark.parametrize("precision", ["double", "single"])
def test_blocks_agree_with_the_reference(gpu, rng, precision):
    for k in (1, 3, 6, 7, 8, 9, 10):
        for num_qubits in (k + 1, 12, 14):
            order = [int(q) for q in rng.permutation(max(num_qubits, k + 1))]
            targets, controls = tuple(order[:k]), tuple(order[k : k + int(rng.integers(2))])
            op = Op(Kind.UNITARY, targets, random_unitary(rng, 1 << k), controls, int(rng.integers(1 << len(controls))))
            state = random_state(rng, len(order)).astype(np.complex128 if precision == "double" else np.complex64)
            register = gpu.load(state, precision)
            gpu.run_step(register, DenseBlock(op, Path.OZAKI, 15))
            error = np.linalg.norm(gpu.vector(register) - apply_op(state, op))
            assert error <= (1e-14 if precision == "double" else 1e-6), (k, num_qubits, error)
            checks = gpu.take_checks(register)
            assert checks.redone == 0
            assert checks.residual <= ozaki.scheme(15, max(k, 7)).tolerance


@pytest.mark.cuda
@pytest.mark.parametrize("part", range(5))
def test_planted_faults_are_caught_and_redone(gpu, rng, part):
    """1000 of them, in parts that workers share."""
    for trial in range(200):
        if trial % 50 == 0:
            count = int(rng.choice([9, 15]))
            targets = tuple(int(q) for q in rng.permutation(12)[:7])
            matrix, block = block_on(gpu, rng, targets, count)
            state = random_state(rng, 12)
            expected = apply_op(state, Op(Kind.UNITARY, targets, matrix))
        at = int(rng.integers(block.operand.size))
        old, modulus = int(block.operand[at]), MODULI[at // 128**2 // 2]
        block.operand[at] = moduli.balanced(old + int(rng.integers(1, modulus)), modulus)
        amps = gpu.launcher.cupy.asarray(state)
        redone, _ = block.run(amps, {"REAL": "double"})
        block.operand[at] = old
        assert redone > 0, trial
        assert np.linalg.norm(amps.get() - expected) <= 32 * float(moduli.error_bound(count, 7)), trial


@pytest.mark.cuda
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_odd_columns_are_redone_or_keep_their_accuracy(gpu, rng, bad):
    matrix, block = block_on(gpu, rng, (0, 1, 2, 3, 4, 5, 6), 15)
    x = random_state(rng, 12).reshape(32, 128) * 10.0 ** -np.linspace(0, 300, 32)[:, None]
    x[5], x[9, 3] = 0, bad
    amps = gpu.launcher.cupy.asarray(x.reshape(-1))
    redone, _ = block.run(amps, {"REAL": "double"})
    assert redone == 1
    y = amps.get().reshape(32, 128)
    for column in range(32):
        exact = matrix.astype(np.clongdouble) @ x[column].astype(np.clongdouble)
        if column != 9:
            norm = np.linalg.norm(x[column].astype(np.clongdouble))
            assert np.max(np.abs(y[column] - exact)) <= float(moduli.error_bound(15, 7)) * norm
    assert np.isfinite(y[9]).all() == np.isfinite(bad)
