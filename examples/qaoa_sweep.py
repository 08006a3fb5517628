"""MaxCut by QAOA: a grid of angles in one run, then samples at the best of them."""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import EstimatorV2, SamplerV2

NUM_QUBITS = 8
edges = [(q, (q + step) % NUM_QUBITS) for q in range(NUM_QUBITS) for step in (1, 2)]
cut = SparsePauliOp.from_sparse_list(
    [("", [], len(edges) / 2), *(("ZZ", edge, -0.5) for edge in edges)], num_qubits=NUM_QUBITS
)

gamma, beta = Parameter("gamma"), Parameter("beta")
circuit = QuantumCircuit(NUM_QUBITS)
circuit.h(range(NUM_QUBITS))
for edge in edges:
    circuit.rzz(gamma, *edge)
circuit.rx(2 * beta, range(NUM_QUBITS))

grid = np.stack(np.meshgrid(np.linspace(0, np.pi / 2, 40), np.linspace(0, np.pi, 80), indexing="ij"), axis=-1)
order = [["beta", "gamma"].index(parameter.name) for parameter in circuit.parameters]
values = EstimatorV2().run([(circuit, cut, grid[..., order])]).result()[0].data.evs
best = np.unravel_index(values.argmax(), values.shape)
print(f"{values.size} points, best mean cut {values[best]:.3f} of {len(edges)} edges")

measured = circuit.measure_all(inplace=False)
data = SamplerV2(seed=7).run([(measured, grid[best][order])], shots=1000).result()[0].data.meas
cuts = {bits: sum(bits[a] != bits[b] for a, b in edges) for bits in data.get_counts()}
winner = max(cuts, key=cuts.get)
print(f"largest cut among 1000 samples: {cuts[winner]} edges by {winner}")
