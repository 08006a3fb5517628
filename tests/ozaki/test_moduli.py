"""The exact side of emulated FP64, by brute force and rational arithmetic: no bound is ever below the true error."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.crt import complex_residues, reconstruct, reconstruct_complex

from qsim_ozaki.ozaki import moduli

COUNTS = range(1, moduli.MAX_MODULI + 1)


def test_the_sets_are_what_their_names_say():
    assert moduli.prime_moduli(7) == (127, 113, 109, 107, 103, 101, 97)
    chosen = moduli.complex_moduli(moduli.MAX_MODULI)
    assert chosen[:6] == (241, 233, 229, 221, 205, 197)
    for values in (chosen, moduli.prime_moduli(20)):
        assert all(math.gcd(a, b) == 1 for i, a in enumerate(values) for b in values[:i])
        assert list(values) == sorted(values, reverse=True)
    for modulus in chosen:
        assert modulus // 2 <= 127  # balanced residues fit int8
        assert pow(moduli.root_of_minus_one(modulus), 2, modulus) == modulus - 1
        assert all(p % 4 == 1 for p in moduli.prime_factors(modulus))
        assert math.prod(moduli.prime_factors(modulus)) == modulus


def test_a_modulus_without_a_root_is_refused():
    with pytest.raises(ValueError, match="-1 has no square root modulo 7"):
        moduli.root_of_minus_one(7)
    with pytest.raises(ValueError, match="40 moduli were asked for"):
        moduli.complex_moduli(40)


@pytest.mark.parametrize("values", [(5, 4, 3), (9, 8, 7), moduli.complex_moduli(2)])
def test_every_integer_comes_back(values):
    product = math.prod(values)
    low = -(product // 2)
    for x in range(low, low + product):
        assert reconstruct([moduli.balanced(x, m) for m in values], values) == x


def test_every_complex_integer_comes_back():
    values = (17, 13)
    for re in range(-110, 111, 3):
        for im in range(-110, 111):
            pairs = [complex_residues(re, im, m) for m in values]
            assert reconstruct_complex(pairs, values) == (re, im)


@given(st.lists(st.integers(-(2**50), 2**50), min_size=4, max_size=4))
def test_pairs_multiply_entry_by_entry(parts):
    a, b, c, d = parts
    values = moduli.complex_moduli(15)
    pairs = []
    for m in values:
        (p, q), (r, s) = complex_residues(a, b, m), complex_residues(c, d, m)
        pairs.append((moduli.balanced(p * r, m), moduli.balanced(q * s, m)))
    assert reconstruct_complex(pairs, values) == (a * c - b * d, a * d + b * c)


@pytest.mark.parametrize("count", COUNTS)
def test_split_weights_keep_sums_exact(count):
    values = moduli.complex_moduli(count)
    for weights in zip(*moduli.complex_crt_fractions(values), strict=True):
        highs = []
        for weight in weights:
            high, low = moduli.split_weight(weight)
            highs.append(Fraction(high))
            assert abs(weight) <= Fraction(1, 2)
            assert Fraction(high) * (1 << moduli.WEIGHT_BITS) == int(Fraction(high) * (1 << moduli.WEIGHT_BITS))
            assert abs(Fraction(high) + Fraction(low) - weight) <= Fraction(1, 1 << (moduli.WEIGHT_BITS + 53))
        # integers below 2**11 and their bias of at most 1536, as the GPU sums them
        assert sum(2048 * abs(h) for h in highs) + 1536 * abs(sum(highs)) < 1 << (53 - moduli.WEIGHT_BITS)
    # what the low words add stays inside the margin between a result and half the product
    assert 2048 * count * Fraction(1, 1 << (moduli.WEIGHT_BITS + 1)) < moduli.FRACTION_MARGIN


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("num_targets", [0, 1, 3, 8, 13])
def test_operands_of_the_promised_bits_never_wrap(count, num_targets):
    a, b = moduli.operand_bits(count, num_targets)
    if (a, b) == (0, 0):
        return
    assert a <= b <= a + 1
    # the worst case: rows and columns of the largest norm, aligned, every entry rounded up by a half
    half_norm = math.sqrt(2 << num_targets) / 2
    worst = (1.0009765 * 2.0**a + half_norm) * (1.0009765 * 2.0**b + half_norm)
    assert worst < math.prod(moduli.complex_moduli(count)) / 2
    if b < moduli.OPERAND_BITS:
        assert 4 * worst > math.prod(moduli.complex_moduli(count)) / 2 * 0.99


def exact_error(rng, num_targets, bits, worst):
    """|computed - exact| / norm of the column, in rationals, of one row times one column quantised to ``bits``."""
    size = 2 << num_targets  # real components
    row, column = rng.normal(size=size), rng.normal(size=size) * 10.0 ** -rng.uniform(0, 8, size)
    row /= np.linalg.norm(row)
    if worst:  # halves that all round away from the exact value
        row = (np.floor(row * 2.0 ** bits[0]) + 0.5 - 2.0**-10) / 2.0 ** bits[0]
        column = np.where(row < 0, -1, 1) * np.abs(column)
    exponent = math.frexp(float(np.linalg.norm(column)))[1]
    u = [Fraction(float(v)) for v in row]
    x = [Fraction(float(v)) for v in column]
    du = [Fraction(round(v * 2 ** bits[0]), 2 ** bits[0]) for v in u]
    scale = Fraction(2) ** (bits[1] - exponent)
    dx = [Fraction(round(v * scale)) / scale for v in x]
    error = abs(sum(p * q for p, q in zip(du, dx, strict=True)) - sum(p * q for p, q in zip(u, x, strict=True)))
    return float(error) / float(np.linalg.norm(column))


@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("count", [5, 7, 9, 12])
@pytest.mark.parametrize("num_targets", [0, 3, 6])
def test_the_bound_is_never_below_the_true_error(rng, count, num_targets, worst):
    bits, bound = moduli.operand_bits(count, num_targets), float(moduli.error_bound(count, num_targets))
    errors = [exact_error(rng, num_targets, bits, worst) for _ in range(40)]
    assert max(errors) <= bound, (count, num_targets, max(errors) / bound)
    assert max(errors) > bound * 1e-3  # not so loose that it says nothing


def test_accuracy_picks_the_fewest_moduli():
    for num_targets in range(moduli.MAX_TARGETS + 1):
        assert moduli.num_moduli_for(None, num_targets) == (15 if num_targets < 7 else 16 if num_targets < 13 else 17)
        assert moduli.error_bound(moduli.num_moduli_for(None, num_targets), num_targets) <= 8.5 * 2.0**-53
        for accuracy in (1e-4, 1e-6, 1e-9, 1e-12, 1e-14):
            count = moduli.num_moduli_for(accuracy, num_targets)
            assert moduli.error_bound(count, num_targets) <= accuracy
            less_accurate = moduli.error_bound(count - 1, num_targets) > accuracy
            assert less_accurate or not moduli.is_sound(count - 1, num_targets)
    assert moduli.num_moduli_for(1e-17, 8) is None
    assert moduli.num_moduli_for(None, moduli.MAX_TARGETS + 1) is None
    assert [moduli.num_moduli_for(None, k, "single") for k in (3, 8, 10)] == [7, 7, 8]


@pytest.mark.parametrize("count", range(2, moduli.MAX_MODULI + 1))
def test_one_wrong_residue_changes_a_result_by_no_less_than_said(rng, count):
    values = moduli.complex_moduli(count)
    a, b = moduli.operand_bits(count, 3)
    for _ in range(20):
        re, im = (int(v * 2 ** (a + b)) for v in rng.uniform(-0.7, 0.7, 2))
        pairs = [list(complex_residues(re, im, m)) for m in values]
        which, side = rng.integers(count), rng.integers(2)
        pairs[which][side] += int(rng.integers(1, values[which]))
        wrong = reconstruct_complex(pairs, values)
        change = max(abs(wrong[0] - re), abs(wrong[1] - im))
        assert Fraction(change, 2 ** (a + b)) >= moduli.least_fault(count, 3)
