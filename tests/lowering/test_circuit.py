"""Lowered circuits against Qiskit's own states; boundaries, classical bits, idle qubits, qubit order."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import (
    Instruction,
    library,
)
from qiskit.quantum_info import Statevector
from support.lowered import (
    QISKIT_ROUNDING,
    check_state,
    check_unitary,
    final_state,
    in_order,
    lowered,
    random_matrix,
    save,
    without_saves,
)
from support.random_circuits import random_circuit
from support.reference import apply_ops, tolerance, zero_state
from support.verify import verify

from qsim_ozaki.ir import Branch, Initialize, Kind, Measure, Op, Program, Reset, Save, bits_equal
from qsim_ozaki.provider.target import build_target

# Qiskit's matrix of a PauliEvolutionGate warns of its own sparse format
pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")


@pytest.mark.parametrize("seed", range(40))
def test_random_circuit_state(seed):
    rng = np.random.default_rng([11, seed])
    check_state(random_circuit(rng, 1 + seed % 7, int(rng.integers(5, 30))))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_random_circuit_matrix(num_qubits, num_gates, seed):
    circuit = QuantumCircuit(num_qubits)
    circuit.h(range(num_qubits))  # so that none is idle
    circuit.compose(random_circuit(np.random.default_rng(seed), num_qubits, num_gates), inplace=True)
    check_unitary(circuit)


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("seed", range(6))
def test_state_order_at_every_transpile_level(level, seed):
    rng = np.random.default_rng([12, seed])
    circuit = random_circuit(rng, 5, 12)
    circuit.swap(0, 3)
    circuit.append(library.PermutationGate([2, 0, 1, 4, 3]), range(5))
    circuit.rx(0.3, 1)
    done = transpile(circuit, target=build_target(), optimization_level=level, seed_transpiler=5)
    got = final_state(lowered(done))
    atol = tolerance(QISKIT_ROUNDING * len(circuit.data) * 8)
    np.testing.assert_allclose(got, Statevector(circuit).data, rtol=0, atol=atol)


@pytest.mark.parametrize("level", range(4))
def test_state_order_on_a_coupling_map_with_ancillas(level):
    circuit = QuantumCircuit(4, global_phase=0.2)
    for qubit in range(4):
        circuit.ry(0.3 + qubit, qubit)
    for first, second in ((0, 3), (1, 2), (0, 2), (3, 1)):
        circuit.cx(first, second)
    circuit.swap(0, 2)
    line = [[i, i + 1] for i in range(6)] + [[i + 1, i] for i in range(6)]
    done = transpile(circuit, coupling_map=line, basis_gates=["cx", "u"], optimization_level=level, seed_transpiler=3)
    program = lowered(done)
    assert program.circuit_qubits == 7
    got = final_state(program)
    assert len(got) == 16
    np.testing.assert_allclose(got, Statevector(circuit).data, rtol=0, atol=tolerance(QISKIT_ROUNDING * 40))


def test_save_keeps_the_users_order_through_elided_swaps():
    circuit = QuantumCircuit(3)
    circuit.x(0)
    circuit.h(1)
    circuit.swap(0, 2)
    circuit.append(save(3), range(3))
    target = build_target()
    target.add_instruction(save(3), None, name="save_statevector")
    for level in range(4):
        program = lowered(transpile(circuit, target=target, optimization_level=level))
        (saved,) = [item for item in program.body if isinstance(item, Save)]
        state = apply_ops(zero_state(program.num_qubits), [op for op in program.body if isinstance(op, Op)])
        expected = Statevector(without_saves(circuit))
        np.testing.assert_allclose(in_order(state, saved.qubits), expected.data, rtol=0, atol=tolerance(4))


def test_save_lists_its_qubits_in_their_own_order():
    circuit = QuantumCircuit(4)
    circuit.h([1, 3])
    circuit.append(save(4), [3, 0, 1, 2])
    circuit.append(Instruction("save_statevector", 1, 0, [], label="own"), [3])
    circuit.append(Instruction("save_statevector", 1, 0, []), [1])
    program = lowered(circuit)
    assert program.active == (1, 3)
    saves = [item for item in program.body if isinstance(item, Save)]
    assert saves == [
        Save("statevector", "state", (1, -1, 0, -1)),
        Save("statevector", "own", (1,)),
        Save("statevector", "statevector", (0,)),
    ]


def test_aers_own_save_instruction():
    aer = pytest.importorskip("qiskit_aer.library")
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.append(aer.SaveStatevector(2, label="aer"), [1, 0])
    assert lowered(circuit).body[-1] == Save("statevector", "aer", (-1, 0))
    circuit.append(aer.SaveStatevector(2, label="each", pershot=True), [1, 0])
    assert lowered(circuit).body[-1] == Save("statevector", "each", (-1, 0), "list")


def test_idle_qubits_cost_nothing():
    circuit = QuantumCircuit(1000, 3)
    circuit.barrier()
    circuit.id(4)
    circuit.delay(10, 5)
    circuit.h(777)
    circuit.append(save(1000), range(1000))
    circuit.measure(777, 2)
    program = lowered(circuit)
    assert (program.num_qubits, program.active, program.circuit_qubits, program.num_clbits) == (1, (777,), 1000, 3)
    assert program.output_qubits == (-1,) * 777 + (0,) + (-1,) * 222
    assert program.body[-1] == Measure((0,), (2,))


def test_measure_and_reset_join_and_keep_their_order():
    circuit = QuantumCircuit(2, 3)
    circuit.h([0, 1])
    circuit.measure([0, 1, 0], [2, 0, 1])
    circuit.reset([1, 0])
    circuit.reset(0)
    assert lowered(circuit).body[2:] == (Measure((0, 1), (2, 0)), Measure((0,), (1,)), Reset((1, 0)), Reset((0,)))


@pytest.mark.parametrize("value", ["01+-rl", 5, "vector"])
def test_initialize(value):
    circuit = QuantumCircuit(7, global_phase=0.4)
    qubits = [5, 2, 0, 1, 6, 3]
    if value == "vector":
        value = random_matrix(6)[0]
    circuit.initialize(value, qubits)
    circuit.cx(5, 4)
    check_state(circuit)


def test_initialize_after_gates_resets():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.initialize("1", 0)
    circuit.initialize([0.6, 0.8j], 0)
    body = lowered(circuit).body
    assert [type(item) for item in body] == [Op, Reset, Op, Initialize]
    np.testing.assert_array_equal(body[-1].vector, [0.6, 0.8j])


def test_wide_initialize_by_label_needs_no_vector():
    circuit = QuantumCircuit(100)
    circuit.initialize("+" * 99 + "0")
    program = lowered(circuit)
    assert len(program.body) == 100


def test_the_global_phase_follows_the_first_state():
    circuit = QuantumCircuit(1, global_phase=0.5)
    circuit.initialize([0.6, 0.8], 0)
    circuit.h(0)
    assert [type(item) for item in lowered(circuit).body] == [Initialize, Op, Op]
    assert lowered(circuit).body[1].targets == ()


def test_if_else_on_bits_and_registers():
    first, second = ClassicalRegister(2, "a"), ClassicalRegister(3, "b")
    circuit = QuantumCircuit(QuantumRegister(4), first, second)
    circuit.h(2)
    with circuit.if_test((second, 5)) as otherwise:
        circuit.x(3)
        with circuit.if_test((first[1], 0)):
            circuit.measure(3, second[0])
    with otherwise:
        circuit.h(0)
    program = lowered(circuit)
    assert program.active == (0, 2, 3)
    branch = program.body[1]
    assert branch.condition == bits_equal((2, 3, 4), 5)
    x, inner = branch.then
    assert (x.name, x.targets) == ("x", (2,))
    assert inner == Branch(bits_equal((1,), 0), (Measure((2,), (2,)),))
    assert [(op.name, op.targets) for op in branch.otherwise] == [("h", (0,))]


def test_the_same_body_on_other_qubits():
    body = QuantumCircuit(2, 1, global_phase=0.2)
    body.cx(0, 1)
    circuit = QuantumCircuit(3, 2)
    circuit.h(range(3))
    circuit.if_else((circuit.clbits[0], True), body, None, [0, 1], [0])
    circuit.if_else((circuit.clbits[1], True), body, body, [2, 1], [1])
    first, second = lowered(circuit).body[3:]
    assert [(op.controls, op.targets) for op in first.then] == [((), ()), ((0,), (1,))]
    assert first.otherwise == ()
    assert [(op.controls, op.targets) for op in second.otherwise] == [((), ()), ((2,), (1,))]


@pytest.mark.parametrize(
    "op",
    [
        Op(Kind.UNITARY, (0,), np.ones((2, 2), complex), name="bad"),
        Op(Kind.UNITARY, (0,), np.ones(2, complex), name="bad"),
        Op(Kind.DIAGONAL, (0,), np.array([1, 0.9 + 0j]), name="bad"),
        Op(Kind.DIAGONAL, (0,), np.array([1, np.nan + 0j]), name="bad"),
        Op(Kind.PERMUTATION, (0,), np.ones(2, complex), name="bad"),
        Op(Kind.PERMUTATION, (0,), np.ones(2, complex), permutation=np.array([1, 1]), name="bad"),
        Op(Kind.DIAGONAL, (1,), np.ones(2, complex), name="bad"),
        Op(Kind.DIAGONAL, (0,), np.ones(2, complex), (0,), name="bad"),
        Op(Kind.DIAGONAL, (), np.ones(1, complex), (0,), 2, name="bad"),
    ],
    ids=range(9),
)
def test_verify_names_the_failing_instruction(op):
    program = Program(1, 0, (op,), (0,), 1, (0,), "p")
    with pytest.raises(AssertionError, match=r"(?s)instruction 0 of 'p'.*bad"):
        verify(program)
