"""The GHZ state.

In: a width. Out: a circuit for (|0...0> + |1...1>) / sqrt(2). It may import Qiskit only.
"""

from qiskit import QuantumCircuit


def ghz(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """(|0...0> + |1...1>) / sqrt(2) by H on qubit 0 and a chain of CX.

    Args:
        num_qubits: width.
        seed: not used, nothing is random.

    Source:
        Greenberger, Horne, Zeilinger, arXiv:0712.0921.
    """
    circuit = QuantumCircuit(num_qubits, name=f"ghz_n{num_qubits}")
    circuit.h(0)
    for qubit in range(num_qubits - 1):
        circuit.cx(qubit, qubit + 1)
    return circuit
