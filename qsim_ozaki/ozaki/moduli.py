"""The exact side of emulated FP64: moduli, CRT weights, and how many moduli an accuracy needs.

In: counts, bits, an accuracy. Out: Python integers and rational numbers. It knows neither arrays nor devices.

A complex product modulo m takes two real products where -1 has a root i modulo m: z = re + i im goes to the pair
(re + i im, re - i im) mod m, and pairs multiply entry by entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

MAX_MODULI = 17  # more than OPERAND_BITS of both operands need
MAX_TARGETS = 13  # sums of 2**13 products of two residues stay below 2**27 in an INT32 accumulator
# operands rounded to a quarter of the precision's last bit: then the error is that of its own sums,
PARITY_BITS = {"double": 55, "single": 26}
# and a proved bound of this many of its last bits: entries that all round the same way add up to the bound, while
# native sums of the same products err by 2 to 4 (columns that are rows of a Hadamard matrix of up to 2^12 rows)
PARITY_UNITS = Fraction(17, 2)
OPERAND_BITS = 60  # of a scaled operand: it is rounded to a 64-bit integer
NORM_SLACK = Fraction(1025, 1024)  # a scaled row or column may have this norm, so that rounding cannot move its scale
FRACTION_MARGIN = Fraction(1, 1 << 20)  # room between a result and half the product: the low words' share of a sum
WEIGHT_BITS = 38  # of a weight's high word: MAX_MODULI integers below 2**11 times it, all at most 1/2, sum up exactly
FP64_UNIT = Fraction(1, 1 << 53)
PARITY_BOUNDS = {"double": PARITY_UNITS * FP64_UNIT, "single": PARITY_UNITS * Fraction(1, 1 << 24)}


@cache
def prime_moduli(count: int, largest: int = 127) -> tuple[int, ...]:
    """The ``count`` largest odd primes up to ``largest``."""
    return _greedy(count, [m for m in range(largest, 2, -1) if prime_factors(m) == (m,)])


@cache
def complex_moduli(count: int) -> tuple[int, ...]:
    """The greedy pairwise coprime integers below 256 all of whose prime factors are 1 modulo 4: -1 has a root."""
    return _greedy(count, [m for m in range(255, 2, -1) if all(p % 4 == 1 for p in prime_factors(m))])


def _greedy(count: int, candidates: Sequence[int]) -> tuple[int, ...]:
    """The first ``count`` of ``candidates`` that are coprime to those before them."""
    moduli: list[int] = []
    for candidate in candidates:
        if len(moduli) < count and all(math.gcd(candidate, m) == 1 for m in moduli):
            moduli.append(candidate)
    if len(moduli) < count:
        raise ValueError(f"{count} moduli were asked for; there are {len(moduli)}")
    return tuple(moduli)


def prime_factors(value: int) -> tuple[int, ...]:
    """The prime factors of ``value``, ascending, each as often as it divides."""
    factors, divisor = [], 2
    while value > 1:
        while value % divisor == 0:
            factors.append(divisor)
            value //= divisor
        divisor += 1
    return tuple(factors)


def root_of_minus_one(modulus: int) -> int:
    """The least i with i**2 = -1 modulo ``modulus``.

    Raises:
        ValueError: there is none.
    """
    for root in range(1, modulus):
        if (root * root + 1) % modulus == 0:
            return root
    raise ValueError(f"-1 has no square root modulo {modulus}")


def balanced(value: int, modulus: int) -> int:
    """The representative of ``value`` in [-m/2, m/2): for odd m, -(m-1)/2 to (m-1)/2."""
    return (value + modulus // 2) % modulus - modulus // 2


def crt_fractions(moduli: Sequence[int]) -> tuple[Fraction, ...]:
    """f_t with x / M = sum_t r_t f_t modulo 1, for x = r_t modulo m_t; M is the product of the moduli."""
    product = math.prod(moduli)
    return tuple(Fraction(balanced(pow(product // m, -1, m), m), m) for m in moduli)


def complex_crt_fractions(moduli: Sequence[int]) -> tuple[tuple[Fraction, Fraction], ...]:
    """(f_t, g_t) with re / M = sum (p_t + q_t) f_t and im / M = sum (p_t - q_t) g_t modulo 1, for pairs (p_t, q_t)."""
    out = []
    for f, m in zip(crt_fractions(moduli), moduli, strict=True):
        inverse = f.numerator * (m // f.denominator)
        half = pow(2, -1, m)
        root = pow(2 * root_of_minus_one(m), -1, m)
        out.append((Fraction(balanced(inverse * half, m), m), Fraction(balanced(inverse * root, m), m)))
    return tuple(out)


def split_weight(weight: Fraction) -> tuple[float, float]:
    """``weight`` as a multiple of 2**-WEIGHT_BITS, so that sums over residues are exact, and the rest, rounded once."""
    high = Fraction(round(weight * (1 << WEIGHT_BITS)), 1 << WEIGHT_BITS)
    return float(high), float(weight - high)


def _rounding_norm(num_targets: int) -> Fraction:
    """At least sqrt(2 K) / 2, K = 2**num_targets: the norm of what rounding to integers changes in a row or column."""
    return Fraction(math.isqrt((2 << num_targets) << 100) + 1, 1 << 51)


@cache
def operand_bits(num_moduli: int, num_targets: int) -> tuple[int, int]:
    """Bits (a, b) below the norm to which rows of the matrix and columns of the state are rounded.

    The largest a + b, a <= b <= a + 1, for which no result wraps: by Cauchy-Schwarz a result is at most the product of
    its row's and its column's norm, whatever K, and that must stay below half the product of the moduli.

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
    """At least |computed - exact| of any entry of the product over its column's norm, for row norms up to 1.

    Rounding both operands, the last rounding and the low words of the reconstruction; a column's scale is a power of
    two, up to twice its norm.
    """
    a, b = operand_bits(num_moduli, num_targets)
    rounding = _rounding_norm(num_targets)
    of_matrix, of_column = rounding / (1 << a), 2 * rounding / (1 << b)
    operands = NORM_SLACK * (of_matrix + of_column) + of_matrix * of_column
    return operands * (1 + 4 * FP64_UNIT) + 4 * FP64_UNIT


def check_tolerance(num_moduli: int, num_targets: int) -> Fraction:
    """At least the residual of a column's check (a weighted sum of its entries) that errors within bounds leave.

    Weights are at most 1: all K entries off by the bound in the same direction, and two sums of K products in FP64.
    """
    size = 1 << num_targets
    return size * error_bound(num_moduli, num_targets) + 8 * size * 2 * _rounding_norm(num_targets) * FP64_UNIT


def least_fault(num_moduli: int, num_targets: int) -> Fraction:
    """At most what one wrong residue changes in an entry, over the column's scale: M / m_t units of 2**-(a + b)."""
    moduli = complex_moduli(num_moduli)
    return Fraction(math.prod(moduli), max(moduli) << sum(operand_bits(num_moduli, num_targets)))


def is_sound(num_moduli: int, num_targets: int) -> bool:
    """Whether the check tells a wrong residue from rounding: half the least fault is at least four tolerances."""
    return 8 * check_tolerance(num_moduli, num_targets) <= least_fault(num_moduli, num_targets)


@cache
def num_moduli_for(accuracy: float | None, num_targets: int, precision: str = "double") -> int | None:
    """The fewest moduli whose proved bound meets ``accuracy`` (None: parity with ``precision``); None if none does."""
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
