"""The real products of the founding design, on the CPU, bit for bit: halves with primes, one level of primes, slices.

In: real matrices with entries up to 1. Out: their product, and every intermediate: INT32 sums, residues, integers.
It is what the kernel `ozaki_founding` computes and what the production path is compared with; no engine runs it.

A form splits a matrix into integer parts, splits each part into int8 planes (residues, or the slices themselves), and
lists the products of planes in order. A product of two planes is an exact INT32 sum; its `Product` says how it is used.

Source: the 17-bit halves with 7 primes and 4 passes are the founding text's; slices are the Ozaki scheme I,
doi:10.1007/s11075-011-9478-1; primes the scheme II, arXiv:2504.08009.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.ozaki import moduli

RealArray: TypeAlias = NDArray[np.float64]
Planes: TypeAlias = NDArray[np.int8]

HALF_BITS = (17, 35)  # fraction bits of the high half, and of both halves; each half is at most 2**17
MAX_HALVES_DEPTH = 4096  # 2**12 products of two halves stay below half the product of 7 primes, 2**46.2
MAX_SLICES_DEPTH = 1 << 13  # a level's sum of at most 8 products of digits stays below 2**31
SLICE_BITS = 8
WEIGHT_BITS = 64  # of a CRT weight: sums wrap modulo 2**64, which centres them


@dataclass(frozen=True, slots=True)
class Product:
    """One INT8 product of two planes, and the use of its sums.

    Attributes:
        left: index of the left matrix's plane.
        right: index of the right matrix's plane.
        modulus: index of the modulus that reduces the sums; -1 if the sums are added to the accumulator as they are.
        scale: factor of the accumulated integers, which are then added to the result and cleared; 0 if they are not
            complete after this product.
    """

    left: int
    right: int
    modulus: int
    scale: float


@dataclass(frozen=True, slots=True)
class Form:
    """A way to multiply real matrices by INT8 products.

    Attributes:
        name: as in reports.
        moduli: odd and pairwise coprime; empty for slices.
        bits: fraction bits of each part, ascending; for slices one number, of all slices together.
        num_planes: planes of a matrix.
        products: all products of planes, in order.
    """

    name: str
    moduli: tuple[int, ...]
    bits: tuple[int, ...]
    num_planes: int
    products: tuple[Product, ...]

    @property
    def weights(self) -> NDArray[np.int64]:
        """The CRT weights times 2**64, rounded, modulo 2**64 and read as signed."""
        fractions = moduli.crt_fractions(self.moduli)
        return np.array([moduli.balanced(round(f * (1 << WEIGHT_BITS)), 1 << WEIGHT_BITS) for f in fractions], np.int64)

    @property
    def unit(self) -> float:
        """The factor from a wrapped sum, read as a signed integer, to the CRT's integer."""
        return float(Fraction(math.prod(self.moduli), 1 << WEIGHT_BITS))


def halves() -> Form:
    """Returns the form of 17-bit high and low halves: 7 primes up to 127, 4 passes, 28 products, about 34 bits.

    Integers are exact: wrapped sums differ from them by less than 1/2, and the integer of a pass is below 2**46.
    """
    primes = moduli.prime_moduli(7)
    count, passes = len(primes), []
    for left in range(2):
        for right in range(2):
            scale = 2.0 ** -(HALF_BITS[left] + HALF_BITS[right])
            for t in range(count):
                passes.append(Product(left * count + t, right * count + t, t, scale if t == count - 1 else 0.0))
    return Form("halves", primes, HALF_BITS, 2 * count, tuple(passes))


def one_level(depth: int, count: int = 9) -> Form:
    """Returns the form of one integer per entry and ``count`` primes up to 251.

    An entry has as many bits as sums of ``depth`` products allow.
    """
    primes = moduli.prime_moduli(count, 251)
    bits = min((math.prod(primes) // (2 * depth)).bit_length() - 1, 2 * moduli.OPERAND_BITS) // 2
    steps = [Product(t, t, t, 4.0**-bits if t == count - 1 else 0.0) for t in range(count)]
    return Form("one level", primes, (bits,), count, tuple(steps))


def slices(count: int) -> Form:
    """Returns the form of ``count`` 8-bit digits per entry.

    It multiplies digits of the ``count`` leading levels, which are ``count * (count + 1) / 2`` products.
    """
    if not 1 <= count <= 8:
        raise ValueError(f"{count} slices were asked for; 1 to 8 are built")
    bits = SLICE_BITS * count - 2  # the leading digit of an entry up to 1 is at most 2**6
    steps = []
    for level in range(count):
        scale = 2.0 ** -(2 * (SLICE_BITS - 2) + SLICE_BITS * level)
        steps += [Product(s, level - s, -1, scale if s == level else 0.0) for s in range(level + 1)]
    return Form(f"{count} slices", (), (bits,), count, tuple(steps))


def parts(matrix: RealArray, form: Form) -> NDArray[np.int64]:
    """Splits entries up to 1 into integer parts ``(parts, rows, columns)``, whose scaled sum is the rounded entry."""
    out, rest = [], np.asarray(matrix, float)
    for bits in form.bits:
        part = np.rint(np.ldexp(rest, bits))  # the last part rounds; the remainder of the others is exact
        rest = rest - np.ldexp(part, -bits)
        out.append(part.astype(np.int64))
    return np.stack(out)


def planes(matrix: RealArray, form: Form) -> Planes:
    """Returns the int8 planes ``(planes, rows, columns)`` of a matrix: balanced residues of each part, or digits."""
    integers = parts(matrix, form)
    if form.moduli:
        residues = [[(p + m // 2) % m - m // 2 for m in form.moduli] for p in integers]
        return np.array(residues, np.int8).reshape(form.num_planes, *matrix.shape)
    digits, rest = [], integers[0]
    for _ in range(form.num_planes - 1):
        digit = (rest + 128) % 256 - 128
        digits.append(digit)
        rest = (rest - digit) >> SLICE_BITS  # exact
    return np.array([rest, *digits[::-1]], np.int8)


def check_depth(form: Form, depth: int) -> None:
    """Raises ValueError if sums of ``depth`` products could wrap."""
    limit = MAX_HALVES_DEPTH if len(form.bits) == 2 else MAX_SLICES_DEPTH
    if depth > limit:
        raise ValueError(f"a product over {depth} entries by {form.name} may wrap; the limit is {limit}")


def sums(left: Planes, right: Planes, form: Form) -> Iterator[tuple[Product, NDArray[np.int32]]]:
    """Yields each product with its raw INT32 sums ``(rows, columns)``.

    Args:
        left: planes of the left matrix, ``(planes, rows, depth)``.
        right: planes of the transposed right matrix, ``(planes, columns, depth)``.
        form: lists the products.
    """
    for product in form.products:
        yield product, _native.ozaki_product(left[product.left], right[product.right]).T


def residues_of(values: NDArray[np.int32], modulus: int) -> NDArray[np.int64]:
    """Returns the balanced residues of sums."""
    return (values.astype(np.int64) + modulus // 2) % modulus - modulus // 2


def integers(wrapped: NDArray[np.int64], form: Form) -> RealArray:
    """Returns the CRT's integers of wrapped sums; they are exact below 2**46 for `halves`."""
    return np.rint(wrapped.astype(float) * form.unit)


def multiply(left: Planes, right: Planes, form: Form) -> RealArray:
    """Returns the product ``(rows, columns)`` of two matrices; their planes are as in `sums`."""
    check_depth(form, left.shape[2])
    total = np.zeros((left.shape[1], right.shape[1]))
    wrapped = np.zeros(total.shape, np.int64)
    weights = form.weights if form.moduli else None
    for product, int32_sums in sums(left, right, form):
        if weights is None:
            wrapped += int32_sums
        else:
            with np.errstate(over="ignore"):
                wrapped += residues_of(int32_sums, form.moduli[product.modulus]) * weights[product.modulus]
        if product.scale:
            exact = wrapped.astype(float) if weights is None else integers(wrapped, form)
            total += exact * product.scale
            wrapped[:] = 0
    return total


def row_exponents(matrix: RealArray) -> NDArray[np.int64]:
    """Returns for each row the least e such that all entries are at most 2**e."""
    largest = np.max(np.abs(matrix), axis=1)
    return np.where(largest > 0, np.frexp(largest)[1], 0).astype(np.int64)


def real_product(left: RealArray, right: RealArray, form: Form) -> RealArray:
    """Returns ``left @ right`` by ``form``; powers of two scale the rows of the left and the columns of the right."""
    rows, columns = row_exponents(left), row_exponents(right.T)
    left_planes = planes(np.ldexp(left, -rows[:, None]), form)
    right_planes = planes(np.ldexp(right.T, -columns[:, None]), form)
    product = multiply(left_planes, right_planes, form)
    return np.asarray(np.ldexp(product, rows[:, None] + columns[None, :]))


def complex_product(left: NDArray[np.complex128], right: NDArray[np.complex128], form: Form) -> NDArray[np.complex128]:
    """Returns ``left @ right`` as one real product of twice the size: [Re, -Im; Im, Re] times [Re; Im]."""
    embedded = np.block([[left.real, -left.imag], [left.imag, left.real]])
    product = real_product(embedded, np.concatenate([right.real, right.imag]), form)
    return np.asarray(product[: len(left)] + 1j * product[len(left) :])
