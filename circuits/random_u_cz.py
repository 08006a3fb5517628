"""Random circuits of U and CZ in a brick pattern.

In: a width, a seed. Out: layers of general rotations and bricks of CZ. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def random_u_cz(num_qubits: int, seed: int = 7, layers: int = 20) -> QuantumCircuit:
    """Per layer U with even random angles on each qubit, then CZ on pairs (q, q + 1) of alternating parity.

    Args:
        num_qubits: width, at least 2.
        seed: of the angles.
        layers: of both.

    Source:
        As `random_brickwork`, with no gate that is cheaper than others of its width: arXiv:1208.0692.
    """
    rng = np.random.default_rng([seed, num_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"random_u_cz_n{num_qubits}")
    for layer in range(layers):
        for qubit in range(num_qubits):
            circuit.u(*(float(angle) for angle in rng.uniform(0, 2 * np.pi, 3)), qubit)
        for qubit in range(layer % 2, num_qubits - 1, 2):
            circuit.cz(qubit, qubit + 1)
    return circuit
