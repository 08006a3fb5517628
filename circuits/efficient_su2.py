"""The hardware-efficient ansatz of variational algorithms.

In: a width, a seed. Out: Qiskit's efficient_su2 with random angles bound. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2 as ansatz


def efficient_su2(num_qubits: int, seed: int = 7, repetitions: int = 3) -> QuantumCircuit:
    """RY and RZ on every qubit, (repetitions + 1) times, with a chain of CX between.

    Args:
        num_qubits: width.
        seed: of the angles, even in 0 to 2 pi; ``metadata["angles"]`` has them in Qiskit's parameter order.
        repetitions: chains of CX.

    Source:
        Kandala et al., arXiv:1704.05018, figure 1.
    """
    circuit = ansatz(num_qubits, reps=repetitions, entanglement="linear")
    angles = np.random.default_rng([seed, num_qubits]).uniform(0, 2 * np.pi, circuit.num_parameters)
    bound = circuit.assign_parameters(angles.tolist())
    bound.name, bound.metadata = f"efficient_su2_n{num_qubits}", {"angles": angles.tolist()}
    return bound
