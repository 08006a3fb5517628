"""Circuits of CX ladders and routed ones through the whole backend, with plans of many small tiles, against Qiskit."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import ClassicalRegister, ParameterVector
from qiskit.quantum_info import Statevector
from support.distribution import assert_follows
from support.parametric import exact_value, random_observable
from support.random_ops import random_state
from support.reference import tolerance
from support.reference_dynamic import distribution

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient, save_statevector
from qsim_ozaki.circuits.clifford_t import clifford_t
from qsim_ozaki.circuits.molecule_trotter import molecule_trotter
from qsim_ozaki.circuits.transpiled import transpiled
from qsim_ozaki.circuits.uccsd import uccsd
from qsim_ozaki.engines import ENGINES, select
from qsim_ozaki.engines.cpu.engine import CpuEngine
from qsim_ozaki.planner import cache as plan_cache

CIRCUITS = {
    "uccsd": lambda n, seed: uccsd(n, seed, excitations=3),
    "molecule": lambda n, seed: molecule_trotter(n, seed, strings=25),
    "clifford_t": lambda n, seed: clifford_t(n, seed, layers=12),
    "qft on a line": transpiled,
    "uccsd on a line": lambda n, seed: transpiled(n, seed, "uccsd"),
    "clifford_t on a line": lambda n, seed: transpiled(n, seed, "clifford_t"),
}
WIDTHS = {"uccsd on a line": (6, 8), "clifford_t on a line": (6, 9)}  # thousands of gates, which take Qiskit long
QISKIT_ROUNDING = 2  # Qiskit rounds once more for each gate than the reference does


@pytest.fixture(params=["plain", "tiles of 5", "tiles of 6", "moves"])
def planned(request, monkeypatch):
    """Plans as they are, and of small tiles, in which no row of a small circuit is left to a stack."""
    if request.param == "plain":
        return
    monkeypatch.setattr(CpuEngine, "stack_qubits", 0)
    if request.param == "moves":
        monkeypatch.setitem(ENGINES, "cpu", "support.reference_engine")
        return
    device = replace(select("cpu", threads=2).device(), tile_qubits=int(request.param[-1]), line_qubits=2)
    monkeypatch.setattr(CpuEngine, "device", lambda engine: device)


@pytest.fixture
def small_tiles(monkeypatch):
    """Plans of tiles of 5 qubits, for any number of threads the same."""
    device = replace(select("cpu", threads=2).device(), tile_qubits=5, line_qubits=2)
    monkeypatch.setattr(CpuEngine, "stack_qubits", 0)
    monkeypatch.setattr(CpuEngine, "device", lambda engine: device)


def state_of(circuit, **options):
    saving = circuit.copy()
    save_statevector(saving)
    return np.asarray(OzakiBackend(**options).run(saving, shots=1).result().data(0)["statevector"])


def close(state, want, num_gates, precision="double"):
    error = np.linalg.norm(state - np.asarray(want))
    limit = tolerance(QISKIT_ROUNDING * num_gates, precision)
    assert error <= limit, f"error {error:.3g} above {limit:.3g}"


def bound_string(circuit, letters, angle):
    """A rotation about ``letters`` by qubit, as a ladder in a changed basis."""
    for q, letter in letters.items():
        if letter != "Z":
            (circuit.h if letter == "X" else circuit.sx)(q)
    qubits = list(letters)
    ladder = list(itertools.pairwise(qubits))
    for pair in ladder:
        circuit.cx(*pair)
    circuit.rz(angle, qubits[-1])
    for pair in reversed(ladder):
        circuit.cx(*pair)
    for q, letter in letters.items():
        if letter != "Z":
            (circuit.h if letter == "X" else circuit.sxdg)(q)


def ansatz(rng, num_qubits, num_strings):
    """Strings whose angles are parameters, on a random product state, between routed ones."""
    angles = ParameterVector("t", num_strings)
    circuit = QuantumCircuit(num_qubits, global_phase=0.4)
    for q in range(num_qubits):
        circuit.ry(rng.uniform(0, 3), q)
    for angle in angles:
        chosen = rng.permutation(num_qubits)[: rng.integers(2, num_qubits + 1)].tolist()
        bound_string(circuit, {q: str(rng.choice(list("XYZ"))) for q in chosen}, angle)
        a, b = rng.permutation(num_qubits)[:2].tolist()
        for pair in ((a, b), (b, a), (a, b)):  # a SWAP as a router writes it
            circuit.cx(*pair)
    return circuit


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", CIRCUITS)
def test_states(rng, name, precision):
    for n in WIDTHS.get(name, (6, 9, 12)):
        circuit = CIRCUITS[name](n, int(rng.integers(2**31)))
        want = Statevector(circuit)
        close(state_of(circuit, precision=precision, threads=2), want, len(circuit.data), precision)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("name", ["uccsd", "molecule"])
def test_plans_have_rotations_and_no_cx(rng, name):
    circuit = CIRCUITS[name](12, int(rng.integers(2**31)))
    text = OzakiBackend().plan(circuit).explain()
    assert "pauli_rotation" in text
    assert " cx" not in text


@pytest.mark.usefixtures("planned")
def test_saves_in_the_middle_and_a_start_of_ones_own(rng):
    """Each saved state has the user's order of qubits, and the phase of the whole circuit, which comes first."""
    n = 8
    start, circuit = random_state(rng, n), QuantumCircuit(n)
    parts = [CIRCUITS[name](n, int(rng.integers(2**31))) for name in ("molecule", "qft on a line", "uccsd")]
    want, gates = Statevector(start), 0
    wants = []
    for number, part in enumerate(parts):
        circuit.compose(part, inplace=True)
        save_statevector(circuit, label=f"after {number}")
        want, gates = want.evolve(part), gates + len(part.data)
        wants.append(want)
    data = OzakiBackend(initial_state=start, threads=2).run(circuit, shots=1).result().data(0)
    for number, expected in enumerate(wants):
        phase = np.exp(1j * (circuit.global_phase - sum(part.global_phase for part in parts[: number + 1])))
        close(np.asarray(data[f"after {number}"]), phase * np.asarray(expected), gates)


@pytest.mark.usefixtures("planned")
def test_rows_of_parameters(rng):
    """Angles of 0, quarter turns and pi among the usual ones: a row takes its own way, and no other row's."""
    n, count = 7, 4
    circuit = ansatz(rng, n, count)
    special = rng.choice(np.pi / 2 * np.arange(-4, 5), (8, count))
    mixed = np.where(rng.random((8, count)) < 0.5, special, rng.uniform(-7, 7, (8, count)))
    special[:2] = [[0], [np.pi]]
    rows = np.concatenate([special, mixed, rng.uniform(-7, 7, (6, count))])
    saving = circuit.copy()
    save_statevector(saving)
    binds = [{p: rows[:, k].tolist() for k, p in enumerate(circuit.parameters)}]
    result = OzakiBackend(threads=2).run(saving, shots=1, parameter_binds=binds).result()
    for number, values in enumerate(rows):
        want = Statevector(circuit.assign_parameters(values))
        close(np.asarray(result.data(number)["statevector"]), want, len(circuit.data))


@pytest.mark.usefixtures("small_tiles")
def test_a_thousand_rows_share_one_plan(rng, monkeypatch):
    n, count = 8, 3
    circuit, decided, decide = ansatz(rng, n, count), [], plan_cache.decide
    monkeypatch.setattr(plan_cache, "decide", lambda task: decided.append(task) or decide(task))
    rows = rng.uniform(0.1, 1.4, (1000, count))
    rows[7], rows[500] = 0, np.pi
    saving = circuit.copy()
    save_statevector(saving)
    binds = [{p: rows[:, k].tolist() for k, p in enumerate(circuit.parameters)}]
    result = OzakiBackend(threads=2).run(saving, shots=1, parameter_binds=binds).result()
    assert len(decided) <= 3
    for number in (0, 7, 8, 500, 501, 999):
        want = Statevector(circuit.assign_parameters(rows[number]))
        close(np.asarray(result.data(number)["statevector"]), want, len(circuit.data))


@pytest.mark.usefixtures("planned")
def test_ladders_around_measurements(rng):
    """The ladder before a measurement cannot cancel the one after it, where the outcome decides what lies between."""
    n = 6
    for _ in range(3):
        circuit = QuantumCircuit(n)
        flag, end = ClassicalRegister(2, "flag"), ClassicalRegister(n, "end")
        circuit.add_register(flag, end)
        circuit.compose(molecule_trotter(n, int(rng.integers(2**31)), strings=6), inplace=True)
        a, b = rng.permutation(n)[:2].tolist()
        ladder = [(q, q + 1) for q in range(n - 1)]
        for pair in ladder:
            circuit.cx(*pair)
        circuit.h(a)
        circuit.measure([a, b], flag)
        with circuit.if_test((flag[0], 1)):
            circuit.rx(0.7, b)
            circuit.cx(b, a)
        for pair in reversed(ladder):
            circuit.cx(*pair)
        bound_string(circuit, dict(enumerate("XZYZX")), 0.9)
        circuit.measure(range(n), end)
        want = distribution(circuit)
        exact = OzakiBackend(threads=2).run(circuit, shots=None).result().get_counts()
        total = {int(bits.replace(" ", ""), 2): weight for bits, weight in exact.items()}
        assert max(abs(total.get(value, 0) - want.get(value, 0)) for value in total.keys() | want.keys()) < 1e-12
        counts = OzakiBackend(threads=2, seed_simulator=5).run(circuit, shots=4000).result().data(0)["counts"]
        assert_follows(counts, {hex(value): weight for value, weight in want.items()})


@pytest.mark.usefixtures("planned")
def test_samples_follow_the_distribution(rng):
    """Of some qubits in any order, by the backend and by the sampler."""
    n = 8
    for name in ("molecule", "qft on a line"):
        circuit = CIRCUITS[name](n, int(rng.integers(2**31)))
        order = rng.permutation(n)[:5].tolist()
        want = {format(k, "05b"): p for k, p in enumerate(Statevector(circuit).probabilities(order)) if p > 1e-15}
        circuit.add_register(ClassicalRegister(5, "c"))
        circuit.measure(order, range(5))
        assert_follows(OzakiBackend(seed_simulator=3).run(circuit, shots=5000).result().get_counts(), want)
        assert_follows(SamplerV2(seed=4).run([circuit], shots=5000).result()[0].data.c.get_counts(), want)


@pytest.mark.usefixtures("planned")
def test_expectation_values_and_gradients(rng):
    n, count = 6, 5
    circuit, observable = ansatz(rng, n, count), random_observable(rng, n)
    rows = np.concatenate([rng.uniform(-3, 3, (4, count)), np.zeros((1, count)), np.full((1, count), np.pi)])
    evs = EstimatorV2().run([(circuit, observable, rows)]).result()[0].data.evs
    np.testing.assert_allclose(evs, [exact_value(circuit, observable, row) for row in rows], rtol=0, atol=1e-12)
    for row in rows:
        value, gradient = expectation_gradient(circuit, observable, row)
        assert value == pytest.approx(exact_value(circuit, observable, row), abs=1e-12)
        shifts = np.pi / 2 * np.eye(count)  # the parameter-shift rule of one rotation
        above, below = ([exact_value(circuit, observable, row + s * shift) for shift in shifts] for s in (1, -1))
        np.testing.assert_allclose(gradient, (np.array(above) - below) / 2, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", CIRCUITS)
def test_any_number_of_threads_gives_the_same_bits(rng, name, precision):
    circuit = CIRCUITS[name](WIDTHS.get(name, (12,))[-1], int(rng.integers(2**31)))
    states = [state_of(circuit, precision=precision, threads=threads).tobytes() for threads in (1, 2)]
    assert states[0] == states[1]
