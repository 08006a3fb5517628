"""Searches for the stages of a tile pass, and caches the results: passes that differ only in angles share a search.

In: `Item` objects and rules. Out: register qubits and pairs, as masks. It may not search itself: `stage_search.cpp`
does.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import qsim_ozaki._native as _native
from qsim_ozaki.cache import LruCache
from qsim_ozaki.engines.cuda.tile.energy import StageRow, stage_row
from qsim_ozaki.engines.cuda.tile.items import Item
from qsim_ozaki.engines.cuda.tuning import STAGE_ENERGIES

Search: TypeAlias = tuple[tuple[tuple[int, int], ...], bool]  # (registers, pair) of each stage; whether the last waits

ROW = struct.Struct("<QQddB")
CHOICE_BYTES = 200  # size of a stage's two masks as Python objects
SEARCHES: LruCache[Search] = LruCache(16 << 20, 4096)  # passes of a few hundred items have about 10 KiB each


@dataclass(frozen=True, slots=True)
class Rules:
    """Limits for the stages of a pass.

    Attributes:
        tile: the tile's qubits.
        register_qubits: number of qubits that registers hold.
        line_qubits: number of the lowest qubits, which number the amplitudes of a line.
        load_lines: mask of the qubits that number threads at the load.
        store_lines: mask of the qubits that number threads at the store.
        pairs: whether a stage may have a pair of qubits that number neighbouring threads.
        brief: whether the search is quick rather than good.
    """

    tile: tuple[int, ...]
    register_qubits: int
    line_qubits: int
    load_lines: int
    store_lines: int
    pairs: bool
    brief: bool


def searched_stages(items: Sequence[Item], rules: Rules, precision: str) -> tuple[list[tuple[int, int]], bool]:
    """Returns (registers, pair) of each stage, and whether all work that the last stage can do waits for it.

    Args:
        items: the pass's items, in order.
        rules: limits for the stages.
        precision: the kernel's precision, which chooses the energies.
    """
    rows = [stage_row(item) for item in items]
    key = (b"".join([ROW.pack(*row) for row in rows]), rules, STAGE_ENERGIES[precision])
    search = SEARCHES.get(key)
    if search is None:
        path, last_waits = _search(rows, rules, precision)
        num_bytes = len(key[0]) + CHOICE_BYTES * (len(path) + len(rules.tile))
        search = SEARCHES.add(key, (path, last_waits), num_bytes)
    return list(search[0]), search[1]


def _search(rows: Sequence[StageRow], rules: Rules, precision: str) -> Search:
    native = _native.StageRules(
        list(rules.tile),
        rules.register_qubits,
        rules.line_qubits,
        rules.load_lines,
        rules.store_lines,
        rules.pairs,
        STAGE_ENERGIES[precision],
        rules.brief,
    )
    items = [_native.StageItem(*row[:4], _native.StageItemKind(row[4])) for row in rows]
    path, last_waits = _native.search_stages(items, native)
    return tuple(path), last_waits
