"""Passes that move qubits, through the whole backend: the CPU engine stands in and does each swap as an operator."""

from dataclasses import replace

import numpy as np
import pytest
from devices import with_abilities
from qiskit import ClassicalRegister, QuantumCircuit
from random_ops import swap_ops

from qsim_ozaki import OzakiBackend
from qsim_ozaki.cpu import CpuEngine
from qsim_ozaki.steps import TilePass

NUM_QUBITS = 13


@pytest.fixture
def moved(monkeypatch):
    """Passes that moved qubits so far; they do from here on, in tiles of 5 qubits."""
    seen = []
    run_step, device = CpuEngine.run_step, CpuEngine.device

    def swapping(self, state, step):
        if isinstance(step, TilePass) and step.swaps:
            seen.append(step)
            step = replace(step, ops=(*step.ops, *swap_ops(step.swaps)), swaps=())
        run_step(self, state, step)

    def on():
        monkeypatch.setattr(CpuEngine, "run_step", swapping)

        def small(self):
            return replace(with_abilities(device(self), moves_qubits=True), tile_qubits=5, line_qubits=2)

        monkeypatch.setattr(CpuEngine, "device", small)
        return seen

    return on


def layers(circuit, rng, depth):
    for layer in range(depth):
        for q in range(NUM_QUBITS):
            circuit.u(*rng.uniform(0, 6, 3), q)
        for q in range(layer % 2, NUM_QUBITS - 1, 2):
            circuit.cx(q, q + 1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_probabilities_are_the_same_where_qubits_move(moved, rng, dynamic):
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
    want = OzakiBackend(engine="cpu").run(circuit, shots=None).result().get_counts()
    steps = moved()
    got = OzakiBackend(engine="cpu").run(circuit, shots=None).result().get_counts()
    assert steps
    assert max(abs(got.get(key, 0) - p) for key, p in want.items()) < 1e-14
    assert sum(got.values()) == pytest.approx(np.float64(1))
