"""Random brickwork circuits.

In: a width, a seed. Out: layers of random rotations and bricks of CX or CZ. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def random_brickwork(num_qubits: int, seed: int = 7, layers: int = 20) -> QuantumCircuit:
    """Per layer random RX, RY, RZ or U on each qubit, then CX or CZ on pairs (q, q + 1) of alternating parity.

    Args:
        num_qubits: width, at least 2.
        seed: of gates and angles.
        layers: of both.

    Source:
        The local random circuits of Brandao, Harrow, Horodecki, arXiv:1208.0692, in their parallel form.
    """
    rng = np.random.default_rng([seed, num_qubits])
    circuit = QuantumCircuit(num_qubits, name=f"random_brickwork_n{num_qubits}")
    rotations = (circuit.rx, circuit.ry, circuit.rz)
    for layer in range(layers):
        for qubit in range(num_qubits):
            choice = int(rng.integers(4))
            if choice == 3:
                circuit.u(*(float(angle) for angle in rng.uniform(0, 2 * np.pi, 3)), qubit)
            else:
                rotations[choice](float(rng.uniform(0, 2 * np.pi)), qubit)
        for qubit in range(layer % 2, num_qubits - 1, 2):
            (circuit.cz if rng.integers(2) else circuit.cx)(qubit, qubit + 1)
    return circuit
