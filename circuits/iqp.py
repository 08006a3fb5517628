"""Instantaneous quantum polynomial-time circuits.

In: a width, a seed. Out: Hadamards around random diagonal gates. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def iqp(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """H D H, D = product of P(pi a_q / 4) and CP(pi b_qr / 2), a in 0..7 and b in 0..3 drawn evenly, all pairs q < r.

    Args:
        num_qubits: width.
        seed: of a and b; ``metadata["single"]`` is a, ``metadata["pairs"]`` lists (q, r, b).

    Source:
        Bremner, Montanaro, Shepherd, arXiv:1504.07999.
    """
    rng = np.random.default_rng([seed, num_qubits])
    single = [int(a) for a in rng.integers(8, size=num_qubits)]
    couples = [(q, r) for q in range(num_qubits) for r in range(q + 1, num_qubits)]
    pairs = [(q, r, int(b)) for (q, r), b in zip(couples, rng.integers(4, size=len(couples)), strict=True)]
    circuit = QuantumCircuit(num_qubits, name=f"iqp_n{num_qubits}", metadata={"single": single, "pairs": pairs})
    circuit.h(range(num_qubits))
    for qubit, a in enumerate(single):
        if a:
            circuit.p(np.pi * a / 4, qubit)
    for q, r, b in pairs:
        if b:
            circuit.cp(np.pi * b / 2, q, r)
    circuit.h(range(num_qubits))
    return circuit
