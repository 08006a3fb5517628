"""Random circuits over the whole gate table: amplitudes and bit strings, both precisions, every transpile level.

QSIM_OZAKI_RANDOM_CIRCUITS (120) is how many.
"""

import os

import numpy as np
import pytest
from qiskit import ClassicalRegister, transpile
from qiskit.quantum_info import Statevector
from support.random_circuits import FAMILIES, STANDARD, random_circuit

from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.lowering import gates

COUNT = int(os.environ.get("QSIM_OZAKI_RANDOM_CIRCUITS", "120"))
CHUNKS = 20
LEVELS = (None, 0, 1, 2, 3)  # None: not transpiled
ATOL = {"double": 1e-12, "single": 1e-5}
SHOTS = 500


def transpiled(circuit, backend, level):
    if level is None:
        return circuit
    return transpile(circuit, backend, optimization_level=level, seed_transpiler=1)


def state_by_backend(circuit, backend, level, save_first):
    """The state, saved either before or after transpiling."""
    circuit = circuit.copy()
    if save_first:
        save_statevector(circuit)
    circuit = transpiled(circuit, backend, level)
    if not save_first:
        save_statevector(circuit)
    return np.asarray(backend.run(circuit, shots=1).result().data(0)["statevector"])


def check_counts(circuit, want, rng, level):
    """Random qubits into random bits of two registers: only possible strings, at their frequencies."""
    n = circuit.num_qubits
    measured = circuit.copy()
    measured.add_register(ClassicalRegister(2, "low"), ClassicalRegister(n, "high"))
    qubits, bits = rng.permutation(n)[: rng.integers(1, n + 1)], rng.permutation(n + 2)
    for qubit, bit in zip(qubits, bits, strict=False):
        measured.measure(int(qubit), int(bit))
    backend = OzakiBackend(threads=2, seed_simulator=int(rng.integers(2**31)))
    counts = backend.run(transpiled(measured, backend, level), shots=SHOTS).result().get_counts()
    assert sum(counts.values()) == SHOTS
    probability = {}
    for index, weight in enumerate(abs(want) ** 2):
        value = sum((index >> int(qubit) & 1) << int(bit) for qubit, bit in zip(qubits, bits, strict=False))
        text = format(value, f"0{n + 2}b")
        key = f"{text[:n]} {text[n:]}"  # the last register is on the left
        probability[key] = probability.get(key, 0) + weight
    for key, count in counts.items():
        assert probability.get(key, 0) > 1e-9, f"outcome {key} cannot happen"
        spread = np.sqrt(SHOTS * probability[key]) + 1
        assert abs(count - SHOTS * probability[key]) < 7 * spread, f"{key}: {count}, {SHOTS * probability[key]:.1f} due"


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # Qiskit's matrix of a PauliEvolutionGate
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_circuits(chunk):
    backends = {precision: OzakiBackend(threads=2, precision=precision) for precision in ATOL}
    for number in range(chunk, COUNT, CHUNKS):
        rng = np.random.default_rng([2026, number])
        num_qubits = 1 + number % 10
        level = LEVELS[number // 10 % len(LEVELS)]
        circuit = random_circuit(rng, num_qubits, int(rng.integers(5, 40)))
        want = np.asarray(Statevector(circuit))
        for precision, backend in backends.items():
            got = state_by_backend(circuit, backend, level, save_first=bool(rng.integers(2)))
            case = f"circuit {number}: {num_qubits} qubits, level {level}, {precision}"
            np.testing.assert_allclose(got, want, rtol=0, atol=ATOL[precision], err_msg=case)
        check_counts(circuit, want, rng, level)


def test_the_circuits_cover_the_gate_table():
    """Every row of the package's table is drawn by name, or is a family's own name."""
    drawn = STANDARD.keys() | set(FAMILIES)
    assert set(gates.GATES) - drawn == set()
