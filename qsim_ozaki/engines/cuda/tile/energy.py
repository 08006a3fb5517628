"""Energy model of a tile pass: a GPU at the limit of its power takes time in proportion to energy.

In: `Item` objects. Out: one row of numbers per item, for the search for stages. It may not depend on a kernel.
"""

from __future__ import annotations

from typing import TypeAlias

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, Item, is_core
from qsim_ozaki.engines.cuda.tuning import CORE, FLIP, MATRIX, PHASE_OF_ROTATION, ROTATION

PLAIN, CORE_KIND, FLIP_KIND, SIGN, ANYWHERE = (
    _native.StageItemKind[name].value for name in ("PLAIN", "CORE", "FLIP", "SIGN", "ANYWHERE")
)
StageRow: TypeAlias = tuple[int, int, float, float, int]


def stage_row(item: Item) -> StageRow:
    """Returns the row of an item: (mask of changed qubits, mask of read qubits, energy, worth, number of its kind)."""
    kind = PLAIN
    energy = worth = 0.0
    if item.kind == "terms":
        # A parity needs no table either, and its energy does not depend on the stage.
        kind = SIGN if item.parities or set(item.terms.values()) == {HALF_TURN} else PLAIN
    elif item.kind == "parity":
        kind = SIGN
    elif item.kind == "rotate":
        energy = ROTATION
        worth = energy + PHASE_OF_ROTATION
    elif item.kind == "hadamard":
        energy = worth = ROTATION
    elif item.kind == "flip":
        energy = worth = FLIP
        kind = FLIP_KIND
    elif item.kind == "matrix":
        core = is_core(item) and not item.condition[0]
        energy = worth = CORE if core else MATRIX[len(item.qubits)]
        kind = CORE_KIND if core else PLAIN
    elif item.kind == "permute":
        kind = ANYWHERE
    return item.mixed, item.used, energy, worth, kind
