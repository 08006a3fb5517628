"""Every row of the gate table against Qiskit's own matrix, structure and inverse."""

import numpy as np
import pytest
from qiskit import QuantumCircuit, transpile
from qiskit.circuit.library import MCPhaseGate, MCU1Gate, MCXGate, get_standard_gate_name_mapping
from qiskit.quantum_info import Operator
from support.reference import op_matrix, tolerance, unitary_of

from qsim_ozaki.ir import Kind, Op
from qsim_ozaki.lowering import GATES, row_op
from qsim_ozaki.lowering.gates import ANY, ROWS, gate_data, inverse_op, structured_op
from qsim_ozaki.provider.target import INSTRUCTIONS, build_target

FAMILIES = (MCXGate, MCPhaseGate, MCU1Gate)  # their width varies
VARIABLE_CONTROLS = 3  # of those, here
names = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def angles(rng, row):
    return tuple(float(angle) for angle in rng.uniform(-7, 7, row.num_params))


def qiskit_gate(row, params, cls=None):
    cls = cls or row.classes[0]
    return cls(*params, VARIABLE_CONTROLS) if cls in FAMILIES else cls(*params)


def width(row):
    return row.num_targets + (VARIABLE_CONTROLS if row.num_controls == ANY else row.num_controls)


def op_of(row, params):
    return row_op(row, params, tuple(range(width(row))))


@names
def test_matrix_is_qiskits_with_its_global_phase(row, rng):
    for _ in range(5):
        params = angles(rng, row)
        for cls in row.classes:
            expected = Operator(qiskit_gate(row, params, cls)).data
            num_qubits = len(expected).bit_length() - 1
            got = unitary_of([row_op(row, params, tuple(range(num_qubits)))], num_qubits)
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance(1), err_msg=f"{cls.__name__}{params}")


@names
def test_declared_structure_is_true_and_strongest(row, rng):
    params = angles(rng, row)
    data, permutation = gate_data(row.name, *params)
    matrix = op_matrix(Op(row.kind, tuple(range(row.num_targets)), data, permutation=permutation))
    found = structured_op(np.asarray(matrix, complex), tuple(range(row.num_targets)), row.name)
    assert found.kind is row.kind
    np.testing.assert_allclose(op_matrix(found), matrix, rtol=0, atol=tolerance(1))


@names
def test_data_is_shared_and_read_only(row, rng):
    params = angles(rng, row)
    data, permutation = gate_data(row.name, *params)
    assert gate_data(row.name, *params)[0] is data
    assert data.dtype == np.complex128
    assert not data.flags.writeable
    assert permutation is None or (permutation.dtype == np.int64 and not permutation.flags.writeable)


@names
def test_inverse_row_and_inverse_op(row, rng):
    params = angles(rng, row)
    op = op_of(row, params)
    identity = np.eye(1 << width(row))
    np.testing.assert_allclose(unitary_of([op, inverse_op(op)], width(row)), identity, rtol=0, atol=tolerance(2))
    if row.inverse is not None:
        inverse = op_of(GATES[row.inverse], row.inverse_params(*params))
        np.testing.assert_allclose(unitary_of([op, inverse], width(row)), identity, rtol=0, atol=tolerance(4))


@names
def test_number_of_parameters_and_qubits_are_qiskits(row, rng):
    gate = qiskit_gate(row, angles(rng, row))
    assert (gate.num_qubits, len(gate.params)) == (width(row), row.num_params)
    assert gate.name == row.name


def test_every_standard_gate_has_a_row():
    standard = set(get_standard_gate_name_mapping()) - {"measure", "reset", "delay"}
    assert standard <= set(GATES)
    assert len(GATES) == len(ROWS)


def test_exact_gates_have_exact_entries():
    for name in ("x", "y", "z", "s", "sdg", "swap", "iswap", "dcx", "rccx", "rcccx", "sx"):
        data, _ = gate_data(name)
        assert set(np.abs(data.view(float)).ravel()) <= {0.0, 0.5, 1.0}, name


def test_structure_of_a_matrix_with_rounding():
    noisy = np.diag([1, 1j, -1, -1j]) + 1e-17
    assert structured_op(noisy, (0, 1), "d").kind is Kind.DIAGONAL
    assert structured_op(np.diag([1, 1j]) + 1e-12, (0,), "u").kind is Kind.UNITARY
    hadamard = np.kron([[1, 1], [1, -1]], [[1, 1], [1, -1]]) / 2
    assert structured_op(hadamard.astype(complex), (0, 1), "h").kind is Kind.HADAMARD
    assert structured_op(np.array([[-1 + 0j]]), (), "phase").kind is Kind.DIAGONAL


def test_target_holds_every_row_at_any_width():
    target = build_target()
    assert isinstance(target.num_qubits, int)
    assert set(target.operation_names) == set(GATES) | set(INSTRUCTIONS)


@pytest.mark.parametrize("level", range(4))
def test_target_leaves_wide_circuits_wide_and_gates_whole(level):
    circuit = QuantumCircuit(1000)
    circuit.h(999)
    circuit.mcp(0.3, list(range(10)), 10)
    done = transpile(circuit, target=build_target(), optimization_level=level)
    assert done.num_qubits == 1000
    assert done.count_ops() == {"h": 1, "mcphase": 1}
