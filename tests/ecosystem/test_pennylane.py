"""PennyLane runs its circuits on the backend through ``qiskit.remote``."""

import numpy as np
import pytest

from qsim_ozaki import OzakiBackend

qml = pytest.importorskip("pennylane", reason="PennyLane is not installed")
pytest.importorskip("pennylane_qiskit", reason="PennyLane-Qiskit is not installed")

SHOTS = 20_000


def test_expectation_values_and_a_gradient():
    device = qml.device("qiskit.remote", wires=2, backend=OzakiBackend(seed_simulator=7))

    @qml.qnode(device, diff_method="parameter-shift", shots=SHOTS)
    def circuit(x):
        qml.RX(x, wires=0)
        qml.CNOT(wires=[0, 1])
        return qml.expval(qml.PauliZ(0) @ qml.PauliZ(1)), qml.expval(qml.PauliZ(1))

    x = qml.numpy.array(0.4, requires_grad=True)
    both, second = circuit(x)
    assert abs(both - 1) < 1e-9
    assert abs(second - np.cos(0.4)) < 5 / np.sqrt(SHOTS)
    slope = qml.jacobian(lambda angle: qml.numpy.stack(circuit(angle)))(x)
    np.testing.assert_allclose(slope, [0, -np.sin(0.4)], atol=5 / np.sqrt(SHOTS))


def test_counts_and_samples():
    device = qml.device("qiskit.remote", wires=3, backend=OzakiBackend(seed_simulator=7))

    @qml.qnode(device, shots=1000)
    def ghz():
        qml.Hadamard(0)
        qml.CNOT([0, 1])
        qml.CNOT([1, 2])
        return qml.counts(wires=[0, 1, 2])

    counts = ghz()
    assert set(counts) == {"000", "111"}
    assert sum(counts.values()) == 1000
    assert abs(counts["000"] - 500) < 100
