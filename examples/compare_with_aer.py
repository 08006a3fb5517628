"""Compare amplitudes with Aer's, or with Qiskit's Statevector where Aer is not installed."""

import numpy as np
from qiskit import transpile
from qiskit.quantum_info import Statevector

from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.circuits import FAMILIES, build

try:
    from qiskit_aer import AerSimulator
except ImportError:
    AerSimulator = None

NUM_QUBITS = 10


def reference_state(circuit):
    if AerSimulator is None:
        return np.asarray(Statevector(circuit))
    simulator = AerSimulator(method="statevector")
    saving = transpile(circuit, simulator, optimization_level=0)
    saving.save_statevector()
    return np.asarray(simulator.run(saving).result().get_statevector())


backend = OzakiBackend()
print("reference:", "Qiskit's Statevector" if AerSimulator is None else "Aer")
for name in FAMILIES:
    circuit = build(name, NUM_QUBITS)
    saving = circuit.copy()
    save_statevector(saving)
    state = np.asarray(backend.run(saving).result().data(0)["statevector"])
    difference = np.abs(state - reference_state(circuit)).max()
    print(f"{name:20} largest difference {difference:.1e}")
