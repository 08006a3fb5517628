"""The hidden shift problem of a bent function.

In: an even width, a seed. Out: a circuit that finds the shift. It may import Qiskit and NumPy only.
"""

import numpy as np
from qiskit import QuantumCircuit


def hidden_shift(num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """Leaves the shift s of g(x) = f(x + s), f(x, y) = x . y mod 2 (Maiorana-McFarland, its own dual), on all qubits.

    Args:
        num_qubits: width, even.
        seed: of s; ``metadata["shift"]`` has qubit 0 on the right.

    Raises:
        ValueError: the width is odd; bent functions exist on an even number of bits only.

    Source:
        Roetteler, arXiv:0811.3208.
    """
    if num_qubits % 2:
        raise ValueError(f"hidden_shift needs an even number of qubits, not {num_qubits}: no bent function is odd")
    bits = np.random.default_rng([seed, num_qubits]).integers(2, size=num_qubits)
    shift = "".join(str(bit) for bit in reversed(bits))
    circuit = QuantumCircuit(num_qubits, name=f"hidden_shift_n{num_qubits}", metadata={"shift": shift})
    flipped = [int(qubit) for qubit in np.flatnonzero(bits)]
    circuit.h(range(num_qubits))
    if flipped:
        circuit.x(flipped)
    _bent_phase(circuit)
    if flipped:
        circuit.x(flipped)
    circuit.h(range(num_qubits))
    _bent_phase(circuit)
    circuit.h(range(num_qubits))
    return circuit


def _bent_phase(circuit: QuantumCircuit) -> None:
    """Appends the phase (-1)^(x . y), x on the lower half of the qubits and y on the upper."""
    half = circuit.num_qubits // 2
    for qubit in range(half):
        circuit.cz(qubit, qubit + half)
