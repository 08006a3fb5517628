"""The Bernstein-Vazirani algorithm.

In: a width, a seed. Out: a circuit that finds a hidden string by one query. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def bernstein_vazirani(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """Leaves s of the oracle f(x) = s . x mod 2 on qubits 0 to n - 2; the last qubit is the oracle's, |1> at the end.

    Args:
        num_qubits: width, at least 2.
        seed: of s; ``metadata["hidden_string"]`` has qubit 0 on the right.

    Source:
        Bernstein and Vazirani, SIAM J. Comput. 26, 1411 (1997).
    """
    oracle = num_qubits - 1
    bits = np.random.default_rng([seed, num_qubits]).integers(2, size=oracle)
    hidden = "".join(str(bit) for bit in reversed(bits))
    circuit = QuantumCircuit(num_qubits, name=f"bernstein_vazirani_n{num_qubits}", metadata={"hidden_string": hidden})
    circuit.x(oracle)
    circuit.h(range(num_qubits))
    for qubit in np.flatnonzero(bits):
        circuit.cx(int(qubit), oracle)
    circuit.h(range(num_qubits))
    return circuit
