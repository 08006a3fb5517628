"""What batches cost: memory, and work around the circuits in function calls, which no load of the machine changes."""

import os
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2
from support.bell import bell
from support.calls import calls_of

from qsim_ozaki import OzakiBackend

STATM = Path("/proc/self/statm")


def ansatz(num_qubits, reps=1):
    return efficient_su2(num_qubits, reps=reps)


def rows_of(rng, circuit, count):
    return rng.uniform(-np.pi, np.pi, (count, circuit.num_parameters))


def resident_bytes():
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_t44_memory_stays_flat_over_many_runs(rng):
    runs = int(os.environ.get("QSIM_OZAKI_RUNS", "600"))
    backend = OzakiBackend(shots=50)
    circuit = ansatz(4).measure_all(inplace=False)
    values = rows_of(rng, circuit, 2)

    def some(count):
        for _ in range(count):
            backend.run([bell(), circuit], parameter_binds=[None, values]).result().get_counts()

    some(runs // 3)
    before = resident_bytes()
    some(runs)
    assert resident_bytes() < 1.05 * before


def test_t45_a_thousand_circuits_in_one_call(rng):
    circuit = ansatz(4).measure_all(inplace=False)
    circuits = [circuit.assign_parameters(row) for row in rows_of(rng, circuit, 1000)]
    OzakiBackend().run(circuits[:10], shots=10).result()
    before = resident_bytes()
    result = OzakiBackend().run(circuits, shots=10).result()
    assert resident_bytes() - before < 100 << 20
    assert len(result.results) == 1000


def test_t62_rows_of_a_small_state_share_the_work_around_it(rng):
    """32 calls a row at 10 qubits; a job of its own for each would be 300."""
    circuit = ansatz(10, reps=2).measure_all(inplace=False)
    values = rows_of(rng, circuit, 1000)
    backend = OzakiBackend(threads=1)
    assert calls_of(lambda: backend.run(circuit, parameter_binds=values, shots=1000).result().get_counts()) < 60_000


def small_circuits(rng, kind):
    """Many circuits of 2 to 5 qubits: the same one, one structure with other angles, or each another."""
    if kind == "bell":
        return [bell() for _ in range(300)]
    if kind == "one structure":
        circuit = ansatz(4).measure_all(inplace=False)
        return [circuit.assign_parameters(row) for row in rows_of(rng, circuit, 300)]
    return [varied(rng, int(rng.integers(2, 6))) for _ in range(300)]


def varied(rng, num_qubits):
    circuit = QuantumCircuit(num_qubits)
    for _ in range(20):
        qubit, other = rng.permutation(num_qubits)[:2].tolist()
        gate = rng.integers(5)
        if gate < 2:
            getattr(circuit, ("rx", "rz")[gate])(rng.uniform(0, 6), qubit)
        elif gate == 2:
            circuit.u(*rng.uniform(0, 6, 3), qubit)
        else:
            getattr(circuit, ("cx", "cz")[gate - 3])(qubit, other)
    circuit.measure_all()
    return circuit


@pytest.mark.parametrize("kind", ["bell", "one structure", "different"])
def test_t63_overhead_of_small_circuits(rng, kind):
    """180 to 210 calls in a list, 290 to 320 alone, which is 0.1 and 0.2 ms."""
    circuits = small_circuits(rng, kind)
    backend = OzakiBackend(threads=1)
    backend.run(circuits, shots=100).result()
    assert calls_of(lambda: backend.run(circuits, shots=100).result()) < 300 * len(circuits)
    assert calls_of(lambda: backend.run(circuits[0], shots=100).result()) < 450


def test_t64_shots_are_drawn_and_written_at_once():
    circuit = QuantumCircuit(22)
    circuit.h(range(22))
    circuit.measure_all()
    backend = OzakiBackend(seed_simulator=1)
    job = []
    assert calls_of(lambda: job.append(backend.run(circuit, shots=10**6, memory=True).result())) < 10_000
    assert len(job[0].get_memory()) == 10**6
