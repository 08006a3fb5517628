"""What the work of a tile pass costs: energy, which decides, as a GPU runs passes at the limit of its power.

In: `Item` objects. Out: what the search for phases wants to know of them. It knows no kernel.
"""

from __future__ import annotations

from typing import TypeAlias

import qsim_ozaki._native as _native
from qsim_ozaki.cuda_lower import HALF_TURN, Item, is_core

# Picojoules an amplitude (NVIDIA H200, 2026-11: an FP64 FMA 38, a product 21). Launches take longer for exchanges
# and blocks than their energy at the card's power: these count what their time is worth, 38 for an FP64 instruction's.
EXCHANGE = 300.0
BLOCK = 310.0  # a matrix on two qubits by tensor cores
TABLE = 100.0  # a complex product, less what merges with others
OUTER = 100.0  # more where other threads' qubits choose from it
ROTATION = 76.0  # two FMA
FLIP = 5.0
CORE = 228.0  # with a table of its own
SHARED = 86.0  # what two cores save that share a table
MATRIX = {1: 270.0, 2: 574.0, 3: 1182.0, 4: 2398.0, 5: 4830.0}  # by qubits
PHASE_OF_ROTATION = 80.0  # a rotation's usual share of tables and exchanges
PHASE_ENERGIES = {
    "double": _native.StageEnergies(EXCHANGE, BLOCK, TABLE, OUTER, SHARED),
    # Here instructions count, 38 each: of a block three products of TF32, and what splits amplitudes for them.
    "single": _native.StageEnergies(EXCHANGE, 600.0, 150.0, OUTER, SHARED),
}
PLAIN, CORE_KIND, FLIP_KIND, SIGN, ANYWHERE = (
    _native.StageItemKind[name].value for name in ("PLAIN", "CORE", "FLIP", "SIGN", "ANYWHERE")
)
PhaseRow: TypeAlias = tuple[int, int, float, float, int]


def phase_row(item: Item) -> PhaseRow:
    """What the search knows of an item: masks of what it changes and reads, energy, worth, kind's number."""
    kind = PLAIN
    energy = worth = 0.0
    if item.kind == "terms":
        kind = SIGN if set(item.terms.values()) == {HALF_TURN} else PLAIN
    elif item.kind in ("rotate", "hadamard"):
        energy = ROTATION
        worth = energy + PHASE_OF_ROTATION * (item.kind == "rotate")
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
