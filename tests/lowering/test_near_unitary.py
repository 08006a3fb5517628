"""Matrices and vectors in less than double precision: taken as Qiskit takes them, applied as exactly unitary ones."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import AnnotatedOperation, ControlModifier, Parameter, library
from qiskit.quantum_info import Operator, SparsePauliOp, Statevector, random_unitary
from qiskit.quantum_info.operators.predicates import is_unitary_matrix
from scipy.linalg import polar
from support.lowered import Opaque

import qsim_ozaki
from qsim_ozaki import EstimatorV2, OzakiBackend, expectation_gradient
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import Kind, OpList
from qsim_ozaki.lowering import lower

TYPED_H = np.array([[0.7071068, 0.7071068], [0.7071068, -0.7071068]])


def single(num_qubits, seed=1):
    """A random unitary in single precision."""
    return random_unitary(1 << num_qubits, seed=seed).data.astype(np.complex64)


def phases(num_qubits):
    return np.exp(1j * np.arange(1, 1 + (1 << num_qubits))).astype(np.complex64).astype(complex)


def typed_h():
    return library.UnitaryGate(TYPED_H)


def multiplexer():
    return library.UCGate([single(1, seed).astype(complex) for seed in (5, 6)])


GATES = {
    "h of 7 digits": typed_h,
    "h of 7 digits, controlled": lambda: typed_h().control(1, annotated=False),
    "h of 7 digits, annotated": lambda: AnnotatedOperation(typed_h(), [ControlModifier(2, 1)]),
    "h of 7 digits, squared": lambda: typed_h().power(2, annotated=True),
    "single 1": lambda: library.UnitaryGate(single(1), check_input=False),
    "single 2": lambda: library.UnitaryGate(single(2), check_input=False),
    "single 4": lambda: library.UnitaryGate(single(4), check_input=False),
    "single 6": lambda: library.UnitaryGate(single(6), check_input=False),
    "opaque": lambda: Opaque(single(3)),
    "diagonal": lambda: library.DiagonalGate(phases(2).tolist()),
    "diagonal matrix": lambda: library.UnitaryGate(np.diag(phases(2))),
    "permutation": lambda: library.UnitaryGate(np.roll(np.diag(phases(2)), 1, 0)),
    "edge of the tolerance": lambda: library.UnitaryGate(random_unitary(4, seed=9).data * (1 + 4.9e-6)),
}


@pytest.mark.parametrize("name", GATES)
def test_a_gate_in_less_precision_is_taken(name):
    gate = GATES[name]()
    circuit = QuantumCircuit(gate.num_qubits)
    circuit.h(range(gate.num_qubits))
    circuit.rz(0.3, 0)
    circuit.append(gate, range(gate.num_qubits))
    result = OzakiBackend().run(circuit).result()
    state = np.asarray(result.get_statevector())
    deviation = result.results[0].metadata["input_deviation"]
    assert 1e-9 < deviation < 1.1e-5
    np.testing.assert_allclose(state, Statevector(circuit).data, atol=2 * deviation)
    assert np.linalg.norm(state) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4, 5])
def test_the_nearest_unitary_matrix_is_applied(num_qubits):
    matrix = single(num_qubits).astype(complex)
    circuit = QuantumCircuit(num_qubits)
    circuit.append(library.UnitaryGate(matrix, check_input=False), range(num_qubits))
    program = lower(circuit)
    (op,) = program.body[0]
    np.testing.assert_allclose(op.matrix(), polar(matrix)[0], rtol=0, atol=1e-14)
    distance = np.abs(matrix.conj().T @ matrix - np.eye(1 << num_qubits)).max()
    if num_qubits <= 3:  # beyond, random vectors measure it
        assert program.input_deviation == pytest.approx(distance, rel=1e-6)
    assert distance / 4 < program.input_deviation < 64 * distance


def test_structure_comes_out_of_rounding():
    for gate, kind in ((typed_h(), Kind.HADAMARD), (GATES["permutation"](), Kind.PERMUTATION)):
        circuit = QuantumCircuit(gate.num_qubits)
        circuit.append(gate, range(gate.num_qubits))
        (op,) = lower(circuit).body[0]
        assert op.kind is kind


@pytest.mark.parametrize("scale", [1 + 4.99e-6, 1 - 4.99e-6, 1 + 5.02e-6, 1 - 5.02e-6, 1.001])
@pytest.mark.parametrize("num_qubits", [1, 3])
def test_the_tolerance_is_qiskits(num_qubits, scale):
    matrix = random_unitary(1 << num_qubits, seed=num_qubits).data * scale
    circuit = QuantumCircuit(num_qubits)
    circuit.append(library.UnitaryGate(matrix, check_input=False), range(num_qubits))
    diagonal = library.DiagonalGate([1, 1])
    diagonal.params = [1, scale]
    entries = QuantumCircuit(1)
    entries.append(diagonal, [0])
    for tried in (circuit, entries):
        if is_unitary_matrix(matrix):
            assert lower(tried).input_deviation == pytest.approx(abs(scale**2 - 1), rel=1e-6)
        else:
            with pytest.raises(LoweringError, match=r"not unitary: .*, the tolerance 1e-05\. Give"):
                lower(tried)


def test_a_matrix_in_double_precision_stays_as_it_is():
    for num_qubits in (1, 3, 5):
        matrix = random_unitary(1 << num_qubits, seed=num_qubits).data
        circuit = QuantumCircuit(num_qubits)
        circuit.unitary(matrix, range(num_qubits))
        circuit.append(Opaque(matrix), range(num_qubits))
        program = lower(circuit)
        for op in program.body[0]:
            np.testing.assert_array_equal(op.matrix(), matrix)
        assert program.input_deviation < 1e-12


def test_many_such_gates_keep_the_norm_through_measurements(rng):
    """Their rounding would add up to a state that is not one: an error, or shots that are lost."""
    num_qubits = 5
    circuit = QuantumCircuit(num_qubits, 2)
    for seed in range(300):
        size = 1 + seed % 3
        gate = library.UnitaryGate(single(size, seed) * (1 + 4e-6), check_input=False)
        circuit.append(gate, rng.permutation(num_qubits)[:size].tolist())
    state = OzakiBackend().run(qsim_ozaki.save_statevector(circuit.copy()), shots=1).result().get_statevector()
    assert np.linalg.norm(state) == pytest.approx(1, abs=1e-12)
    circuit.measure(0, 0)
    circuit.reset(1)
    circuit.append(library.UnitaryGate(TYPED_H), [0])
    circuit.measure(0, 1)
    assert sum(OzakiBackend().run(circuit, shots=200).result().get_counts().values()) == 200
    assert sum(OzakiBackend().run(circuit, shots=None).result().get_counts().values()) == pytest.approx(1, abs=1e-12)


def test_values_and_gradients_with_such_gates():
    circuit = QuantumCircuit(2)
    circuit.append(library.UnitaryGate(single(2), check_input=False), [1, 0])
    circuit.ry(Parameter("a"), 1)
    circuit.append(library.UnitaryGate(single(2, seed=3), check_input=False), [0, 1])
    observable = SparsePauliOp(["ZZ", "XY"], [1, 0.3])
    want = [Statevector(circuit.assign_parameters([x])).expectation_value(observable).real for x in (0.3, 0.3 + np.pi)]
    evs = EstimatorV2().run([(circuit, observable, [[0.3], [0.3 + np.pi]])]).result()[0].data.evs
    np.testing.assert_allclose(evs, want, atol=1e-6)
    value, gradient = expectation_gradient(circuit, observable, [0.3 + np.pi / 2])
    assert value == pytest.approx(
        Statevector(circuit.assign_parameters([0.3 + np.pi / 2])).expectation_value(observable).real, abs=1e-6
    )
    assert gradient[0] == pytest.approx((want[1] - want[0]) / 2, abs=1e-6)  # the parameter-shift rule


@pytest.mark.parametrize("num_qubits", [1, 3])
def test_vectors_in_less_precision(num_qubits):
    vector = random_unitary(1 << num_qubits, seed=4).data[0].astype(np.complex64)
    vector = vector * np.float32(1 + 2e-6)
    circuit = QuantumCircuit(num_qubits)
    circuit.h(0)
    qsim_ozaki.set_statevector(circuit, vector)
    result = OzakiBackend().run(circuit).result()
    state = np.asarray(result.get_statevector())
    np.testing.assert_allclose(state, vector / np.linalg.norm(vector.astype(complex)), atol=1e-14)
    assert result.results[0].metadata["input_deviation"] == pytest.approx(2e-6, rel=0.2)
    circuit = QuantumCircuit(num_qubits)
    qsim_ozaki.set_statevector(circuit, vector * 1.0001)
    with pytest.raises(LoweringError, match="not 1 within 1e-05"):
        lower(circuit)


def test_a_circuit_without_such_input_says_zero():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    assert OzakiBackend().run(circuit).result().results[0].metadata["input_deviation"] == 0


def test_the_list_appends_no_matrix_that_needs_rounding(rng):
    ops = OpList()
    matrix = Operator(library.SXGate()).data
    assert ops.append_unitary(matrix, (0,), "mine") < 1e-15
    assert ops.append_unitary(matrix * (1 + 1e-7), (0,), "mine") == pytest.approx(2e-7, rel=1e-6)
    assert len(ops) == 1
