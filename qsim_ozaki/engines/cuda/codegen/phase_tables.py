"""Phases inside a tile as numbers: sets of bits, tables that mirror, terms that sum, bits that choose among tables.

In: angles per product of bits, in 2**-64 of a turn. Out: masks and numbers. It writes no source.
"""

from __future__ import annotations

import numpy as np

from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, TURN, members
from qsim_ozaki.ir import ComplexArray

MAX_CHOOSING = 3  # outer bits that choose among tables: lanes that differ in them read one line


def subsets(mask: int) -> list[int]:
    """All masks inside ``mask``, ascending."""
    bits = members(mask)
    return [sum(1 << b for i, b in enumerate(bits) if j >> i & 1) for j in range(1 << len(bits))]


def choosing(groups: dict[int, dict[int, int]], signs: dict[int, set[int]], constants: bool) -> int:
    """Outer bits that had better choose among tables, 0 where no product is saved: those of the widest parts first."""
    chosen = products = 0
    for bits, group in sorted(groups.items(), key=lambda item: item[0].bit_count()):
        needed = 0
        for key in group:
            if key not in signs[bits]:
                needed |= key
        if needed and (chosen | needed).bit_count() <= MAX_CHOOSING:
            chosen |= needed
            products += 1
    return chosen if products + constants > 1 else 0


def mirrored(angles: list[int]) -> tuple[int, bool, int] | None:
    """How the angle of j follows from that of its complement: (common angle, by conjugation, indices with a half turn).

    With the common angle taken off, they are equal or opposite, up to a half turn; None where they are neither.
    """
    half, end = len(angles) // 2, len(angles) - 1
    for conjugate in (False, True):
        total = angles[0] + angles[end] if conjugate else 0
        common = total % TURN // 2
        images = [(total - angles[j]) % TURN if conjugate else angles[j] for j in range(half)]
        gaps = [(angles[end - j] - image) % TURN for j, image in enumerate(images)]
        if all(gap in (0, HALF_TURN) for gap in gaps):
            return common, conjugate, sum(1 << end - j for j, gap in enumerate(gaps) if gap)
    return None


def reals(values: ComplexArray) -> list[float]:
    """Real and imaginary parts in turn, row by row."""
    out: list[float] = np.ascontiguousarray(values.reshape(-1), complex).view(float).tolist()
    return out
