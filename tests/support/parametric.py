"""Random parametrised circuits and observables; imports nothing of the package."""

from qiskit import QuantumCircuit
from qiskit.circuit import ParameterVector
from qiskit.circuit.library import MCPhaseGate, PauliEvolutionGate, RXGate, get_standard_gate_name_mapping
from qiskit.quantum_info import SparsePauliOp, Statevector

FIXED = ("h", "x", "sx", "cx", "cz", "swap", "iswap", "ccx", "ecr", "t", "ch")
GATES = {
    name: gate
    for name, gate in get_standard_gate_name_mapping().items()
    if (gate.params and name not in ("delay", "global_phase")) or name in FIXED
}


def parametric_circuit(rng, num_qubits, num_gates=12, special=True):
    """Gates of all kinds, each angle a parameter of its own; some controlled, some by their definition."""
    angles = iter(ParameterVector("t", 4 * num_gates))
    circuit = QuantumCircuit(num_qubits, global_phase=next(angles))
    circuit.h(range(num_qubits))
    while circuit.size() < num_gates:
        gate = GATES[str(rng.choice(list(GATES)))]
        if gate.num_qubits > num_qubits:
            continue
        if gate.params:
            gate = type(gate)(*(next(angles) for _ in gate.params))
        circuit.append(gate, [int(q) for q in rng.permutation(num_qubits)[: gate.num_qubits]])
    if special and num_qubits >= 3:
        qubits = [int(q) for q in rng.permutation(num_qubits)[:3]]
        circuit.append(MCPhaseGate(next(angles), 2, ctrl_state=2), qubits)
        circuit.append(RXGate(next(angles)).control(2, ctrl_state=int(rng.integers(4)), annotated=False), qubits)
        circuit.append(PauliEvolutionGate(SparsePauliOp(["XXI", "ZZI", "IIY"], [0.5, -1, 0.25]), next(angles)), qubits)
    return circuit


def exact_value(circuit, observable, values):
    """By Qiskit's dense state vector; evolutions by their definition: their matrix is sparse and warns."""
    bound = circuit.assign_parameters(values).decompose("PauliEvolution")
    return Statevector(bound).expectation_value(observable).real


def random_observable(rng, num_qubits, num_terms=6):
    labels = ["".join(rng.choice(list("IXYZ"), num_qubits)) for _ in range(num_terms)]
    return SparsePauliOp(labels, rng.normal(size=num_terms))
