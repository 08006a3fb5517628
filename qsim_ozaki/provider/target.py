"""Builds the `Target` that transpilers read: every instruction that can be lowered, on any qubits.

In: the gate table. Out: a Qiskit `Target` of an ideal simulator. It may not lower anything.
"""

from __future__ import annotations

from typing import Any

from qiskit.circuit import (
    Barrier,
    BoxOp,
    BreakLoopOp,
    ContinueLoopOp,
    Delay,
    ForLoopOp,
    IfElseOp,
    Measure,
    Parameter,
    Reset,
    Store,
    SwitchCaseOp,
    WhileLoopOp,
    library,
)
from qiskit.transpiler import Target

from qsim_ozaki.lowering import ANY, GATES

# Instructions of the Target beside the gates of the gate table.
INSTRUCTIONS: dict[str, Any] = {
    "unitary": library.UnitaryGate,
    "diagonal": library.DiagonalGate,
    "multiplexer": library.UCGate,
    "ucrx": library.UCRXGate,
    "ucry": library.UCRYGate,
    "ucrz": library.UCRZGate,
    "pauli": library.PauliGate,
    "permutation": library.PermutationGate,
    "qft": library.QFTGate,
    "PauliEvolution": library.PauliEvolutionGate,
    "state_preparation": library.StatePreparation,
    "initialize": library.Initialize,
    "barrier": Barrier,
    "measure": Measure(),
    "reset": Reset(),
    "delay": Delay(Parameter("duration")),
    "store": Store,
    "if_else": IfElseOp,
    "while_loop": WhileLoopOp,
    "for_loop": ForLoopOp,
    "switch_case": SwitchCaseOp,
    "break_loop": BreakLoopOp,
    "continue_loop": ContinueLoopOp,
    "box": BoxOp,
}


def build_target() -> Target:
    """Returns the Qiskit `Target` of an ideal simulator of any width, with every instruction that can be lowered."""
    target = Target(num_qubits=None, description="qsim_ozaki: ideal, all-to-all, any width")
    for row in GATES.values():
        gate = row.classes[0]
        if row.num_controls != ANY:
            gate = gate(*(Parameter(f"{row.name}_{index}") for index in range(row.num_params)))
        target.add_instruction(gate, None, name=row.name)
    for name, instruction in INSTRUCTIONS.items():
        target.add_instruction(instruction, None, name=name)
    return target
