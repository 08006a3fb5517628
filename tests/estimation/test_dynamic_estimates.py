"""Sampled expectation values of circuits that measure, reset or branch inside; gradients of them are refused."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit
from qiskit.circuit import Parameter
from qiskit.primitives import BackendEstimatorV2
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import EstimatorV2, OzakiBackend, expectation_gradient
from qsim_ozaki.errors import MixedStateError

ANGLE = Parameter("a")
OBSERVABLES = [["ZIX"], [SparsePauliOp(["XXI", "ZIZ", "IYY", "III"], [1, -0.5, 0.7, 2])], ["0+I"], ["IIZ"]]


def branching():
    """A qubit measured and reset, a gate and a rotation that depend on it, a loop until success."""
    circuit = QuantumCircuit(3, 2, name="branching")
    circuit.ry(ANGLE, 0)
    circuit.cx(0, 1)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)) as otherwise:
        circuit.ry(0.7 * ANGLE, 2)
        circuit.s(1)
    with otherwise:
        circuit.h(1)
    circuit.reset(0)
    with circuit.while_loop((circuit.clbits[1], 0)):
        circuit.h(0)
        circuit.measure(0, 1)
        circuit.rx(0.3, 2)
    circuit.ry(0.4, 0)
    return circuit


def values_of(count):
    return np.linspace(0.2, 2.9, count)[:, None]


@pytest.mark.parametrize("precision", [0.1, 0.02])
def test_sampled_values_scatter_around_the_exact_ones_as_their_errors_say(precision):
    pub = (branching(), OBSERVABLES, values_of(12))
    exact = EstimatorV2().run([pub]).result()[0].data
    result = EstimatorV2(seed=5).run([pub], precision=precision).result()[0]
    assert result.data.evs.shape == result.data.stds.shape == (4, 12)
    assert result.metadata["shots"] == np.ceil(1 / precision**2)
    scores = ((result.data.evs - exact.evs) / np.maximum(result.data.stds, 1e-12)).reshape(-1)
    assert abs(scores.mean()) < 4 / np.sqrt(scores.size)
    assert 0.7 < scores.std() < 1.35
    assert np.abs(scores).max() < 5
    most = np.sqrt(sum(weight**2 for weight in (1, 0.5, 0.7))) * precision
    assert result.data.stds.max() <= 1.3 * most


def test_qiskits_estimator_on_the_backend_agrees():
    plain = [OBSERVABLES[0], OBSERVABLES[1], OBSERVABLES[3]]  # it knows no projectors
    pub = (branching(), plain, values_of(5))
    exact = EstimatorV2().run([pub]).result()[0].data.evs
    options = {"default_precision": 0.01, "seed_simulator": 3}
    theirs = BackendEstimatorV2(backend=OzakiBackend(), options=options).run([pub]).result()[0].data
    ours = EstimatorV2(seed=4).run([pub], precision=0.01).result()[0].data
    np.testing.assert_allclose(theirs.evs, exact, atol=0.07)
    np.testing.assert_allclose(ours.evs, exact, atol=0.07)
    np.testing.assert_allclose(ours.stds[[0, 2]], theirs.stds[[0, 2]], rtol=0.1)


def test_a_seed_fixes_the_estimates_and_rows_are_independent():
    pub = (branching(), ["ZIX", "XXI"], np.full((6, 1, 1), 1.1))
    first = EstimatorV2(seed=7).run([pub, pub], precision=0.05).result()
    again = EstimatorV2(seed=7).run([pub, pub], precision=0.05).result()
    for ours, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(ours.data.evs, same.data.evs)
    for column in range(2):
        values = np.concatenate([result.data.evs[:, column] for result in first])
        assert len(set(values.tolist())) > 8


def test_idle_qubits_and_registers_of_the_same_name():
    circuit = QuantumCircuit(70)
    circuit.add_register(ClassicalRegister(1, "estimated"))
    circuit.h(66)
    circuit.measure(66, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(3)
    label = ["I"] * 70
    label[70 - 1 - 3] = label[70 - 1 - 66] = label[0] = "Z"
    pubs = [(circuit, "".join(label)), (circuit, "X" + "I" * 69), (circuit, "I" * 70)]
    data = [result.data for result in EstimatorV2(seed=1).run(pubs, precision=0.1).result()]
    assert [float(each.evs) for each in data] == [1, 0, 1]
    assert [float(each.stds) for each in data] == [0, 0, 0]


@pytest.mark.parametrize("kind", ["measured early", "reset", "branch", "initialized"])
def test_each_kind_is_estimated_and_has_no_gradient(kind):
    circuit = QuantumCircuit(1, 1)
    circuit.ry(ANGLE, 0)
    circuit.measure(0, 0)
    if kind == "measured early":
        circuit.h(0)
    elif kind == "reset":
        circuit.reset(0)
    elif kind == "initialized":
        circuit.initialize([0.6, 0.8], 0)
    else:
        with circuit.if_test((circuit.clbits[0], 1)):
            circuit.x(0)
    exact = EstimatorV2().run([(circuit, ["Z", "X"], [1.0])]).result()[0].data.evs
    want = {"measured early": [0, np.cos(1)], "initialized": [-0.28, 0.96]}.get(kind, [1, 0])
    np.testing.assert_allclose(exact, want, atol=1e-14)
    sampled = EstimatorV2(seed=2).run([(circuit, ["Z", "X"], [1.0])], precision=0.01).result()[0].data
    np.testing.assert_allclose(sampled.evs, exact, atol=0.05)
    with pytest.raises(MixedStateError, match=r"no one final state.*for gradients, a circuit that is unitary"):
        expectation_gradient(circuit, "Z", [1.0])
