"""Passes that move qubits, through the whole backend, on the engine of the tests."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit

from qsim_ozaki import OzakiBackend
from qsim_ozaki.engines import ENGINES

NUM_QUBITS = 13


def probabilities(circuit):
    """Exact probabilities, and the passes that moved qubits."""
    backend = OzakiBackend(engine="cpu")
    counts = backend.run(circuit, shots=None).result().get_counts()
    engine, _ = backend.engine(backend.merged_options({}))
    return counts, getattr(engine, "moves", [])


def layers(circuit, rng, depth):
    for layer in range(depth):
        for q in range(NUM_QUBITS):
            circuit.u(*rng.uniform(0, 6, 3), q)
        for q in range(layer % 2, NUM_QUBITS - 1, 2):
            circuit.cx(q, q + 1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_probabilities_are_the_same_where_qubits_move(monkeypatch, rng, dynamic):
    circuit = QuantumCircuit(NUM_QUBITS)
    layers(circuit, rng, 4)
    if dynamic:
        flag = ClassicalRegister(1, "flag")
        circuit.add_register(flag)
        circuit.measure(3, flag[0])
        with circuit.if_test((flag, 1)):
            circuit.cx(5, 9)
        layers(circuit, rng, 3)
    circuit.measure_all()
    want, _ = probabilities(circuit)
    monkeypatch.setitem(ENGINES, "cpu", "support.reference_engine")
    got, moves = probabilities(circuit)
    assert moves
    assert max(abs(got.get(key, 0) - p) for key, p in want.items()) < 1e-14
    assert sum(got.values()) == pytest.approx(np.float64(1))
