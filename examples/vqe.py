"""Find the ground state of a small molecule's Hamiltonian: exact energies and adjoint gradients."""

import numpy as np
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import SparsePauliOp
from scipy.optimize import minimize

from qsim_ozaki import EstimatorV2, expectation_gradient

# H2 at 0.735 angstrom in the STO-3G basis, parity mapping, two qubits
hamiltonian = SparsePauliOp(
    ["II", "IZ", "ZI", "ZZ", "XX"], [-1.052373245, 0.397937425, -0.397937425, -0.011280104, 0.180931199]
)
ansatz = efficient_su2(2, reps=1)
start = np.random.default_rng(7).uniform(-0.1, 0.1, ansatz.num_parameters)

calls = []
optimum = minimize(
    lambda angles: expectation_gradient(ansatz, hamiltonian, angles),
    start,
    jac=True,
    method="L-BFGS-B",
    callback=calls.append,
)
exact = np.linalg.eigvalsh(hamiltonian.to_matrix())[0]
print(f"energy {optimum.fun:.9f}, exact {exact:.9f}, {len(calls)} steps, {optimum.nfev} gradients")

sampled = EstimatorV2(seed=7).run([(ansatz, hamiltonian, optimum.x)], precision=0.01).result()[0].data
print(f"as a device would measure it: {sampled.evs:.4f} +- {sampled.stds:.4f}")
