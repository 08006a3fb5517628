"""A ripple-carry adder with one ancilla.

In: a width, a seed. Out: the sum of a register in superposition and a number. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def cuccaro_adder(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """Sum over a of |0> |a> |(a + b) mod 2^m> |carry> / 2^(m/2), m = (num_qubits - 2) // 2, of a random number b.

    Qubit 0 is the ancilla, then bits of a and of the sum in turn, lowest first; the carry is qubit 2 m + 1. With an odd
    width the last qubit stays |0>.

    Args:
        num_qubits: width, at least 4.
        seed: of b, which is ``metadata["addend"]``.

    Source:
        Cuccaro, Draper, Kutin, Petrie Moulton, arXiv:quant-ph/0410184, figure 4.
    """
    rng = np.random.default_rng([seed, num_qubits])
    m = (num_qubits - 2) // 2
    bits = rng.integers(0, 2, m).tolist()
    addend = sum(bit << k for k, bit in enumerate(bits))
    circuit = QuantumCircuit(num_qubits, name=f"cuccaro_adder_n{num_qubits}", metadata={"addend": addend})
    a, b, carry = range(1, 2 * m, 2), range(2, 2 * m + 1, 2), 2 * m + 1
    circuit.h(a)
    for qubit, bit in zip(b, bits, strict=True):
        if bit:
            circuit.x(qubit)
    carries = [0, *a[:-1]]  # the carry into a bit lies on the bit of a below it
    for c, y, x in zip(carries, b, a, strict=True):  # majority
        circuit.cx(x, y)
        circuit.cx(x, c)
        circuit.ccx(c, y, x)
    circuit.cx(a[-1], carry)
    for c, y, x in zip(carries[::-1], b[::-1], a[::-1], strict=True):  # undoes it and adds
        circuit.ccx(c, y, x)
        circuit.cx(x, c)
        circuit.cx(c, y)
    return circuit
