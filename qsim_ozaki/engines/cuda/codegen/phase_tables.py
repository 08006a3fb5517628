"""Analyses the phases of a stage: subsets of bits, outer bits that choose among tables, tables with mirrored halves.

In: angles per product of bits, in 2**-64 of a turn. Out: masks and numbers. It may not write source.
"""

from __future__ import annotations

import numpy as np

from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, TURN, members
from qsim_ozaki.ir import ComplexArray

MAX_CHOOSING = 3  # most outer bits that choose among tables: lanes that differ in them then read one line


def subsets(mask: int) -> list[int]:
    """Returns all masks inside ``mask``, ascending."""
    bits = members(mask)
    return [sum(1 << b for i, b in enumerate(bits) if j >> i & 1) for j in range(1 << len(bits))]


def choosing(groups: dict[int, dict[int, int]], signs: dict[int, set[int]], constants: bool) -> int:
    """Returns the mask of outer bits that should choose among tables, 0 if that saves no product.

    Outer bits of the parts with the fewest register bits come first: their products are on the most amplitudes.

    Args:
        groups: angles by register part, then by outer part.
        signs: by register part, the outer parts that only flip signs.
        constants: whether there are angles that read register bits only.
    """
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
    """Returns how the upper half of a table of angles follows from the lower half, or None if it does not.

    Without a common angle, the angle of every index equals that of its complement or is opposite to it, up to a half
    turn.

    Returns:
        (common angle, whether complements are conjugate, set of the indices with a half turn as a mask).
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
    """Returns real and imaginary parts in turn, row by row."""
    out: list[float] = np.ascontiguousarray(values.reshape(-1), complex).view(float).tolist()
    return out
