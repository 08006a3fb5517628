"""Saved, final and initial states through the backend, against Qiskit's Statevector."""

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy, transpile
from qiskit.quantum_info import Statevector, random_statevector
from support.bell import bell

import qsim_ozaki
from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.errors import CapacityError, LoweringError, OptionError


def state_of(circuit, **options):
    return np.asarray(OzakiBackend(**options).run(circuit, shots=1).result().get_statevector())


def test_empty_circuits_have_a_state():
    np.testing.assert_array_equal(state_of(QuantumCircuit(2)), [1, 0, 0, 0])
    phase = QuantumCircuit(1, global_phase=0.7)
    np.testing.assert_allclose(state_of(phase), [np.exp(0.7j), 0], atol=1e-15)
    assert OzakiBackend().run(QuantumCircuit(1, 1).measure_all(inplace=False)).result().get_counts() == {"0 0": 1024}


def test_saved_states_along_the_way_and_their_labels(rng):
    circuit, want = QuantumCircuit(4), {}
    for label in ("a", "b", "statevector"):
        circuit.u(*rng.random(3), int(rng.integers(4)))
        circuit.cx(0, 1)
        circuit.swap(1, 3)
        circuit.ccx(3, 0, 2)
        unitary = QuantumCircuit(4)
        unitary.data = [item for item in circuit.data if item.operation.name != "save_statevector"]
        want[label] = np.asarray(Statevector(unitary))
        save_statevector(circuit, label)
    circuit.measure_all()
    data = OzakiBackend().run(circuit).result().data(0)
    for label, state in want.items():
        np.testing.assert_allclose(np.asarray(data[label]), state, atol=1e-14)
    assert sum(data["counts"].values()) == 1024


def test_a_label_is_taken_once():
    circuit = save_statevector(QuantumCircuit(1))
    with pytest.raises(LoweringError, match="already saves a state under label 'statevector'"):
        save_statevector(circuit)
    twice = circuit.compose(circuit)
    with pytest.raises(LoweringError, match="saves two states under label 'statevector'"):
        OzakiBackend().run(twice)
    with pytest.raises(LoweringError, match="label 'counts' is not allowed"):
        save_statevector(circuit, "counts")


@pytest.mark.parametrize("level", range(4))
def test_a_save_survives_transpilation_and_qpy(level, tmp_path):
    circuit = QuantumCircuit(3)
    circuit.x(0)
    circuit.h(1)
    circuit.swap(0, 2)
    save_statevector(circuit, "mine")
    want = np.asarray(Statevector.from_label("1+0"))
    with (tmp_path / "circuit.qpy").open("wb") as file:
        qpy.dump(circuit, file)
    with (tmp_path / "circuit.qpy").open("rb") as file:
        (loaded,) = qpy.load(file)
    backend = OzakiBackend()
    for each in (circuit, loaded):
        result = backend.run(transpile(each, backend, optimization_level=level)).result()
        np.testing.assert_allclose(np.asarray(result.data(0)["mine"]), want, atol=1e-15)


def test_a_saved_state_after_a_collapse_needs_one_shot():
    circuit = save_statevector(bell())
    with pytest.raises(OptionError, match=r"shots=50: state 'statevector' comes after a measurement or reset.*shots=1"):
        OzakiBackend().run(circuit, shots=50)
    result = OzakiBackend(seed_simulator=2).run(circuit, shots=1).result()
    (key,) = result.get_counts()
    np.testing.assert_allclose(np.abs(result.get_statevector().data) ** 2, np.eye(4)[int(key, 2)], atol=1e-15)


def test_a_state_can_be_saved_on_part_of_the_qubits_if_the_others_are_zero():
    circuit = QuantumCircuit(3)
    circuit.h(2)
    circuit.x(0)
    circuit.x(0)
    circuit.append(qsim_ozaki.SaveStatevector(2), [2, 1])
    np.testing.assert_allclose(state_of(circuit), np.array([1, 1, 0, 0]) / np.sqrt(2), atol=1e-15)
    circuit = bell(measured=False)
    circuit.append(qsim_ozaki.SaveStatevector(1), [1])
    with pytest.raises(LoweringError, match=r"another qubit is not \|0> there"):
        OzakiBackend().run(circuit).result()


INITIAL = ["+1r-0l", 37, 0, "000000"]


@pytest.mark.parametrize("initial", INITIAL, ids=str)
def test_initial_state_by_label_and_index(initial):
    start = Statevector.from_label(initial) if isinstance(initial, str) else Statevector.from_int(initial, 64)
    circuit = QuantumCircuit(6)
    circuit.cx(0, 4)
    circuit.t(5)
    want = np.asarray(start.evolve(circuit))
    np.testing.assert_allclose(state_of(circuit, initial_state=initial), want, atol=1e-15)


class OnHost:
    """An array of another library: it offers DLPack and claims to be an index."""

    def __init__(self, array):
        self.array, self.ndim = array, array.ndim

    def __index__(self):
        raise TypeError

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)


class OnDevice(OnHost):
    """As CuPy: its memory is not the host's, and it copies when asked to."""

    def __dlpack_device__(self):
        return (2, 0)

    def get(self):
        return self.array.copy()


@pytest.mark.parametrize("kind", [OnHost, OnDevice])
def test_initial_state_by_dlpack(kind, rng):
    start = random_statevector(8, seed=rng)
    circuit = QuantumCircuit(3)
    circuit.cx(0, 2)
    want = np.asarray(start.evolve(circuit))
    np.testing.assert_allclose(state_of(circuit, initial_state=kind(start.data)), want, atol=1e-15)
    with pytest.raises(OptionError, match=f"type {kind.__name__} is not allowed"):
        OzakiBackend(initial_state=kind(np.ones((2, 2))))


def test_initial_state_on_a_device_out_of_reach():
    class Far(OnHost):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise BufferError("no such device")

    with pytest.raises(OptionError, match="type Far is not allowed"):
        OzakiBackend(initial_state=Far(np.array([1, 0])))


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("level", [None, 2])
def test_initial_state_by_vector_reaches_idle_qubits_too(precision, level, rng):
    start = random_statevector(32, seed=rng)
    circuit = QuantumCircuit(5)
    circuit.cx(3, 1)
    circuit.swap(0, 3)
    want = np.asarray(start.evolve(circuit))
    backend = OzakiBackend(precision=precision)
    if level is not None:
        circuit = transpile(circuit, backend, optimization_level=level)
    for form in (start, start.data, list(start.data)):
        got = np.asarray(backend.run(circuit, initial_state=form).result().get_statevector())
        np.testing.assert_allclose(got, want, atol=1e-14 if precision == "double" else 1e-6)


def test_an_initial_state_of_another_width_is_refused():
    for initial in ("000", 4, np.array([1, 0])):
        with pytest.raises(OptionError, match="circuit 'bell'"):
            OzakiBackend().run(bell(), initial_state=initial)


@pytest.mark.parametrize("qubits", [[0, 1], [3, 1], [2, 0, 3], [5, 0, 1, 2, 4, 3], [4, 6, 0, 2, 1, 3]])
def test_initialize_of_some_qubits_after_gates_on_others(qubits, rng):
    """Fresh qubits and used ones, few and many: the others keep their state where they were in a product with them."""
    vector = random_statevector(1 << len(qubits), seed=rng)
    others = [q for q in range(7) if q not in qubits]
    circuit = QuantumCircuit(7)
    circuit.h(range(7))
    circuit.t(others)
    circuit.swap(qubits[0], qubits[1])
    circuit.initialize(vector.data, qubits)
    circuit.cx(0, 6)
    reference = QuantumCircuit(7)
    reference.h(others)
    reference.t(others)
    start = Statevector(reference)
    amplitudes = np.array([start.data[index & sum(1 << q for q in others)] for index in range(128)])
    amplitudes *= [vector.data[sum((index >> q & 1) << j for j, q in enumerate(qubits))] for index in range(128)]
    tail = QuantumCircuit(7)
    tail.cx(0, 6)
    want = np.asarray(Statevector(amplitudes).evolve(tail))
    got = state_of(circuit)
    assert abs(np.vdot(want, got)) == pytest.approx(1, abs=1e-12)


def test_saved_copies_count_as_memory():
    circuit = QuantumCircuit(10)
    for label in "abc":
        circuit.h(range(10))
        save_statevector(circuit, label)
    with pytest.raises(CapacityError, match=r"3 saved states of 10 qubits need 48 KiB .*The state alone fits"):
        OzakiBackend(max_memory_bytes=17 << 10).run(circuit)


@pytest.mark.parametrize("level", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
def test_aers_save_works_by_its_name(level, when):
    pytest.importorskip("qiskit_aer")
    circuit = QuantumCircuit(3)
    circuit.x(0)
    circuit.h(1)
    circuit.swap(0, 2)
    want = np.asarray(Statevector(circuit))
    backend = OzakiBackend()
    if when == "before":
        circuit.save_statevector(label="aer")
    if level is not None:
        circuit = transpile(circuit, backend, optimization_level=level)
    if when == "after":
        circuit.save_statevector(label="aer")
    np.testing.assert_allclose(np.asarray(backend.run(circuit).result().data(0)["aer"]), want, atol=1e-15)
