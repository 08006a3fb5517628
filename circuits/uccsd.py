"""Unitary coupled cluster with double excitations.

In: a width, a seed. Out: the Hartree-Fock state and excitations as CX ladders. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import PauliEvolutionGate
from qiskit.quantum_info import SparsePauliOp

# letters on the orbitals (i, j, a, b), and the sign of each string in (i / 8) sum = T - T^dagger
STRINGS = {"XXYX": 1, "YXYY": 1, "XYYY": 1, "XXXY": 1, "YXXX": -1, "XYXX": -1, "YYYX": -1, "YYXY": -1}


def uccsd(num_qubits: int, seed: int = 7, excitations: int = 24) -> QuantumCircuit:
    """Product of exp(angle (T - T^dagger)), T = a_b^dagger a_a^dagger a_j a_i, on num_qubits // 2 particles.

    Under the Jordan-Wigner map an excitation is 8 rotations about Pauli strings that commute, each a ladder of CX up to
    an RZ and back. The orbitals i < j are occupied at first, a < b are not.

    Args:
        num_qubits: number of spin orbitals, at least 4.
        seed: of orbitals and angles; ``metadata["excitations"]`` has a row ``[i, j, a, b, angle]`` of each.
        excitations: number of double excitations.

    Source:
        Whitfield, Biamonte, Aspuru-Guzik, arXiv:1001.3855; Romero et al., arXiv:1701.02691.
    """
    rng = np.random.default_rng([seed, num_qubits])
    occupied = num_qubits // 2
    circuit = QuantumCircuit(num_qubits, name=f"uccsd_n{num_qubits}", metadata={"excitations": []})
    circuit.x(range(occupied))
    for _ in range(excitations):
        i, j = sorted(rng.choice(occupied, 2, replace=False).tolist())
        a, b = sorted((occupied + rng.choice(num_qubits - occupied, 2, replace=False)).tolist())
        angle = float(rng.normal(scale=0.1))
        circuit.metadata["excitations"].append([i, j, a, b, angle])
        between = [*range(i + 1, j), *range(a + 1, b)]
        for letters, sign in STRINGS.items():
            string = SparsePauliOp.from_sparse_list(
                [(letters + "Z" * len(between), [i, j, a, b, *between], 1.0)], num_qubits
            )
            evolution = PauliEvolutionGate(string, -sign * angle / 8)
            circuit.compose(evolution.definition, inplace=True)
    return circuit
