"""Qiskit's contract: options, jobs, transpilation, results, primitives, metadata."""

import pickle
import subprocess
import sys
import threading
import traceback
from collections import Counter

import numpy as np
import pytest
from qiskit import QuantumCircuit, transpile
from qiskit.circuit import Parameter
from qiskit.primitives import BackendEstimatorV2, BackendSamplerV2
from qiskit.providers import JobStatus
from qiskit.providers.exceptions import JobTimeoutError
from qiskit.quantum_info import SparsePauliOp, Statevector
from qiskit.transpiler import CouplingMap, generate_preset_pass_manager
from support.bell import bell
from support.distribution import assert_follows
from support.random_ops import random_state, random_unitary

import qsim_ozaki
from qsim_ozaki import OzakiBackend, SaveStatevector, save_statevector, set_statevector
from qsim_ozaki.errors import CancelledError, CapacityError, EngineError, LoweringError, OptionError
from qsim_ozaki.runtime.tally import path_name


def endless():
    """More histories than anyone would wait for, in small steps."""
    circuit = QuantumCircuit(10, 10, name="endless")
    for _ in range(30):
        circuit.h(range(10))
        circuit.measure(range(10), range(10))
    return circuit


def state_of(circuit, **options):
    return np.asarray(OzakiBackend(**options).run(circuit, shots=1).result().get_statevector())


BAD_VALUES = [
    ("engine", "cpuu", "Did you mean 'cpu'"),
    ("precision", "dbl", "'double', 'single'. Did you mean 'double'"),
    ("precision", 64, "'double', 'single'"),
    ("arithmetic", "nativ", "Did you mean 'native'"),
    ("accuracy", 0.0, "between 0 and 1"),
    ("accuracy", "1e-3", "between 0 and 1"),
    ("shots", 0, "at least 1"),
    ("shots", 10.0, "at least 1"),
    ("shots", True, "at least 1"),
    ("seed_simulator", -1, "at least 0"),
    ("memory", 1, "True or False"),
    ("initial_state", "01x", "is not a label"),
    ("initial_state", -3, "at least 0"),
    ("initial_state", True, "is not allowed"),
    ("initial_state", [1, 0, 0], "2\\*\\*num_qubits"),
    ("initial_state", [1, 1], "squared norm 2.0, not 1"),
    ("initial_state", [np.nan, 1], "NaN or infinity"),
    ("max_memory_bytes", -1, "at least 0"),
    ("threads", 1.5, "at least 0"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_VALUES)
def test_a_bad_value_is_refused_wherever_it_is_set(name, value, message):
    backend = OzakiBackend()
    before = dict(backend.options.items())

    def by_attribute():
        setattr(backend.options, name, value)

    def by_item():
        backend.options[name] = value

    ways = [
        by_attribute,
        by_item,
        lambda: backend.set_options(**{name: value}),
        lambda: backend.options.update_options(**{name: value}),
        lambda: backend.run(bell(), **{name: value}),
        lambda: OzakiBackend(**{name: value}),
    ]
    for way in ways:
        with pytest.raises(OptionError, match=message):
            way()
    assert dict(backend.options.items()) == before


def test_good_values_are_kept_and_a_run_overrides_them_once():
    backend = OzakiBackend(shots=np.int64(50), seed_simulator=np.uint8(3), accuracy=1e-10, memory=np.True_)
    assert type(backend.options.shots) is int
    assert len(backend.run(bell(), shots=7).result().get_memory()) == 7
    assert len(backend.run(bell()).result().get_memory()) == 50
    backend.options.shots = 8
    backend.set_options(memory=False)
    result = backend.run(bell()).result()
    assert sum(result.get_counts().values()) == 8
    assert result.results[0].seed == 3


def test_options_are_set_together_or_not_at_all():
    backend = OzakiBackend(shots=5)
    with pytest.raises(OptionError):
        backend.set_options(shots=6, precision="half")
    assert backend.options.shots == 5


def test_counts_and_memory_of_a_bell_pair():
    result = OzakiBackend(seed_simulator=1).run(bell(), shots=1000, memory=True).result()
    assert result.success
    assert_follows(result.get_counts(), {"00": 0.5, "11": 0.5})
    assert result.get_memory() == result.get_memory("bell")
    assert set(result.data(0)["counts"]) == {"0x0", "0x3"}


def test_a_circuit_without_measurement_gives_its_state():
    result = OzakiBackend().run(bell(measured=False)).result()
    assert result.get_statevector() == Statevector(bell(measured=False))
    assert result.get_counts() == pytest.approx({"00": 0.5, "11": 0.5})
    assert "counts" not in result.data(0)


def test_a_job_tells_its_status_and_is_cancelled_between_steps():
    backend = OzakiBackend()
    job = backend.run(endless(), shots=10**6)
    waiting = backend.run(bell())
    assert job.status() in (JobStatus.QUEUED, JobStatus.RUNNING)
    assert waiting.status() is JobStatus.QUEUED
    assert waiting.cancel()
    with pytest.raises(JobTimeoutError, match=r"has not ended after 0.01 s"):
        job.result(timeout=0.01)
    assert job.cancel()
    assert job.cancel()
    assert job.status() is JobStatus.CANCELLED
    assert job.wait(60)
    assert job.cancelled()
    for each in (job, waiting):
        with pytest.raises(CancelledError, match="was cancelled"):
            each.result()
    done = backend.run(bell())
    assert sum(done.result().get_counts().values()) == 1024
    assert not done.cancel()
    assert done.done()
    assert done.backend() is backend
    with pytest.raises(EngineError, match="was submitted before"):
        done.submit()


def test_an_idle_backend_has_no_threads():
    job = OzakiBackend().run(bell())
    job.result()
    assert job.wait(60)
    for thread in threading.enumerate():
        if thread.name.startswith("qsim_ozaki"):  # of a job just ended, here or in the test before
            thread.join(10)
            assert not thread.is_alive()


def test_an_error_in_the_run_comes_out_of_result_with_its_traceback(monkeypatch):
    def broken(*_):
        raise EngineError("the kernel broke")

    monkeypatch.setattr("qsim_ozaki.engines.cpu.engine.CpuEngine.run_step", broken)
    job = OzakiBackend().run(bell().remove_final_measurements(inplace=False))
    with pytest.raises(EngineError, match="the kernel broke") as caught:
        job.result()
    assert "in broken" in "".join(traceback.format_exception(caught.value))
    assert job.status() is JobStatus.ERROR


def test_a_script_that_leaves_a_job_running_ends_cleanly():
    code = (
        "from qiskit import QuantumCircuit; from qsim_ozaki import OzakiBackend\n"
        "c = QuantumCircuit(10, 10)\n"
        "for _ in range(30): c.h(range(10)); c.measure(range(10), range(10))\n"
        "OzakiBackend().run(c, shots=10**6); print('left')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")


def test_a_backend_can_be_pickled_after_use():
    backend = OzakiBackend(seed_simulator=6)
    counts = backend.run(bell()).result().get_counts()
    assert pickle.loads(pickle.dumps(backend)).run(bell()).result().get_counts() == counts


def test_plan_and_estimate_run_nothing_and_know_the_numbers():
    backend = OzakiBackend(max_memory_bytes=1 << 30)
    circuit = QuantumCircuit(40)
    circuit.h(range(40))
    circuit.measure_all()
    planned = backend.plan(circuit)
    assert planned.memory_bytes == 16 << 40
    assert planned.prediction.seconds > 0
    assert "DOES NOT FIT" in planned.explain()
    estimate = backend.estimate(circuit)
    assert (estimate.active_qubits, estimate.needed_bytes, estimate.available_bytes) == (40, 16 << 40, 1 << 30)
    assert not estimate.fits
    assert estimate.max_qubits == 26
    assert backend.estimate(circuit, precision="single").max_qubits == 27
    assert backend.estimate(bell()).fits


def saved_in_any_order(rng, num_qubits):
    """Gates and swaps, written vectors, and states saved in orders of their own."""
    circuit = QuantumCircuit(num_qubits)
    if rng.random() < 0.5:
        circuit.initialize(random_state(rng, num_qubits), [int(q) for q in rng.permutation(num_qubits)])
    for label in range(int(rng.integers(1, 4))):
        for _ in range(4):
            a, b = (int(q) for q in rng.permutation(num_qubits)[:2])
            circuit.ry(float(rng.random()), a)
            circuit.swap(a, b)
        if rng.random() < 0.3:
            set_statevector(circuit, random_state(rng, num_qubits))
        qubits = [int(q) for q in rng.permutation(num_qubits)] if rng.random() < 0.7 else list(range(num_qubits))
        circuit.append(SaveStatevector(num_qubits, f"state {label}"), qubits)
    return circuit


@pytest.mark.parametrize("num_qubits", [2, 4, 7])
def test_a_plan_shows_the_passes_that_a_run_does(rng, num_qubits):
    backend, titles = OzakiBackend(), []
    for _ in range(15):
        circuit = saved_in_any_order(rng, num_qubits)
        metadata = backend.run(circuit, shots=1).result().results[0].metadata
        planned = backend.plan(circuit)
        assert Counter(path_name(step) for step in planned.steps) == metadata["steps"]
        assert planned.prediction.passes == pytest.approx(metadata["passes"])
        titles += planned.titles
        assert len(planned.plans) == 1 or all(title in planned.explain() for title in planned.titles)
    assert {"segment 0", "order of 'state 0'"} <= set(titles)


@pytest.mark.parametrize("width", [63, 100])
def test_one_message_where_no_memory_is_enough(width):
    circuit = QuantumCircuit(width, name="wide")
    circuit.h(range(width))
    backend = OzakiBackend(max_memory_bytes=1 << 20)
    message = rf"'wide': {width} qubits need (128 EiB|2\^104 B) .* has 1 MiB available\. Use at most 16 "
    for way in (backend.run, backend.plan, backend.estimate):
        with pytest.raises(CapacityError, match=message):
            way(circuit)


def test_emulated_arithmetic_says_its_bound_and_what_its_checks_found():
    circuit = QuantumCircuit(7)
    rng = np.random.default_rng(4)
    for targets in ([0, 3, 6], [5, 1, 2, 4], [6, 0]):
        circuit.unitary(random_unitary(rng, 1 << len(targets)), targets)
    expected = Statevector(circuit)
    for accuracy, count, limit in ((None, 15, 1e-14), (1e-8, 8, 1e-7)):
        result = OzakiBackend(arithmetic="emulated", accuracy=accuracy).run(circuit).result()
        assert np.linalg.norm(np.asarray(result.get_statevector()) - expected.data) < limit
        emulated = result.results[0].metadata["emulated"]
        assert (emulated["blocks"], emulated["num_moduli"], emulated["columns_redone"]) == (2, count, 0)
        assert emulated["error_bound"] <= (accuracy or 1e-15)
        assert 0 < emulated["largest_residual"] <= 16 * emulated["error_bound"]
        assert result.results[0].metadata["steps"]["dense_ozaki"] == 2
    assert "emulated" not in OzakiBackend().run(circuit).result().results[0].metadata


def test_metadata_says_what_ran():
    circuit = bell()
    circuit.add_register(QuantumCircuit(3).qregs[0].__class__(3, "idle"))
    metadata = OzakiBackend(precision="single").run(circuit).result().results[0].metadata
    assert metadata["engine"] == "cpu"
    assert metadata["precision"] == "single"
    assert metadata["memory_bytes"] == 4 * 8
    assert (metadata["active_qubits"], metadata["idle_qubits"]) == (2, 3)
    assert metadata["sampling"] == "final state"
    assert sum(metadata["steps"].values()) >= 1
    assert metadata["measured_seconds"] > 0
    assert metadata["predicted_seconds"] > 0


@pytest.mark.parametrize("level", range(4))
def test_transpilation_for_the_backend_keeps_the_state(level, rng):
    circuit = QuantumCircuit(5)
    for _ in range(12):
        a, b, c = (int(q) for q in rng.permutation(5)[:3])
        circuit.u(*rng.random(3), a)
        circuit.swap(a, b)
        circuit.ccx(a, b, c)
    want = np.asarray(Statevector(circuit))
    backend = OzakiBackend()
    compiled = generate_preset_pass_manager(level, backend=backend).run(circuit)
    np.testing.assert_allclose(state_of(compiled), want, atol=1e-13)
    np.testing.assert_allclose(state_of(save_statevector(compiled)), want, atol=1e-13)
    line = CouplingMap.from_line(7)
    mapped = transpile(circuit, coupling_map=line, basis_gates=["cx", "u"], optimization_level=level)
    np.testing.assert_allclose(state_of(mapped), want, atol=1e-12)


def test_primitives_agree_with_the_exact_state(rng):
    theta = Parameter("theta")
    circuit = QuantumCircuit(3)
    circuit.ry(theta, 0)
    circuit.cx(0, 1)
    circuit.crx(theta, 1, 2)
    values = rng.uniform(0, 3, 5)
    observable = SparsePauliOp(["ZZI", "XIX", "IYY"], [1, 0.5, -0.25])
    exact = [Statevector(circuit.assign_parameters([v])).expectation_value(observable).real for v in values]
    backend = OzakiBackend(seed_simulator=9)
    compiled = generate_preset_pass_manager(1, backend=backend).run(circuit)
    estimator = BackendEstimatorV2(backend=backend, options={"default_precision": 0.005, "seed_simulator": 5})
    evs = estimator.run([(compiled, observable, values[:, None])]).result()[0].data.evs
    np.testing.assert_allclose(evs, exact, atol=0.03)
    sampler = BackendSamplerV2(backend=backend, options={"seed_simulator": 5})
    pub = (compiled.measure_all(inplace=False), values[:, None])
    data = sampler.run([pub], shots=4000).result()[0].data.meas
    for row, value in enumerate(values):
        assert_follows(data[row].get_counts(), Statevector(circuit.assign_parameters([value])).probabilities_dict())


def test_branches_need_no_more_memory_than_there_is():
    """With room for one state only, every history is run again from the start: the same shots, bit for bit."""
    circuit = QuantumCircuit(12, 6)
    for bit in range(3):
        circuit.h(range(3))
        circuit.measure([0, 1], [bit, 3 + bit])
    free = OzakiBackend(seed_simulator=3).run(circuit, shots=300, memory=True).result()
    tight = OzakiBackend(seed_simulator=3, max_memory_bytes=16 * 8).run(circuit, shots=300, memory=True).result()
    assert tight.get_memory() == free.get_memory()
    assert free.results[0].metadata["sampling"] == "branches"


def test_public_names_and_a_light_import():
    assert {"OzakiBackend", "EstimatorV2", "SamplerV2", "save_statevector"} < set(dir(qsim_ozaki))
    assert all(getattr(qsim_ozaki, name).__name__ == name for name in dir(qsim_ozaki))
    code = "import qsim_ozaki, sys; print(sorted({'numpy', 'qiskit', 'cupy', 'qsim_ozaki._native'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match=r"no attribute 'Aer'. Public names are .*OzakiBackend"):
        _ = qsim_ozaki.Aer


def test_what_is_not_a_circuit_is_refused():
    with pytest.raises(LoweringError, match="takes QuantumCircuits, not str"):
        OzakiBackend().run(["h 0"])
    with pytest.raises(LoweringError, match="got no circuits"):
        OzakiBackend().run([])
