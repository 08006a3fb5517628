"""Rewrites the terms of observables: those with few projectors as Pauli strings.

In: terms as labels of ``IXYZ01+-rl`` with weights. Out: the same sum in other terms. It may not compute a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from qsim_ozaki.ir import AXES, MINUS, PLAIN

# Most projectors of a term that becomes Pauli strings: each projector doubles their number. The strings of many terms
# share passes over the state, but each term with projectors takes a pass alone.
MAX_SPLIT = 4


def split_projectors(terms: Mapping[str, float]) -> dict[str, float]:
    """Returns the same sum, in which terms have more than `MAX_SPLIT` projectors or none.

    A projector is half the identity and half a Pauli matrix.
    """
    total: dict[str, float] = {}
    for label, weight in terms.items():
        for part, share in _parts(label):
            total[part] = total.get(part, 0.0) + share * float(weight)
    return total


def _parts(label: str) -> Iterator[tuple[str, float]]:
    """Yields labels and factors that add up to ``label``."""
    if sum(letter not in PLAIN for letter in label) not in range(1, MAX_SPLIT + 1):
        yield label, 1.0
        return
    choices: list[tuple[tuple[str, float], ...]] = []
    for letter in label:
        sign = -0.5 if letter in MINUS else 0.5
        choices.append(((letter, 1.0),) if letter in PLAIN else (("I", 0.5), (AXES[letter], sign)))
    for parts in product(*choices):
        yield "".join(letter for letter, _ in parts), prod(factor for _, factor in parts)
