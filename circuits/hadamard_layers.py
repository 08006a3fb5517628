"""Layers of Hadamards.

In: a width, a seed. Out: H on every qubit, ten times, with rotations between. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def hadamard_layers(num_qubits: int, seed: int = 7, layers: int = 10) -> QuantumCircuit:
    """Product over layers of H on every qubit, RZ(angle) on every qubit between two layers; the state stays a product.

    Args:
        num_qubits: width.
        seed: of the angles; ``metadata["angles"]`` is a list of ``layers - 1`` lists.
        layers: of H.

    Source:
        A bandwidth test: every layer of H mixes every qubit; Fino and Algazi, IEEE Trans. Comput. C-25, 1142 (1976).
    """
    angles = np.random.default_rng([seed, num_qubits]).uniform(0, 2 * np.pi, (layers - 1, num_qubits))
    circuit = QuantumCircuit(num_qubits, name=f"hadamard_layers_n{num_qubits}", metadata={"angles": angles.tolist()})
    circuit.h(range(num_qubits))
    for row in angles:
        for qubit, angle in enumerate(row):
            circuit.rz(float(angle), qubit)
        circuit.h(range(num_qubits))
    return circuit
