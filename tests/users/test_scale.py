"""What users were bitten by in size: many gates, many controls, long jobs, little memory, wide indices, odd numbers."""

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import XGate, get_standard_gate_name_mapping
from qiskit.quantum_info import Statevector
from support.bell import bell
from support.block_plans import block_steps
from support.devices import DEVICE
from support.random_ops import random_state, random_unitary

from qsim_ozaki import OzakiBackend
from qsim_ozaki.engines.base import collapse_masks
from qsim_ozaki.engines.cpu.engine import extension_block
from qsim_ozaki.engines.cuda.dense import product
from qsim_ozaki.engines.cuda.dense import tables as cuda_dense
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import Path
from qsim_ozaki.ozaki import moduli, scheme
from qsim_ozaki.runtime import sampling


def state_of(circuit, **options):
    return np.asarray(OzakiBackend(**options).run(circuit, shots=1).result().get_statevector())


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_t04_a_gate_across_the_top_index_bit(engine, rng, idle):
    start = random_state(rng, 20)
    circuit = QuantumCircuit(20 + idle)
    circuit.cx(0, 19)
    full = np.zeros(1 << (20 + idle), complex)
    full[: 1 << 20] = start
    state = state_of(circuit, engine=engine.name, initial_state=full)
    index = np.arange(1 << 20)
    assert abs(np.vdot(state, state).real - 1) < 1e-13
    assert np.array_equal(state[index ^ ((index & 1) << 19)], start)
    assert not state[1 << 20 :].any()


CONTROLLED = [
    gate for gate in get_standard_gate_name_mapping().values() if hasattr(gate, "num_ctrl_qubits") and gate.num_qubits
]


@pytest.mark.parametrize("gate", CONTROLLED, ids=lambda gate: gate.name)
def test_t26_every_controlled_gate_at_the_top_of_the_register(engine, rng, gate):
    """On one device: the top qubits are those that several devices would share."""
    num_qubits = 7
    bound = gate.base_class(*rng.uniform(0.2, 2, len(gate.params)))
    others = [q for q in range(num_qubits - 3) if q != 1]
    for top in ([6], [6, 5], [5, 6], [4, 6, 5]):
        qubits = (top + others)[: gate.num_qubits]
        for order in (qubits, qubits[::-1]):
            circuit = QuantumCircuit(num_qubits)
            circuit.append(bound, order)
            start = random_state(rng, num_qubits)
            want = Statevector(start).evolve(circuit).data
            got = state_of(circuit, engine=engine.name, initial_state=start)
            np.testing.assert_allclose(got, want, atol=1e-14, err_msg=str(order))


def test_t27_indices_beyond_32_bits(rng):
    """Where an index is computed: samples, projections, and the parts of a GPU's matrix product on 40 qubits."""
    samples = rng.integers(0, 1 << 40, 200)
    reads = [(39, 0), (33, 1), (31, 2), (0, 70)]
    found = sampling.read_outcomes(samples, reads, 0, True)
    values = [sum((int(s) >> qubit & 1) << bit for qubit, bit in reads) for s in samples]
    assert [int(found.labels[place], 16) for place in found.order] == values
    assert collapse_masks((35, 2), 0b01) == (1 << 35 | 1 << 2, 1 << 35)
    targets, fixed = (38, 1, 33), {0: 1, 39: 1}
    parts = product.part_tables(targets, fixed, 40, 1 << 26, 3)
    bases = parts.parts["fixed"].tolist()
    assert len({*bases}) == len(bases) == 1 << (40 - 2 - 26)
    assert all(base >> 39 == base & 1 == 1 for base in bases)
    tiles = parts.places[-2 * int(parts.parts["num_tiles"][0]) :]
    assert int(tiles.max()) == int(tiles[-2]) > 1 << 38
    shape = cuda_dense.BLOCK_SHAPES["double"][4]
    tables = cuda_dense.dense_tables(random_unitary(rng, 16), (38, 1, 33, 20), {39: 1}, 40, shape)
    assert int(tables.tile["fixed"][0]) == 1 << 39
    stored = tables.places[-96:-32]  # of lanes as they store
    rows = {int(offset) & (1 << 38 | 1 << 33 | 1 << 20 | 1 << 1) for offset in stored}
    assert rows == {sum((row >> b & 1) << q for b, q in enumerate((1, 20, 33, 38))) for row in range(16)}


@pytest.mark.parametrize("num_targets", [2, 3, 4, 5, 6, 7, 8, 9, 10])
def test_t30_emulated_products_against_exact_integers(rng, num_targets):
    """Amplitudes from 1e-300 to 1, every number of moduli, against the exact product and against FP64."""
    size = 1 << num_targets
    matrix = random_unitary(rng, size)
    column = random_state(rng, num_targets) * 10.0 ** -rng.uniform(0, 300, size)
    column[rng.integers(size)] = 0.7 - 0.2j
    rows = rng.permutation(size)[:32]
    exact = exact_product(matrix[rows], column)
    norm = float(np.linalg.norm(column))
    native = np.max(np.abs(matrix[rows] @ column - exact)) / norm
    assert native < 1e-14
    for count in range(1, moduli.MAX_MODULI + 1):
        block = scheme.block(matrix, count)
        out = column.copy()
        tolerance = block.scheme.tolerance
        redone, _ = extension_block(block).run(out, list(range(num_targets)), [], 0, tolerance, 1)
        error = np.max(np.abs(out[rows] - exact)) / norm
        assert np.isfinite(error), count
        assert error <= max(float(moduli.error_bound(count, num_targets)), 4 * native), (count, redone)


def exact_product(matrix, column):
    """``matrix @ column`` in integers of any size, each entry rounded once."""

    def integers(values, shift):
        return np.array([int(Fraction(float(v)) * 2**shift) for v in values.reshape(-1)], object).reshape(values.shape)

    re, im = integers(matrix.real, 1074), integers(matrix.imag, 1074)
    x, y = integers(column.real, 1074), integers(column.imag, 1074)
    scale = 2**2148
    products = zip(re @ x - im @ y, re @ y + im @ x, strict=True)
    return np.array([complex(int(a) / scale, int(b) / scale) for a, b in products])


def test_t41_a_hundred_and_fifty_thousand_phases(rng):
    num_qubits, count = 16, 150_000
    first = rng.integers(0, num_qubits, count)
    second = (first + rng.integers(1, num_qubits, count)) % num_qubits
    angles = rng.uniform(-3, 3, count)
    circuit = QuantumCircuit(num_qubits)
    circuit.h(range(num_qubits))
    for angle, a, b in zip(angles.tolist(), first.tolist(), second.tolist(), strict=True):
        circuit.cp(angle, a, b)
    total = np.zeros((num_qubits, num_qubits))
    np.add.at(total, (first, second), angles)
    bits = (np.arange(1 << num_qubits)[:, None] >> np.arange(num_qubits) & 1).astype(float)
    phases = ((bits @ total) * bits).sum(axis=1)
    np.testing.assert_allclose(state_of(circuit), np.exp(1j * phases) / 2**8, atol=1e-13)


def test_t41_half_a_million_controlled_rotations():
    """Seconds; in quadratic time hours."""
    circuit, turns = QuantumCircuit(3), 1 << 18
    circuit.h(0)
    circuit.ry(0.3, 1)
    short = circuit.copy()
    for number in range(2 * turns):
        circuit.crx(1e-5, 0, 1 + number % 2)
    short.crx(1e-5 * turns, 0, 1)
    short.crx(1e-5 * turns, 0, 2)
    np.testing.assert_allclose(state_of(circuit), np.asarray(Statevector(short)), atol=1e-11)


@pytest.mark.parametrize(("num_qubits", "precision"), [(25, "double"), (27, "single"), (29, "single")])
def test_t41_a_gate_with_all_other_qubits_as_controls(num_qubits, precision):
    backend = OzakiBackend(precision=precision)
    circuit = QuantumCircuit(num_qubits)
    circuit.x(range(num_qubits - 1))
    circuit.mcx(list(range(num_qubits - 1)), num_qubits - 1)
    circuit.x(0)
    circuit.append(XGate().control(num_qubits - 1, ctrl_state=0), range(num_qubits))
    circuit.measure_all()
    if not backend.estimate(circuit).fits:
        pytest.skip("not enough memory")
    assert backend.run(circuit, shots=5).result().get_counts() == {"1" * (num_qubits - 1) + "0": 5}


def test_t44_a_job_that_is_gone_leaves_no_circuit_behind():
    backend = OzakiBackend()
    circuit = bell()
    seen = weakref.ref(circuit)
    job = backend.run(circuit)
    result = job.result()
    assert job.wait(60)
    del circuit
    gc.collect()
    assert seen() is None
    assert sum(result.get_counts().values()) == 1024


INTERRUPTED = """
import signal, threading, os
from qiskit import QuantumCircuit
from qsim_ozaki import OzakiBackend
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell started the tests in the background
c = QuantumCircuit(10, 10)
for _ in range(30): c.h(range(10)); c.measure(range(10), range(10))
backend = OzakiBackend()
job = backend.run(c, shots=10**6)
print('running', flush=True)
try:
    job.result()
except KeyboardInterrupt:
    assert job.wait(60)
    print(job.status().name, backend.run(c.copy_empty_like(), shots=3).result().success, flush=True)
"""


def test_t46_ctrl_c_cancels_the_job_and_leaves_the_backend_usable():
    command = [sys.executable, "-P", "-W", "ignore", "-c", INTERRUPTED]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "running\n"
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGINT)
        try:
            assert child.communicate(timeout=60)[0] == "CANCELLED True\n"
        finally:
            child.kill()
        assert child.returncode == 0


def test_t53_a_limit_above_what_there_is_changes_nothing():
    circuit = QuantumCircuit(45)
    circuit.h(range(45))
    circuit.measure_all()
    backend = OzakiBackend(max_memory_bytes=1 << 60)
    assert backend.estimate(circuit).available_bytes < 1 << 49
    with pytest.raises(CapacityError, match=r"45 qubits need 512 TiB .* available\. Use at most \d\d qubits"):
        backend.run(circuit)


@pytest.mark.parametrize("rate", [2e12, 2e13, 1e15])
def test_t70_the_choice_is_never_slower_than_the_better_single_path(rate):
    device = replace(DEVICE, int8_ops_per_s=rate, tile_overlap=0.8)
    chosen = set()
    for num_qubits in (14, 18, 22, 26):
        for k in range(3, 12):
            single = [block_steps(k, num_qubits, device, arithmetic=each) for each in ("native", "emulated")]
            least = min(sum(step.prediction.seconds for step in steps) for steps in single)
            for step in block_steps(k, num_qubits, device):
                if k >= 7:  # smaller ones share a pass with their neighbours
                    assert step.prediction.seconds <= least * 1.0001, (k, num_qubits)
                chosen.add(step.path)
    assert chosen == {Path.NATIVE, Path.OZAKI} if rate == 2e13 else chosen


def test_a_wide_stack_of_terms_is_one_walk(rng):
    """Many diagonals on few qubits are multiplied together before tables are filled: the same state."""
    circuit = QuantumCircuit(8)
    circuit.h(range(8))
    for _ in range(200):
        a, b, c = (int(q) for q in rng.permutation(8)[:3])
        circuit.cp(float(rng.random()), a, b)
        circuit.mcp(float(rng.random()), [a, b], c)
        circuit.rz(float(rng.random()), c)
    np.testing.assert_allclose(state_of(circuit), np.asarray(Statevector(circuit)), atol=1e-12)
