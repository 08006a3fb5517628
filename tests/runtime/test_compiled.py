"""Histories that the extension follows against the executor's own, number for number."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit.classical import expr
from qiskit.quantum_info import random_unitary
from support.random_dynamic import random_dynamic_circuit

import qsim_ozaki._native as _native
from qsim_ozaki import OzakiBackend
from qsim_ozaki.runtime import executor
from qsim_ozaki.runtime.sampling import seed_words, split_shots, stream

ADDED_UP = ("passes", "predicted_seconds", "neglected_probability")  # in another order, so equal but for rounding


def results(circuit, shots, **options):
    """Counts in order, memory, tallies and sums of a run; exact probabilities have no memory."""
    backend = OzakiBackend(seed_simulator=5, **options)
    result = backend.run(circuit, shots=shots, memory=shots is not None).result().results[0]
    data = result.data.to_dict()
    tallies = [result.metadata[name] for name in ("steps", "histories", "sampling")]
    return list(data["counts"].items()), data.get("memory"), tallies, [result.metadata[name] for name in ADDED_UP]


def assert_same_by_both_paths(circuit, shots, monkeypatch, expect_compiled=True, **options):
    """Equal results, bit for bit, of the compiled program and of the executor alone."""
    compiled = []
    run = executor._Run._run_compiled
    with monkeypatch.context() as patch:
        patch.setattr(executor._Run, "_run_compiled", lambda self, program: compiled.append(1) or run(self, program))
        fast = results(circuit, shots, **options)
    with monkeypatch.context() as patch:
        patch.setattr(executor, "is_compilable", lambda *_: False)
        slow = results(circuit, shots, **options)
    assert bool(compiled) == expect_compiled
    assert fast[:3] == slow[:3]
    assert fast[3] == pytest.approx(slow[3])


def monitored(rng, num_qubits, layers, reset):
    """Random two-qubit layers; after each one, every qubit is measured with probability 0.3, and then may be reset."""
    circuit = QuantumCircuit(num_qubits)
    for layer in range(layers):
        circuit.h(range(num_qubits))
        for qubit in range(layer % 2, num_qubits - 1, 2):
            circuit.unitary(random_unitary(4, seed=int(rng.integers(1 << 30))), [qubit, qubit + 1])
        for qubit in np.flatnonzero(rng.random(num_qubits) < 0.3).tolist():
            register = ClassicalRegister(1)
            circuit.add_register(register)
            circuit.measure(qubit, register[0])
            if reset:
                circuit.reset(qubit)
    circuit.measure_all()
    return circuit


@pytest.mark.parametrize("num_qubits", [1, 3, 7, 10])
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("options", [{}, {"precision": "single"}, {"threads": 3}], ids=str)
def test_monitored_circuits(num_qubits, reset, options, monkeypatch):
    circuit = monitored(np.random.default_rng([num_qubits, reset]), num_qubits, 6, reset)
    for shots in (1, 300):
        assert_same_by_both_paths(circuit, shots, monkeypatch, **options)


def test_exact_probabilities_of_a_monitored_circuit(monkeypatch):
    circuit = monitored(np.random.default_rng(9), 4, 4, True)
    assert_same_by_both_paths(circuit, None, monkeypatch)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("shots", [200, None])
def test_random_dynamic_circuits(seed, shots, monkeypatch):
    """Some of them store variables, or measure nothing before the end: the executor then runs both times."""
    circuit = random_dynamic_circuit(np.random.default_rng([seed, 90]))
    fast = results(circuit, shots)
    monkeypatch.setattr(executor, "is_compilable", lambda *_: False)
    slow = results(circuit, shots)
    assert fast[:3] == slow[:3]
    assert fast[3] == pytest.approx(slow[3])


def controlled(num_bits):
    """Conditions, a switch, a loop and a store over the bits of measured coins."""
    bits = ClassicalRegister(num_bits, "b")
    circuit = QuantumCircuit(QuantumRegister(2), bits, ClassicalRegister(2, "c"))
    for bit in bits:
        circuit.h(0)
        circuit.measure(0, bit)
    with circuit.if_test(expr.less(bits, 3)) as otherwise:
        circuit.x(1)
    with otherwise:
        circuit.ry(0.7, 1)
        circuit.swap(0, 1)
    with circuit.switch(bits) as case:
        with case(1, 2):
            circuit.h(1)
        with case(case.DEFAULT):
            circuit.rx(0.4, 0)
    with circuit.while_loop((bits[0], 1)):
        circuit.h(0)
        circuit.measure(0, bits[0])
    circuit.store(circuit.clbits[1], expr.logic_not(circuit.clbits[2]))
    circuit.measure([0, 1], circuit.cregs[1])
    return circuit


@pytest.mark.parametrize("shots", [500, None])
def test_conditions_are_tables_of_the_bits_they_read(shots, monkeypatch):
    assert_same_by_both_paths(controlled(3), shots, monkeypatch)


def test_wide_conditions_are_left_to_the_executor(monkeypatch):
    assert_same_by_both_paths(controlled(11), 20, monkeypatch, expect_compiled=False)


def test_many_histories_do_not_depend_on_threads():
    circuit = QuantumCircuit(2, 70)
    for bit in range(70):
        circuit.h(0)
        circuit.cx(0, 1)
        circuit.measure(bit % 2, bit)
    first = results(circuit, 4000, threads=1)
    assert first[2][1] == len(first[0])
    assert results(circuit, 4000, threads=4)[:3] == first[:3]


@pytest.mark.parametrize(("least", "most"), [(1, 30), (30, 10**3), (10**3, 10**7)])
def test_shots_are_shared_out_as_numpy_does(least, most):
    """Few expected shots are drawn by inversion, many by rejection; both are NumPy's, number for number."""
    rng = np.random.default_rng(least)
    for seed in range(300):
        probabilities = rng.random(int(rng.integers(2, 20))) ** int(rng.integers(1, 8))
        probabilities[-1] *= seed % 3 > 0
        probabilities /= probabilities.sum()
        shots = int(rng.integers(least, most))
        generator = stream(seed, (3, seed))
        counts = _native.multinomial(seed_words(seed), [3, seed], shots, probabilities, 2).reshape(2, -1)
        for row in counts:
            pairs = dict(split_shots(generator, shots, probabilities))
            assert pairs == {j: n for j, n in enumerate(row.tolist()) if n}, f"{shots} shots, seed {seed}"


def test_sums_are_those_of_numpy():
    rng = np.random.default_rng(2)
    for size in range(1, 600):
        values = rng.random(size)
        assert _native.pairwise_sum(values) == values.sum(), f"{size} numbers"
