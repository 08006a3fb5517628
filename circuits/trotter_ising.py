"""Trotterised dynamics of the transverse-field Ising chain.

In: a width. Out: first-order Trotter steps. It may import Qiskit only.
"""

from qiskit import QuantumCircuit


def trotter_ising(num_qubits: int, seed: int = 7, steps: int = 10) -> QuantumCircuit:
    """(product over q of exp(-0.1 i X_q) exp(-0.15 i Z_q Z_(q+1)))^steps on |0...0>: J dt = 0.15, h dt = 0.1.

    Args:
        num_qubits: width, at least 2.
        seed: not used, nothing is random.
        steps: of first-order Trotter evolution, RZZ(0.3) on the chain and RX(0.2) each.

    Source:
        Kim et al., Nature 618, 500 (2023), equation 1, on a chain.
    """
    circuit = QuantumCircuit(num_qubits, name=f"trotter_ising_n{num_qubits}")
    for _ in range(steps):
        for qubit in range(num_qubits - 1):
            circuit.rzz(0.3, qubit, qubit + 1)
        circuit.rx(0.2, range(num_qubits))
    return circuit
