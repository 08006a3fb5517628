"""The options of the planner.

In: a backend's options. Out: a `PlanOptions`. It may not plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The user's requests to the planner.

    Attributes:
        precision: ``"double"`` (complex128) or ``"single"`` (complex64).
        arithmetic: ``"auto"``, ``"native"`` or ``"emulated"``, for dense blocks.
        accuracy: requested error bound of an emulated block, over a column's norm; None asks for parity with
            ``precision``.
        from_zero: the segment starts from |0...0>, so the first step may write a product state.
        max_fused_qubits: matrices on at most this many qubits absorb neighbouring gates.
        restore_order: the plan ends with program qubit q on physical qubit q.
    """

    precision: str = "double"
    arithmetic: str = "auto"
    accuracy: float | None = None
    from_zero: bool = False
    max_fused_qubits: int = 2
    restore_order: bool = False


def plan_options(options: Mapping[str, Any]) -> PlanOptions:
    """Returns the planner's part of a backend's ``options``."""
    return PlanOptions(options["precision"], options["arithmetic"], options["accuracy"])
