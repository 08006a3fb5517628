"""Emulated FP64 on the CPU, layer by layer: INT32 sums, residues, CRT integers, doubles; then faults and odd inputs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support.crt import complex_residues
from support.random_ops import random_state, random_unitary
from support.reference import bits_of

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cpu.engine import extension_block
from qsim_ozaki.ozaki import moduli
from qsim_ozaki.ozaki import scheme as ozaki

UNIT = 2.0**-53


def extension_scheme(num_moduli, num_targets, bits=None):
    constants = ozaki.scheme(num_moduli, num_targets)
    a, b = bits or (constants.matrix_bits, constants.column_bits)
    return _native.OzakiScheme(constants.moduli, [a, b, 0], list(constants.product))


def columns_of(state, targets):
    """``state`` as a ``(2**k, columns)`` matrix, row bit b being ``targets[b]``; and the function that puts it back."""
    num_qubits = state.size.bit_length() - 1
    free = [q for q in range(num_qubits) if q not in targets]
    index = np.arange(state.size)
    rows, columns = bits_of(index, targets), bits_of(index, free)
    out = np.empty((1 << len(targets), 1 << len(free)), state.dtype)
    out[rows, columns] = state
    return out, lambda matrix: matrix[rows, columns]


def apply(block, state, targets, num_moduli=None, threads=2):
    """(result, redone, residual) of the extension's block; ``block`` is an `ozaki.Block` or what was made of it."""
    prepared = block if isinstance(block, ozaki.Block) else None
    run = extension_block(block) if prepared else block
    tolerance = ozaki.scheme(num_moduli, len(targets)).tolerance if num_moduli else prepared.scheme.tolerance
    out = state.copy()
    free = [q for q in range(state.size.bit_length() - 1) if q not in targets]
    redone, residual = run.run(out, [int(q) for q in targets], free, 0, tolerance, threads)
    return out, redone, residual


def column_errors(result, state, matrix, targets):
    """Largest error of each column over its norm, against an extended-precision product."""
    x, _ = columns_of(state, targets)
    y, _ = columns_of(result, targets)
    exact = matrix.astype(np.clongdouble) @ x.astype(np.clongdouble)
    norms = np.linalg.norm(x.astype(np.clongdouble), axis=0)
    return np.max(np.abs(y - exact), axis=0) / np.where(norms, norms, 1)


# layer 1: the raw INT32 accumulator of one modulus
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 31, 32, 33, 100, 256])
def test_products_are_the_naive_sums(rng, size):
    for rows, columns in [(1, 1), (16, 8), (15, 9), (33, 17), (48, 3)]:
        matrix = rng.integers(-128, 128, (rows, size)).astype(np.int8)
        block = rng.integers(-128, 128, (columns, size)).astype(np.int8)
        naive = np.zeros((columns, rows), np.int32)
        for k in range(size):
            naive += block[:, k, None].astype(np.int32) * matrix[None, :, k]
        assert np.array_equal(_native.ozaki_product(matrix, block), naive), (rows, columns)


# layer 2: residues of operands and of sums
def test_residues_are_those_of_python_integers(rng):
    scheme, values = extension_scheme(moduli.MAX_MODULI, 3), moduli.complex_moduli(moduli.MAX_MODULI)
    re, im = (np.rint(rng.uniform(-1, 1, 200) * 2.0 ** rng.integers(0, 61, 200)) for _ in range(2))
    re[:4], im[:4] = [0, 2.0**60, -(2.0**60), 1], [0, 2.0**60, 2.0**60, -1]
    found = scheme.encode(re, im)
    for t, m in enumerate(values):
        pairs = [complex_residues(int(x), int(y), m) for x, y in zip(re, im, strict=True)]
        assert np.array_equal(found[2 * t : 2 * t + 2], np.array(pairs).T)
    sums = np.concatenate([rng.integers(-(2**27), 2**27, 500), np.arange(-300, 300)]).astype(np.int32)
    for t, m in enumerate(values):
        assert np.array_equal(scheme.reduce(t, sums)[0], [moduli.balanced(int(v), m) for v in sums])


# layer 3: integers by CRT, negative ones too
@pytest.mark.parametrize("num_moduli", range(1, moduli.MAX_MODULI + 1))
def test_reconstruction_gives_the_integers(rng, num_moduli):
    values = moduli.complex_moduli(num_moduli)
    constants = ozaki.scheme(num_moduli, 0)
    bits = constants.matrix_bits + constants.column_bits
    integers = [0, 1, -1, 2**bits, -(2**bits), 2**bits - 1]
    integers += [int(v * 2.0**bits) for v in rng.uniform(-1, 1, 60)] + [int(v) for v in rng.integers(-9, 10, 20)]
    paired = list(zip(integers, integers[::-1], strict=True))
    pairs = np.array([[complex_residues(x, -y, m) for m in values] for x, y in paired])
    residues = np.ascontiguousarray(pairs.transpose(1, 2, 0).reshape(2 * num_moduli, -1)).astype(np.int8)
    found = extension_scheme(num_moduli, 0).reconstruct(residues)
    for (x, y), re, im in zip(paired, *found, strict=True):
        for integer, value in ((x, re), (-y, im)):
            error = abs(Fraction(float(value)) - Fraction(integer, 2**bits))
            assert error <= Fraction(abs(integer), 2**bits) * 2 * moduli.FP64_UNIT + Fraction(1, 2**75)
            if num_moduli <= 9 and abs(integer) < 2**50:  # the integers themselves
                assert round(float(value) * 2.0**bits) == integer


# layer 4: doubles
@pytest.mark.parametrize("num_targets", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("num_moduli", [6, 9, 13, 15, 17])
def test_products_meet_their_bound(rng, num_targets, num_moduli):
    num_qubits = num_targets + 4
    for spread in (0, 6, 300):
        matrix = random_unitary(rng, 1 << num_targets)
        state = random_state(rng, num_qubits) * 10.0 ** -rng.uniform(0, spread, 1 << num_qubits)
        targets = tuple(int(q) for q in rng.permutation(num_qubits)[:num_targets])
        result, redone, _ = apply(ozaki.block(matrix, num_moduli), state, targets)
        errors = column_errors(result, state, matrix, targets)
        assert redone == 0
        assert np.max(errors) <= float(moduli.error_bound(num_moduli, num_targets)), (spread, targets)


def structured(rng, size):
    """Matrices that are not random: a Fourier matrix, a Hadamard matrix, a permutation with signs."""
    index = np.arange(size)
    yield np.exp(2j * np.pi * np.outer(index, index) / size) / math.sqrt(size)
    parity = np.bitwise_count(index[:, None] & index) & 1
    yield (1 - 2.0 * parity).astype(complex) / math.sqrt(size)
    yield np.eye(size, dtype=complex)[rng.permutation(size)] * rng.choice([-1, 1], size)


def random_columns(rng, size, count, spread):
    """Columns whose entries spread over 10**-spread to 1."""
    x = rng.normal(size=(size, count)) + 1j * rng.normal(size=(size, count))
    return x * 10.0 ** -rng.uniform(0, spread, (size, count))


@pytest.mark.parametrize("num_targets", [3, 4, 5, 6, 7, 8, 9, 10])
def test_parity_means_errors_like_native_ones(rng, num_targets):
    size = 1 << num_targets
    targets = tuple(range(1, num_targets + 1))
    count = moduli.num_moduli_for(None, num_targets)
    matrices = list(structured(rng, size))[: 3 if num_targets < 8 else 2]
    matrices += [random_unitary(rng, size)] if num_targets < 9 else []
    _, put_back = columns_of(np.zeros(16 * size, complex), targets)
    for matrix in matrices:
        aligned = matrix[rng.integers(size, size=16)].conj().T  # rows of the matrix: the largest sums there are
        for x in (random_columns(rng, size, 16, 0), random_columns(rng, size, 16, 300), aligned):
            used = put_back(np.ascontiguousarray(x))
            emulated = column_errors(apply(ozaki.block(matrix, count), used, targets)[0], used, matrix, targets)
            native = column_errors(put_back(matrix @ x), used, matrix, targets)
            assert np.max(emulated) <= 2 * max(np.max(native), UNIT), np.max(emulated) / UNIT


def test_no_product_of_a_hundred_thousand_exceeds_its_bound(rng):
    products = 0
    while products < 100_000:
        num_targets, count = int(rng.integers(1, 7)), int(rng.integers(5, 18))
        num_qubits = num_targets + 6
        matrix = random_unitary(rng, 1 << num_targets)
        state = random_state(rng, num_qubits) * 10.0 ** -rng.uniform(0, rng.choice([0, 9, 300]), 1 << num_qubits)
        targets = tuple(int(q) for q in rng.permutation(num_qubits)[:num_targets])
        result, redone, _ = apply(ozaki.block(matrix, count), state, targets)
        errors = column_errors(result, state, matrix, targets)
        assert redone == 0
        assert np.max(errors) <= float(moduli.error_bound(count, num_targets)), (num_targets, count)
        products += state.size


@pytest.mark.parametrize("num_targets", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("num_free", [0, 1, 4])
def test_single_precision_states(rng, num_targets, num_free):
    """Rows that are no whole block, fewer columns than a panel, any targets."""
    matrix = random_unitary(rng, 1 << num_targets)
    state = random_state(rng, num_targets + num_free).astype(np.complex64)
    targets = tuple(int(q) for q in rng.permutation(num_targets + num_free)[:num_targets])
    count = moduli.num_moduli_for(None, num_targets, "single")
    result, redone, _ = apply(ozaki.block(matrix, count), state, targets)
    assert redone == 0
    assert result.dtype == np.complex64
    errors = column_errors(result, state, matrix, targets)
    x, put_back = columns_of(state, targets)
    native = column_errors(put_back(matrix.astype(np.complex64) @ x), state, matrix, targets)
    assert np.max(errors) <= 2 * max(np.max(native), 2.0**-24)


def test_threads_and_panels_give_the_same_bits(rng):
    block = ozaki.block(random_unitary(rng, 8), 15)
    state = random_state(rng, 12)
    results = [apply(block, state, (11, 0, 5), threads=threads)[0] for threads in (1, 2, 5)]
    assert all(np.array_equal(results[0], other) for other in results[1:])


# faults
def planted(rng, block):
    """``block`` for the extension with one residue of its matrix changed to another residue of the modulus."""
    run = extension_block(block)
    size, count = len(block.matrix), len(block.scheme.moduli)
    residues = run.residues.reshape(2 * count, -1)
    plane, row, k = rng.integers(2 * count), rng.integers(size), rng.integers(size)
    at = (row // 16 * size + k // 4 * 4) * 16 + row % 16 * 4 + k % 4  # as ozaki_pack lays a plane out
    modulus = int(block.scheme.moduli[plane // 2, 0])
    old = int(residues[plane, at]) - 128
    residues[plane, at] = moduli.balanced(old + int(rng.integers(1, modulus)), modulus) + 128
    return run


def test_every_planted_residue_is_caught(rng):
    for trial in range(1000):
        count = int(rng.choice([9, 15]))
        matrix = random_unitary(rng, 8)
        block = ozaki.block(matrix, count)
        state = random_state(rng, 7)
        targets = tuple(int(q) for q in rng.permutation(7)[:3])
        result, redone, _ = apply(planted(rng, block), state, targets, count)
        assert redone > 0, trial
        assert np.max(column_errors(result, state, matrix, targets)) <= float(moduli.error_bound(count, 3)), trial


def test_a_modulus_too_few_is_caught(rng):
    for trial in range(200):
        count = int(rng.integers(6, 16))
        matrix = random_unitary(rng, 8)
        block = ozaki.block(matrix, count)
        fewer = ozaki.scheme(count - 1, 3)
        too_many_bits = (block.scheme.matrix_bits, block.scheme.column_bits)
        product = math.prod(moduli.complex_moduli(count - 1)) / 2.0 ** sum(too_many_bits)
        scheme = _native.OzakiScheme(fewer.moduli, [*too_many_bits, 0], [product, 0.0])
        run = _native.OzakiBlock(scheme, block.matrix, block.weights, block.check_row)
        state = random_state(rng, 7)
        result, redone, _ = apply(run, state, (1, 6, 4), count)
        assert redone > 0, trial  # a column without a wrap is right
        assert np.max(column_errors(result, state, matrix, (1, 6, 4))) <= float(moduli.error_bound(count, 3)), trial


# odd inputs
def test_columns_far_apart_keep_their_own_accuracy(rng):
    matrix = random_unitary(rng, 8)
    state = random_state(rng, 9)
    x, put_back = columns_of(state, (0, 1, 2))
    x *= 10.0 ** -np.linspace(0, 300, x.shape[1])
    x[:, 5] = 0
    x[:, 6] *= 1e120
    result, redone, residual = apply(ozaki.block(matrix, 15), put_back(x), (0, 1, 2))
    y, _ = columns_of(result, (0, 1, 2))
    assert redone == 0
    assert residual < 1e-14
    assert not y[:, 5].any()
    errors = column_errors(result, put_back(x), matrix, (0, 1, 2))
    assert np.max(errors) <= float(moduli.error_bound(15, 3))


def test_denormal_columns_are_right(rng):
    matrix = random_unitary(rng, 4)
    state = random_state(rng, 4) * 1e-310
    result, redone, _ = apply(ozaki.block(matrix, 15), state, (2, 0))
    x, put_back = columns_of(state, (2, 0))
    exact = put_back((matrix.astype(np.clongdouble) @ x.astype(np.clongdouble)).astype(complex))
    assert redone == 0
    assert np.max(np.abs(result - exact)) <= 2 * 5e-324


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e200])
def test_columns_that_cannot_be_scaled_are_redone(rng, bad):
    matrix = random_unitary(rng, 8)
    state = random_state(rng, 7)
    state[3] = bad
    result, redone, _ = apply(ozaki.block(matrix, 15), state, (4, 5, 6))
    x, _ = columns_of(state, (4, 5, 6))
    y, _ = columns_of(result, (4, 5, 6))
    assert redone == 1
    others = np.arange(16) != 3
    assert np.allclose(y[:, others], matrix @ x[:, others], rtol=0, atol=1e-15)
    if bad == 1e200:
        assert np.allclose(y[:, 3], matrix @ x[:, 3], rtol=1e-15)
    else:
        assert not np.isfinite(y[:, 3]).any()


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 7.5, 1e200])
def test_matrices_that_are_not_unitary_are_right(rng, scale):
    matrix = scale * (rng.normal(size=(16, 16)) + 1j * rng.normal(size=(16, 16)))
    matrix[:, 3] *= 1e-6
    state = random_state(rng, 8)
    block = ozaki.block(matrix, 15)
    result, redone, _ = apply(block, state, (0, 3, 6, 7))
    errors = column_errors(result, state, matrix, (0, 3, 6, 7)) / 2.0**block.exponent
    assert redone == 0
    assert np.max(errors) <= float(moduli.error_bound(15, 4))
    largest = np.max(np.linalg.norm(matrix / scale, axis=1)) * scale
    assert 0.49 <= largest / 2.0**block.exponent <= 1.001


def test_a_zero_matrix(rng):
    result, redone, residual = apply(ozaki.block(np.zeros((4, 4), complex), 9), random_state(rng, 5), (0, 4))
    assert (redone, residual) == (0, 0)
    assert not result.any()
