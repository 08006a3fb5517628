"""The exact side of emulated FP64: moduli, CRT weights, and the number of moduli that an accuracy needs.

In: counts, bits, an accuracy. Out: Python integers and rational numbers. It may not use arrays or know a device.

If -1 has a square root i modulo m, a complex product modulo m takes only two real products: z = re + i im is mapped to
the pair (re + i im, re - i im) mod m, and pairs multiply entry by entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

MAX_MODULI = 17  # more than both operands with OPERAND_BITS bits need
MAX_TARGETS = 13  # sums of 2**13 products of two residues stay below 2**27 in an INT32 accumulator
# Parity with a precision asks for two things. Operands are rounded to a quarter of the precision's last bit, so that
# the error is that of the precision's own sums.
PARITY_BITS = {"double": 55, "single": 26}
# And the proved bound is at most this many of the precision's last bits. Entries that all round in the same direction
# add up to the bound, while native sums of the same products err by 2 to 4 (columns that are rows of a Hadamard matrix
# of up to 2^12 rows).
PARITY_UNITS = Fraction(17, 2)
OPERAND_BITS = 60  # largest number of bits of a scaled operand, which is rounded to a 64-bit integer
NORM_SLACK = Fraction(1025, 1024)  # a scaled row or column may have this norm, so that rounding cannot move its scale
FRACTION_MARGIN = Fraction(1, 1 << 20)  # room between a result and half the product: the low words' share of a sum
# Bits of a weight's high word: the sum of MAX_MODULI high words, at most 1/2 each, times integers below 2**11 is exact.
WEIGHT_BITS = 38
FP64_UNIT = Fraction(1, 1 << 53)
PARITY_BOUNDS = {"double": PARITY_UNITS * FP64_UNIT, "single": PARITY_UNITS * Fraction(1, 1 << 24)}


@cache
def prime_moduli(count: int, largest: int = 127) -> tuple[int, ...]:
    """Returns the ``count`` largest odd primes up to ``largest``."""
    return _greedy(count, [m for m in range(largest, 2, -1) if prime_factors(m) == (m,)])


@cache
def complex_moduli(count: int) -> tuple[int, ...]:
    """Returns ``count`` pairwise coprime integers below 256, the largest first, modulo which -1 has a square root.

    All their prime factors are 1 modulo 4; a greedy search takes an integer if it is coprime to those before it.
    """
    return _greedy(count, [m for m in range(255, 2, -1) if all(p % 4 == 1 for p in prime_factors(m))])


def _greedy(count: int, candidates: Sequence[int]) -> tuple[int, ...]:
    """Returns the first ``count`` of ``candidates`` that are coprime to all chosen before them."""
    moduli: list[int] = []
    for candidate in candidates:
        if len(moduli) < count and all(math.gcd(candidate, m) == 1 for m in moduli):
            moduli.append(candidate)
    if len(moduli) < count:
        raise ValueError(f"{count} moduli were asked for; there are {len(moduli)}")
    return tuple(moduli)


def prime_factors(value: int) -> tuple[int, ...]:
    """Returns the prime factors of ``value`` in ascending order, with their multiplicity."""
    factors, divisor = [], 2
    while value > 1:
        while value % divisor == 0:
            factors.append(divisor)
            value //= divisor
        divisor += 1
    return tuple(factors)


def root_of_minus_one(modulus: int) -> int:
    """Returns the least positive i with i**2 = -1 modulo ``modulus``.

    Raises:
        ValueError: there is no such i.
    """
    for root in range(1, modulus):
        if (root * root + 1) % modulus == 0:
            return root
    raise ValueError(f"-1 has no square root modulo {modulus}")


def balanced(value: int, modulus: int) -> int:
    """Returns the representative of ``value`` modulo m in [-m/2, m/2): for odd m, from -(m-1)/2 to (m-1)/2."""
    return (value + modulus // 2) % modulus - modulus // 2


def crt_fractions(moduli: Sequence[int]) -> tuple[Fraction, ...]:
    """Returns f_t with x / M = sum_t r_t f_t modulo 1, for x = r_t modulo m_t; M is the product of the moduli."""
    product = math.prod(moduli)
    return tuple(Fraction(balanced(pow(product // m, -1, m), m), m) for m in moduli)


def complex_crt_fractions(moduli: Sequence[int]) -> tuple[tuple[Fraction, Fraction], ...]:
    """Returns the CRT weights (f_t, g_t) of the real and the imaginary part, for pairs of residues (p_t, q_t).

    re / M = sum_t (p_t + q_t) f_t and im / M = sum_t (p_t - q_t) g_t, both modulo 1.
    """
    out = []
    for f, m in zip(crt_fractions(moduli), moduli, strict=True):
        inverse = f.numerator * (m // f.denominator)
        half = pow(2, -1, m)
        root = pow(2 * root_of_minus_one(m), -1, m)
        out.append((Fraction(balanced(inverse * half, m), m), Fraction(balanced(inverse * root, m), m)))
    return tuple(out)


def split_weight(weight: Fraction) -> tuple[float, float]:
    """Returns ``weight`` as a multiple of 2**-WEIGHT_BITS, whose sums over residues are exact, plus a rest.

    The rest is rounded once.
    """
    high = Fraction(round(weight * (1 << WEIGHT_BITS)), 1 << WEIGHT_BITS)
    return float(high), float(weight - high)


def _rounding_norm(num_targets: int) -> Fraction:
    """Returns an upper bound of the 2-norm of the rounding error of a row or column with K = 2**num_targets entries.

    Rounding to integers changes each of the 2 K real numbers by at most 1/2: the norm is at most sqrt(2 K) / 2.
    """
    return Fraction(math.isqrt((2 << num_targets) << 100) + 1, 1 << 51)


@cache
def operand_bits(num_moduli: int, num_targets: int) -> tuple[int, int]:
    """Returns the bits (a, b) below the norm to which rows of the matrix and columns of the state are rounded.

    They are the largest a + b with a <= b <= a + 1 for which no result wraps. By Cauchy-Schwarz, a result is at most
    the product of the norms of its row and its column for any K, and it must stay below half the product of the moduli.

    Source: the bound of arXiv:2504.08009, section 4, with 2-norms.
    """
    if not 1 <= num_moduli <= MAX_MODULI or not 0 <= num_targets <= MAX_TARGETS:
        raise ValueError(f"{num_moduli} moduli for {num_targets} targets are out of range")
    limit = math.prod(complex_moduli(num_moduli)) * (Fraction(1, 2) - FRACTION_MARGIN)
    rounding = _rounding_norm(num_targets)
    best = (0, 0)
    for total in range(2 * OPERAND_BITS + 1):
        a, b = total // 2, (total + 1) // 2
        if (NORM_SLACK * (1 << a) + rounding) * (NORM_SLACK * (1 << b) + rounding) < limit:
            best = (a, b)
    return best


@cache
def error_bound(num_moduli: int, num_targets: int) -> Fraction:
    """Returns an upper bound of |computed - exact| of an entry of the product over its column's norm.

    The rows have norms of at most 1. The bound covers the rounding of both operands, the last rounding and the low
    words of the reconstruction. The scale of a column is a power of two, at most twice its norm.
    """
    a, b = operand_bits(num_moduli, num_targets)
    rounding = _rounding_norm(num_targets)
    matrix_error, column_error = rounding / (1 << a), 2 * rounding / (1 << b)
    product_error = NORM_SLACK * (matrix_error + column_error) + matrix_error * column_error
    return product_error * (1 + 4 * FP64_UNIT) + 4 * FP64_UNIT


def check_tolerance(num_moduli: int, num_targets: int) -> Fraction:
    """Returns an upper bound of the residual of a column's check, if all entries err within their bound.

    The check is a weighted sum of the column's entries with weights of at most 1. In the worst case all K entries err
    by the bound in the same direction; two sums of K products in FP64 add their own rounding.
    """
    size = 1 << num_targets
    return size * error_bound(num_moduli, num_targets) + 8 * size * 2 * _rounding_norm(num_targets) * FP64_UNIT


def least_fault(num_moduli: int, num_targets: int) -> Fraction:
    """Returns a lower bound of the change that one wrong residue makes in an entry, over the column's scale.

    The change is M / m_t units of 2**-(a + b), for the product M of the moduli.
    """
    moduli = complex_moduli(num_moduli)
    return Fraction(math.prod(moduli), max(moduli) << sum(operand_bits(num_moduli, num_targets)))


def is_sound(num_moduli: int, num_targets: int) -> bool:
    """Returns whether the check tells a wrong residue from rounding: half a least fault is at least four tolerances."""
    return 8 * check_tolerance(num_moduli, num_targets) <= least_fault(num_moduli, num_targets)


@cache
def num_moduli_for(accuracy: float | None, num_targets: int, precision: str = "double") -> int | None:
    """Returns the smallest number of moduli whose proved bound meets ``accuracy``, or None if no number does.

    Args:
        accuracy: error bound of an entry over its column's norm; None asks for parity with ``precision``.
        num_targets: number of qubits of the matrix.
        precision: ``"double"`` or ``"single"``.
    """
    if num_targets > MAX_TARGETS:
        return None
    for count in range(1, MAX_MODULI + 1):
        if accuracy is None:
            meets = min(operand_bits(count, num_targets)) >= PARITY_BITS[precision]
            meets = meets and error_bound(count, num_targets) <= PARITY_BOUNDS[precision]
        else:
            meets = error_bound(count, num_targets) <= Fraction(accuracy)
        if meets and is_sound(count, num_targets):
            return count
    return None
