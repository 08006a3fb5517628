"""Emulated FP64: the constants with which an engine multiplies by one matrix in INT8 and checks every column.

In: a matrix and a number of moduli. Out: arrays of constants, scales, check row and tolerance. It may not hold a state
or choose the number of moduli.

The scheme: scale -> residues -> INT8 products -> CRT -> unscale. An engine writes a column of the result only if the
sum of its entries with random weights agrees with the same combination of the matrix's rows, which it computes in FP64
from the input. A wrap shifts entries by multiples of one number, and a wrong residue shifts them by multiples of a part
of that number. With random real weights such shifts do not cancel; with random signs they could.

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

WEIGHT_SEED = 20  # any seed serves; a fixed one gives the same weights in every run


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """The constants of one number of moduli for matrices of one size.

    Attributes:
        matrix_bits: a; the scaled matrix times 2**a is rounded to integers.
        column_bits: b; a scaled column times 2**b is rounded to integers.
        moduli: float64 ``(num_moduli, 7)``, one row per modulus m: m, 1/m, the root of -1, then the CRT weights, over
            the product of the moduli, of the real part (high, low) and of the imaginary part (high, low).
        product: the product of the moduli times 2**-(a + b), as a sum of two float64.
        tolerance: the largest residual of a column's check, over its scale, that rounding can cause.
    """

    matrix_bits: int
    column_bits: int
    moduli: NDArray[np.float64]
    product: tuple[float, float]
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One matrix with all constants that an engine needs.

    Attributes:
        scheme: the constants of its number of moduli and its size.
        matrix: complex128 ``(2**k, 2**k)``.
        exponent: the rows of the matrix times 2**-exponent have a norm of at most 1.
        weights: float64 ``(2**k,)``, of magnitude 1/2 to 1.
        check_row: complex128 ``(2**k,)``, the weights times the scaled matrix.
    """

    scheme: Scheme
    matrix: ComplexArray
    exponent: int
    weights: NDArray[np.float64]
    check_row: ComplexArray


@cache
def scheme(num_moduli: int, num_targets: int) -> Scheme:
    """Returns the constants for ``num_moduli`` moduli and matrices on ``num_targets`` qubits."""
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
    """Returns ``matrix``, unitary or not, with all constants that an engine needs to apply it.

    Args:
        matrix: ``(2**k, 2**k)``, finite.
        num_moduli: from 1 to `moduli.MAX_MODULI`.
    """
    size = len(matrix)
    matrix = np.ascontiguousarray(matrix, complex)
    exponent = row_exponent(matrix)
    generator = np.random.default_rng(WEIGHT_SEED)
    weights = generator.uniform(0.5, 1, size) * generator.choice([-1.0, 1.0], size)
    scaled = np.ldexp(matrix.real, -exponent) + 1j * np.ldexp(matrix.imag, -exponent)
    return Block(scheme(num_moduli, size.bit_length() - 1), matrix, exponent, weights, weights @ scaled)


def row_exponent(matrix: ComplexArray) -> int:
    """Returns the least e for which every row's 2-norm is at most (1 + 2**-11) 2**e: half of `moduli.NORM_SLACK`."""
    largest = float(np.max(np.abs(matrix), initial=0))
    if largest == 0:
        return 0
    unit = math.frexp(largest)[1]  # squares of entries times 2**-unit neither overflow nor vanish
    scaled = np.ldexp(matrix.real, -unit) ** 2 + np.ldexp(matrix.imag, -unit) ** 2
    mantissa, exponent = math.frexp(math.sqrt(float(np.max(np.sum(scaled, axis=1)))))
    return unit + exponent - (mantissa <= 0.5 * (1 + 2.0**-11))
