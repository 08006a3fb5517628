"""Plans from |0...0> in growing parts: each part needs more qubits than the one before it.

In: ops in order, the search for tiles. Out: parts in an order that commutes, with passes over them. Operators are
divided in C++ (`kernels/native/planner/zero_start.cpp`); `passes.py` decides how a part is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.ir import OpList
from qsim_ozaki.planner.footprint import Footprint
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
FEWEST = 2  # qubits: an operator that can act before the last so many change is an early one


class LateQubits:
    """The qubits before whose change most of ``ops`` can act.

    Args:
        ops: unitary operators in order; the state before them is |0> on all qubits but a few that are |1>.
        num_qubits: width of the state.
        line_qubits: the lowest qubits, which every pass works on: they are never late.
        most: how many are asked for.
    """

    def __init__(self, ops: OpList, num_qubits: int, line_qubits: int, most: int = FEWEST) -> None:
        self.ops = ops
        self.every = (1 << num_qubits) - 1
        above = self.every - ((1 << line_qubits) - 1)
        # that which comes last first
        self.qubits: list[int] = ops.native.longest_zero_qubits(above, min(most, num_qubits - line_qubits - 1))

    def share(self) -> float:
        """The share of early operators."""
        early, _ = self.ops.native.split_live(self._all_but(FEWEST))
        return len(early) / max(len(self.ops), 1)

    def parts(self, way: Sequence[int]) -> list[OpList]:
        """The operators in parts, at the end of which as many qubits are |0> still as ``way`` says, and then none."""
        out, rest = [], self.ops.native
        for count in way:
            part, rest = rest.split_live(self._all_but(count))
            out.append(OpList(part))
        return [part for part in [*out, OpList(rest)] if part]

    def _all_but(self, count: int) -> int:
        return self.every - sum(1 << q for q in self.qubits[:count])


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
