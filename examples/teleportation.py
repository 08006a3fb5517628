"""Teleport a state: measurements inside the circuit, corrections that depend on them."""

import numpy as np
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister

from qsim_ozaki import OzakiBackend

ANGLE = 1.1

qubits = QuantumRegister(3, "q")
phase, flip, out = (ClassicalRegister(1, name) for name in ("phase", "flip", "out"))
circuit = QuantumCircuit(qubits, phase, flip, out)
circuit.ry(ANGLE, 0)  # the state to send
circuit.h(1)  # a Bell pair: qubit 1 here, qubit 2 there
circuit.cx(1, 2)
circuit.cx(0, 1)
circuit.h(0)
circuit.measure(0, phase[0])
circuit.measure(1, flip[0])
with circuit.if_test((flip, 1)):
    circuit.x(2)
with circuit.if_test((phase, 1)):
    circuit.z(2)
circuit.measure(2, out[0])

result = OzakiBackend(seed_simulator=7).run(circuit, shots=20_000).result()
counts = result.get_counts()
ones = sum(count for bits, count in counts.items() if bits.startswith("1"))
print(f"P(1) = {ones / 20_000:.4f}, sent {np.sin(ANGLE / 2) ** 2:.4f}")
print(f"{len({bits.split(' ', 1)[1] for bits in counts})} pairs of outcomes on the way")
print(f"{result.results[0].metadata['histories']} histories simulated for 20000 shots")
