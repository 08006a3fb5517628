"""Single operations of every family against Qiskit's own matrices: controls, modifiers, definitions."""

from itertools import product

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    ControlModifier,
    Gate,
    InverseModifier,
    PowerModifier,
    library,
)
from qiskit.quantum_info import Clifford, Operator, Pauli, SparseObservable, SparsePauliOp
from qiskit.synthesis import SuzukiTrotter
from support.lowered import Opaque, check_gate, check_unitary, lowered, random_matrix
from support.reference import apply_ops, tolerance, unitary_of

from qsim_ozaki.ir import Kind, Measure, Op, Reset

# Qiskit's matrix of a PauliEvolutionGate warns of its own sparse format
pytestmark = pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")


BASES = [
    library.XGate(),
    library.YGate(),
    library.HGate(),
    library.SXGate(),
    library.RZGate(0.3),
    library.U3Gate(0.1, 0.2, 0.3),
    library.UGate(0.1, 0.2, 0.3),
    library.SwapGate(),
    library.iSwapGate(),
    library.RXXGate(0.4),
    library.CUGate(0.1, 0.2, 0.3, 0.4),
    library.GlobalPhaseGate(0.9),
    library.UnitaryGate(random_matrix(1)),
    library.UnitaryGate(random_matrix(2)),
]


@pytest.mark.parametrize("base", BASES, ids=lambda gate: f"{gate.name}{gate.num_qubits}")
def test_every_ctrl_state_of_two_controls(base):
    for ctrl_state, annotated in product(range(4), (False, True)):
        check_gate(base.control(2, ctrl_state=ctrl_state, annotated=annotated))


@pytest.mark.parametrize(
    "gate",
    [library.CXGate, library.CZGate, library.CHGate, library.CSXGate, library.CSwapGate, library.CCXGate],
    ids=lambda gate: gate.__name__,
)
def test_open_controls_of_the_librarys_gates(gate):
    for ctrl_state in range(2 ** gate().num_ctrl_qubits):
        check_gate(gate(ctrl_state=ctrl_state))


@pytest.mark.parametrize("ctrl_state", range(16))
def test_controlled_families(ctrl_state):
    for gate in (
        library.MCXGate(4, ctrl_state=ctrl_state),
        library.C4XGate(ctrl_state=ctrl_state),
        library.MCPhaseGate(0.3, 4, ctrl_state=ctrl_state),
        library.CUGate(0.1, 0.2, 0.3, 0.4, ctrl_state=ctrl_state & 1),
        library.C3SXGate(ctrl_state=ctrl_state & 7),
    ):
        program = check_gate(gate, padding=0)
        assert len(program.body) == 2 + gate.num_qubits  # one operator beside the phase and the H layer


def test_a_controlled_gate_of_many_controls_is_one_op():
    circuit = QuantumCircuit(60)
    circuit.append(library.MCXGate(59, ctrl_state=5), range(60))
    (op,) = lowered(circuit).body
    assert (op.kind, op.targets, op.controls, op.ctrl_state) == (Kind.PERMUTATION, (59,), tuple(range(59)), 5)


def test_ancillas_of_a_v_chain_are_not_controls():
    circuit = QuantumCircuit(3, global_phase=0.3)
    circuit.ccz(0, 1, 2)
    gate = circuit.to_gate()
    check_gate(gate.control(2, ctrl_state=1))
    check_gate(library.MCMTGate(library.HGate(), 2, 2, ctrl_state=2))


@pytest.mark.parametrize(
    "modifiers",
    [
        [InverseModifier()],
        [ControlModifier(2, 1)],
        [PowerModifier(3)],
        [PowerModifier(-2)],
        [PowerModifier(0)],
        [PowerModifier(0.5)],
        [PowerModifier(200)],
        [ControlModifier(1, 0), PowerModifier(0.3)],
        [ControlModifier(1, 0), InverseModifier(), ControlModifier(1, 1)],
        [InverseModifier(), PowerModifier(0.25), ControlModifier(1, 0)],
        [],
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "base", [library.SGate(), library.UGate(0.1, 0.2, 0.3), library.iSwapGate(), library.QFTGate(2)]
)
def test_annotated_operations(base, modifiers):
    check_gate(AnnotatedOperation(base, modifiers))


def test_large_powers_of_wide_gates_repeat():
    circuit = QuantumCircuit(12)
    circuit.append(AnnotatedOperation(library.QFTGate(12), [PowerModifier(-4)]), range(12))
    program = lowered(circuit)  # QFT^4 is the identity
    state = np.exp(1j * np.arange(4096)) / 64
    np.testing.assert_allclose(apply_ops(state, program.body), state, rtol=0, atol=tolerance(len(program.body)))


@pytest.mark.parametrize("num_qubits", range(1, 7))
def test_qft(num_qubits):
    program = check_gate(library.QFTGate(num_qubits))
    assert all(op.kind is not Kind.UNITARY for op in program.body)
    check_gate(library.QFTGate(num_qubits).inverse())


@pytest.mark.parametrize("num_qubits", range(1, 6))
def test_multiplexers(num_qubits):
    count = 2 ** (num_qubits - 1)
    check_gate(library.UCGate([random_matrix(1, seed) for seed in range(count)]))
    check_gate(library.UCGate([random_matrix(1, seed) for seed in range(count)]).control(1, ctrl_state=0))
    for cls in (library.UCRXGate, library.UCRYGate, library.UCRZGate):
        check_gate(cls([0.1 + 0.3 * j for j in range(count)]))


def test_multiplexers_that_qiskit_simplified():
    x, z = library.XGate().to_matrix(), library.ZGate().to_matrix()
    for gates in ([x, z] * 2, [x, x, z, z], [x] * 4, [x, z, x, z, x, z, x, z]):
        check_gate(library.UCGate(gates))


@pytest.mark.parametrize("pattern", [[0], [1, 0], [2, 0, 1], [1, 2, 0], [3, 1, 4, 0, 2]])
def test_permutation_is_swaps_alone(pattern):
    program = check_gate(library.PermutationGate(pattern))
    assert all(op.name == "swap" for op in program.body if op.kind is Kind.PERMUTATION)
    check_gate(library.PermutationGate(pattern).control(1, annotated=True))


def test_wide_permutation():
    circuit = QuantumCircuit(200)
    circuit.append(library.PermutationGate([*range(1, 200), 0]), range(200))
    assert len(lowered(circuit).body) == 199


def test_pauli_diagonal_unitary_and_the_rest_of_the_library():
    check_gate(library.PauliGate("IXYZ"))
    check_gate(library.PauliGate("XYZ").control(1, annotated=True))
    program = check_gate(library.DiagonalGate(list(np.exp(1j * np.arange(8)))))
    assert program.body[-1].kind is Kind.DIAGONAL
    check_gate(library.UnitaryGate(random_matrix(4)))
    check_gate(library.LinearFunction([[1, 1, 0], [0, 1, 0], [1, 0, 1]]))
    check_gate(library.HamiltonianGate(random_matrix(2) + random_matrix(2).conj().T, 0.3))
    check_gate(library.Isometry(random_matrix(2), 0, 0))
    check_gate(library.StatePreparation(random_matrix(3)[0]))
    check_gate(library.StatePreparation("+-r1"))
    check_gate(library.RVGate(0.1, 0.2, 0.3))
    check_gate(library.RVGate(0, 0, 0))
    check_gate(library.MCU1Gate(0.3, 3))


def test_structure_of_a_unitary_is_found():
    for gate, kind in ((library.CXGate(), Kind.PERMUTATION), (library.RZZGate(0.3), Kind.DIAGONAL)):
        circuit = QuantumCircuit(2)
        circuit.unitary(Operator(gate).data, [0, 1])
        assert check_unitary(circuit).body[0].kind is kind


@pytest.mark.parametrize("label", ["I", "Z", "X", "Y", "XYZ", "ZIZ", "YIXZY", "ZZZZZZZZ", "XYZXYZXYZ"])
def test_evolution_of_one_pauli_is_exact(label):
    check_gate(library.PauliEvolutionGate(SparsePauliOp(label, 0.7), 0.9), padding=0)


def test_evolution_follows_its_synthesis():
    for operator in (
        SparsePauliOp(["XX", "ZI", "IZ"], [0.3, 0.4, 0.5]),
        [SparsePauliOp(["ZZ", "ZI"]), SparsePauliOp(["XI"], [0.2])],
        SparseObservable.from_list([("XZ", 0.3), ("YI", 0.2)]),
    ):
        for synthesis in (None, SuzukiTrotter(order=2, reps=3), SuzukiTrotter(order=4, reps=1, wrap=True)):
            gate = library.PauliEvolutionGate(operator, 0.4, synthesis=synthesis)
            circuit = QuantumCircuit(2)
            circuit.append(gate, [1, 0])
            check_unitary(circuit, Operator(circuit.decompose("PauliEvolution")).data)
    commuting = SparsePauliOp(["XX", "ZZ", "YY"], [0.3, 0.4, 0.5])
    check_gate(library.PauliEvolutionGate(commuting, 0.4))
    check_gate(library.PauliEvolutionGate(commuting, 0.4).control(1, ctrl_state=0))
    check_gate(library.PauliEvolutionGate(Pauli("XY"), 0.4).inverse())


def test_nested_definitions_keep_their_phases():
    inner = QuantumCircuit(2, global_phase=0.3, name="inner")
    inner.append(library.CXGate(ctrl_state=0), [1, 0])
    inner.rz(0.2, 0)
    outer = QuantumCircuit(3, global_phase=-1.1, name="outer")
    outer.append(inner.to_gate(), [2, 0])
    outer.append(inner.to_gate().control(1, ctrl_state=0), [1, 2, 0])
    check_gate(outer.to_gate())
    check_gate(outer.to_gate().control(2, ctrl_state=2))
    outer.append(AnnotatedOperation(inner.to_gate(), [InverseModifier(), ControlModifier(1, 0)]), [1, 2, 0])
    check_gate(AnnotatedOperation(outer.to_gate(), [ControlModifier(1, 0), InverseModifier()]))
    outer.barrier()
    check_gate(outer.to_instruction())
    check_gate(AnnotatedOperation(outer.to_instruction(), [ControlModifier(1, 0)]))


def test_opaque_unitary_by_its_matrix():
    check_gate(Opaque(random_matrix(3)))
    check_gate(Opaque(np.diag([1, 1j])))


def test_cliffords():
    circuit = QuantumCircuit(3)
    circuit.h(0)
    circuit.cx(0, 2)
    circuit.s(1)
    host = QuantumCircuit(3)
    host.append(Clifford(circuit), [2, 0, 1])
    expected = Operator(host).data
    got = unitary_of(lowered(host).body, 3)
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance(20))


def test_a_users_gate_that_borrows_a_name_is_what_its_definition_says():
    for name in ("x", "id", "barrier", "delay", "unitary", "save_me", "measure"):
        definition = QuantumCircuit(1)
        definition.ry(0.3, 0)
        gate = Gate(name, 1, [])
        gate.definition = definition
        circuit = QuantumCircuit(1)
        circuit.append(gate, [0])
        check_unitary(circuit)


def test_an_instruction_that_measures_runs_by_its_definition():
    inner = QuantumCircuit(2, 2, global_phase=0.1)
    inner.h(1)
    inner.measure([1, 0], [0, 1])
    inner.reset(1)
    circuit = QuantumCircuit(3, 3)
    circuit.append(inner.to_instruction(), [2, 0], [1, 2])
    program = lowered(circuit)
    kinds = [type(item) for item in program.body]
    assert kinds == [Op, Op, Measure, Reset]
    assert program.active == (0, 2)
    assert program.body[2] == Measure((0, 1), (1, 2))
    assert program.body[3] == Reset((0,))
