"""Plans from |0...0> in growing parts: each part needs more qubits than the one before it.

In: operators in order, and the search for tiles. Out: parts in an order that commutes, with passes over them. It may
not choose tiles: `passes.py` does. C++ divides the operators (`kernels/native/planner/zero_start.cpp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from qsim_ozaki.ir import OpList
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.passes import Passes, TileSearch

# For every part but the last: how many qubits are still |0> at its end.
Staging: TypeAlias = tuple[int, ...]

# The last few qubits cost most: a part with one |0> qubit fewer doubles the state. A part that releases more qubits at
# a time leaves less work to the smaller states before it.
STAGINGS: tuple[Staging, ...] = ((9, 6, 3), (8, 6, 4, 2))
# These are rarely the best, and then by a few percent (20 families, 20 to 32 qubits): they are tried only where
# planning is quick beside the run.
RARE_STAGINGS: tuple[Staging, ...] = ((7, 5, 3, 1), (10, 5), (8, 4))
RARE_SHARE = 0.07  # share of the run that planning may take for the rare stagings
LEAST_EARLY = 0.03  # no staging is tried if few qubits can do less than this share of the operators
SECONDS_PER_PART = 5e-5  # time to plan one part (EPYC 9004, 2026-11)
SECONDS_PER_OP = 2e-6  # additional time for each operator in it
SEARCH_SHARE = 0.022  # time to choose the tiles of passes, as a share of the time to run them
LAST_QUBITS = 2  # an operator is early if it can act before the last two qubits change


class LateQubits:
    """The qubits that can stay |0> the longest: most of the operators can act before these qubits change.

    Args:
        ops: unitary operators in order; the state before them is |0> on all qubits but a few that are |1>.
        num_qubits: number of qubits of the state.
        line_qubits: number of lowest qubits, which every pass works on: they are never late.
        most: how many qubits to find.
    """

    def __init__(self, ops: OpList, num_qubits: int, line_qubits: int, most: int = LAST_QUBITS) -> None:
        self.ops = ops
        self.all_qubits = (1 << num_qubits) - 1
        above_line = self.all_qubits - ((1 << line_qubits) - 1)
        most = min(most, num_qubits - line_qubits - 1)
        # the qubit that can stay |0> the longest comes first
        self.qubits: list[int] = ops.native.longest_zero_qubits(above_line, most)

    def share(self) -> float:
        """Returns the share of early operators."""
        early, _ = self.ops.native.split_live(self._all_but(LAST_QUBITS))
        return len(early) / max(len(self.ops), 1)

    def parts(self, staging: Sequence[int]) -> list[OpList]:
        """Returns the operators in the parts of ``staging``, and a last part after which no qubit need be |0>."""
        parts, rest = [], self.ops.native
        for count in staging:
            part, rest = rest.split_live(self._all_but(count))
            parts.append(OpList(part))
        return [part for part in [*parts, OpList(rest)] if part]

    def _all_but(self, count: int) -> int:
        """Returns the mask of all qubits but the ``count`` latest."""
        return self.all_qubits - sum(1 << q for q in self.qubits[:count])


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Operators in parts, with the passes over them.

    Attributes:
        parts: parts in order, which together hold all operators.
        passes: passes over the parts.
        seconds: predicted time of the passes.
    """

    parts: Sequence[OpList]
    passes: Passes
    seconds: float


def cheapest_parts(ops: OpList, used: Footprint, search: TileSearch) -> Parts:
    """Returns the parts of ``ops`` with the least predicted time; all operators may form one part.

    Stagings are tried as long as planning them is quick beside the run.

    Args:
        ops: unitary operators in order.
        used: the part of the state that is in use before them.
        search: chooses the tiles.
    """
    best = _planned([ops], used, search)
    if used.live or used.num_qubits <= search.size:
        return best
    most = max(max(staging) for staging in (*STAGINGS, *RARE_STAGINGS))
    late = LateQubits(ops, used.num_qubits, search.line, most)
    early = late.share()
    if early < LEAST_EARLY or best.seconds * early <= sum(_planning_seconds(staging, ops) for staging in STAGINGS):
        return best
    for staging in STAGINGS:
        best = min(best, _planned(late.parts(staging), used, search), key=lambda parts: parts.seconds)
    spent = 0.0
    for staging in RARE_STAGINGS:
        spent += _planning_seconds(staging, ops) + SEARCH_SHARE * best.seconds
        if spent > RARE_SHARE * best.seconds * early:
            break
        best = min(best, _planned(late.parts(staging), used, search), key=lambda parts: parts.seconds)
    return best


def _planned(parts: Sequence[OpList], used: Footprint, search: TileSearch) -> Parts:
    """Returns ``parts`` with the passes over them and their predicted time."""
    passes = search.passes(search.chain(parts, used.live), used)
    return Parts(parts, passes, sum(step.prediction.seconds for step in passes.steps))


def _planning_seconds(staging: Staging, ops: OpList) -> float:
    """Returns the time to divide ``ops`` by ``staging`` and to plan the parts."""
    return SECONDS_PER_PART * (len(staging) + 1) + SECONDS_PER_OP * len(ops)
