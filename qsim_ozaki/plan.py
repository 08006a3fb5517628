"""The planner: which steps, on which tiles, by which path; and how to say so.

In: unitary ops of one segment, a `Device`, `PlanOptions`. Out: a `Plan`. A pure function: it launches and measures nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.cost import Device
from qsim_ozaki.ops import Op, Prediction, Step


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the user asked of the planner."""

    precision: str = "double"  # or "single"
    arithmetic: str = "auto"  # or "native", "emulated"
    accuracy: float | None = None  # requested relative error bound of one dense block, None: FP64 parity
    from_zero: bool = False  # the segment starts from |0...0>, so the first pass may be a Prepare
    max_fused_qubits: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps of one segment, with predictions.

    Attributes:
        num_qubits: width of the state.
        steps: in order; they act on *physical* qubits.
        final_position: program qubit q ends on physical qubit ``final_position[q]`` (SWAPs were relabelled).
        device: what it was planned for.
        options: what was asked.
        prediction: totals over the steps.
        memory_bytes: bytes of the state.
    """

    num_qubits: int
    steps: tuple[Step, ...]
    final_position: tuple[int, ...]
    device: Device
    options: PlanOptions
    prediction: Prediction
    memory_bytes: int

    def explain(self) -> str:
        """A table: per step what it does, on which qubits, by which path and why, passes, bytes, seconds, bound; totals."""
        raise NotImplementedError


def plan(ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int] | None = None) -> Plan:
    """Fuses ``ops``, chooses tiles and paths, and predicts each step.

    Args:
        ops: unitary operators in order, on program qubits.
        num_qubits: width of the state.
        device: measured or made up.
        options: what was asked.
        position: physical qubit of each program qubit at the start (None: the same).
    """
    raise NotImplementedError
