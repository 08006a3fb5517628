"""Searches for the phases of a tile pass, each done once: passes that differ in angles alone ask for the same.

In: `Item` objects, rules. Out: register sets and pairs, as masks. How they are searched for is `stage_search.cpp`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import qsim_ozaki._native as _native
from qsim_ozaki.cuda_energy import PHASE_ENERGIES, PhaseRow, phase_row
from qsim_ozaki.cuda_lower import Item
from qsim_ozaki.kept import Kept

Path = tuple[tuple[tuple[int, int], ...], bool]
Rules = tuple[tuple[int, ...], int, int, int, int, bool, bool]

ROW = struct.Struct("<QQddB")
CHOICE_BYTES = 200  # of a phase's two masks as Python keeps them
FOUND: Kept[Path] = Kept(16 << 20, 4096)  # passes of a few hundred items have about 10 KiB each


def searched_phases(items: Sequence[Item], rules: Rules, precision: str) -> tuple[list[tuple[int, int]], bool]:
    """(registers, pair) of each phase, and whether the last one's work waits for it.

    Args:
        items: in order.
        rules: the tile's qubits, those that registers and lines hold, masks left to threads at the load and the store,
            whether there are pairs, whether the search is brief.
        precision: of the kernel, whose energies count.
    """
    rows = [phase_row(item) for item in items]
    key = (b"".join([ROW.pack(*row) for row in rows]), rules, PHASE_ENERGIES[precision])
    found = FOUND.get(key)
    if found is None:
        path, holds = _search(rows, rules, precision)
        found = FOUND.add(key, (path, holds), len(key[0]) + CHOICE_BYTES * (len(path) + len(rules[0])))
    return list(found[0]), found[1]


def _search(rows: Sequence[PhaseRow], rules: Rules, precision: str) -> Path:
    tile, registers, line, loads, stores, pairs, brief = rules
    known = _native.StageRules(list(tile), registers, line, loads, stores, pairs, PHASE_ENERGIES[precision], brief)
    items = [_native.StageItem(*row[:4], _native.StageItemKind(row[4])) for row in rows]
    path, holds = _native.search_stages(items, known)
    return tuple(path), holds
