"""Qiskit Algorithms run on our primitives."""

import numpy as np
import pytest
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import EstimatorV2, SamplerV2

algorithms = pytest.importorskip("qiskit_algorithms", reason="qiskit-algorithms is not installed")
optimizers = pytest.importorskip("qiskit_algorithms.optimizers", reason="qiskit-algorithms is not installed")

HAMILTONIAN = SparsePauliOp(["ZZ", "XI", "IX"], [-1.0, -0.5, -0.5])  # transverse-field Ising chain of two spins


def test_vqe_reaches_the_ground_energy():
    ansatz = efficient_su2(2, reps=1)
    start = np.full(ansatz.num_parameters, 0.3)
    solver = algorithms.VQE(EstimatorV2(), ansatz, optimizers.COBYLA(maxiter=400), initial_point=start)
    energy = solver.compute_minimum_eigenvalue(HAMILTONIAN).eigenvalue.real
    exact = np.linalg.eigvalsh(HAMILTONIAN.to_matrix())[0]
    assert exact - 1e-9 < energy < exact + 1e-3


def test_grover_finds_the_marked_state():
    from qiskit import QuantumCircuit

    oracle = QuantumCircuit(3)
    oracle.x(1)
    oracle.ccz(0, 1, 2)
    oracle.x(1)
    problem = algorithms.AmplificationProblem(oracle, is_good_state=["101"])
    result = algorithms.Grover(sampler=SamplerV2(seed=5), iterations=2).amplify(problem)
    assert result.top_measurement == "101"
