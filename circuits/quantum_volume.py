"""Quantum volume model circuits.

In: a width, a seed. Out: layers of random SU(4) on random pairs. It may import Qiskit only.
"""

from qiskit import QuantumCircuit
from qiskit.circuit.library import quantum_volume as model_circuit


def quantum_volume(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """num_qubits // 2 layers, each a random permutation of the qubits and a Haar-random SU(4) on each pair.

    Args:
        num_qubits: width, at least 2.
        seed: of permutations and unitaries.

    Source:
        Cross et al., arXiv:1811.12926, algorithm 1 (there the depth is the width).
    """
    circuit = QuantumCircuit(num_qubits, name=f"quantum_volume_n{num_qubits}")
    circuit.compose(model_circuit(num_qubits, num_qubits // 2, seed=seed), inplace=True)
    return circuit
