"""Mitiq drives the backend as an executor: an ideal backend is extrapolated to its own value."""

import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import EstimatorV2, OzakiBackend

mitiq = pytest.importorskip("mitiq", reason="Mitiq is not installed")
zne = pytest.importorskip("mitiq.zne", reason="Mitiq is not installed")


def circuit_of_flips():
    circuit = QuantumCircuit(2)
    for _ in range(5):
        circuit.h(0)
        circuit.cx(0, 1)
        circuit.cx(0, 1)
        circuit.h(0)
    circuit.x(1)
    return circuit


def test_zero_noise_extrapolation_of_an_exact_value():
    def execute(circuit):
        values = EstimatorV2().run([(circuit, SparsePauliOp("ZZ"))]).result()[0].data.evs
        return float(values)

    assert zne.execute_with_zne(circuit_of_flips(), execute) == pytest.approx(-1, abs=1e-9)


def test_zero_noise_extrapolation_of_counts():
    backend = OzakiBackend(seed_simulator=2)

    def execute(circuit):
        counts = backend.run(circuit.measure_all(inplace=False), shots=500).result().get_counts()
        return counts.get("10", 0) / 500

    assert zne.execute_with_zne(circuit_of_flips(), execute) == pytest.approx(1, abs=1e-9)
