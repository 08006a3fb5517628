"""IBM's runtime client runs its primitives on the backend in local mode, with and without a session or a batch."""

from contextlib import nullcontext

import numpy as np
import pytest
from qiskit import QuantumCircuit, generate_preset_pass_manager, transpile
from qiskit.circuit import Parameter
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import OzakiBackend

runtime = pytest.importorskip("qiskit_ibm_runtime", reason="qiskit-ibm-runtime is not installed")
fakes = pytest.importorskip("qiskit_ibm_runtime.fake_provider", reason="qiskit-ibm-runtime is not installed")

MODES = {"backend": nullcontext, "session": runtime.Session, "batch": runtime.Batch}


@pytest.fixture
def circuit():
    angle = Parameter("angle")
    circuit = QuantumCircuit(2)
    circuit.rx(angle, 0)
    circuit.cx(0, 1)
    return circuit


@pytest.fixture(params=MODES)
def open_mode(request):
    def enter(backend):
        return nullcontext(backend) if request.param == "backend" else MODES[request.param](backend=backend)

    return enter


def test_sampler(open_mode, circuit):
    backend = OzakiBackend(seed_simulator=3)
    measured = generate_preset_pass_manager(1, backend=backend).run(circuit.measure_all(inplace=False))
    with open_mode(backend) as mode:
        result = runtime.SamplerV2(mode=mode).run([(measured, [[0.0], [np.pi], [np.pi / 2]])], shots=2000).result()
    bits = result[0].data.meas
    assert bits.get_counts(0) == {"00": 2000}
    assert bits.get_counts(1) == {"11": 2000}
    assert set(bits.get_counts(2)) == {"00", "11"}
    assert abs(bits.get_counts(2)["00"] - 1000) < 150


def test_estimator(open_mode, circuit):
    backend = OzakiBackend(seed_simulator=3)
    isa = generate_preset_pass_manager(1, backend=backend).run(circuit)
    observable = SparsePauliOp(["ZZ", "IZ"], [1.0, 2.0]).apply_layout(isa.layout)
    with open_mode(backend) as mode:
        result = runtime.EstimatorV2(mode=mode).run([(isa, observable, [[0.0], [0.7]])], precision=0.01).result()
    np.testing.assert_allclose(result[0].data.evs, [3, 1 + 2 * np.cos(0.7)], atol=0.1)


def test_a_session_runs_one_job_after_another(circuit):
    backend = OzakiBackend(seed_simulator=3)
    measured = circuit.measure_all(inplace=False)
    with runtime.Session(backend=backend) as session:
        sampler, estimator = runtime.SamplerV2(mode=session), runtime.EstimatorV2(mode=session)
        angle = 0.2
        for _ in range(3):  # an optimiser: every value decides the next angle
            value = float(estimator.run([(circuit, "IZ", [angle])], precision=0.02).result()[0].data.evs)
            assert value == pytest.approx(np.cos(angle), abs=0.1)
            angle += np.arccos(np.clip(value, -1, 1))
        counts = sampler.run([(measured, [angle])], shots=2000).result()[0].data.meas.get_counts()
    assert counts.get("11", 0) / 2000 == pytest.approx(np.sin(angle / 2) ** 2, abs=0.06)


def test_options_of_the_primitives(circuit):
    measured = circuit.measure_all(inplace=False)
    sampler = runtime.SamplerV2(mode=OzakiBackend(), options={"default_shots": 77, "simulator": {"seed_simulator": 5}})
    counts = [sampler.run([(measured, [1.0])]).result()[0].data.meas.get_counts() for _ in range(2)]
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) == 77


def test_circuits_for_a_device_of_127_qubits(circuit):
    device = fakes.FakeSherbrooke()
    layout = [37, 38]
    isa = transpile(circuit, device, initial_layout=layout, seed_transpiler=1)
    measured = transpile(circuit.measure_all(inplace=False), device, initial_layout=layout, seed_transpiler=1)
    assert isa.num_qubits == measured.num_qubits == 127
    backend = OzakiBackend(seed_simulator=3)
    again = transpile(measured, backend, optimization_level=3)
    assert again.num_qubits == 127
    sampler, estimator = runtime.SamplerV2(mode=backend), runtime.EstimatorV2(mode=backend)
    for each in (measured, again):
        data = sampler.run([(each, [np.pi])], shots=100).result()[0].data
        assert data.meas.get_counts() == {"11": 100}
    observable = SparsePauliOp(["ZZ", "IZ"], [1.0, 2.0]).apply_layout(isa.layout)
    evs = estimator.run([(isa, observable, [[0.0], [np.pi]])]).result()[0].data.evs
    np.testing.assert_allclose(evs, [3, -1], atol=1e-9)
