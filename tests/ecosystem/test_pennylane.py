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


def test_probabilities_variances_and_an_energy():
    device = qml.device("qiskit.remote", wires=2, backend=OzakiBackend(seed_simulator=7))
    energy = qml.Hamiltonian([1.0, 2.0], [qml.PauliZ(0) @ qml.PauliZ(1), qml.PauliX(0) @ qml.PauliX(1)])

    @qml.qnode(device, shots=SHOTS)
    def circuit(x):
        qml.RY(x, wires=0)
        qml.CNOT(wires=[0, 1])
        return qml.probs(wires=[0, 1]), qml.var(qml.PauliZ(0)), qml.expval(energy)

    probabilities, variance, value = circuit(0.8)
    spread = 5 / np.sqrt(SHOTS)
    np.testing.assert_allclose(probabilities, [np.cos(0.4) ** 2, 0, 0, np.sin(0.4) ** 2], atol=spread / 2)
    assert probabilities[1] == probabilities[2] == 0
    assert variance == pytest.approx(np.sin(0.8) ** 2, abs=2 * spread)
    assert value == pytest.approx(1 + 2 * np.sin(0.8), abs=2 * spread)


def test_gradient_descent_reaches_a_minimum():
    device = qml.device("qiskit.remote", wires=1, backend=OzakiBackend(seed_simulator=7))

    @qml.qnode(device, diff_method="parameter-shift", shots=SHOTS)
    def cost(x):
        qml.RX(x, wires=0)
        return qml.expval(qml.PauliZ(0))

    optimizer = qml.GradientDescentOptimizer(0.9)
    x = qml.numpy.array(1.5, requires_grad=True)
    for _ in range(8):
        x = optimizer.step(cost, x)
    assert cost(x) == pytest.approx(-1, abs=1e-2)
