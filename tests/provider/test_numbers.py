"""Numbers from users: those that are not finite and real, or that no parameter takes, are refused by name."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter, ParameterVector
from qiskit.circuit.classical import types
from qiskit.quantum_info import SparseObservable, SparsePauliOp

from qsim_ozaki import (
    EstimatorV2,
    OzakiBackend,
    SamplerV2,
    expectation_gradient,
    save_amplitudes,
    save_expectation_value,
    set_statevector,
)
from qsim_ozaki.errors import LoweringError, OptionError

BAD = [np.nan, np.inf, -np.inf]
X, Y = Parameter("x"), Parameter("y")


def rotation(angle=X):
    circuit = QuantumCircuit(1, name="turn")
    circuit.rx(angle, 0)
    circuit.rz(Y, 0)
    return circuit


def measured(circuit):
    return circuit.measure_all(inplace=False)


def dynamic():
    circuit = QuantumCircuit(1, 1, name="turn")
    circuit.rx(X, 0)
    circuit.measure(0, 0)
    circuit.rz(Y, 0)
    circuit.h(0)
    return circuit


# entry: what takes rows (x, y)
ROWS = {
    "binds": lambda rows: OzakiBackend().run(rotation(), parameter_binds=[rows]),
    "binds by name": lambda rows: OzakiBackend().run(rotation(), parameter_binds=[{"x": rows[:, 0], "y": rows[:, 1]}]),
    "sampler": lambda rows: SamplerV2().run([(measured(rotation()), rows)]),
    "sampler, mapping": lambda rows: SamplerV2().run([(measured(rotation()), {"x": rows[:, 0], "y": rows[:, 1]})]),
    "exact": lambda rows: EstimatorV2().run([(rotation(), "Z", rows)]),
    "sampled": lambda rows: EstimatorV2().run([(rotation(), "Z", rows)], precision=0.1),
    "mapping": lambda rows: EstimatorV2().run([(rotation(), "Z", {X: rows[:, 0], Y: rows[:, 1]})]),
    "dynamic": lambda rows: EstimatorV2().run([(dynamic(), "Z", rows)]),
    "gradient": lambda rows: expectation_gradient(rotation(), "Z", rows),
    "gradient, mapping": lambda rows: expectation_gradient(rotation(), "Z", {X: rows[:, 0], Y: rows[:, 1]}),
}


@pytest.mark.parametrize("entry", ROWS)
@pytest.mark.parametrize("bad", BAD)
def test_a_parameter_that_is_not_finite_is_named_with_its_row(entry, bad):
    rows = np.ones((4, 2))
    rows[2, 1] = bad
    with pytest.raises(OptionError, match=f"circuit 'turn.*': parameter 'y' is {bad} in row 2, which is not finite"):
        ROWS[entry](rows)


@pytest.mark.parametrize("entry", ROWS)
def test_an_imaginary_part_is_refused(entry):
    rows = np.ones((2, 2), complex)
    rows[1, 1] = 1 + 2j
    with pytest.raises(OptionError, match="are not real numbers"):
        ROWS[entry](rows)


FORMS = {
    "mapping": lambda factor: {"X": 1.0, "Z": factor},
    "SparsePauliOp": lambda factor: SparsePauliOp(["X", "Z"], [1.0, factor]),
    "SparseObservable": lambda factor: SparseObservable.from_list([("X", 1.0), ("Z", factor)]),
    "list": lambda factor: [{"X": 1.0}, {"Z": factor}],
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # Qiskit's SparsePauliOp multiplies by phases
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", BAD)
def test_a_factor_of_an_observable_that_is_not_finite_is_refused(form, bad):
    observable = FORMS[form](bad)
    for precision in (0, 0.1):
        with pytest.raises(LoweringError, match="of an observable has factor"):
            EstimatorV2().run([(rotation(), observable, [0.1, 0.2])], precision=precision)
    if form != "list":
        with pytest.raises(LoweringError, match="of an observable has factor"):
            expectation_gradient(rotation(), observable, [0.1, 0.2])
    if form.startswith("Sparse"):
        with pytest.raises(LoweringError, match="factor"):
            OzakiBackend().run(save_expectation_value(QuantumCircuit(1), observable))


@pytest.mark.parametrize("bad", [*BAD, -0.1, True, "0.1", 1e-200, 1e-8])
def test_a_precision_that_has_no_shots_is_refused(bad):
    pub = (rotation(), "Z", [0.1, 0.2])
    with pytest.raises(OptionError, match="precision="):
        EstimatorV2().run([pub], precision=bad)
    with pytest.raises(OptionError, match="precision="):
        EstimatorV2(default_precision=bad)
    if not isinstance(bad, str) and not bad < 0:  # Qiskit refuses these in a pub
        with pytest.raises(OptionError, match="precision="):
            EstimatorV2().run([(*pub, bad)])


@pytest.mark.parametrize(
    ("angle", "row"),
    [
        (1 / X, [0.0, 0.0]),
        (X.log(), [0.0, 0.0]),
        (1e10 * X, [1e300, 0.0]),
        (X * X, [1e200, 0.0]),
        (X**0.5, [-1.0, 0.0]),
    ],
)
def test_an_angle_that_is_not_finite_or_real_names_the_parameters_value(angle, row):
    circuit = rotation(angle)
    for refused in (
        lambda: OzakiBackend().run(circuit, parameter_binds=[[[0.5, 0.5], row]]).result(),
        lambda: EstimatorV2().run([(circuit, "Z", [[0.5, 0.5], row])]).result(),
        lambda: expectation_gradient(circuit, "Z", [[0.5, 0.5], row]),
        lambda: SamplerV2().run([(measured(circuit), [[0.5, 0.5], row])]).result(),
    ):
        with pytest.raises(LoweringError, match=rf"x = {row[0]:.17g}\b".replace("+", r"\+")):
            refused()


@pytest.mark.parametrize("bad", BAD)
def test_vectors_inputs_angles_and_accuracies_that_are_not_finite(bad):
    with pytest.raises(OptionError, match="initial_state holds NaN or infinity"):
        OzakiBackend(initial_state=[bad, 0])
    with pytest.raises(LoweringError, match="its vector holds NaN or infinity"):
        OzakiBackend().run(set_statevector(QuantumCircuit(1), [bad, 0]))
    circuit = QuantumCircuit(1)
    circuit.add_input("level", types.Float())
    with pytest.raises(LoweringError, match="no value for input variable 'level'"):
        OzakiBackend().run(circuit, inputs={"level": bad})
    fixed = QuantumCircuit(1)
    fixed.rx(bad, 0)
    with pytest.raises(LoweringError, match=r"'rx' on qubit 0 .* not finite"):
        OzakiBackend().run(fixed)
    with pytest.raises(OptionError, match="accuracy"):
        OzakiBackend(accuracy=bad)


def test_an_index_is_not_rounded():
    with pytest.raises(TypeError, match="integer"):
        save_amplitudes(QuantumCircuit(1), [0.5])


V, W = ParameterVector("v", 3), ParameterVector("w", 3)


def vector_circuit():
    circuit = QuantumCircuit(1, name="vector")
    circuit.rx(V[0], 0)
    circuit.rz(V[1], 0)
    circuit.ry(V[2], 0)
    return circuit


@pytest.mark.parametrize(
    ("binds", "message"),
    [
        ({V: [[1, 2, 3, 4]]}, r"values of shape \(1, 4\) do not suit vector 'v', which has 3 elements"),
        ({V: [1, 2, 3, 4]}, r"values of shape \(4,\) do not suit vector 'v'"),
        ({V: [[1, 2]]}, r"values of shape \(1, 2\) do not suit vector 'v'"),
        ({V: 1.0}, r"values of shape \(1,\) do not suit vector 'v'"),
        ({V: np.zeros((2, 2, 3))}, r"values of shape \(2, 2, 3\) do not suit vector 'v'"),
        ({V: [1, 2, 3], W: [1, 2, 3]}, r"has no parameter 'w'\. It has: v\[0\], v\[1\], v\[2\]"),
        ({V: [1, 2, 3], V[1]: 4.0}, r"parameter 'v\[1\]' is bound twice"),
        ({V: [1, 2, 3], "v[1]": 4.0}, r"parameter 'v\[1\]' is bound twice"),
        ({V: [1, 2, 3j]}, "of parameter v are not real numbers"),
        ({V: np.array([[1, 2, 3 + 1j]])}, "of parameter v are not real numbers"),
        ({V: ["a", "b", "c"]}, "of parameter v are not real numbers"),
        (np.zeros((2, 4)), r"parameters of shape \(2, 4\) do not suit circuit 'vector'"),
        (np.zeros((2, 2)), r"parameters of shape \(2, 2\) do not suit circuit 'vector'"),
    ],
)
def test_values_that_no_parameter_takes_are_refused(binds, message):
    with pytest.raises(OptionError, match=message):
        OzakiBackend().run(vector_circuit(), parameter_binds=[binds])
    with pytest.raises(OptionError, match=message):
        expectation_gradient(vector_circuit(), "Z", binds)


def test_vectors_that_suit_are_taken():
    circuit = vector_circuit()
    values = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    want = [OzakiBackend().run(circuit.assign_parameters(row)).result().get_statevector() for row in values]
    for binds in (
        {V: values},
        {V: values.astype(complex)},
        {V[0]: values[:, 0], V[1]: values[:, 1], "v[2]": [0.3, 0.6]},
    ):
        result = OzakiBackend().run(circuit, parameter_binds=[binds]).result()
        for row in range(2):
            np.testing.assert_allclose(result.get_statevector(row).data, want[row].data, atol=1e-14)
    partly = QuantumCircuit(1)
    partly.rx(V[2], 0)
    result = OzakiBackend().run(partly, parameter_binds=[{V: [0.1, 0.2, np.pi]}]).result()
    assert abs(result.get_statevector().data[1]) == pytest.approx(1)
