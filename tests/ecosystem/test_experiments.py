"""Qiskit Experiments run on the backend: tomography, benchmarking, coherence times, volume, readout, composites."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import CXGate
from qiskit.quantum_info import DensityMatrix, state_fidelity

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import OptionError

framework = pytest.importorskip("qiskit_experiments.framework", reason="qiskit-experiments is not installed")
library = pytest.importorskip("qiskit_experiments.library", reason="qiskit-experiments is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of the fits: ideal data has no decay

FREQUENCY = 1e5
DELAYS = np.linspace(1e-6, 50e-6, 12)
MANY_DELAYS = np.linspace(1e-6, 20e-6, 33)  # two periods of FREQUENCY


def finished(experiment, **options):
    data = experiment.run(OzakiBackend(seed_simulator=11), **options).block_for_results()
    assert str(data.status()) == "ExperimentStatus.DONE", data.errors()
    return data


def value(data, name):
    return data.analysis_results(name, dataframe=False).value


def fractions_of_ones(data):
    return np.array([row["counts"].get("1", 0) / sum(row["counts"].values()) for row in data.data()])


def bell():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    return circuit


@pytest.mark.parametrize("experiment", ["StateTomography", "MitigatedStateTomography"])
def test_state_tomography(experiment):
    data = finished(getattr(library, experiment)(bell()), shots=4000)
    assert state_fidelity(value(data, "state"), DensityMatrix(bell()), validate=False) > 0.98


@pytest.mark.parametrize("experiment", ["ProcessTomography", "MitigatedProcessTomography"])
def test_process_tomography(experiment):
    flip = QuantumCircuit(1)
    flip.x(0)
    data = finished(getattr(library, experiment)(flip), shots=4000)
    assert value(data, "process_fidelity") > 0.98


def test_randomized_benchmarking_has_no_errors():
    data = finished(library.StandardRB((0, 1), lengths=[1, 10, 30], num_samples=2, seed=5), shots=200)
    assert all(set(row["counts"]) == {"00"} for row in data.data())
    assert value(data, "EPC").nominal_value == pytest.approx(0, abs=1e-6)


def test_interleaved_randomized_benchmarking_has_no_errors():
    experiment = library.InterleavedRB(CXGate(), (0, 1), lengths=[1, 5, 10], num_samples=2, seed=3)
    data = finished(experiment, shots=200)
    assert all(set(row["counts"]) == {"00"} for row in data.data())
    assert value(data, "EPC").nominal_value == pytest.approx(0, abs=1e-6)


def test_layer_fidelity_is_one():
    layers = [[(0, 1)], [(1, 2)]]
    gates = {"two_qubit_gate": "cz", "one_qubit_basis_gates": ["rz", "sx", "x"]}
    data = finished(
        library.LayerFidelity((0, 1, 2), layers, lengths=[1, 10], num_samples=2, seed=3, **gates), shots=100
    )
    assert value(data, "LF").nominal_value == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(("experiment", "ones"), [("T1", 1), ("T2Hahn", 1)])
def test_coherence_times_see_no_decay(experiment, ones):
    data = finished(getattr(library, experiment)((0,), DELAYS), shots=200)
    assert set(fractions_of_ones(data)) in ({ones}, {1 - ones})  # the same state, at every delay


def test_a_ramsey_experiment_finds_its_own_frequency():
    data = finished(library.T2Ramsey((0,), MANY_DELAYS, osc_freq=FREQUENCY), shots=2000)
    expected = (1 + np.cos(2 * np.pi * FREQUENCY * MANY_DELAYS)) / 2
    zeros = 1 - fractions_of_ones(data)
    assert min(abs(zeros - expected).max(), abs(1 - zeros - expected).max()) < 0.08
    assert value(data, "Frequency").nominal_value == pytest.approx(FREQUENCY, rel=0.01)


@pytest.mark.parametrize("experiment", ["FineXAmplitude", "FineSXAmplitude"])
def test_gates_rotate_by_their_angle(experiment):
    angle = value(finished(getattr(library, experiment)((0,)), shots=1000), "d_theta")
    assert abs(angle.nominal_value) < 0.01


def test_quantum_volume_finds_the_ideal_heavy_outputs():
    shots = 500
    data = finished(library.QuantumVolume(range(4), trials=20, seed=2), shots=shots)
    heavy = []
    for row in data.data():
        probabilities = np.array(row["metadata"]["ideal_probabilities"])
        heavy.append(probabilities[probabilities > np.median(probabilities)].sum())
    assert value(data, "mean_HOP").nominal_value == pytest.approx(np.mean(heavy), abs=5 * 0.5 / np.sqrt(20 * shots))


@pytest.mark.parametrize("experiment", ["LocalReadoutError", "CorrelatedReadoutError"])
def test_readout_is_perfect(experiment):
    data = finished(getattr(library, experiment)([0, 1]), shots=500)
    name = {"LocalReadoutError": "Local", "CorrelatedReadoutError": "Correlated"}[experiment]
    mitigator = value(data, f"{name} Readout Mitigator")
    np.testing.assert_allclose(mitigator.assignment_matrix([0, 1]), np.eye(4))


@pytest.mark.parametrize("composite", ["ParallelExperiment", "BatchExperiment"])
def test_composite_experiments_on_qubits_far_apart(composite):
    parts = [library.T1((qubit,), DELAYS) for qubit in (0, 126)]
    experiment = getattr(framework, composite)(parts, flatten_results=False)
    data = experiment.run(OzakiBackend(seed_simulator=11), analysis=None, shots=100).block_for_results()
    is_parallel = composite == "ParallelExperiment"
    assert len(data.data()) == len(DELAYS) * (1 if is_parallel else 2)
    assert all(row["counts"] == {"11" if is_parallel else "1": 100} for row in data.data())


def test_a_composite_of_composites_gives_the_results_of_its_parts():
    ramseys = [library.T2Ramsey((qubit,), MANY_DELAYS, osc_freq=(qubit + 1) * FREQUENCY) for qubit in (0, 1)]
    parallel = framework.ParallelExperiment(ramseys, flatten_results=True)
    parts = [parallel, library.StateTomography(bell()), library.LocalReadoutError([0, 1])]
    data = finished(framework.BatchExperiment(parts, flatten_results=True), shots=2000)
    frequencies = [result.value.nominal_value for result in data.analysis_results("Frequency", dataframe=False)]
    assert sorted(frequencies) == pytest.approx([FREQUENCY, 2 * FREQUENCY], rel=0.01)
    assert state_fidelity(value(data, "state"), DensityMatrix(bell()), validate=False) > 0.98
    np.testing.assert_allclose(value(data, "Local Readout Mitigator").assignment_matrix([0, 1]), np.eye(4))


@pytest.mark.parametrize("backend_run", [False, True])  # by a sampler of qiskit-ibm-runtime, or by the backend's run
@pytest.mark.parametrize("meas_return", ["single", "avg"])
def test_classified_outcomes_are_taken(meas_return, backend_run):
    options = {"meas_level": 2, "meas_return": meas_return, "shots": 50, "backend_run": backend_run}
    assert set(fractions_of_ones(finished(library.T1((0,), DELAYS), **options))) == {1}


@pytest.mark.parametrize("level", [0, 1])
def test_signals_are_refused_by_name(level):
    with pytest.raises(OptionError, match=f"^meas_level={level} is not allowed"):
        library.T1((0,), DELAYS).run(OzakiBackend(), meas_level=level, backend_run=True)
