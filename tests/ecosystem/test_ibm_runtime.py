"""IBM's runtime client runs its primitives on the backend in local mode, with and without a session or a batch."""

from contextlib import nullcontext

import numpy as np
import pytest
from qiskit import QuantumCircuit, generate_preset_pass_manager
from qiskit.circuit import Parameter
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import OzakiBackend

runtime = pytest.importorskip("qiskit_ibm_runtime", reason="qiskit-ibm-runtime is not installed")

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
