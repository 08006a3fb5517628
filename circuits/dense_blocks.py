"""Dense random unitaries on arbitrary qubits.

In: a width, a seed, a block width. Out: a few Haar-random unitaries. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import UnitaryGate
from qiskit.quantum_info import random_unitary

NUM_BLOCKS = {5: 20, 8: 6, 10: 3}  # about equal work at equal width


def dense_blocks(num_qubits: int, seed: int = 7, block_qubits: int = 5) -> QuantumCircuit:
    """A Haar-random 2^k x 2^k unitary on k distinct random qubits in random order, a few times.

    Args:
        num_qubits: width, at least k.
        seed: of unitaries and qubits.
        block_qubits: k; 20 blocks for k = 5, 6 for 8, 3 for 10, 4 for any other.

    Source:
        Mezzadri, arXiv:math-ph/0609050 (the distribution).
    """
    rng = np.random.default_rng([seed, num_qubits, block_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"dense{block_qubits}_n{num_qubits}")
    for block in range(NUM_BLOCKS.get(block_qubits, 4)):
        unitary = random_unitary(2**block_qubits, seed=seed + block)
        circuit.append(UnitaryGate(unitary), [int(q) for q in rng.permutation(num_qubits)[:block_qubits]])
    return circuit
