"""Builds records and tables of the emulated block's kernels: constants of a modulus, positions in a tile, columns.

In: an `ozaki.Block`, qubits. Out: arrays as ``ozaki/ozaki.cuh`` reads them. It may not use a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.records import opaque, sums
from qsim_ozaki.ozaki import Block, balanced

ROW_BITS, COLUMN_BITS = 7, 4  # log2 of a tile's rows and columns: kDepth and kGatherColumns of ozaki/ozaki.cuh
PRODUCT_COLUMNS = 256  # kTileColumns

# The largest integer that the kernels reduce as a float: a sum of 16 bytes times residues, and a bias.
LARGEST_REDUCED = 16 * 255 * 120 + 240
SHORT_DEPTH = 256  # number of products whose sum is reduced as one float
FLOAT_ROUND = 3 << 22  # floats from 2**23 to 2**24 are integers
SUM_BIAS, DIFFERENCE_BIAS = 1536, 1280  # the biases that ozaki/crt.cuh adds to sums and differences of residues

MODULUS = np.dtype(
    [
        ("negative", "i4"),
        ("inverse", "f4"),
        ("shift", "f4"),
        ("words", "i4", (2, 4)),
        ("bias", "i4", 2),
        ("sum_words", "i4"),
        ("sum_bias", "i4"),
        ("short_bias", "i4"),
        ("short_inverse", "f4"),
        ("short_shift", "f4"),
        ("unused", "i4", 2),
        ("weights", "f8", 4),
    ],
    align=True,
)
SCHEME = np.dtype(
    [
        ("moduli", MODULUS, 17),
        ("offset", "f8", 4),
        ("product", "f8", 2),
        ("tolerance", "f8"),
        ("num_moduli", "i4"),
        ("matrix_bits", "i4"),
        ("column_bits", "i4"),
        ("matrix_exponent", "i4"),
    ],
    align=True,
)
COLUMNS = np.dtype(
    [
        ("base", "u8"),
        ("first", "u8"),
        ("num_columns", "u8"),
        ("row_stride", "u4"),
        ("plane_bytes", "u4"),
        ("depth_blocks", "i4"),
    ],
    align=True,
)
PRODUCT = np.dtype([("num_tiles", "u8"), ("row_bits", "i4"), ("column_bits", "i4"), ("depth_blocks", "i4")], align=True)


def byte_words(factor: int, modulus: int, count: int) -> NDArray[np.int32]:
    """Returns the residues of ``factor`` times 256**j for j below ``count``, as the bytes of int32 words."""
    residues = [balanced(factor * 256**j, modulus) for j in range(count)]
    return np.array(residues, np.int8).view(np.int32)


def float_quotient(modulus: int) -> int:
    """Returns the least multiple Q of 256 such that Q m + v >= 2**23 for every v that the kernels reduce modulo m."""
    least = 2**23 + LARGEST_REDUCED
    return -(-least // (256 * modulus)) * 256


@cache
def short_constants(modulus: int) -> tuple[int, float]:
    """Returns the constants that reduce sums s of `SHORT_DEPTH` products modulo m: (B, r).

    B is a multiple of 256, and r is a float near 1 / m. B + s is from 2**23 to 2**24. With Q the integer nearest to
    B / m, (B + s) r is Q + s / m with the least possible error: B - Q m is -1, 0 or 1, whichever compensates the error
    of r best.
    """
    largest = SHORT_DEPTH * (modulus // 2) ** 2
    least, most = 2**23 + largest, 2**24 - 1 - largest
    nearest = np.float32(1 / modulus)
    choices = []
    for inverse in (nearest, np.nextafter(nearest, np.float32(0)), np.nextafter(nearest, np.float32(1))):
        error = Fraction(float(inverse)) * modulus - 1
        for rest in (-1, 0, 1):
            aim = min(max(round(-rest / error) if error and rest else least, least), most)
            first = -rest * pow(modulus, -1, 256) % 256  # the first quotient with which B is a multiple of 256
            for step in (-1, 0, 1):
                bias = (first + (aim // (256 * modulus) + step) * 256) * modulus + rest
                if least <= bias <= most:
                    off = max(abs(rest + (bias + s) * error) for s in (-largest, largest))
                    choices.append((off, bias, float(inverse)))
    return min(choices)[1:]


def fill_modulus(row: Any, m: int, root: int) -> None:
    """Writes the constants of an odd modulus into a `Modulus` of ``ozaki/ozaki.cuh``.

    Args:
        row: the record.
        m: the modulus.
        root: a square root of -1 modulo m, or 0 for real numbers.
    """
    quotient = float_quotient(m)
    bits = 0x4B000000 + quotient * m - 2**23  # of the float quotient * m
    row["negative"], row["inverse"], row["shift"] = -m, np.float32(1 / m), FLOAT_ROUND - quotient
    for side, factor in enumerate((root, -root)):
        row["words"][side] = *byte_words(1, m, 8), *byte_words(factor, m, 8)
        row["bias"][side] = balanced(-(2**63), m) + balanced(-(2**63) * factor, m) + bits
    short, inverse = short_constants(m)
    row["short_bias"], row["short_inverse"] = 0x4B000000 + short - 2**23, inverse
    row["short_shift"] = FLOAT_ROUND - round(short / m)
    row["sum_words"], row["sum_bias"] = byte_words(1, m, 4)[0], balanced(-(2**31), m) + bits


def scheme_record(block: Block) -> NDArray[Any]:
    """Returns the `Scheme` of ``ozaki/ozaki.cuh`` for ``block``."""
    record = np.zeros(1, SCHEME)
    scheme = block.scheme
    for row, constants in zip(record["moduli"][0], scheme.moduli, strict=False):
        fill_modulus(row, int(constants[0]), int(constants[2]))
        row["weights"] = constants[3:]
    biases = np.array([SUM_BIAS, SUM_BIAS, DIFFERENCE_BIAS, DIFFERENCE_BIAS])
    record["offset"] = -biases * np.sum(scheme.moduli[:, 3:], axis=0)  # exact for the high words
    record["product"], record["tolerance"] = scheme.product, scheme.tolerance**2
    record["num_moduli"], record["matrix_exponent"] = len(scheme.moduli), block.exponent
    record["matrix_bits"], record["column_bits"] = scheme.matrix_bits, scheme.column_bits
    return record


@cache
def product_record(size: int, row_stride: int, planes: int) -> NDArray[Any]:
    """Returns the opaque `Product` record of a ``size`` x ``size`` matrix times ``row_stride`` columns."""
    record = np.zeros(1, PRODUCT)
    down, across = size >> ROW_BITS, row_stride // PRODUCT_COLUMNS
    record["row_bits"], record["column_bits"] = down.bit_length() - 1, across.bit_length() - 1
    record["depth_blocks"], record["num_tiles"] = down, planes * down * across
    return opaque(record)


def tile_places(rows: Sequence[int], columns: Sequence[int]) -> NDArray[np.uint64]:
    """Returns (offset in the state, 128 column + row in the tile) of every thread, then of its iterations.

    Args:
        rows: targets, ascending; a tile has the lowest 7 of them.
        columns: the lowest free qubits, ascending.
    """
    tile = sorted((*rows[:ROW_BITS], *columns))
    steps = [(1 << q, 1 << rows.index(q) if q in rows else 1 << ROW_BITS + columns.index(q)) for q in tile]
    return np.concatenate([sums(steps[:8]).reshape(-1), sums(steps[8:]).reshape(-1)])


def insert_bits(values: NDArray[np.int64], qubits: Sequence[int]) -> NDArray[np.int64]:
    """Returns ``values`` with a zero bit inserted at every one of ``qubits``: basis states of columns by number."""
    out = values.astype(np.int64)
    for q in sorted(qubits):
        low = out & ((1 << q) - 1)
        out = (out - low) * 2 + low
    return out
