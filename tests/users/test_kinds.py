"""The kinds behind the users' reports: other gates, other entry points, other places of the same mistakes."""

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import (
    AnnotatedOperation,
    Clbit,
    ControlModifier,
    InverseModifier,
    Parameter,
    ParameterVector,
    PowerModifier,
    Qubit,
    library,
)
from qiskit.circuit.classical import expr, types
from qiskit.primitives import StatevectorEstimator
from qiskit.quantum_info import SparsePauliOp, Statevector, random_clifford, random_unitary
from support.bell import bell
from support.distribution import assert_follows

import qsim_ozaki
from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient

LEVELS = [None, 0, 1, 2, 3]
A, B = Parameter("a"), Parameter("b")


def exact(circuit, **options):
    return OzakiBackend(**options).run(circuit, shots=None).result().get_counts()


def at_level(circuit, level):
    return circuit if level is None else transpile(circuit, OzakiBackend(), optimization_level=level)


def a_definition():
    inner = QuantumCircuit(2, name="inner", global_phase=A)
    inner.rx(A, 0)
    inner.cry(2 * A, 0, 1)
    inner.crz(B, 1, 0)
    return inner.to_gate()


CONTROLLED = {
    "crx": library.CRXGate(A),
    "cry": library.CRYGate(A),
    "crz": library.CRZGate(A),
    "cp": library.CPhaseGate(A),
    "cu1": library.CU1Gate(A),
    "cu3": library.CU3Gate(A, B, 2 * A),
    "cu": library.CUGate(A, B, 0.2, A + B),
    "mcp": library.MCPhaseGate(A, 3),
    "crx open": library.CRXGate(A, ctrl_state=0),
    "ccrx": library.RXGate(A).control(2, ctrl_state=1, annotated=False),
    "cccp": library.PhaseGate(A).control(3, ctrl_state=5, annotated=False),
    "crzz": library.RZZGate(A).control(1, annotated=False),
    "crxx": library.RXXGate(A).control(1, ctrl_state=0, annotated=False),
    "cryy": library.RYYGate(A).control(1, annotated=False),
    "crzx": library.RZXGate(A).control(1, annotated=False),
    "cr": library.RGate(A, B).control(1, annotated=False),
    "ccu": library.UGate(A, B, A * B).control(2, annotated=False),
    "annotated": AnnotatedOperation(library.RXGate(A), [InverseModifier(), ControlModifier(2, 1)]),
    "annotated power": AnnotatedOperation(library.RYGate(A), [PowerModifier(2), ControlModifier(1, 0)]),
    "defined": a_definition().control(1, annotated=False),
    "defined twice": a_definition().control(1, annotated=False).control(1, ctrl_state=0, annotated=False),
}


@pytest.mark.parametrize("name", CONTROLLED)
def test_t01_every_row_of_every_controlled_rotation(rng, name):
    gate = CONTROLLED[name]
    circuit = QuantumCircuit(gate.num_qubits)
    for qubit in range(gate.num_qubits):
        circuit.ry(0.3 + 0.4 * qubit, qubit)
    circuit.append(gate, range(gate.num_qubits))
    circuit.h(range(gate.num_qubits))
    values = np.repeat(rng.uniform(-3, 3, (2, circuit.num_parameters)), [3, 1], axis=0)
    want = [Statevector(circuit.assign_parameters(row)) for row in values]
    result = OzakiBackend().run(circuit, parameter_binds=values).result()
    for row in range(4):
        np.testing.assert_allclose(np.asarray(result.get_statevector(row)), want[row].data, atol=1e-13)
    data = SamplerV2(seed=3).run([(circuit.measure_all(inplace=False), values)], shots=2000).result()[0].data.meas
    for row in range(4):
        assert_follows(data[row].get_counts(), want[row].probabilities_dict())
    observable = SparsePauliOp("Z" + "X" * (gate.num_qubits - 1))
    evs = EstimatorV2().run([(circuit, observable, values)]).result()[0].data.evs
    np.testing.assert_allclose(evs, [state.expectation_value(observable).real for state in want], atol=1e-13)
    if "annotated" not in name:  # what has no derivative is refused
        value, gradient = expectation_gradient(circuit, observable, values[0])
        step = np.zeros(len(gradient))
        step[-1] = 1e-5
        ends = [
            Statevector(circuit.assign_parameters(values[0] + s)).expectation_value(observable) for s in (step, -step)
        ]
        assert gradient[-1] == pytest.approx((ends[0] - ends[1]).real / 2e-5, abs=1e-8)
        assert value == pytest.approx(evs[0], abs=1e-13)


def test_a_shape_without_parameters_is_a_shape():
    pub = (bell(), np.zeros((3, 0)))
    data = SamplerV2(seed=1).run([pub], shots=50).result()[0].data.meas
    assert data.shape == (3,)
    assert len({tuple(data[row].get_int_counts()) for row in range(3)} | {(0, 3)}) <= 3
    assert all(sum(data[row].get_counts().values()) == 50 for row in range(3))


def test_t10_phases_in_bodies_and_definitions():
    body = QuantumCircuit(1, 1, global_phase=0.3)
    body.rz(0.4, 0)
    circuit = QuantumCircuit(1, 1)
    circuit.if_test((circuit.clbits[0], 0), body, [0], [0])
    circuit.for_loop(range(3), None, body, [0], [0])
    circuit.box(body, [0], [0])
    qsim_ozaki.save_statevector(circuit)
    state = OzakiBackend().run(circuit, shots=1).result().data(0)["statevector"]
    assert state.data[0] == pytest.approx(np.exp(5j * (0.3 - 0.2)), abs=1e-14)
    inner = QuantumCircuit(1, global_phase=0.7)
    inner.rz(0.2, 0)
    gate = inner.to_gate()
    circuit = QuantumCircuit(3)
    circuit.h([0, 1, 2])
    circuit.append(gate.control(2, ctrl_state=1, annotated=False), [0, 1, 2])
    circuit.append(gate.power(3).control(1, annotated=False), [1, 2])
    circuit.append(gate.inverse().control(1, annotated=True), [2, 0])
    circuit.append(library.GlobalPhaseGate(0.5).control(2, ctrl_state=2, annotated=False), [0, 1])
    want = Statevector(circuit).data
    np.testing.assert_allclose(np.asarray(OzakiBackend().run(circuit).result().get_statevector()), want, atol=1e-14)


def test_t14_registers_that_share_bits_in_conditions_and_stores():
    bits = [Clbit() for _ in range(3)]
    up, down = ClassicalRegister(bits=bits, name="up"), ClassicalRegister(bits=bits[::-1], name="down")
    circuit = QuantumCircuit([Qubit(), Qubit()], bits, up, down)
    circuit.x(0)
    circuit.measure(0, bits[0])
    with circuit.if_test((down, 0b100)):
        circuit.x(1)
    with circuit.if_test(expr.equal(up, 1)):
        circuit.store(bits[1], True)
    with circuit.if_test(expr.equal(down, 0b110)):
        circuit.measure(1, bits[2])
    assert exact(circuit) == {"111 111": 1}
    bits = [Clbit() for _ in range(4)]
    low, high = ClassicalRegister(bits=bits[:3], name="low"), ClassicalRegister(bits=bits[2:], name="high")
    circuit = QuantumCircuit([Qubit()], bits, low, high)
    circuit.store(low, expr.lift(5, types.Uint(3)))
    circuit.store(high, expr.lift(2, types.Uint(2)))  # its bit 0 is bit 2 of the other
    assert exact(circuit) == {"10 001": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_t19_one_bit_written_twice_under_conditions(level):
    circuit = QuantumCircuit(3, 2)
    circuit.x(0)
    circuit.h(2)
    circuit.measure(2, 1)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[1], 1)) as otherwise:
        circuit.measure(1, 0)
    with otherwise:
        circuit.measure(1, 0)
        circuit.measure(0, 0)
    assert exact(at_level(circuit, level)) == pytest.approx({"01": 0.5, "10": 0.5})
    circuit = QuantumCircuit(2, 1)
    circuit.h(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(1)
    circuit.measure(1, 0)
    circuit.measure(0, 0)
    circuit.x(0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.measure(0, 0)
    assert exact(at_level(circuit, level)) == {"0": 1}


def test_t29_pubs_of_several_circuits_keep_their_parameters(rng):
    p, q = ParameterVector("p", 13), ParameterVector("q", 11)
    first, second = QuantumCircuit(3), QuantumCircuit(3)
    for index in range(13):
        first.ry(p[index], index % 3)
        first.cz(index % 3, (index + 1) % 3)
    for index in range(11):
        second.rx(q[10 - index], index % 3)
        second.cx(index % 3, (index + 1) % 3)
    one, two = rng.uniform(-3, 3, (4, 13)), rng.uniform(-3, 3, (5, 11))
    pubs = [
        (first, ["ZII", "IXY"], one[:, None]),
        (second, SparsePauliOp(["XXX", "ZZI"], [1, 2]), two),
        (first, "ZZZ", {tuple(p): one[0]}),
        (second, "ZZZ", {q: two[0]}),
    ]
    for ours, theirs in zip(EstimatorV2().run(pubs).result(), StatevectorEstimator().run(pubs).result(), strict=True):
        np.testing.assert_allclose(ours.data.evs, theirs.data.evs, atol=1e-13)
    result = OzakiBackend().run([first, second], parameter_binds=[{p: one}, {q: two}]).result()
    states = [Statevector(first.assign_parameters(row)) for row in one]
    states += [Statevector(second.assign_parameters(row)) for row in two]
    for index, state in enumerate(states):
        np.testing.assert_allclose(np.asarray(result.get_statevector(index)), state.data, atol=1e-13)


def with_odd_gates_in_bodies():
    circuit = QuantumCircuit(3, 3)
    circuit.h(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)) as otherwise:
        circuit.append(random_clifford(3, seed=5).to_instruction(), [0, 1, 2])
        with circuit.switch(circuit.clbits[0]) as case, case(1):
            circuit.append(random_clifford(2, seed=6), [2, 0])
            circuit.dcx(0, 2)
            circuit.append(library.PermutationGate([2, 0, 1]), [0, 1, 2])
    with otherwise:
        circuit.append(random_clifford(3, seed=7), [0, 1, 2])
        circuit.append(library.QFTGate(3), [2, 1, 0])
        circuit.rccx(0, 1, 2)
        circuit.append(library.UnitaryGate(random_unitary(4, seed=3)), [1, 0])
        with circuit.while_loop((circuit.clbits[1], 0)):
            circuit.ecr(0, 1)
            circuit.iswap(1, 2)
            circuit.append(library.LinearFunction([[1, 1], [0, 1]]), [0, 1])
            circuit.h(1)
            circuit.measure(1, 1)
    circuit.measure([0, 1, 2], [0, 1, 2])
    return circuit


@pytest.mark.parametrize("level", LEVELS[1:])
def test_t38_cliffords_and_other_gates_in_nested_bodies(level):
    circuit = with_odd_gates_in_bodies()
    assert exact(at_level(circuit, level)) == pytest.approx(exact(circuit), abs=1e-9)


@pytest.mark.parametrize("width", [63, 64, 65, 72, 128, 132])
def test_t40_wide_registers_in_expressions(width):
    wide, out = ClassicalRegister(width, "wide"), ClassicalRegister(8, "out")
    circuit = QuantumCircuit(QuantumRegister(1), wide, out)
    circuit.x(0)
    circuit.measure([0, 0], [wide[0], wide[width - 1]])
    top, kind = 1 << (width - 1), types.Uint(width)
    tests = [
        expr.equal(wide, expr.lift(top | 1, kind)),
        expr.less(expr.lift(top, kind), wide),
        expr.equal(expr.bit_not(wide), expr.lift(top - 2, kind)),
        expr.equal(expr.shift_left(wide, width - 1), expr.lift(top, kind)),
        expr.equal(expr.shift_right(wide, width - 1), expr.lift(1, kind)),
        expr.equal(expr.add(wide, expr.lift(top, kind)), expr.lift(1, kind)),
        expr.equal(expr.mul(wide, wide), expr.lift(1, kind)),
        expr.index(wide, width - 1),
    ]
    for bit, test in enumerate(tests):
        with circuit.if_test(test):
            circuit.store(out[bit], True)
    with circuit.while_loop((wide, top | 1)):
        circuit.x(0)
        circuit.measure(0, wide[width - 1])
    assert exact(circuit) == {"1" * 8 + " " + format(1, f"0{width}b"): 1}
