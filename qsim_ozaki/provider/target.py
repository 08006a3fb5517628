"""Builds the `Target` that transpilers read: every instruction that can be lowered, on any qubits.

In: the gate table. Out: a Qiskit `Target` of an ideal simulator. It may not lower anything.
"""

from __future__ import annotations

import sys
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

MAX_CIRCUIT_QUBITS = 2048  # wider than the circuits of any device; idle qubits cost nothing
TRANSPILERS = ("qiskit.transpiler", "qiskit.compiler")  # Qiskit's packages that read a target's number of qubits

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


def width_for(reader: str) -> int | None:
    """Returns the number of qubits that module ``reader`` sees: None for Qiskit's transpiler, else an integer.

    None stands for any width. Qiskit's transpiler knows it; with an integer, it would widen every circuit that has an
    initial layout to that many qubits, and walk over all of them in several passes. Other packages compare or convert
    the number, so they need an integer.

    Args:
        reader: full name of the module that reads the number.
    """
    is_transpiler = any(reader == package or reader.startswith(f"{package}.") for package in TRANSPILERS)
    return None if is_transpiler else MAX_CIRCUIT_QUBITS


class OzakiTarget(Target):  # type: ignore[misc]
    """A target of any width whose number of qubits is an integer for every reader but Qiskit's transpiler."""

    @property
    def num_qubits(self) -> int | None:
        """Largest number of qubits of a circuit, idle qubits included; see `width_for`."""
        return width_for(sys._getframe(1).f_globals.get("__name__", ""))


def build_target() -> Target:
    """Returns the Qiskit `Target` of an ideal simulator of any width, with every instruction that can be lowered."""
    target = OzakiTarget(num_qubits=None, description="qsim_ozaki: ideal, all-to-all, any width")
    for row in GATES.values():
        gate = row.classes[0]
        if row.num_controls != ANY:
            gate = gate(*(Parameter(f"{row.name}_{index}") for index in range(row.num_params)))
        target.add_instruction(gate, None, name=row.name)
    for name, instruction in INSTRUCTIONS.items():
        target.add_instruction(instruction, None, name=name)
    return target
