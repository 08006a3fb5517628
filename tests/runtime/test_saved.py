"""Saved results against NumPy and Qiskit: every kind, every form, subsets, idle qubits, histories."""

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy, transpile
from qiskit.circuit.library import QFTGate
from qiskit.quantum_info import (
    DensityMatrix,
    Operator,
    SparseObservable,
    SparsePauliOp,
    Statevector,
    partial_trace,
    random_statevector,
)

import qsim_ozaki as q
from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import CapacityError, LoweringError, OptionError

OBSERVABLE = SparsePauliOp(["XYZ", "IZI", "YYX", "III"], [0.5, -1.25, 2, 0.3])


def prepared(rng, num_qubits=4, idle=0):
    """A circuit in a random state, with idle qubits above, and that state."""
    circuit = QuantumCircuit(num_qubits + idle)
    circuit.prepare_state(random_statevector(1 << num_qubits, seed=rng), range(num_qubits))
    circuit.swap(0, num_qubits - 1)
    return circuit, Statevector(circuit)


def data_of(circuit, shots=1, **options):
    return OzakiBackend(seed_simulator=5, **options).run(circuit, shots=shots).result().data(0)


@pytest.mark.parametrize("qubits", [None, [2], [3, 0], [1, 5, 2], [5, 4]])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_probabilities_and_density_matrices_of_subsets_and_idle_qubits(qubits, precision, rng):
    circuit, state = prepared(rng, 4, idle=2)
    q.save_probabilities(circuit, qubits)
    q.save_probabilities_dict(circuit, qubits)
    q.save_density_matrix(circuit, qubits)
    data = data_of(circuit, precision=precision)
    atol = 1e-13 if precision == "double" else 1e-5
    chosen = list(range(6)) if qubits is None else qubits
    np.testing.assert_allclose(data["probabilities"], state.probabilities(chosen), atol=atol)
    want = {index: p for index, p in enumerate(state.probabilities(chosen)) if p > 1e-12}
    assert data["probabilities_dict"] == pytest.approx(want, abs=atol)
    rest = [qubit for qubit in range(6) if qubit not in chosen]
    mixed = partial_trace(state, rest).data
    order = np.argsort(np.argsort(chosen))  # place of each chosen qubit among the kept ones
    index = np.array([sum((i >> j & 1) << order[j] for j in range(len(chosen))) for i in range(len(mixed))])
    assert isinstance(data["density_matrix"], DensityMatrix)
    np.testing.assert_allclose(data["density_matrix"].data, mixed[np.ix_(index, index)], atol=atol)


@pytest.mark.parametrize("qubits", [[0, 1, 2], [3, 1, 0], [1, 5, 2], [5, 4, 2]])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_expectation_values_and_variances(qubits, precision, rng):
    circuit, state = prepared(rng, 4, idle=2)
    q.save_expectation_value(circuit, OBSERVABLE, qubits)
    q.save_expectation_value_variance(circuit, OBSERVABLE, qubits)
    data = data_of(circuit, precision=precision)
    mean = state.expectation_value(OBSERVABLE, qubits).real
    square = state.expectation_value(OBSERVABLE @ OBSERVABLE, qubits).real
    atol = 1e-13 if precision == "double" else 1e-5
    assert data["expectation_value"] == pytest.approx(mean, abs=atol)
    np.testing.assert_allclose(data["expectation_value_variance"], [mean, square - mean**2], atol=atol)


FORMS = [
    ("XYZ", SparsePauliOp("XYZ")),
    (SparsePauliOp(["XYZ", "XYZ"], [1, 2]), SparsePauliOp("XYZ", 3)),
    (SparseObservable("XYZ"), SparsePauliOp("XYZ")),
    (Operator(np.diag([1.0, 2, 3, 4, 5, 6, 7, 9])), Operator(np.diag([1.0, 2, 3, 4, 5, 6, 7, 9]))),
]


@pytest.mark.parametrize(("given", "meant"), FORMS, ids=["label", "twice", "SparseObservable", "Operator"])
def test_observables_in_every_form(given, meant, rng):
    circuit, state = prepared(rng, 3)
    q.save_expectation_value(circuit, given)
    assert data_of(circuit)["expectation_value"] == pytest.approx(state.expectation_value(meant).real, abs=1e-13)


def test_amplitudes_and_dicts(rng):
    circuit, state = prepared(rng, 3, idle=1)
    indices = [5, 0, 9, 2]
    q.save_amplitudes(circuit, indices)
    q.save_amplitudes_squared(circuit, indices)
    q.save_statevector_dict(circuit)
    q.save_state(circuit)
    data = data_of(circuit)
    np.testing.assert_allclose(data["amplitudes"], state.data[indices], atol=1e-14)
    np.testing.assert_allclose(data["amplitudes_squared"], np.abs(state.data[indices]) ** 2, atol=1e-14)
    assert data["statevector_dict"] == pytest.approx({hex(i): state.data[i] for i in range(8)}, abs=1e-14)
    np.testing.assert_allclose(data["statevector"].data, state.data, atol=1e-14)


def measured_pair():
    """cos|00> + sin|11>, its first qubit measured, with P(1) = 1/4."""
    circuit = QuantumCircuit(2, 2, name="pair")
    circuit.ry(np.pi / 3, 0)
    circuit.cx(0, 1)
    circuit.measure(0, 0)
    return circuit


def test_means_sums_and_conditional_means_over_histories():
    circuit = measured_pair()
    q.save_probabilities(circuit, [1], "mean")
    q.save_probabilities(circuit, [1], "sum", unnormalized=True)
    q.save_expectation_value(circuit, "ZI", label="by bit", conditional=True)
    q.save_density_matrix(circuit, [1], "mixed")
    q.save_statevector(circuit, "state by bit", conditional=True)
    q.save_probabilities_dict(circuit, label="dict")
    q.save_expectation_value_variance(circuit, "IX", label="variance")
    data = data_of(circuit, shots=400)
    ones = data["counts"]["0x1"]
    share = ones / 400
    assert 50 < ones < 150
    np.testing.assert_allclose(data["mean"], [1 - share, share], atol=1e-14)
    np.testing.assert_allclose(data["sum"], [400 - ones, ones], atol=1e-11)
    assert data["by bit"] == pytest.approx({"0x0": 1, "0x1": -1})
    np.testing.assert_allclose(data["mixed"].data, np.diag([1 - share, share]), atol=1e-14)
    assert set(data["state by bit"]) == {"0x0", "0x1"}
    np.testing.assert_allclose(np.abs(data["state by bit"]["0x1"].data), [0, 0, 0, 1], atol=1e-14)
    assert data["dict"] == pytest.approx({0: 1 - share, 3: share})
    np.testing.assert_allclose(data["variance"], [0, 1], atol=1e-14)


def test_means_are_exact_without_shots():
    circuit = measured_pair()
    q.save_probabilities(circuit, [1])
    q.save_expectation_value(circuit, "ZI", label="by bit", conditional=True)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.h(1)
    q.save_density_matrix(circuit, [1])
    data = data_of(circuit, shots=None)
    np.testing.assert_allclose(data["probabilities"], [0.75, 0.25], atol=1e-14)
    assert data["by bit"] == pytest.approx({"0x0": 1, "0x1": -1})
    np.testing.assert_allclose(data["density_matrix"].data, [[0.875, -0.125], [-0.125, 0.125]], atol=1e-14)


def test_entries_per_shot_stand_in_the_order_of_memory():
    circuit = measured_pair()
    q.save_statevector(circuit, "states", pershot=True)
    circuit.h(1)
    circuit.measure(1, 1)
    q.save_probabilities(circuit, [1, 0], "probabilities", pershot=True)
    q.save_expectation_value(circuit, "ZI", label="by bit", pershot=True, conditional=True)
    q.save_amplitudes(circuit, [0, 1, 2, 3], label="mean", pershot=True)
    backend = OzakiBackend(seed_simulator=5)
    free = backend.run(circuit, shots=100, memory=True).result().data(0)
    memory = [int(value, 16) for value in free["memory"]]
    assert len({*memory}) == 4
    assert [int(np.argmax(np.abs(state.data))) for state in free["states"]] == [3 * (value & 1) for value in memory]
    assert [int(np.argmax(p)) for p in free["probabilities"]] == [value >> 1 | (value & 1) << 1 for value in memory]
    assert {key: len(values) for key, values in free["by bit"].items()} == free["counts"]
    assert all(set(np.round(values, 12)) == {1 - (int(key, 16) & 2)} for key, values in free["by bit"].items())


def test_histories_run_again_for_want_of_memory_are_counted_once():
    circuit = QuantumCircuit(3, 3)
    circuit.h([0, 1, 2])
    q.save_probabilities(circuit, label="before", unnormalized=True)
    for qubit in range(3):
        circuit.measure(qubit, qubit)
        circuit.h(qubit)
    q.save_probabilities(circuit, label="after", unnormalized=True)
    q.save_expectation_value(circuit, "IIX", label="each", pershot=True)
    free = data_of(circuit, shots=64)
    needed = OzakiBackend().estimate(circuit, shots=64).needed_bytes
    tight = data_of(circuit, shots=64, max_memory_bytes=needed)
    for label in ("before", "after", "each"):
        np.testing.assert_allclose(tight[label], free[label], atol=1e-12)
    assert sum(free["before"]) == pytest.approx(64)
    assert tight["counts"] == free["counts"]


def test_saves_inside_branches_are_means_over_the_shots_that_pass():
    circuit = measured_pair()
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.append(q.SaveInstruction("save_expval", 2, "passed", ["average", "ZI", 1.0]), [0, 1])
    assert data_of(circuit, shots=100)["passed"] == pytest.approx(-1)
    with circuit.if_test((circuit.clbits[1], 1)):
        q.save_probabilities(circuit, label="never")
    assert "never" not in data_of(circuit, shots=100)


def looped(kind, form):
    circuit = QuantumCircuit(1, 1, name="looped")
    if kind == "for":
        with circuit.for_loop(range(2)):
            circuit.h(0)
            q.save_probabilities(circuit, [0])
    elif kind == "while":
        with circuit.while_loop((circuit.clbits[0], 1)):
            q.save_probabilities(circuit, [0])
    else:
        with circuit.if_test((circuit.clbits[0], 1)):
            q.save_probabilities(circuit, [0], pershot=True)
    return circuit


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("for", r"saves two states under label 'probabilities'.*after a loop"),
        ("while", r"saves 'probabilities' inside a loop.*after the loop"),
        ("if", r"saves 'probabilities' for each shot inside control flow.*outside, or without pershot"),
    ],
)
def test_saves_that_control_flow_would_hide_are_refused(kind, message):
    with pytest.raises(LoweringError, match=message):
        OzakiBackend().run(looped(kind, "average"))


def test_ambiguous_states_are_refused():
    circuit = QuantumCircuit(1, 1, name="twice")
    circuit.h(0)
    circuit.measure(0, 0)
    circuit.h(0)
    circuit.measure(0, 0)
    q.save_statevector(circuit, "after", conditional=True)
    assert len(data_of(circuit, shots=50)["after"]) == 2  # two histories each, of one and the same state
    forgotten = QuantumCircuit(2, 1, name="forgotten")
    forgotten.h(0)
    forgotten.cx(0, 1)
    forgotten.reset(0)
    q.save_statevector(forgotten, "after", conditional=True)
    with pytest.raises(OptionError, match=r"'forgotten': several states are saved as 'after'.*value 0x0.*pershot=True"):
        data_of(forgotten, shots=50)
    with pytest.raises(OptionError, match=r"shots=None: state 'each' is saved once per shot"):
        OzakiBackend().run(q.save_state(QuantumCircuit(1), "each", pershot=True), shots=None)


def test_labels_are_checked_when_appended():
    circuit = q.save_probabilities(QuantumCircuit(2))
    for append in (q.save_probabilities, q.save_density_matrix):
        with pytest.raises(
            LoweringError, match=r"already saves a state under label 'probabilities'.*'probabilities_2'"
        ):
            append(circuit, label="probabilities")
    with pytest.raises(LoweringError, match="label 'memory' is not allowed"):
        q.save_expectation_value(circuit, "ZZ", label="memory")
    with pytest.raises(LoweringError, match=r"observable is of 2 qubits, but it is saved on 1 .*qubits="):
        q.save_expectation_value(circuit, "ZZ", [1])
    with pytest.raises(LoweringError, match="not Hermitian"):
        q.save_expectation_value(circuit, SparsePauliOp("ZZ", 1j))
    with pytest.raises(LoweringError, match=r"has 2 qubits, but the state has 2 amplitudes\. Give 4"):
        q.set_statevector(circuit, [1, 0])


def everything(rng):
    circuit, state = prepared(rng, 3)
    q.set_statevector(circuit, state)
    q.save_expectation_value(circuit, OBSERVABLE, label="value", conditional=True)
    q.save_expectation_value_variance(circuit, OBSERVABLE, label="spread")
    q.save_amplitudes(circuit, [7, 1], label="amps", pershot=True)
    q.save_amplitudes_squared(circuit, [7, 1], label="squares", unnormalized=True)
    q.save_probabilities(circuit, [2, 0], label="probs")
    q.save_probabilities_dict(circuit, label="by index")
    q.save_density_matrix(circuit, [1], label="mixed")
    q.save_statevector_dict(circuit, label="kets")
    q.save_state(circuit, label="state")
    q.save_statevector(circuit, label="each", pershot=True, conditional=True)
    return circuit


@pytest.mark.parametrize("level", [None, 0, 1, 2, 3])
def test_t86_every_save_survives_qpy_and_transpilation(level, rng, tmp_path):
    circuit = everything(rng)
    with (tmp_path / "circuit.qpy").open("wb") as file:
        qpy.dump(circuit, file)
    with (tmp_path / "circuit.qpy").open("rb") as file:
        (loaded,) = qpy.load(file)
    want, backend = data_of(circuit, shots=2), OzakiBackend()
    loaded = loaded if level is None else transpile(loaded, backend, optimization_level=level)
    got = data_of(loaded, shots=2)
    assert (
        set(got)
        == set(want)
        == {"value", "spread", "amps", "squares", "probs", "by index", "mixed", "kets"}
        | {
            "state",
            "each",
        }
    )
    for label in want:
        np.testing.assert_allclose(flat(got[label]), flat(want[label]), atol=1e-13, err_msg=label)


def flat(value):
    """Every number of ``value``, in order, keys included."""
    if isinstance(value, dict):
        return np.concatenate([flat([int(str(key), 0), flat(entry)]) for key, entry in value.items()])
    if isinstance(value, list):
        return np.concatenate([flat(entry) for entry in value])
    return np.ravel(np.asarray(value, complex))


@pytest.mark.parametrize("level", [None, 0, 2])
def test_aers_saves_mean_the_same(level):
    aer = pytest.importorskip("qiskit_aer")
    circuit = QuantumCircuit(3, 2)
    circuit.h(0)
    circuit.t(0)
    circuit.cx(0, 1)
    circuit.ry(0.4, 2)
    circuit.swap(1, 2)
    circuit.save_state(label="early")
    circuit.measure(0, 0)
    circuit.save_expectation_value(OBSERVABLE, [2, 0, 1], label="value", conditional=True)
    circuit.save_expectation_value_variance(OBSERVABLE, [0, 1, 2], label="spread", conditional=True)
    circuit.save_probabilities([2, 1], label="probs", conditional=True)
    circuit.save_probabilities_dict([2, 0], label="dict", conditional=True)
    circuit.save_amplitudes([0, 5], label="amps", conditional=True)
    circuit.save_amplitudes_squared([0, 5], label="squares", conditional=True)
    circuit.save_density_matrix([1], label="mixed", conditional=True)
    circuit.save_statevector(label="states", conditional=True)
    circuit.save_statevector_dict(label="kets", conditional=True)
    want = aer.AerSimulator(method="statevector").run(circuit, shots=30).result().data(0)
    if level is not None:
        circuit = transpile(circuit, OzakiBackend(), optimization_level=level)
    got = data_of(circuit, shots=30)
    assert set(got) == set(want)
    for label in set(want) - {"counts"}:
        given, expected = got[label], want[label]
        if label == "early":
            given, expected = {"0x0": given}, {"0x0": expected}
        assert set(given) == set(expected) == ({"0x0"} if label == "early" else {"0x0", "0x1"})
        for key in expected:
            np.testing.assert_allclose(flat(given[key]), flat(expected[key]), atol=1e-9, err_msg=f"{label} {key}")


@pytest.mark.parametrize("num_qubits", [2, 7])
def test_set_statevector_replaces_what_was_there(num_qubits, rng):
    vector = random_statevector(1 << num_qubits, seed=rng)
    circuit = QuantumCircuit(num_qubits, 1, global_phase=0.4)
    circuit.h(range(num_qubits))
    circuit.swap(0, 1)
    circuit.measure(0, 0)
    circuit.y(0)
    q.set_statevector(circuit, vector)
    circuit.cx(0, 1)
    tail = QuantumCircuit(num_qubits, global_phase=0.4)
    tail.cx(0, 1)
    q.save_probabilities(circuit)
    q.save_statevector(circuit, conditional=True)
    data = data_of(circuit, shots=40)
    want = vector.evolve(tail)
    np.testing.assert_allclose(data["probabilities"], want.probabilities(), atol=1e-13)
    for state in data["statevector"].values():
        np.testing.assert_allclose(state.data, want.data, atol=1e-13)


def test_what_is_saved_counts_as_memory():
    circuit = QuantumCircuit(8)
    circuit.h(range(8))
    q.save_density_matrix(circuit)
    assert OzakiBackend().estimate(circuit).needed_bytes == (16 << 8) + (16 << 16)
    with pytest.raises(CapacityError, match=r"8 qubits and 1 saved .* need 1 MiB"):
        OzakiBackend(max_memory_bytes=1 << 20).run(circuit)


def test_t05_a_state_saved_in_twenty_runs_is_the_same_twenty_times():
    circuit = q.save_statevector(QFTGate(10).definition)
    backend = OzakiBackend()
    states = [backend.run(circuit).result().get_statevector().data for _ in range(20)]
    np.testing.assert_allclose(states[0], np.full(1024, 1 / 32), atol=1e-14)
    assert all(np.array_equal(state, states[0]) for state in states)


def test_t07_counts_of_collapsed_shots_and_a_state_do_not_mix():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure_all()
    q.save_statevector(circuit)
    with pytest.raises(OptionError, match=r"shots=50: state 'statevector' comes after a measurement.*pershot=True"):
        OzakiBackend().run(circuit, shots=50)
    each = QuantumCircuit(2)
    each.h(0)
    each.cx(0, 1)
    each.measure_all()
    q.save_statevector(each, pershot=True)
    data = OzakiBackend().run(each, shots=50, memory=True).result().data(0)
    assert sum(data["counts"].values()) == 50
    for value, state in zip(data["memory"], data["statevector"], strict=True):
        np.testing.assert_allclose(np.abs(state.data), np.eye(4)[int(value, 16)], atol=1e-14)


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 0, 1]])
def test_t21_saved_marginals_in_the_order_asked(order, rng):
    circuit, state = prepared(rng, 3)
    q.save_probabilities(circuit, order)
    np.testing.assert_allclose(data_of(circuit)["probabilities"], state.probabilities(order), atol=1e-14)
