"""What lowering refuses, and that each message names gate, qubits, circuit and remedy."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    Instruction,
    InverseModifier,
    Parameter,
    PowerModifier,
    library,
)
from qiskit.circuit.classical import expr, types
from support.lowered import Bare, Opaque, save

from qsim_ozaki import SaveInstruction, SetStatevector
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.lowering import lower


def circuit_of(operation, num_qubits=None, clbits=()):
    circuit = QuantumCircuit((num_qubits or operation.num_qubits) + 1, len(clbits), name="mine")
    circuit.append(operation, range(1, operation.num_qubits + 1), clbits)
    return circuit


def unchecked_unitary(matrix):
    return library.UnitaryGate(np.array(matrix, complex), check_input=False)


def measuring():
    inner = QuantumCircuit(1, 1, name="inner")
    inner.measure(0, 0)
    return inner.to_instruction()


def resetting():
    inner = QuantumCircuit(1, name="inner")
    inner.reset(0)
    return inner.to_instruction()


def bad_diagonal(values):
    gate = library.DiagonalGate([1, 1])
    gate.params = values
    return gate


def long_loop():
    circuit = QuantumCircuit(2, name="mine")
    with circuit.for_loop(range(10**6 + 1)):
        circuit.h(1)
    return circuit


def loop_over(values):
    circuit = QuantumCircuit(2, name="mine")
    with circuit.for_loop(values, expr.Var.new("k", types.Uint(2))):
        circuit.h(1)
    return circuit


def input_variable():
    circuit = QuantumCircuit(2, name="mine")
    circuit.add_input("level", types.Uint(3))
    return circuit


def saving(name, params):
    return SaveInstruction(name, 2, "label", params)


def set_on_part():
    circuit = circuit_of(SetStatevector([1, 0]))
    circuit.h(0)
    return circuit


def amplitudes_on_part():
    circuit = QuantumCircuit(2, name="mine")
    circuit.h([0, 1])
    circuit.append(SaveInstruction("save_amplitudes", 1, "label", ["single", 0]), [1])
    return circuit


def bad_initialize(values):
    instruction = library.Initialize([1, 0])
    instruction.params = values
    return instruction


def unbound():
    circuit = QuantumCircuit(2, name="mine")
    circuit.rx(Parameter("alpha") + Parameter("beta"), 1)
    return circuit


def unbound_phase():
    return QuantumCircuit(1, global_phase=Parameter("gamma"), name="mine")


REFUSALS = [
    (
        unbound,
        r"'mine' has unbound parameters: alpha, beta \(first in 'rx' on qubits \[1\]\)\. Bind .*assign_parameters",
    ),
    (unbound_phase, r"'mine' has unbound parameters: gamma\. Bind them"),
    (lambda: circuit_of(library.RXGate(np.nan)), r"'rx' on qubit 1 of circuit 'mine': angle nan is not finite\. Give"),
    (lambda: circuit_of(library.CPhaseGate(np.inf)), r"'cp' on qubits \[1, 2\] of circuit 'mine': angle inf"),
    (lambda: circuit_of(library.CPhaseGate(-np.inf, ctrl_state=0)), r"'cp_o0' on qubits \[1, 2\].*angle -inf"),
    (lambda: QuantumCircuit(1, global_phase=np.nan, name="mine"), r"'global_phase'.*'mine': angle nan"),
    (
        lambda: circuit_of(unchecked_unitary([[1, 0], [0, np.nan]])),
        r"'unitary' on qubit 1.*matrix holds NaN or infinity",
    ),
    (
        lambda: circuit_of(unchecked_unitary([[1, 0], [0, 1.01]])),
        r"'unitary'.*not unitary: .* is 2\.0e-02, the tolerance 1e-05",
    ),
    (lambda: circuit_of(unchecked_unitary(2 * np.eye(512))), r"'unitary' on qubits.*not unitary.*tolerance 1e-05"),
    (lambda: circuit_of(Opaque(np.ones((2, 2)))), r"'opaque' on qubit 1.*not unitary"),
    (
        lambda: circuit_of(bad_diagonal([1, 0.5])),
        r"'diagonal' on qubit 1.*is 7\.5e-01, the tolerance 1e-05\. Give entries",
    ),
    (lambda: circuit_of(bad_diagonal([1, np.inf])), r"'diagonal' on qubit 1.*holds NaN or infinity"),
    (
        lambda: circuit_of(bad_initialize([1, 1])),
        r"'initialize' on qubit 1.*norm 1\.41421356, not 1 within 1e-05\. Divide",
    ),
    (lambda: circuit_of(bad_initialize([1, np.nan])), r"'initialize' on qubit 1.*holds NaN or infinity"),
    (lambda: circuit_of(bad_initialize([1, 0, 0, 0])), r"'initialize' on qubit 1.*1 qubits need 2 amplitudes"),
    (
        lambda: circuit_of(Bare()),
        r"'mystery' on qubit 1 of circuit 'mine': the instruction is unknown.*Give it a definition",
    ),
    (
        lambda: circuit_of(Opaque(np.broadcast_to(1.0, (2**13, 1)))),
        r"'opaque' on qubits.*13 qubits would take 1073741824 bytes",
    ),
    (lambda: circuit_of(Instruction("kraus", 1, 0, [])), r"'kraus' on qubit 1.*noise is not simulated\. Remove"),
    (
        lambda: circuit_of(save(2, name="save_unitary")),
        r"'save_unitary' on qubits \[1, 2\].*saves no such thing\. Use one of save_statevector",
    ),
    (lambda: circuit_of(save(2, name="set_unitary")), r"'set_unitary' on qubits \[1, 2\].*Use set_statevector"),
    (lambda: circuit_of(SetStatevector([1, 1])), r"'set_statevector' on qubit 1.*norm 1\.41421356, not 1"),
    (lambda: circuit_of(SetStatevector([1, 0, 0])), r"'set_statevector' on qubit 1.*shape \(3,\)"),
    (set_on_part, r"'set_statevector' on qubit 1.* names 1 of the 2 qubits in use\. .*initialize"),
    (lambda: circuit_of(save(2, _subtype="c_mean")), r"'save_statevector' on qubits.*form 'c_mean' is not known"),
    (lambda: circuit_of(saving("save_expval", ["average", "XYZ", 1.0])), r"'save_expval'.*not of 2 letters"),
    (lambda: circuit_of(saving("save_expval", ["average", "XY", np.nan])), r"'save_expval'.*not finite"),
    (lambda: circuit_of(saving("save_amplitudes", ["single", 4])), r"'save_amplitudes'.*not below 2\*\*2"),
    (amplitudes_on_part, r"'save_amplitudes' on qubit 1.* 1 of the 2 qubits in use"),
    (
        lambda: circuit_of(AnnotatedOperation(resetting(), [InverseModifier()])),
        r"'annotated' on qubit 1.*holds 'reset', which is not unitary",
    ),
    (
        lambda: circuit_of(AnnotatedOperation(library.QFTGate(9), [PowerModifier(0.5)])),
        r"'annotated' on qubits.*power 0\.5 on 9 qubits.*up to 8 qubits",
    ),
    (
        lambda: circuit_of(AnnotatedOperation(library.XGate(), [PowerModifier(np.nan)])),
        r"'annotated' on qubit 1.*angle nan",
    ),
    (long_loop, r"'for_loop' on qubit 1 of circuit 'mine': .* more than 1000000 instructions\. Use a while loop"),
    (lambda: loop_over([0, 4]), r"'for_loop' .*: 4 does not fit its variable 'k' of type Uint\(2\)\. Give values .* 3"),
    (input_variable, r"'mine': input variable 'level' of type Uint\(3\) has no value\. .*inputs=\{'level': \.\.\.\}"),
]


@pytest.mark.parametrize(("build", "message"), REFUSALS, ids=[message[:40] for _, message in REFUSALS])
def test_refusals_name_gate_qubits_circuit_and_remedy(build, message):
    with pytest.raises(LoweringError, match=message):
        lower(build())
