"""Rows of parameters with exact probabilities and with entries per shot."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter

from qsim_ozaki import OzakiBackend, save_statevector


def test_rows_without_shots_have_exact_probabilities():
    angle = Parameter("angle")
    circuit = QuantumCircuit(1, 1)
    circuit.ry(angle, 0)
    circuit.measure(0, 0)
    values = [0.3, 1.1, 2.9]
    result = OzakiBackend().run(circuit, parameter_binds=[{angle: values}], shots=None).result()
    for counts, value in zip(result.get_counts(), values, strict=True):
        assert counts == pytest.approx({"0": np.cos(value / 2) ** 2, "1": np.sin(value / 2) ** 2})


def test_rows_keep_their_entries_per_shot():
    angle = Parameter("angle")
    circuit = QuantumCircuit(1)
    circuit.ry(angle, 0)
    save_statevector(circuit, pershot=True)
    result = OzakiBackend().run(circuit, parameter_binds=[{angle: [0.3, 1.1]}], shots=3).result()
    for row, value in enumerate([0.3, 1.1]):
        states = result.data(row)["statevector"]
        assert len(states) == 3
        np.testing.assert_allclose(states[2].data, [np.cos(value / 2), np.sin(value / 2)], atol=1e-14)
