"""Angles and values that are not finite: an error that names the parameter and its value, at every entry."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter
from qiskit.circuit.classical import expr, types

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient
from qsim_ozaki.errors import LoweringError, QsimError
from qsim_ozaki.lowering import parameter_rows

X, Y, K = Parameter("x"), Parameter("y"), Parameter("k")


def gate(expression):
    circuit = QuantumCircuit(1, name="mine")
    circuit.ry(Y, 0)
    circuit.rx(expression, 0)
    return circuit


def phase(expression):
    circuit = gate(Y)
    circuit.global_phase = expression
    return circuit


def composite(expression):
    inner = gate(expression)
    circuit = QuantumCircuit(2, name="mine")
    circuit.append(inner.to_gate().control(1, annotated=False), [0, 1])
    return circuit


def loop(expression):
    circuit = gate(Y)
    with circuit.for_loop(range(2), K):
        circuit.rx(expression + K, 0)
    return circuit


def branch(expression):
    """No slot can be there: each row is bound."""
    circuit = QuantumCircuit(1, 1, name="mine")
    circuit.ry(Y, 0)
    with circuit.if_test((circuit.clbits[0], 0)):
        circuit.rx(expression, 0)
    circuit.measure(0, 0)
    return circuit


def run(circuit, rows):
    return OzakiBackend().run(circuit, shots=10, parameter_binds=rows).result()


def sample(circuit, rows):
    return SamplerV2().run([(circuit.measure_all(inplace=False), rows)]).result()


def estimate(circuit, rows):
    return EstimatorV2().run([(circuit, "Z" * circuit.num_qubits, rows)]).result()


def estimate_sampled(circuit, rows):
    return EstimatorV2().run([(circuit, "Z" * circuit.num_qubits, rows)], precision=0.1).result()


def gradient(circuit, rows):
    return expectation_gradient(circuit, "Z" * circuit.num_qubits, rows)


# A branch leaves no one final state, and a gradient takes no parameter inside it.
CASES = [(place, entry) for place in (gate, phase, composite, loop) for entry in (run, sample, estimate, gradient)]
CASES += [(gate, estimate_sampled), (loop, estimate_sampled), (branch, run), (branch, sample)]
EXPRESSIONS = [(X * 1e308, 1000.0), (1 / X, 0.0), (X.exp(), 1e4), (X.log(), -1.0), ((X + Y).log(), -0.5)]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS, ids=[str(pair[0]) for pair in EXPRESSIONS])
@pytest.mark.parametrize(("place", "entry"), CASES)
def test_an_angle_that_is_not_finite_names_its_parameter_and_value(place, entry, expression, value):
    circuit = place(expression)
    column = [parameter.name for parameter in circuit.parameters].index("x")
    rows = np.full((3, 2), 0.5)
    rows[2, column] = value
    with pytest.raises(LoweringError, match=rf"not a? ?finite.* at .*x = {value:.17g}\b"):
        entry(circuit, rows)
    entry(circuit, np.full((3, 2), 0.5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("binding", ["array", "mapping"])
def test_a_value_that_is_not_finite_names_parameter_and_row(value, binding):
    circuit = gate(X)
    rows = np.full((3, 2), 0.5)
    rows[1, 1] = value
    given = rows if binding == "array" else {"x": rows[:, 0], Y: rows[:, 1]}
    with pytest.raises(QsimError, match=rf"circuit 'mine': parameter 'y' is {value} in row 1, which is not finite"):
        parameter_rows(circuit, given)


@pytest.mark.parametrize("entry", [estimate, estimate_sampled, sample])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_primitives_refuse_such_values(entry, value):
    with pytest.raises(QsimError, match=r"\bx\b"):
        entry(gate(X), [[0.1, 0.2], [value, 0.2]])


def test_a_loop_over_values_without_a_finite_angle():
    circuit = QuantumCircuit(1)
    with circuit.for_loop(range(3), K):
        circuit.rx(1 / K, 0)
    with pytest.raises(LoweringError, match="not a finite real number at k = 0"):
        OzakiBackend().run(circuit).result()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_input_variable_that_is_not_finite(value):
    circuit = QuantumCircuit(1, 1, name="mine")
    level = circuit.add_input("level", types.Float())
    with circuit.if_test(expr.less(level, 1.0)):
        circuit.x(0)
    circuit.measure(0, 0)
    assert OzakiBackend().run(circuit, inputs={"level": 0.5}, shots=3).result().get_counts() == {"1": 3}
    with pytest.raises(LoweringError, match=rf"{value} is no value for input variable 'level'"):
        OzakiBackend().run(circuit, inputs={"level": value}).result()
