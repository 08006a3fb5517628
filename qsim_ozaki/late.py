"""Operators on |0...0> in parts: those that need few qubits first, while the state is small.

In: ops in order. Out: the same ops as parts, in an order that commutes. It knows no device and predicts nothing; the
work is done in C++ (`kernels/cpu/late.cpp`).
"""

from __future__ import annotations

from collections.abc import Sequence

from qsim_ozaki.op_list import OpList

# How many qubits are |0> still at the end of each part but the last. The last that come cost most: a part with one
# fewer doubles the state; with more at a time, less can be done before.
WAYS = ((9, 6, 3), (8, 6, 4, 2))
FEWEST = min(min(way) for way in WAYS)
SECONDS_PER_OP = 5e-6  # of planning one more way (EPYC 9004, 2026-11)
LEAST_SHARE = 0.03  # of the operators that a few qubits can do early, below which no way is looked for


def share(ops: OpList, num_qubits: int, line_qubits: int) -> float:
    """The share of ``ops`` that can act before the last two qubits change."""
    return _share(ops, num_qubits, _late(ops, num_qubits, line_qubits, FEWEST))


def parts(ops: OpList, num_qubits: int, line_qubits: int, seconds: float) -> list[list[OpList]]:
    """Ways to do ``ops`` in parts, each leaving more qubits |0> than the next; none where planning them would not pay.

    Args:
        ops: unitary operators in order; the state before them is |0> on all qubits but a few that are |1>.
        num_qubits: width of the state.
        line_qubits: the lowest qubits, which every pass works on: they are never late.
        seconds: predicted for ``ops`` in one part.
    """
    late = _late(ops, num_qubits, line_qubits, max(max(way) for way in WAYS))
    early = _share(ops, num_qubits, late[:FEWEST])
    if early < LEAST_SHARE or seconds * early <= len(WAYS) * SECONDS_PER_OP * len(ops):
        return []
    return [_split(ops, [_all_but(late[:count], num_qubits) for count in way]) for way in WAYS]


def _late(ops: OpList, num_qubits: int, line_qubits: int, most: int) -> list[int]:
    """Up to ``most`` qubits, that which comes last first."""
    count = min(most, num_qubits - line_qubits - 1)
    late: list[int] = ops.native.late_qubits((1 << num_qubits) - (1 << line_qubits), count)
    return late


def _share(ops: OpList, num_qubits: int, late: Sequence[int]) -> float:
    early, _ = ops.native.split_live(_all_but(late, num_qubits))
    return len(early) / max(len(ops), 1)


def _split(ops: OpList, live: Sequence[int]) -> list[OpList]:
    out, rest = [], ops.native
    for mask in live:
        part, rest = rest.split_live(mask)
        out.append(OpList(part))
    return [part for part in [*out, OpList(rest)] if part]


def _all_but(qubits: Sequence[int], num_qubits: int) -> int:
    return (1 << num_qubits) - 1 - sum(1 << q for q in qubits)
