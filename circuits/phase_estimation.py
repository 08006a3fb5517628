"""Quantum phase estimation.

In: a width, a seed. Out: a circuit that reads the phase of a PhaseGate. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFTGate


def phase_estimation(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """Writes m of P(2 pi m / 2^c)|1> = exp(2 pi i m / 2^c)|1> on the c = n - 1 counting qubits, exactly.

    Qubits 0 to c - 1 count (qubit 0 is the least bit of m), qubit c holds the eigenstate |1>.

    Args:
        num_qubits: width, at least 2.
        seed: of m, which is in ``metadata["phase_numerator"]``.

    Source:
        Kitaev, arXiv:quant-ph/9511026; Nielsen and Chuang, section 5.2.
    """
    counting = num_qubits - 1
    # drawn bit by bit: a 64-bit draw would not reach the width of a large register
    bits = np.random.default_rng([seed, num_qubits]).integers(2, size=counting)
    numerator = sum(int(bit) << position for position, bit in enumerate(bits))
    name = f"phase_estimation_n{num_qubits}"
    circuit = QuantumCircuit(num_qubits, name=name, metadata={"phase_numerator": numerator})
    circuit.h(range(counting))
    circuit.x(counting)
    for qubit in range(counting):
        # the gate's 2^qubit-th power; whole turns are dropped in integers, so no bit of the phase is lost
        power = (numerator << qubit) % (1 << counting)
        circuit.cp(2 * np.pi * (power / (1 << counting)), qubit, counting)
    circuit.compose(QFTGate(counting).inverse().definition, range(counting), inplace=True)
    return circuit
