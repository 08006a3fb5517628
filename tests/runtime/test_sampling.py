"""Counts, memory and random streams: exact bits, distributions, seeds."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import Statevector, random_unitary
from support.distribution import assert_follows

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import OptionError
from qsim_ozaki.runtime import sampling


def value_of(sample, reads, base):
    """The slow reference: bit by bit."""
    value = base
    for qubit, bit in reads:
        value |= (sample >> qubit & 1) << bit
    return value


READS = [
    [(0, 0)],
    [(3, 0), (1, 1), (0, 2)],
    [(5, 7), (5, 2), (0, 63), (1, 64), (2, 65), (9, 130)],
    [(q, 40 - q) for q in range(30)],
    [(q, q) for q in range(20)],
    [(40, 999), (3, 500), (17, 0)],
]


@pytest.mark.parametrize("reads", READS, ids=len)
@pytest.mark.parametrize("shots", [1, 50, 5000])
def test_values_are_gathered_bit_by_bit(reads, shots, rng):
    base = 1 << 300 | 1 << 131
    samples = rng.integers(0, 1 << 42, shots)
    want = [hex(value_of(int(sample), reads, base)) for sample in samples]
    outcomes = sampling.read_outcomes(samples, reads, base, memory=True)
    assert [outcomes.labels[index] for index in outcomes.order] == want
    assert sampling.total_memory([outcomes], sampling.shot_order(1, shots, rng)) == want
    counts = sampling.total_counts([sampling.read_outcomes(samples, reads, base, memory=False)])
    assert counts == {label: want.count(label) for label in set(want)}


def test_memory_of_several_histories_is_shuffled_and_complete(rng):
    parts = [sampling.fixed_outcome(1, 300, True), sampling.fixed_outcome(2, 700, True)]
    memory = sampling.total_memory(parts, sampling.shot_order(2, 1000, rng))
    assert memory.count("0x1") == 300
    assert memory.count("0x2") == 700
    assert 50 < memory[:300].count("0x1") < 130  # hypergeometric: 90 +- 6.6
    assert sampling.total_counts(parts) == {"0x1": 300, "0x2": 700}


def test_split_shots_loses_none_and_leaves_the_largest_share_for_last(rng):
    probabilities = np.array([0.1, 0, 0.6, 0.3])
    split = sampling.split_shots(rng, 1000, probabilities)
    assert sum(shots for _, shots in split) == 1000
    assert [outcome for outcome, _ in split] == [0, 3, 2]
    assert_follows(dict(split), dict(enumerate(probabilities)))


def test_streams_depend_on_seed_and_key_alone():
    first = sampling.stream(5, (1, 2)).random(4)
    np.testing.assert_array_equal(sampling.stream(5, (1, 2)).random(4), first)
    for seed, key in [(6, (1, 2)), (5, (1, 3)), (5, (1,)), (5, (2, 1))]:
        assert not np.intersect1d(sampling.stream(seed, key).random(4), first).size


@pytest.mark.parametrize("seed", [-1, 1.0, "1", True, np.float64(3)])
def test_seeds_that_mean_nothing_are_refused(seed):
    with pytest.raises(OptionError, match=r"seed_simulator=.* is not allowed. Use an integer of at least 0"):
        sampling.check_seed(seed)


@pytest.mark.parametrize("qubits", [[0], [2, 0], [1, 0, 2], [4, 1, 3, 0, 2]])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_counts_follow_exact_marginals(qubits, precision, rng):
    circuit = QuantumCircuit(5)
    circuit.unitary(random_unitary(32, seed=rng), range(5))
    exact = Statevector(circuit).probabilities_dict(qubits)
    circuit.add_bits(QuantumCircuit(0, len(qubits)).clbits)
    circuit.measure(qubits, range(len(qubits)))
    counts = OzakiBackend(seed_simulator=3, precision=precision).run(circuit, shots=20000).result().get_counts()
    assert_follows({key.replace(" ", ""): count for key, count in counts.items()}, exact)


def test_counts_and_memory_are_the_same_shots():
    circuit = QuantumCircuit(3, 3)
    circuit.h([0, 1])
    circuit.measure(0, 0)
    circuit.h(0)
    circuit.measure([0, 1, 2], [1, 2, 0])
    backend = OzakiBackend(seed_simulator=11)
    result = backend.run(circuit, shots=500, memory=True).result()
    memory = result.get_memory()
    assert result.get_counts() == {key: memory.count(key) for key in set(memory)}
    assert backend.run(circuit, shots=500).result().get_counts() == result.get_counts()


def test_one_seed_gives_the_same_bits_for_any_number_of_threads(one_device):
    circuit = QuantumCircuit(12)
    for layer in range(3):
        circuit.ry(0.3 + layer, range(12))
        circuit.cz(range(11), range(1, 12))
    state = {}
    memory = {}
    for threads in (1, 2):
        backend = OzakiBackend(threads=threads, seed_simulator=4)
        state[threads] = np.asarray(backend.run(circuit).result().get_statevector())
        measured = circuit.measure_all(inplace=False)
        memory[threads] = backend.run(measured, memory=True).result().get_memory()
    np.testing.assert_array_equal(state[1], state[2])
    assert memory[1] == memory[2]
