"""How long and how much memory batches take: processor time, so that others who use the machine count less."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2
from support.bell import bell

from qsim_ozaki import OzakiBackend

STATM = Path("/proc/self/statm")
SLACK = 1 if os.environ.get("QSIM_OZAKI_TIMED") else 2  # the gate's machine does other things at the same time


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


def best_seconds(call, repeats=5):
    """Processor time of the fastest of several calls: others who use the machine count less than in wall time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def test_t62_a_thousand_rows_are_twenty_times_as_fast_as_a_loop_on_aer(rng):
    aer = pytest.importorskip("qiskit_aer").AerSimulator(method="statevector", max_parallel_threads=1)
    circuit = ansatz(10, reps=2).measure_all(inplace=False)
    values = rows_of(rng, circuit, 1000)
    backend = OzakiBackend(threads=1)
    some = values[:20]

    def loop():
        for row in some:
            aer.run(circuit.assign_parameters(row), shots=1000).result().get_counts()

    ours = best_seconds(lambda: backend.run(circuit, parameter_binds=values, shots=1000).result().get_counts(), 3)
    assert ours / 1000 < best_seconds(loop, 3) / len(some) / 20 * SLACK


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
    """0.06, 0.10 and 0.10 ms in a list, 0.15 alone (EPYC, 2026-11)."""
    circuits = small_circuits(rng, kind)
    backend = OzakiBackend(threads=1)
    batch = best_seconds(lambda: backend.run(circuits, shots=100).result()) / len(circuits)
    single = best_seconds(lambda: backend.run(circuits[0], shots=100).result(), 30)
    print(f"{1e3 * batch:.3f} ms in a list, {1e3 * single:.3f} ms alone")
    assert batch < 0.25e-3 * SLACK
    assert single < 0.5e-3 * SLACK


def test_t64_a_million_shots_of_22_qubits_with_memory(rng):
    circuit = QuantumCircuit(22)
    circuit.h(range(22))
    circuit.measure_all()
    backend = OzakiBackend(seed_simulator=1)
    seconds = best_seconds(lambda: backend.run(circuit, shots=10**6, memory=True).result(), 3)
    assert seconds < 1 * SLACK
