"""Observables with projectors on many qubits: exact, sampled, in gradients, in dynamic circuits, in saves."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import SparseObservable, SparsePauliOp, Statevector
from support.calls import calls_of

from qsim_ozaki import EstimatorV2, OzakiBackend, expectation_gradient, save_expectation_value
from qsim_ozaki.lowering.projectors import MAX_SPLIT

LETTERS = list("IXYZ01+-rl")


def mixed_observable(rng, num_qubits, num_terms):
    """Terms of all letters, some with more projectors than are split."""
    return SparseObservable.from_list(
        [("".join(rng.choice(LETTERS, num_qubits)), float(rng.normal())) for _ in range(num_terms)]
    )


def exact(circuit, observable):
    return Statevector(circuit).expectation_value(SparsePauliOp.from_sparse_observable(observable)).real


@pytest.mark.parametrize("num_qubits", [5, 7])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_terms_of_all_letters_on_stacked_states(rng, num_qubits, precision):
    circuit = efficient_su2(num_qubits, reps=1)
    values = rng.uniform(-np.pi, np.pi, (3, circuit.num_parameters))
    observable = mixed_observable(rng, num_qubits, 8)
    evs = EstimatorV2(OzakiBackend(precision=precision)).run([(circuit, observable, values)]).result()[0].data.evs
    want = [exact(circuit.assign_parameters(row), observable) for row in values]
    np.testing.assert_allclose(evs, want, atol=1e-12 if precision == "double" else 1e-5)


def test_terms_of_all_letters_on_states_that_are_planned(rng):
    circuit = efficient_su2(14, reps=1)
    values = rng.uniform(-np.pi, np.pi, circuit.num_parameters)
    terms = [("01" * 7, 1.0), ("+-rl01" + "I" * 8, 2.0), ("0" * 5 + "XYZ" + "1" * 6, -3.0)]
    bound = circuit.assign_parameters(values)
    state = Statevector(bound).data
    for label, weight in terms:
        want = weight * np.vdot(state, string_on(label, state)).real
        got = EstimatorV2().run([(bound, {label: weight})]).result()[0].data.evs
        assert got == pytest.approx(want, abs=1e-13)


def string_on(label, state):
    tensor = state.reshape((2,) * len(label))
    for axis, letter in enumerate(label):
        matrix = SparsePauliOp.from_sparse_observable(SparseObservable.from_label(letter)).to_matrix()
        tensor = np.moveaxis(np.tensordot(matrix, tensor, (1, axis)), 0, axis)
    return tensor.reshape(-1)


@pytest.mark.parametrize("letters", ["0", "1", "+", "0+"])
def test_a_projector_on_all_24_qubits(letters):
    """The product state's value is a product; few seconds, where Pauli strings would be 2**24."""
    circuit = QuantumCircuit(24)
    for qubit in range(24):
        circuit.ry(0.1 * qubit, qubit)
    label = (letters * 24)[:24]
    factors = []
    for qubit, letter in enumerate(reversed(label)):
        angle = 0.1 * qubit
        factors.append({"0": 1 + np.cos(angle), "1": 1 - np.cos(angle), "+": 1 + np.sin(angle)}[letter] / 2)
    want = np.prod(factors)
    got = EstimatorV2().run([(circuit, SparseObservable.from_label(label))]).result()[0].data.evs
    assert got == pytest.approx(want, rel=1e-12, abs=1e-15)


def test_a_projector_on_all_24_qubits_sampled():
    circuit = QuantumCircuit(24)
    circuit.ry(1.0, 0)
    circuit.x(range(1, 24))
    circuit.x(range(1, 24))
    data = EstimatorV2(seed=3).run([(circuit, SparseObservable.from_label("0" * 24))], precision=0.01).result()[0].data
    probability = np.cos(0.5) ** 2
    assert data.stds == pytest.approx(np.sqrt(probability * (1 - probability)) * 0.01, rel=0.05)
    assert abs(data.evs - probability) < 5 * data.stds


def test_gradients_of_terms_of_all_letters(rng):
    circuit = efficient_su2(5, reps=1)
    values = rng.uniform(-np.pi, np.pi, circuit.num_parameters)
    observable = mixed_observable(rng, 5, 6) + SparseObservable.from_label("0+r1-")
    value, gradient = expectation_gradient(circuit, observable, values)
    assert value == pytest.approx(exact(circuit.assign_parameters(values), observable), abs=1e-12)
    for index in range(values.size):
        shift = np.pi / 2 * np.eye(values.size)[index]
        pair = [exact(circuit.assign_parameters(values + sign * shift), observable) for sign in (1, -1)]
        assert gradient[index] == pytest.approx((pair[0] - pair[1]) / 2, abs=1e-12)


def test_the_gradient_of_a_projector_on_many_qubits():
    circuit = efficient_su2(17, reps=0)
    values = np.linspace(-0.4, 0.4, circuit.num_parameters)
    value, gradient = expectation_gradient(circuit, "0" * 17, values)
    sines = values[:17]  # of ry; rz does nothing to this value
    want = np.prod(np.cos(sines / 2) ** 2)
    assert value == pytest.approx(want, abs=1e-13)
    np.testing.assert_allclose(gradient[:17], -np.tan(sines / 2) * want, atol=1e-13)
    np.testing.assert_allclose(gradient[17:], 0, atol=1e-13)


def test_dynamic_circuits_and_saves_take_projectors_on_all_qubits():
    circuit = QuantumCircuit(24, 1)
    circuit.ry(1.0, 0)
    circuit.measure(0, 0)
    circuit.h(1)
    circuit.reset(0)
    observables = ["0" * 24, "0" * 22 + "+0", "0" * 22 + "rl"]
    want = [0.5, 1.0, 0.25]
    np.testing.assert_allclose(EstimatorV2().run([(circuit, observables)]).result()[0].data.evs, want, atol=1e-14)
    data = EstimatorV2(seed=5).run([(circuit, observables)], precision=0.02).result()[0].data
    np.testing.assert_allclose(data.evs, want, atol=5 * 0.02)
    saving = save_expectation_value(circuit.copy(), SparseObservable.from_label("0" * 24))
    result = OzakiBackend().run(saving, shots=None).result()
    assert result.data()["expectation_value"] == pytest.approx(0.5, abs=1e-14)


def test_projectors_on_measured_and_idle_qubits_count_as_their_means():
    circuit = QuantumCircuit(12, 1)
    circuit.h(0)
    circuit.measure(0, 0)
    label = "0" * 5 + "+r" + "0" * 4 + "+"  # idle qubits: 1, then 1/2 twice; the measured qubit: 1/2
    assert len(label) > MAX_SPLIT
    assert EstimatorV2().run([(circuit, label)]).result()[0].data.evs == pytest.approx(1 / 8, abs=1e-15)
    ones = "0" * 10 + "1" + "0"
    assert EstimatorV2().run([(circuit, ones)]).result()[0].data.evs == 0


def test_many_projectors_take_one_pass():
    """2**20 strings took minutes, and millions of calls."""
    circuit = efficient_su2(20, reps=0).assign_parameters(np.zeros(40))
    values = []
    assert calls_of(lambda: values.append(EstimatorV2().run([(circuit, "0" * 20)]).result()[0].data.evs)) < 20_000
    assert values[0] == pytest.approx(1)
