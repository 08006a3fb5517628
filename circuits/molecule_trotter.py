"""One Trotter step of a molecule's Hamiltonian.

In: a width, a seed. Out: rotations about random Pauli strings as CX ladders. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import PauliEvolutionGate
from qiskit.quantum_info import SparsePauliOp

HOPPING = ("XX", "YY")
# of a_p^dagger a_q^dagger a_r a_s + h.c.: an even number of Y
EXCHANGE = ("XXXX", "YYYY", "XXYY", "XYXY", "XYYX", "YXXY", "YXYX", "YYXX")


def molecule_trotter(num_qubits: int, seed: int = 7, strings: int = 400) -> QuantumCircuit:
    """Product of exp(-0.5 i angle P) over random Pauli strings P, after X on the first num_qubits // 2 qubits.

    Each string has the form that the Jordan-Wigner map gives one or two hopping electrons: X and Y on two or four
    qubits, Z on all qubits between the first two and between the last two. It is a ladder of CX up to an RZ and back.

    Args:
        num_qubits: number of spin orbitals, at least 4.
        seed: of strings and angles; ``metadata["strings"]`` has a row ``[label, angle]`` of each, in order.
        strings: number of rotations.

    Source:
        Whitfield, Biamonte, Aspuru-Guzik, arXiv:1001.3855, table III.
    """
    rng = np.random.default_rng([seed, num_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"molecule_trotter_n{num_qubits}", metadata={"strings": []})
    circuit.x(range(num_qubits // 2))
    for _ in range(strings):
        ends = sorted(rng.choice(num_qubits, rng.choice([2, 4]), replace=False).tolist())
        letters = str(rng.choice(HOPPING if len(ends) == 2 else EXCHANGE))
        between = [q for first, last in zip(ends[::2], ends[1::2], strict=True) for q in range(first + 1, last)]
        string = SparsePauliOp.from_sparse_list([(letters + "Z" * len(between), [*ends, *between], 1.0)], num_qubits)
        angle = float(rng.normal(scale=0.1))
        circuit.metadata["strings"].append([string.paulis[0].to_label(), angle])
        circuit.compose(PauliEvolutionGate(string, angle / 2).definition, inplace=True)
    return circuit
