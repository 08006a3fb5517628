"""The founding design's layers: INT32 sums, residues, CRT integers, doubles; on the CPU, and the kernel on the host."""

import math
from fractions import Fraction

import numpy as np
import pytest
from support import straight_host

from qsim_ozaki.bench.blocks import founding, founding_cuda
from qsim_ozaki.engines import select
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ozaki import moduli

FORMS = [founding.halves(), founding.one_level(96), founding.slices(5), founding.slices(8)]
NAMES = [form.name for form in FORMS]


@pytest.fixture(scope="module", params=["host", pytest.param("gpu", marks=pytest.mark.cuda)])
def launcher(request):
    """What launches the kernels: the host's emulation, and the GPU where there is one."""
    if request.param == "gpu":
        try:
            return select("cuda").launcher
        except EngineError as error:
            pytest.skip(str(error))
    if straight_host.compiler() is None:
        pytest.skip("no C++ compiler")
    from support import kernels_host

    return kernels_host.Launcher()


@pytest.fixture(scope="module")
def operands():
    """Two matrices whose rows, columns and depth are no whole tiles: 2 x 2 tiles, 2 steps of K with a tail."""
    rng = np.random.default_rng(11)
    left, right = rng.uniform(-1, 1, (150, 40)), rng.uniform(-1, 1, (40, 90))
    left[3], right[:, 5] = 1, -1  # the largest sums there are, negative
    left[4, :9] = [-1, 1, 0, 2.0**-17, -(2.0**-17), 2.0**-35, 0.5 - 2.0**-36, -0.5, 2.0**-40]
    return left, right


def planes_of(operands, form):
    left, right = operands
    return founding.planes(left, form), founding.planes(np.ascontiguousarray(right.T), form)


def exact_integers(operands, form, product):
    """Python's integers of the pass that ends with ``product``."""
    left, right = operands
    count = len(form.moduli)
    a = founding.parts(left, form)[product.left // count].astype(object)
    b = founding.parts(right, form)[product.right // count].astype(object)
    return a @ b


# what the parts are
@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_parts_and_planes_are_the_entries_rounded(rng, form):
    matrix = np.concatenate([rng.uniform(-1, 1, (40, 7)), [[1, -1, 0, 2.0**-60, 0.5, -0.5, 1 - 2.0**-53]]])
    parts = founding.parts(matrix, form)
    for at in np.ndindex(matrix.shape):
        total = sum(Fraction(int(p[at])) / 2**bits for p, bits in zip(parts, form.bits, strict=True))
        assert abs(total - Fraction(matrix[at])) <= Fraction(1, 2 ** (form.bits[-1] + 1))
        for p, bits in zip(parts, form.bits, strict=True):
            assert abs(int(p[at])) <= 2 ** (17 if len(form.bits) == 2 else bits)
    planes = founding.planes(matrix, form).astype(int)
    if form.moduli:
        for plane, (p, m) in zip(planes, [(p, m) for p in parts for m in form.moduli], strict=True):
            assert np.array_equal(plane, [[moduli.balanced(int(v), m) for v in row] for row in p])
    else:
        weights = [256**j for j in range(len(planes))][::-1]
        total = sum(plane.astype(object) * weight for plane, weight in zip(planes, weights, strict=True))
        assert np.array_equal(total, parts[0].astype(object))


def test_lists_of_products():
    assert [len(form.products) for form in FORMS] == [28, 9, 15, 36]
    assert founding.halves().moduli == (127, 113, 109, 107, 103, 101, 97)
    assert math.prod(founding.halves().moduli) > 2 * founding.MAX_HALVES_DEPTH * 2**34
    for depth in (1, 96, 256, 4096):
        form = founding.one_level(depth)
        assert 2 * depth * 4 ** form.bits[0] < math.prod(form.moduli) <= 2 * depth * 4 ** (form.bits[0] + 1)
    # a level's sum of products of digits stays in INT32
    assert founding.MAX_SLICES_DEPTH * 8 * 128 * 128 < 2**31


def test_what_may_wrap_is_refused():
    planes = np.zeros((14, 1, 4097), np.int8)
    with pytest.raises(ValueError, match="over 4097 entries by halves may wrap; the limit is 4096"):
        founding.multiply(planes, planes, founding.halves())
    with pytest.raises(ValueError, match="9 slices were asked for; 1 to 8 are built"):
        founding.slices(9)


# layer 1: raw INT32 sums
@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_sums_are_the_naive_ones(launcher, operands, form):
    left, right = planes_of(operands, form)
    for number, (product, found) in enumerate(founding.sums(left, right, form)):
        naive = left[product.left].astype(np.int32) @ right[product.right].T.astype(np.int32)
        assert np.array_equal(found, naive)
        if number in (0, len(form.products) // 2, len(form.products) - 1) and form.moduli:
            assert np.array_equal(founding_cuda.multiply(launcher, left, right, form, "sums", number), naive), number
    assert np.array_equal(founding_cuda.naive_sums(launcher, left[product.left], right[product.right]), naive)


def test_sums_of_a_level_of_slices(launcher, operands):
    form = founding.slices(5)
    left, right = planes_of(operands, form)
    both = list(founding.sums(left, right, form))
    found = founding_cuda.multiply(launcher, left, right, form, "sums", 5)  # the last product of level 2
    assert np.array_equal(found, sum(each for _, each in both[3:6]))


# layer 2: residues
@pytest.mark.parametrize("form", FORMS[:2], ids=NAMES[:2])
def test_residues_of_sums(launcher, operands, form):
    left, right = planes_of(operands, form)
    for number, (product, found) in enumerate(founding.sums(left, right, form)):
        modulus = form.moduli[product.modulus]
        residues = founding.residues_of(found, modulus)
        if number % 9 == 0:
            expected = [[moduli.balanced(int(v), modulus) for v in row] for row in found[:20]]
            assert np.array_equal(residues[:20], expected)
            assert np.array_equal(founding_cuda.multiply(launcher, left, right, form, "residues", number), residues)


# layer 3: the integers, negative ones too
def test_the_integers_of_every_pass_are_exact(launcher, operands):
    form = founding.halves()
    left, right = planes_of(operands, form)
    for number, product in enumerate(form.products):
        if product.scale:
            exact = exact_integers(operands, form, product)
            assert exact.min() < 0 < exact.max()
            assert np.array_equal(founding_cuda.multiply(launcher, left, right, form, "integers", number), exact)
            wrapped = np.zeros(exact.shape, np.int64)
            for other, found in founding.sums(left, right, form):
                if (other.left // 7, other.right // 7) == (product.left // 7, product.right // 7):
                    with np.errstate(over="ignore"):
                        wrapped += founding.residues_of(found, form.moduli[other.modulus]) * form.weights[other.modulus]
            assert np.array_equal(founding.integers(wrapped, form), exact.astype(float))


def test_the_largest_integers_of_the_largest_depth(rng):
    form = founding.halves()
    left, right = np.ones((2, founding.MAX_HALVES_DEPTH)), -np.ones((1, founding.MAX_HALVES_DEPTH))
    left[1] = rng.uniform(-1, 1, founding.MAX_HALVES_DEPTH)
    found = founding.multiply(founding.planes(left, form), founding.planes(right, form), form)
    assert found[0, 0] == -founding.MAX_HALVES_DEPTH  # exact: entries are
    assert abs(found[1, 0] + np.sum(left[1])) <= founding.MAX_HALVES_DEPTH * 2.0**-36


# layer 4: doubles
@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_the_kernel_gives_the_bits_of_the_cpu(launcher, operands, form):
    left, right = planes_of(operands, form)
    assert np.array_equal(founding_cuda.multiply(launcher, left, right, form), founding.multiply(left, right, form))


@pytest.mark.parametrize(("form", "bits"), [(FORMS[0], 34), (FORMS[1], 30), (FORMS[2], 36), (founding.slices(7), 50)])
def test_products_are_as_accurate_as_their_bits(rng, form, bits):
    left, right = rng.uniform(-1, 1, (40, 96)), rng.uniform(-1, 1, (96, 30))
    exact = left.astype(np.longdouble) @ right.astype(np.longdouble)
    assert np.max(np.abs(founding.real_product(left, right, form) - exact)) <= 2.0**-bits * math.sqrt(96)


@pytest.mark.parametrize("size", [64, 256])
def test_the_34_bit_form_errs_by_a_billionth(rng, size):
    """Entries U(-1, 1), rounded at 2**-36: an error has a standard deviation of 2**-35 sqrt(2 size / 3 / 12)."""
    left, right = rng.uniform(-1, 1, (2, size, size))
    form = founding.halves()
    found = founding.multiply(founding.planes(left, form), founding.planes(right.T, form), form)
    error = np.max(np.abs(found - left.astype(np.longdouble) @ right.astype(np.longdouble)))
    deviation = 2.0**-35 * math.sqrt(size / 18)
    assert 3 * deviation < error < 6 * deviation
    assert error < 1e-9


def test_complex_products_and_far_apart_rows(rng):
    left = (rng.normal(size=(12, 20)) + 1j * rng.normal(size=(12, 20))) * 10.0 ** -np.arange(0, 240, 20)[:, None]
    right = (rng.normal(size=(20, 9)) + 1j * rng.normal(size=(20, 9))) * 10.0 ** np.arange(-40, 50, 10)[None, :]
    right[:, 2] = 0
    exact = left.astype(np.clongdouble) @ right.astype(np.clongdouble)
    found = founding.complex_product(left, right, founding.slices(7))
    scale = np.max(np.abs(left), axis=1)[:, None] * np.max(np.abs(right), axis=0)[None, :]
    assert np.max(np.abs(found - exact) / np.where(scale, scale, 1)) < 1e-13
    assert not found[:, 2].any()
