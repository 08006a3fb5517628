"""Random circuits on a grid, as in quantum supremacy experiments.

In: a width, a seed. Out: cycles of random square-root gates and fSim couplers. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import XXPlusYYGate

AXES = (0.0, np.pi / 2, np.pi / 4)  # of sqrt(X), sqrt(Y), sqrt(W), W = (X + Y) / sqrt(2)
FSIM_THETA, FSIM_PHI = np.pi / 2, np.pi / 6
SEQUENCE = "ABCDCDAB"


def supremacy_grid(num_qubits: int, seed: int = 7, cycles: int = 8) -> QuantumCircuit:
    """Per cycle sqrt(X), sqrt(Y) or sqrt(W) on each qubit, never the last again, then fSim(pi/2, pi/6) on a pattern.

    Qubit ``r * columns + c`` is at row r, column c of a near-square grid whose last row may be short.

    Args:
        num_qubits: width.
        seed: of the single-qubit gates.
        cycles: each uses the next pattern of A B C D C D A B; a half cycle of single-qubit gates ends the circuit.

    Source:
        Arute et al., Nature 574, 505 (2019), arXiv:1910.11333, figure 3.
    """
    rng = np.random.default_rng([seed, num_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"supremacy_grid_n{num_qubits}")
    last = rng.integers(3, size=num_qubits)
    for cycle in range(cycles + 1):
        # one of the two others: add 1 or 2 modulo 3
        last = (last + rng.integers(1, 3, size=num_qubits)) % 3
        for qubit, axis in enumerate(last):
            circuit.r(np.pi / 2, AXES[axis], qubit)
        if cycle < cycles:
            for q, r in couplers(num_qubits, SEQUENCE[cycle % len(SEQUENCE)]):
                # fSim(theta, phi): exp(-i theta (XX + YY) / 2), then exp(-i phi) on |11>
                circuit.append(XXPlusYYGate(2 * FSIM_THETA), [q, r])
                circuit.cp(-FSIM_PHI, q, r)
    return circuit


def couplers(num_qubits: int, pattern: str) -> list[tuple[int, int]]:
    """Neighbour pairs of one pattern: A, B couple columns that start even, odd; C, D rows that start even, odd."""
    columns = int(np.ceil(np.sqrt(num_qubits)))
    first, stride = {"A": (0, 1), "B": (1, 1), "C": (0, columns), "D": (1, columns)}[pattern]
    pairs = []
    for qubit in range(num_qubits - stride):
        row, column = divmod(qubit, columns)
        place = column if stride == 1 else row
        if place % 2 == first and (stride != 1 or column + 1 < columns):
            pairs.append((qubit, qubit + stride))
    return pairs
