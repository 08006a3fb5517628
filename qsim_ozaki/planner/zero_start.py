"""Operators on |0...0> in parts, each of which needs more qubits than the one before: which parts are worth it.

In: ops in order, the search for tiles. Out: parts, with passes over them. How a part is best done, and what that costs,
is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.ir import OpList
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.late_qubits import LateQubits
from qsim_ozaki.planner.passes import Passes, TileSearch

Ways = tuple[tuple[int, ...], ...]

# How many qubits are |0> still at the end of each part but the last. The last that come cost most: a part with one
# fewer doubles the state; with more at a time, less can be done before.
WAYS: Ways = ((9, 6, 3), (8, 6, 4, 2))
# Seldom the best, and by a few percent then (20 families, 20 to 32 qubits).
MORE_WAYS: Ways = ((7, 5, 3, 1), (10, 5), (8, 4))
MORE_SHARE = 0.07  # of the run that planning may take for these
LEAST_EARLY = 0.03  # of the operators that few qubits can do, below which no way is tried
SECONDS_PER_PART = 5e-5  # of planning one (EPYC 9004, 2026-11)
SECONDS_PER_OP = 2e-6  # of an operator in it
SEARCH_SHARE = 0.022  # of what passes take, that choosing their tiles does


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Operators in parts.

    Attributes:
        parts: one after the other they do all.
        passes: over them.
        seconds: predicted for these.
    """

    parts: Sequence[OpList]
    passes: Passes
    seconds: float


def cheapest(ops: OpList, used: Footprint, search: TileSearch) -> Parts:
    """The parts of ``ops``, or all in one, that are predicted to take least.

    Other parts are tried as long as planning them is quick beside the run.

    Args:
        ops: unitary operators in order.
        used: the state before them.
        search: chooses tiles.
    """
    best = _planned([ops], used, search)
    if used.live or used.num_qubits <= search.size:
        return best
    late = LateQubits(ops, used.num_qubits, search.line, max(max(way) for way in (*WAYS, *MORE_WAYS)))
    early = late.share()
    if early < LEAST_EARLY or best.seconds * early <= sum(_planning_seconds(way, ops) for way in WAYS):
        return best
    for way in WAYS:
        best = min(best, _planned(late.parts(way), used, search), key=lambda parts: parts.seconds)
    spent = 0.0
    for way in MORE_WAYS:
        spent += _planning_seconds(way, ops) + SEARCH_SHARE * best.seconds
        if spent > MORE_SHARE * best.seconds * early:
            break
        best = min(best, _planned(late.parts(way), used, search), key=lambda parts: parts.seconds)
    return best


def _planned(parts: Sequence[OpList], used: Footprint, search: TileSearch) -> Parts:
    passes = search.passes(search.chain(parts, used.live), used)
    return Parts(parts, passes, sum(step.prediction.seconds for step in passes.steps))


def _planning_seconds(way: Sequence[int], ops: OpList) -> float:
    return SECONDS_PER_PART * (len(way) + 1) + SECONDS_PER_OP * len(ops)
