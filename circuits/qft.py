"""The quantum Fourier transform.

In: a width, a seed. Out: the transform of a random product state. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFTGate


def qft(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """QFT |x> = sum over y of exp(2 pi i x y / 2^n) |y> / 2^(n/2), on RY(angle) of every qubit, final swaps included.

    The product state comes first because the transform of |0...0> alone is H on every qubit, which hides every phase.

    Args:
        num_qubits: width.
        seed: of the angles; they are in ``metadata["angles"]``.

    Source:
        Coppersmith, arXiv:quant-ph/0201067; Nielsen and Chuang, section 5.1.
    """
    angles = np.random.default_rng([seed, num_qubits]).uniform(0, 2 * np.pi, num_qubits)
    circuit = QuantumCircuit(num_qubits, name=f"qft_n{num_qubits}", metadata={"angles": angles.tolist()})
    for qubit, angle in enumerate(angles):
        circuit.ry(float(angle), qubit)
    circuit.compose(QFTGate(num_qubits).definition, inplace=True)
    return circuit
