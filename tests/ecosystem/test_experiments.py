"""Qiskit Experiments run on the backend: tomography, benchmarking, coherence times, volume, readout, composites."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import DensityMatrix, state_fidelity

from qsim_ozaki import OzakiBackend

framework = pytest.importorskip("qiskit_experiments.framework", reason="qiskit-experiments is not installed")
library = pytest.importorskip("qiskit_experiments.library", reason="qiskit-experiments is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the fits: ideal data has no decay


def finished(experiment, **options):
    data = experiment.run(OzakiBackend(seed_simulator=11), **options).block_for_results()
    assert str(data.status()) == "ExperimentStatus.DONE", data.errors()
    return data


def value(data, name):
    return data.analysis_results(name, dataframe=False).value


def test_state_tomography():
    bell = QuantumCircuit(2)
    bell.h(0)
    bell.cx(0, 1)
    data = finished(library.StateTomography(bell), shots=4000)
    assert state_fidelity(value(data, "state"), DensityMatrix(bell), validate=False) > 0.98


def test_process_tomography():
    flip = QuantumCircuit(1)
    flip.x(0)
    data = finished(library.ProcessTomography(flip), shots=4000)
    assert value(data, "process_fidelity") > 0.98


def test_randomized_benchmarking_has_no_errors():
    experiment = library.StandardRB((0,), lengths=[1, 20, 60], num_samples=2, seed=5)
    data = finished(experiment, shots=200)
    assert all(set(row["counts"]) == {"0"} for row in data.data())


@pytest.mark.parametrize("experiment", ["T1", "T2Ramsey", "T2Hahn"])
def test_coherence_times_see_no_decay(experiment):
    delays = np.linspace(1e-6, 50e-6, 12)
    options = {"osc_freq": 1e5} if experiment == "T2Ramsey" else {}
    data = (
        getattr(library, experiment)((0,), delays, **options)
        .run(OzakiBackend(seed_simulator=11), analysis=None, shots=1000)
        .block_for_results()
    )
    ones = np.array([row["counts"].get("1", 0) / 1000 for row in data.data()])
    if experiment == "T2Ramsey":
        expected = (1 + np.cos(2 * np.pi * 1e5 * delays)) / 2
        ones = np.minimum(abs(ones - expected), abs(1 - ones - expected))
        np.testing.assert_allclose(ones, 0, atol=0.1)
    else:
        assert len(set(ones.tolist())) == 1  # the excited state stays, at every delay


def test_quantum_volume():
    data = finished(library.QuantumVolume(range(3), trials=20, seed=2), shots=500)
    assert value(data, "mean_HOP") > 0.7


@pytest.mark.parametrize("experiment", ["LocalReadoutError", "CorrelatedReadoutError"])
def test_readout_is_perfect(experiment):
    data = finished(getattr(library, experiment)([0, 1]), shots=500)
    name = {"LocalReadoutError": "Local", "CorrelatedReadoutError": "Correlated"}[experiment]
    mitigator = value(data, f"{name} Readout Mitigator")
    np.testing.assert_allclose(mitigator.assignment_matrix([0, 1]), np.eye(4))


@pytest.mark.parametrize("composite", ["ParallelExperiment", "BatchExperiment"])
def test_composite_experiments(composite):
    delays = np.linspace(1e-6, 50e-6, 8)
    parts = [library.T1((qubit,), delays) for qubit in (0, 4)]
    experiment = getattr(framework, composite)(parts, flatten_results=False)
    data = experiment.run(OzakiBackend(seed_simulator=11), analysis=None, shots=100).block_for_results()
    assert len(data.data()) == (8 if composite == "ParallelExperiment" else 16)
    key = "11" if composite == "ParallelExperiment" else "1"
    assert all(set(row["counts"]) == {key} for row in data.data())
