"""Random circuits of Clifford gates and a few T.

In: a width, a seed. Out: layers of one-qubit gates and CX on random pairs. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def clifford_t(num_qubits: int, seed: int = 7, layers: int = 50, t_share: float = 0.1) -> QuantumCircuit:
    """Per layer T (with probability ``t_share``), or else H, S or X on each qubit, then CX on random pairs.

    Args:
        num_qubits: width, at least 2.
        seed: of gates and pairs.
        layers: of both.
        t_share: probability of T; 0 gives a Clifford circuit.

    Source:
        Bravyi and Gosset, arXiv:1601.07601, where such circuits are hard in the number of T alone.
    """
    rng = np.random.default_rng([seed, num_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"clifford_t_n{num_qubits}")
    for _ in range(layers):
        for qubit in range(num_qubits):
            if rng.random() < t_share:
                circuit.t(qubit)
            else:
                (circuit.h, circuit.s, circuit.x)[rng.integers(3)](qubit)
        order = rng.permutation(num_qubits).tolist()
        for control, target in zip(order[::2], order[1::2], strict=False):
            circuit.cx(control, target)
    return circuit
