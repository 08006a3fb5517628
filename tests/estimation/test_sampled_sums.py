"""Sampled estimates: their distribution, covariance, seeds, and work and memory that do not grow with the shots."""

import tracemalloc

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import SparsePauliOp, Statevector
from scipy.stats import chi2

from qsim_ozaki import EstimatorV2
from qsim_ozaki.ir import Observable, SampledMeans, Term, commuting_groups
from qsim_ozaki.runtime import draw_counts, sampling


def dynamic(circuit):
    """The same values, by histories: an idle qubit is measured on the way."""
    measured = QuantumCircuit(circuit.num_qubits, 1)
    measured.h(circuit.num_qubits - 1)
    measured.measure(circuit.num_qubits - 1, 0)
    measured.reset(circuit.num_qubits - 1)
    return measured.compose(circuit)


@pytest.mark.parametrize("precision", [3e-4, 1e-4, 1e-6, 1.1e-8])
@pytest.mark.parametrize("of", [lambda circuit: circuit, dynamic], ids=["pure", "dynamic"])
def test_work_and_memory_do_not_grow_with_the_shots(precision, of):
    circuit = QuantumCircuit(2)
    circuit.ry(0.7, 0)
    circuit.cx(0, 1)
    observable = SparsePauliOp(["ZI", "XX"], [1.0, 0.5])
    exact = Statevector(circuit).expectation_value(observable).real
    circuit = of(circuit)
    EstimatorV2(seed=1).run([(circuit, observable)], precision=0.1).result()
    tracemalloc.start()
    data = EstimatorV2(seed=1).run([(circuit, observable)], precision=precision).result()[0].data
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20
    assert abs(data.evs - exact) < 5 * data.stds
    variance = (1 - np.cos(0.7) ** 2) + 0.25 * (1 - np.sin(0.7) ** 2)
    assert data.stds == pytest.approx(np.sqrt(variance) * precision, rel=0.01)


@pytest.mark.parametrize("precision", [0.1, 0.01])  # fewer shots than outcomes, and more
def test_terms_of_one_basis_covary_as_those_of_shots(precision):
    """Z0, Z1, Z0 Z1 and Z on all qubits in many rows: mean and covariance are those of outcomes, not of terms."""
    free = efficient_su2(8, reps=1)
    angles = np.linspace(0, 2, free.num_parameters)
    circuit = free.assign_parameters(angles)
    labels = ["IIIIIIIZ", "IIIIIIZI", "IIIIIIZZ", "ZZZZZZZZ"]
    observables = [SparsePauliOp(label) for label in labels]
    state = Statevector(circuit)
    mean = np.array([state.expectation_value(o).real for o in observables])
    second = np.array([[state.expectation_value(a @ b).real for b in observables] for a in observables])
    covariance = (second - np.outer(mean, mean)) * precision**2
    runs = 300
    rows = np.tile(angles, (runs, 1, 1))  # each row has samples of its own
    values = EstimatorV2(seed=11).run([(free, observables, rows)], precision=precision).result()[0].data.evs
    scores = (values.mean(axis=0) - mean) @ np.linalg.inv(covariance / runs) @ (values.mean(axis=0) - mean)
    assert scores < chi2.ppf(1 - 1e-6, len(labels))
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(np.cov(values.T) / spread, covariance / spread, atol=6 / np.sqrt(runs))


@pytest.mark.parametrize("outcomes_per_block", [4, 64, 1 << 18])
def test_counts_follow_their_probabilities_in_any_blocks(monkeypatch, outcomes_per_block):
    monkeypatch.setattr(sampling, "OUTCOMES_PER_BLOCK", outcomes_per_block)
    rng = np.random.default_rng(5)
    probabilities = rng.exponential(size=64)
    probabilities[[3, 40]] = 0
    shots = 1_000_000
    counts = np.zeros(64, np.int64)
    for outcomes, block in draw_counts(np.random.default_rng(7), shots, probabilities):
        counts[outcomes] += block
    assert counts.sum() == shots
    assert counts[3] == counts[40] == 0
    expected = np.delete(shots * probabilities / probabilities.sum(), [3, 40])
    statistic = ((np.delete(counts, [3, 40]) - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-6, 61)


def test_means_and_errors_do_not_depend_on_the_blocks(rng):
    terms = [Term(0, 1), Term(0, 6), Term(0, 7, 6, 2), Term(0, 3)]
    observable = Observable.of((term, float(rng.normal())) for term in terms)
    samples, counts = np.arange(8), rng.integers(1, 1000, 8)
    shots = int(counts.sum())
    (basis,) = commuting_groups([observable])
    results = []
    for blocks in ([(samples, counts)], [(samples[i : i + 3], counts[i : i + 3]) for i in (0, 3, 6)]):
        means = SampledMeans([observable], shots)
        means.add(basis, blocks)
        results.append(np.ravel(means.values_and_errors()))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)
    drawn = np.repeat(samples, counts)
    signs = [
        np.where(np.bitwise_count(drawn & (t.z & ~t.projected)) & 1, -1, 1) * (((drawn ^ t.minus) & t.projected) == 0)
        for t in terms
    ]
    totals = observable.weights @ np.array(signs)
    np.testing.assert_allclose(results[0], [totals.mean(), totals.std(ddof=1) / np.sqrt(shots)], rtol=1e-10)


def test_a_wide_basis_with_few_shots_draws_shots():
    """2**18 outcomes, 100 shots."""
    circuit = efficient_su2(18, reps=1).assign_parameters(np.linspace(0, 3, 72))
    observable = SparsePauliOp.from_sparse_list([("Z", [q], 1.0) for q in range(18)], 18)
    exact = Statevector(circuit).expectation_value(observable).real
    data = EstimatorV2(seed=2).run([(circuit, observable)], precision=0.1).result()[0].data
    assert abs(data.evs - exact) < 5 * data.stds
