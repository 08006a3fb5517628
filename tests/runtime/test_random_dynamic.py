"""Random dynamic circuits with exact probabilities against the reference interpreter.

QSIM_OZAKI_RANDOM_CIRCUITS (60 here by default) widens it.
"""

import os

import numpy as np
import pytest
from qiskit import transpile
from support.distribution import assert_follows
from support.random_dynamic import random_dynamic_circuit
from support.reference_dynamic import distribution

from qsim_ozaki import OzakiBackend

COUNT = int(os.environ.get("QSIM_OZAKI_RANDOM_CIRCUITS", "60"))
CHUNK = 20


def exact(circuit, backend):
    """Probability of each classical value, bit i of which is the circuit's clbit i."""
    counts = backend.run(circuit, shots=None).result().data(0)["counts"]
    return {int(text, 16): probability for text, probability in counts.items()}


def assert_same(got, want, what, atol=1e-11):
    for value in got.keys() | want.keys():
        assert abs(got.get(value, 0) - want.get(value, 0)) < atol, f"{what}: value {value:b}: {got} against {want}"


@pytest.mark.parametrize("start", range(0, COUNT, CHUNK))
def test_exact_probabilities(start):
    backend = OzakiBackend(threads=1)
    for seed in range(start, min(start + CHUNK, COUNT)):
        circuit = random_dynamic_circuit(np.random.default_rng([seed, 77]))
        assert_same(exact(circuit, backend), distribution(circuit), f"seed {seed}")


@pytest.mark.parametrize("seed", range(10))
def test_room_for_one_state_is_enough(seed):
    """Every history is then run again from the start."""
    circuit = random_dynamic_circuit(np.random.default_rng([seed, 80]))
    tight = OzakiBackend(threads=1, max_memory_bytes=16 << circuit.num_qubits)
    assert_same(exact(circuit, tight), distribution(circuit), f"seed {seed}")


def test_single_precision():
    backend = OzakiBackend(threads=1, precision="single")
    for seed in range(10):
        circuit = random_dynamic_circuit(np.random.default_rng([seed, 81]))
        assert_same(exact(circuit, backend), distribution(circuit), f"seed {seed}", 1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_shots_follow_the_probabilities(seed):
    circuit = random_dynamic_circuit(np.random.default_rng([seed, 78]))
    counts = OzakiBackend(threads=1, seed_simulator=seed).run(circuit, shots=3000).result().data(0)["counts"]
    assert_follows(counts, {hex(value): weight for value, weight in distribution(circuit).items()})


@pytest.mark.parametrize("level", range(4))
def test_transpiled(level):
    backend = OzakiBackend(threads=1)
    for seed in range(3):
        circuit = random_dynamic_circuit(np.random.default_rng([seed, 79, level]))
        compiled = transpile(circuit, backend, optimization_level=level)
        assert_same(exact(compiled, backend), distribution(circuit), f"level {level}, seed {seed}")
