"""Grover's search.

In: a width, a seed. Out: a circuit that amplifies basis states whose marked bits are all 1.
It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def grover(num_qubits: int, seed: int = 7, iterations: int = 3, marked_bits: int = 9) -> QuantumCircuit:
    """Success sin^2((2 k + 1) t) after k iterations, sin^2 t = 2^-m, where m random qubits must read 1.

    Args:
        num_qubits: width, at least 2.
        seed: of the marked qubits, which are in ``metadata["marked_qubits"]``.
        iterations: at most; fewer where fewer reach the largest probability.
        marked_bits: m, cut to the width.

    Source:
        Grover, arXiv:quant-ph/9605043; Boyer et al., arXiv:quant-ph/9605034, section 3.
    """
    marked_bits = min(marked_bits, num_qubits)
    angle = np.arcsin(2 ** (-marked_bits / 2))
    iterations = min(iterations, int(np.pi / (4 * angle)))
    marked = [int(q) for q in np.random.default_rng([seed, num_qubits]).permutation(num_qubits)[:marked_bits]]
    success = float(np.sin((2 * iterations + 1) * angle) ** 2)
    metadata = {"marked_qubits": marked, "success_probability": success}
    circuit = QuantumCircuit(num_qubits, name=f"grover_n{num_qubits}", metadata=metadata)
    circuit.h(range(num_qubits))
    for _ in range(iterations):
        _flip_all_ones(circuit, marked)
        circuit.h(range(num_qubits))
        circuit.x(range(num_qubits))
        _flip_all_ones(circuit, list(range(num_qubits)))
        circuit.x(range(num_qubits))
        circuit.h(range(num_qubits))
    return circuit


def _flip_all_ones(circuit: QuantumCircuit, qubits: list[int]) -> None:
    """Appends the phase -1 where all of ``qubits`` read 1."""
    if len(qubits) == 1:
        circuit.z(qubits[0])
        return
    circuit.h(qubits[-1])
    circuit.mcx(qubits[:-1], qubits[-1])
    circuit.h(qubits[-1])
