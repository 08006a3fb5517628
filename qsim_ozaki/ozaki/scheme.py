"""Emulated FP64: what an engine needs to multiply one matrix by INT8 products, and the check of every column.

In: a matrix and a number of moduli. Out: arrays of constants, scales, check row and tolerance. It holds no state and
never chooses the number of moduli.

The scheme: scale -> residues -> INT8 products -> CRT -> unscale. A column of the result is written only if the sum of
its entries with random weights agrees with the same combination of the matrix's rows, taken in FP64 from the input.
A wrap shifts entries by multiples of one number, and a wrong residue by multiples of a part of it: with weights that
are random reals such shifts do not cancel, as they may with signs.

Source: arXiv:2504.08009 (Ozaki scheme II).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ozaki import moduli

ComplexArray: TypeAlias = NDArray[np.complex128]

WEIGHT_SEED = 20  # any: the weights are random, and the same in every run


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """The constants of a number of moduli for matrices of one size.

    Attributes:
        matrix_bits: a; the scaled matrix times 2**a is rounded to integers.
        column_bits: b; the same for a scaled column.
        moduli: float64 ``(num_moduli, 7)``: m, 1/m, root of -1, then over the product of the moduli the CRT weights of
            the real part (high, low) and of the imaginary part (high, low).
        product: the product of the moduli times 2**-(a + b), as a sum of two float64.
        tolerance: largest residual of a column's check, over its scale, that rounding explains.
    """

    matrix_bits: int
    column_bits: int
    moduli: NDArray[np.float64]
    product: tuple[float, float]
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One matrix, ready for an engine.

    Attributes:
        scheme: its constants.
        matrix: complex128 ``(2**k, 2**k)``.
        exponent: the matrix times 2**-exponent has rows of norm 1 at most.
        weights: float64 ``(2**k,)``, of magnitude 1/2 to 1.
        check_row: complex128 ``(2**k,)``, weights times the scaled matrix.
    """

    scheme: Scheme
    matrix: ComplexArray
    exponent: int
    weights: NDArray[np.float64]
    check_row: ComplexArray


@cache
def scheme(num_moduli: int, num_targets: int) -> Scheme:
    """The constants for ``num_moduli`` moduli and matrices on ``num_targets`` qubits."""
    values = moduli.complex_moduli(num_moduli)
    a, b = moduli.operand_bits(num_moduli, num_targets)
    rows = np.empty((num_moduli, 7))
    for row, m, (real, imaginary) in zip(rows, values, moduli.complex_crt_fractions(values), strict=True):
        row[:3] = m, 1 / m, moduli.root_of_minus_one(m)
        row[3:] = *moduli.split_weight(real), *moduli.split_weight(imaginary)
    rows.setflags(write=False)
    product = Fraction(math.prod(values), 1 << (a + b))
    high = float(product)
    low = float(product - Fraction(high))
    return Scheme(a, b, rows, (high, low), float(moduli.check_tolerance(num_moduli, num_targets)))


def block(matrix: ComplexArray, num_moduli: int) -> Block:
    """What an engine needs to apply ``matrix``, unitary or not.

    Args:
        matrix: ``(2**k, 2**k)``, finite.
        num_moduli: at least 1, at most `moduli.MAX_MODULI`.
    """
    size = len(matrix)
    matrix = np.ascontiguousarray(matrix, complex)
    exponent = row_exponent(matrix)
    generator = np.random.default_rng(WEIGHT_SEED)
    weights = generator.uniform(0.5, 1, size) * generator.choice([-1.0, 1.0], size)
    scaled = np.ldexp(matrix.real, -exponent) + 1j * np.ldexp(matrix.imag, -exponent)
    return Block(scheme(num_moduli, size.bit_length() - 1), matrix, exponent, weights, weights @ scaled)


def row_exponent(matrix: ComplexArray) -> int:
    """The least e with every row's 2-norm at most 2**e times half of the scheme's slack."""
    largest = float(np.max(np.abs(matrix), initial=0))
    if largest == 0:
        return 0
    unit = math.frexp(largest)[1]  # squares of entries scaled by it neither overflow nor vanish
    scaled = np.ldexp(matrix.real, -unit) ** 2 + np.ldexp(matrix.imag, -unit) ** 2
    mantissa, exponent = math.frexp(math.sqrt(float(np.max(np.sum(scaled, axis=1)))))
    return unit + exponent - (mantissa <= 0.5 * (1 + 2.0**-11))
