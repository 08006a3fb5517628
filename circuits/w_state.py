"""The W state.

In: a width. Out: a circuit for the even sum of all basis states with a single 1. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def w_state(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """Sum over q of |1 on qubit q> / sqrt(n): each step leaves 1 / (qubits left) of the weight behind.

    Args:
        num_qubits: width.
        seed: not used, nothing is random.

    Source:
        Cruz et al., arXiv:1807.05572, section 2 (the linear-depth form).
    """
    circuit = QuantumCircuit(num_qubits, name=f"w_state_n{num_qubits}")
    circuit.x(0)
    for qubit in range(num_qubits - 1):
        circuit.cry(2 * np.arccos(np.sqrt(1 / (num_qubits - qubit))), qubit, qubit + 1)
        circuit.cx(qubit + 1, qubit)
    return circuit
