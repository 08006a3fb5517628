"""Slots: placeholders in a program for gates whose angles come later.

In: a gate of the table with parametric angles. Out: a `SlotGate` for Qiskit's circuits, and its operator for programs.
It may not evaluate an angle.
"""

from __future__ import annotations

import numpy as np
from qiskit.circuit import Operation

import qsim_ozaki._native as _native
from qsim_ozaki.ir import Kind, Op
from qsim_ozaki.lowering.gates import GATES


class SlotGate(Operation):  # type: ignore[misc]
    """A placeholder in a circuit for a gate with parametric angles.

    It is not a Qiskit `Gate`, because making one takes ten times as long.

    Args:
        offset: place of the gate's first number in a row of numbers.
        gate: the gate's name in the gate table.
        num_qubits: number of controls and targets; it may have more controls than the table's gate.
        ctrl_state: as in Qiskit; None for all ones.
    """

    __slots__ = ("gate", "name", "num_clbits", "num_qubits", "offset", "slot_ctrl_state")

    def __init__(self, offset: int, gate: str, num_qubits: int, ctrl_state: int | None) -> None:
        self.name = f"slot_{gate}"
        self.num_qubits = num_qubits
        self.num_clbits = 0
        self.offset = offset
        self.gate = gate
        self.slot_ctrl_state = ctrl_state

    def op(self, qubits: tuple[int, ...]) -> Op:
        """Returns the operator on ``qubits`` (controls first); its first entry is the offset in a row of numbers."""
        row = GATES[self.gate]
        count = len(qubits) - row.num_targets
        side = 1 << row.num_targets
        data = np.zeros((side, side) if row.kind is Kind.UNITARY else side, complex)
        data.flat[0] = self.offset
        state = (1 << count) - 1 if self.slot_ctrl_state is None else self.slot_ctrl_state
        return Op(row.kind, qubits[count:], data, qubits[:count], state, None, _native.SLOT_NAME)
