"""Adjoint gradients against the parameter-shift rule and differences of exact values."""

import os

import numpy as np
import pytest
from qiskit import QuantumCircuit, transpile
from qiskit.circuit import Gate, Parameter, ParameterVector
from qiskit.quantum_info import SparsePauliOp
from support.parametric import exact_value, parametric_circuit, random_observable

from qsim_ozaki import EstimatorV2, OzakiBackend, expectation_gradient
from qsim_ozaki.errors import LoweringError, OptionError
from qsim_ozaki.lowering import GATES
from qsim_ozaki.lowering.angles import gate_derivatives, gate_rows
from qsim_ozaki.lowering.gates import gate_data

CIRCUITS = int(os.environ.get("QSIM_OZAKI_GRADIENTS", "100"))
HARMONICS = 8  # of half an angle, in an expectation value of any gate here but rv


def shift_rule(circuit, observable, values):
    """The derivative of the trigonometric polynomial through equidistant shifts, for each parameter.

    Source: Wierichs et al., arXiv:2107.12390, the general parameter-shift rule.
    """
    count = 2 * HARMONICS + 1
    shifts = 4 * np.pi * np.arange(count) / count
    rows = np.repeat(values[None], count * values.size, axis=0)
    for index in range(values.size):
        rows[index * count : (index + 1) * count, index] += shifts
    evs = EstimatorV2().run([(circuit, observable, rows)]).result()[0].data.evs.reshape(values.size, count)
    gradient = np.zeros(values.size)
    for k in range(1, HARMONICS + 1):
        gradient += (evs * np.sin(k * shifts / 2)).sum(axis=1) * k / count
    return gradient


@pytest.mark.parametrize("batch", range(4))
def test_gradients_equal_the_parameter_shift_rule(rng, batch):
    for _ in range(CIRCUITS // 4):
        num_qubits = int(rng.integers(1, 6))
        circuit = parametric_circuit(rng, num_qubits)
        rv = [i.operation for i in circuit.data if i.operation.name == "rv"]
        observable = random_observable(rng, num_qubits)
        values = rng.uniform(-np.pi, np.pi, circuit.num_parameters)
        value, gradient = expectation_gradient(circuit, observable, values)
        assert value == pytest.approx(exact_value(circuit, observable, values), abs=1e-12)
        want = shift_rule(circuit, observable, values)
        periodic = [not any(p in gate.params for gate in rv) for p in circuit.parameters]
        np.testing.assert_allclose(gradient[periodic], want[periodic], atol=1e-9)


def differences(circuit, observable, values, step=0.02):
    """Eighth-order central differences of exact values."""
    gradient = np.zeros(values.size)
    for count, weight in ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)):
        shift = count * step * np.eye(values.size)
        rows = np.concatenate([values + shift, values - shift])
        evs = EstimatorV2().run([(circuit, observable, rows)]).result()[0].data.evs
        gradient += weight / step * (evs[: values.size] - evs[values.size :])
    return gradient


def test_shared_parameters_and_expressions_follow_the_chain_rule(rng):
    a, b = Parameter("a"), Parameter("b")
    circuit = QuantumCircuit(3, global_phase=a * b)
    circuit.ry(a, 0)
    circuit.rzz(2 * a - b / 3 + 0.5, 0, 1)
    circuit.cu(a * b, b, a.sin(), 0.3, 1, 2)
    circuit.rv(a, b, 0.2, 1)
    circuit.rx(b**2, 2)
    inner = QuantumCircuit(2, global_phase=b)
    inner.crx(a, 0, 1)
    inner.h(0)
    circuit.append(inner.to_gate(), [2, 0])
    observable = random_observable(rng, 3)
    for _ in range(5):
        values = rng.uniform(-1, 1, 2)
        value, gradient = expectation_gradient(circuit, observable, values)
        np.testing.assert_allclose(gradient, differences(circuit, observable, values), atol=1e-10)
        assert value == pytest.approx(exact_value(circuit, observable, values), abs=1e-13)


@pytest.mark.parametrize("num_qubits", [13, 14, 16])  # one tile, and several
def test_wide_gradients_equal_differences(rng, num_qubits, one_device):
    circuit = parametric_circuit(rng, num_qubits, num_gates=40)
    observable = random_observable(rng, num_qubits)
    values = rng.uniform(-np.pi, np.pi, circuit.num_parameters)
    value, gradient = expectation_gradient(circuit, observable, values, threads=2)
    again = expectation_gradient(circuit, observable, values, threads=1)
    np.testing.assert_array_equal(gradient, again[1])
    some = rng.permutation(values.size)[:3]
    for index in some:
        shift = np.zeros(values.size)
        shift[index] = 1
        rows = values + np.outer([1e-3, -1e-3, 2e-3, -2e-3], shift)
        up, down, up2, down2 = EstimatorV2().run([(circuit, observable, rows)]).result()[0].data.evs
        assert gradient[index] == pytest.approx((8 * (up - down) - (up2 - down2)) / 12e-3, abs=1e-9)
    assert value == pytest.approx(exact_value(circuit, observable, values), abs=1e-12)


def test_t29_rows_and_mappings(rng):
    angles = ParameterVector("p", 12)  # p[10] before p[2] in the alphabet
    circuit = QuantumCircuit(3)
    for index, angle in enumerate(angles):
        circuit.ry(angle, index % 3)
        circuit.cx(index % 3, (index + 1) % 3)
    rows = rng.uniform(-np.pi, np.pi, (4, 12))
    observable = random_observable(rng, 3)
    values, gradients = expectation_gradient(circuit, observable, rows)
    assert values.shape == (4,)
    for row, value, gradient in zip(rows, values, gradients, strict=True):
        alone = expectation_gradient(circuit, observable, row)
        assert alone[0] == value
        np.testing.assert_array_equal(alone[1], gradient)
        named = expectation_gradient(circuit, observable, {angles: row})
        np.testing.assert_array_equal(named[1][0], gradient)


def test_measured_qubits_keep_only_what_measuring_does_not_disturb():
    angle = Parameter("a")
    circuit = QuantumCircuit(2, 1)
    circuit.ry(angle, 0)
    circuit.ry(0.3, 1)
    circuit.measure(0, 0)
    value, gradient = expectation_gradient(circuit, SparsePauliOp(["IX", "IZ", "XI"], [5, 1, 2]), [0.7])
    assert value == pytest.approx(np.cos(0.7) + 2 * np.sin(0.3))
    assert gradient[0] == pytest.approx(-np.sin(0.7))


def test_transpiled_circuits_take_laid_out_observables(rng):
    circuit = parametric_circuit(rng, 3, special=False)
    observable = random_observable(rng, 3)
    values = rng.uniform(-1, 1, circuit.num_parameters)
    want = expectation_gradient(circuit, observable, values)
    level = transpile(circuit, OzakiBackend(), optimization_level=2, initial_layout=[2, 0, 1])
    names = [p.name for p in circuit.parameters]
    order = [names.index(p.name) for p in level.parameters]
    got = expectation_gradient(level, observable.apply_layout(level.layout), values[order])
    assert got[0] == pytest.approx(want[0], abs=1e-12)
    np.testing.assert_allclose(got[1], want[1][order], atol=1e-12)


@pytest.mark.parametrize("name", [row.name for row in GATES.values() if row.num_params])
def test_data_and_derivatives_of_every_parametric_gate(rng, name):
    row = GATES[name]
    angles = rng.uniform(-10, 10, (5, row.num_params))
    data = np.array([gate_data(name, *each)[0].reshape(-1) for each in angles.tolist()])
    np.testing.assert_allclose(gate_rows(name, angles), data, atol=2e-16)
    np.testing.assert_array_equal(gate_rows(name, angles[2:3])[0], gate_rows(name, angles)[2])
    for index in range(row.num_params):
        shift = 1e-4 * np.eye(row.num_params)[index]
        up, down = gate_rows(name, angles + shift), gate_rows(name, angles - shift)
        np.testing.assert_allclose(gate_derivatives(name, angles, index), (up - down) / 2e-4, atol=1e-8)


def test_what_has_no_gradient_says_so():
    angle = Parameter("a")
    dynamic = QuantumCircuit(1, 1, name="dynamic")
    dynamic.rx(angle, 0)
    dynamic.measure(0, 0)
    dynamic.rx(angle, 0)
    with pytest.raises(LoweringError, match="'dynamic' measures, resets or branches before its end"):
        expectation_gradient(dynamic, "Z", [0.1])
    opaque = QuantumCircuit(1, name="opaque")
    opaque.append(Gate("mystery", 1, [angle]), [0])
    with pytest.raises(LoweringError, match=r"'opaque' has a parameter .* derivative is not known"):
        expectation_gradient(opaque, "Z", [0.1])
    circuit = QuantumCircuit(2)
    circuit.rx(angle, 0)
    with pytest.raises(LoweringError, match="on 1 qubits, its circuit on 2"):
        expectation_gradient(circuit, "Z", [0.1])
    with pytest.raises(OptionError, match=r"shape \(1, 2\) do not suit"):
        expectation_gradient(circuit, "ZZ", [0.1, 0.2])
