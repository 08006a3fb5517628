"""Qiskit Algorithms run on our primitives."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter
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
    oracle = QuantumCircuit(3)
    oracle.x(1)
    oracle.ccz(0, 1, 2)
    oracle.x(1)
    problem = algorithms.AmplificationProblem(oracle, is_good_state=["101"])
    result = algorithms.Grover(sampler=SamplerV2(seed=5), iterations=2).amplify(problem)
    assert result.top_measurement == "101"


def test_qaoa_cuts_a_ring_in_two():
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    cost = SparsePauliOp.from_sparse_list([("ZZ", edge, 1.0) for edge in edges], num_qubits=4)
    solver = algorithms.QAOA(SamplerV2(seed=6), optimizers.COBYLA(maxiter=30), reps=1, initial_point=[0.4, 0.4])
    result = solver.compute_minimum_eigenvalue(cost)
    assert result.best_measurement["bitstring"] in ("0101", "1010")
    assert result.best_measurement["value"].real == pytest.approx(-4)


def test_phase_estimation_reads_an_exact_phase():
    phase = QuantumCircuit(1)
    phase.p(2 * np.pi * 5 / 16, 0)
    one = QuantumCircuit(1)
    one.x(0)
    result = algorithms.PhaseEstimation(4, SamplerV2(seed=7)).estimate(phase, one)
    assert result.phase == 5 / 16


def test_a_gradient_by_shifts_is_exact():
    gradients = pytest.importorskip("qiskit_algorithms.gradients", reason="qiskit-algorithms is not installed")
    angle = Parameter("angle")
    circuit = QuantumCircuit(1)
    circuit.rx(angle, 0)
    job = gradients.ParamShiftEstimatorGradient(EstimatorV2()).run([circuit], [SparsePauliOp("Z")], [[0.7]])
    np.testing.assert_allclose(job.result().gradients, [[-np.sin(0.7)]], atol=1e-12)
