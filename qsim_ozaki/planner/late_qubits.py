"""Operators on |0...0> in parts: those that need few qubits first, while the state is small.

In: ops in order. Out: the same ops as parts, in an order that commutes. It knows no device and predicts nothing; the
work is done in C++ (`kernels/native/planner/zero_start.cpp`).
"""

from __future__ import annotations

from collections.abc import Sequence

from qsim_ozaki.ir import OpList

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
