"""Composite gates in every place, bound in every way: their bound definition counts, on as many qubits as it has."""

import io

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit import AnnotatedOperation, ControlModifier, Gate, Instruction, InverseModifier, Parameter, library
from qiskit.quantum_info import Choi, Kraus, SparsePauliOp, Statevector, SuperOp
from support.lowered import Opaque

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.lowering import lower

A, B, C, K, J = (Parameter(name) for name in "abckj")
VALUES = {A: 0.37, B: -1.1}


def rotations():
    """A definition with a global phase, a parameter of two gates and an expression."""
    inner = QuantumCircuit(2, name="inner", global_phase=A)
    inner.rx(A, 0)
    inner.cry(2 * A, 0, 1)
    inner.crz(B, 1, 0)
    return inner


def evolution():
    return library.PauliEvolutionGate(SparsePauliOp(["XZ", "YI"], [0.3, 0.9]), A * B)


def nested():
    """Gates controlled inside a gate that is itself controlled later."""
    outer = QuantumCircuit(3, name="outer")
    outer.append(rotations().to_gate().control(1, ctrl_state=0, annotated=False), [2, 0, 1])
    outer.h(1)
    return outer.to_gate()


GATES = {
    "one control": lambda: rotations().to_gate().control(1, annotated=False),
    "open control": lambda: rotations().to_gate().control(1, ctrl_state=0, annotated=False),
    "two controls": lambda: rotations().to_gate().control(2, ctrl_state=1, annotated=False),
    "two open controls": lambda: rotations().to_gate().control(2, ctrl_state=0, annotated=False),
    "controlled twice": lambda: (
        rotations().to_gate().control(1, ctrl_state=0, annotated=False).control(1, annotated=False)
    ),
    "annotated": lambda: rotations().to_gate().control(2, ctrl_state=2, annotated=True),
    "inverse": lambda: rotations().to_gate().control(1, annotated=False).inverse(),
    "annotated outside": lambda: AnnotatedOperation(
        rotations().to_gate().control(1, ctrl_state=0, annotated=False), [InverseModifier(), ControlModifier(1, 0)]
    ),
    "nested": lambda: nested().control(1, ctrl_state=0, annotated=False),
    "evolution": lambda: evolution().control(1, annotated=False),
}


def bound(circuit):
    return circuit.assign_parameters(VALUES)


def half_bound(circuit):
    return circuit.assign_parameters({A: VALUES[A]}).assign_parameters({B: VALUES[B]})


def renamed(circuit):
    """Names that change places, then an expression of a third."""
    exchanged = circuit.assign_parameters({A: B, B: A}).assign_parameters({A: 2 * C - 1})
    return exchanged.assign_parameters({C: (VALUES[B] + 1) / 2, B: VALUES[A]})


def through_qpy(circuit):
    file = io.BytesIO()
    qpy.dump(circuit, file)
    file.seek(0)
    return qpy.load(file)[0]


BINDINGS = {
    "bound": bound,
    "half bound": half_bound,
    "renamed": renamed,
    "bound, then QPY": lambda circuit: through_qpy(bound(circuit)),
    "QPY, then bound": lambda circuit: through_qpy(circuit).assign_parameters(
        {parameter.name: value for parameter, value in VALUES.items()}
    ),
}


def circuit_with(gate):
    circuit = QuantumCircuit(gate.num_qubits)
    for qubit in range(gate.num_qubits):
        circuit.ry(0.4 + 0.3 * qubit, qubit)
    circuit.append(gate, range(gate.num_qubits))
    return circuit


def state_of(circuit, **options):
    return np.asarray(OzakiBackend().run(circuit, **options).result().get_statevector())


def expected_state(name):
    """Qiskit's state; of an evolution that of its product formula."""
    circuit = circuit_with(GATES[name]()).assign_parameters(VALUES)
    return Statevector(circuit.decompose("PauliEvolution") if name == "evolution" else circuit).data


# Qiskit itself loses the parameters of annotated operations in QPY, and fails to exchange those of an evolution's time.
QISKITS_OWN = {
    ("annotated", "QPY, then bound"),
    ("annotated outside", "QPY, then bound"),
    ("evolution", "renamed"),
}
CASES = [(name, binding) for name in GATES for binding in BINDINGS if (name, binding) not in QISKITS_OWN]


@pytest.mark.parametrize(("name", "binding"), CASES)
def test_a_composite_gate_is_its_bound_definition(name, binding):
    circuit = BINDINGS[binding](circuit_with(GATES[name]()))
    assert not circuit.parameters
    np.testing.assert_allclose(state_of(circuit), expected_state(name), atol=1e-13)


def in_branch(name):
    gate = GATES[name]()
    circuit = QuantumCircuit(gate.num_qubits, 1)
    with circuit.if_test((circuit.clbits[0], 0)):
        circuit.compose(circuit_with(gate), inplace=True)
    return circuit


def in_loop(name):
    gate = GATES[name]()
    circuit = QuantumCircuit(gate.num_qubits)
    with circuit.for_loop(range(1)):
        circuit.compose(circuit_with(gate), inplace=True)
    return circuit


def in_instruction(name):
    gate = GATES[name]()
    circuit = QuantumCircuit(gate.num_qubits)
    circuit.append(circuit_with(gate).to_instruction(), range(gate.num_qubits))
    return circuit


@pytest.mark.parametrize("place", [in_branch, in_loop, in_instruction])
@pytest.mark.parametrize("name", GATES)
def test_a_composite_gate_inside(name, place):
    circuit = place(name).assign_parameters(VALUES)
    np.testing.assert_allclose(state_of(circuit, shots=None), expected_state(name), atol=1e-13)


def around(loop_body, values, parameter, num_qubits=2):
    """Gates with `A`, a for loop, more gates."""
    circuit = QuantumCircuit(num_qubits)
    circuit.ry(A, 0)
    with circuit.for_loop(values, parameter):
        loop_body(circuit)
    circuit.cx(0, 1)
    return circuit


def unrolled(loop_body, values, parameter, num_qubits=2):
    circuit = QuantumCircuit(num_qubits)
    circuit.ry(A, 0)
    for value in values:
        body = QuantumCircuit(num_qubits)
        loop_body(body)
        circuit.compose(body.assign_parameters({parameter: value}), inplace=True)
    circuit.cx(0, 1)
    return circuit


def inner_loop(circuit):
    circuit.rx(K * A, 0)
    with circuit.for_loop(range(2), J):
        circuit.ry(0.3 * J + B, 1)


LOOPS = {
    "its own": lambda circuit: circuit.rx(0.2 * K, 0),
    "times a free one": lambda circuit: circuit.rx(K * A, 1),
    "in a composite": lambda circuit: (
        circuit.append(rotations().to_gate().control(1, annotated=False), [0, 1, 2]) and circuit.rz(K, 1)
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loops_own_parameter_everywhere(name):
    width = 3 if name == "in a composite" else 2
    circuit, flat = (build(LOOPS[name], range(3), K, width) for build in (around, unrolled))
    rows = np.array([[0.3, -0.8], [1.2, 0.1]])[:, : circuit.num_parameters]
    observable = SparsePauliOp("Z" * width)
    want = [Statevector(flat.assign_parameters(row)) for row in rows]
    result = OzakiBackend().run(circuit, parameter_binds=rows).result()
    evs = EstimatorV2().run([(circuit, observable, rows)]).result()[0].data.evs
    sampled = EstimatorV2(seed=3).run([(circuit, observable, rows)], precision=0.02).result()[0].data
    values, gradient = expectation_gradient(circuit, observable, rows)
    for row, state in enumerate(want):
        exact = state.expectation_value(observable).real
        np.testing.assert_allclose(np.asarray(result.get_statevector(row)), state.data, atol=1e-13)
        assert evs[row] == pytest.approx(exact, abs=1e-13)
        assert values[row] == pytest.approx(exact, abs=1e-13)
        assert sampled.evs[row] == pytest.approx(exact, abs=0.1)
    np.testing.assert_allclose(gradient, expectation_gradient(flat, observable, rows)[1], atol=1e-12)


def test_three_rounds_of_a_rotation_by_the_loops_parameter():
    circuit = QuantumCircuit(1)
    with circuit.for_loop(range(3), K):
        circuit.rx(0.2 * K, 0)
    assert EstimatorV2().run([(circuit, "Z")]).result()[0].data.evs == pytest.approx(np.cos(0.6), abs=1e-14)
    value, gradient = expectation_gradient(circuit, "Z", [])
    assert value == pytest.approx(np.cos(0.6), abs=1e-14)
    assert gradient.shape == (0,)


def test_loops_in_loops_boxes_and_branches():
    circuit = around(inner_loop, [0, 2, 5], K)
    with circuit.box():
        circuit.rx(B, 0)
    flat = QuantumCircuit(2)
    flat.ry(A, 0)
    for value in (0, 2, 5):
        flat.rx(value * A, 0)
        flat.ry(B, 1)
        flat.ry(0.3 + B, 1)
    flat.cx(0, 1)
    flat.rx(B, 0)
    observable, row = SparsePauliOp(["ZZ", "XI"], [1, 0.5]), [0.4, 0.9]
    want = Statevector(flat.assign_parameters(row)).expectation_value(observable).real
    value, gradient = expectation_gradient(circuit, observable, row)
    assert value == pytest.approx(want, abs=1e-13)
    np.testing.assert_allclose(gradient, expectation_gradient(flat, observable, row)[1], atol=1e-12)
    jumping = QuantumCircuit(1, 1)
    with jumping.for_loop(range(3), K):
        jumping.rx(np.pi * A, 0)
        jumping.measure(0, 0)
        with jumping.if_test((jumping.clbits[0], 1)):
            jumping.break_loop()
    counts = SamplerV2(seed=1).run([(jumping, [1.0])], shots=20).result()[0].data["c"].get_counts()
    assert counts == {"1": 20}  # the first round breaks; three rounds would end in 1 too, two in 0
    branch = QuantumCircuit(1, 1)
    with branch.if_test((branch.clbits[0], 0)):
        branch.rx(A, 0)
    with pytest.raises(LoweringError, match="parameter inside control flow"):
        expectation_gradient(branch, "Z", [0.1])


class Defined(Gate):
    """A gate of two qubits with a definition on another number."""

    def __init__(self, width, params=()):
        super().__init__("mine", 2, list(params))
        self.width = width

    def _define(self):
        self.definition = QuantumCircuit(self.width)
        if self.params:
            self.definition.rx(self.params[0], self.width - 1)
        else:
            self.definition.sx(self.width - 1)


def defined_instruction(width, clbits=0):
    instruction = Instruction("mine", 2, 1, [])
    instruction.definition = QuantumCircuit(width, clbits)
    instruction.definition.sx(width - 1)
    return instruction


@pytest.mark.parametrize("controls", [0, 1])
@pytest.mark.parametrize("params", [(), (A,)])
def test_a_definition_on_fewer_qubits_than_its_gate(controls, params):
    gate = Defined(1, params)
    circuit = QuantumCircuit(3, name="circuit")
    circuit.h(0)
    if controls:
        circuit.append(gate.control(1, annotated=True), [0, 2, 1])
    else:
        circuit.append(gate, [2, 1])
    value = np.pi / 2  # Rx(pi/2) is sqrt(X) up to the phase exp(-i pi/4)
    rows = {"parameter_binds": {A: value}} if params else {}
    want = QuantumCircuit(3)
    want.h(0)
    root = library.RXGate(value) if params else library.SXGate()
    want.append(root.control(1, annotated=False) if controls else root, [0, 2] if controls else [2])
    np.testing.assert_allclose(state_of(circuit, **rows), Statevector(want).data, atol=1e-14)


@pytest.mark.parametrize(
    ("operation", "clbits", "message"),
    [
        (Defined(3), [], r"'mine' on qubits \[1, 2\] of circuit 'circuit': its definition has 3 qubits, .* has 2\. De"),
        (Defined(3).control(1, annotated=True), [], r"its definition has 3 qubits, but the instruction has 2"),
        (defined_instruction(3), [0], r"'mine' on qubits \[1, 2\].*has 3 qubits, but the instruction has 2"),
        (defined_instruction(1, 2), [0], r"'mine' on qubits \[1, 2\].*has 2 classical bits, but the instruction has 1"),
    ],
)
def test_a_definition_on_more_bits_than_its_gate_is_refused(operation, clbits, message):
    circuit = QuantumCircuit(4, 1, name="circuit")
    circuit.append(operation, range(1, operation.num_qubits + 1), clbits)
    with pytest.raises(LoweringError, match=message):
        lower(circuit)


def test_a_parametric_definition_on_more_qubits_is_refused():
    circuit = QuantumCircuit(2, name="circuit")
    circuit.append(Defined(3, [A]), [0, 1])
    with pytest.raises(LoweringError, match=r"'mine' on qubits \[0, 1\].*has 3 qubits"):
        OzakiBackend().run(circuit, parameter_binds={A: 0.1})


FLIPS = Kraus([np.sqrt(0.9) * np.eye(2), np.sqrt(0.1) * np.array([[0, 1], [1, 0]])])
CHANNELS = {
    "kraus": FLIPS,
    "superop": SuperOp(FLIPS),
    "choi": Choi(FLIPS),
    "aer's names": [Instruction(name, 1, 0, []) for name in ("superop", "quantum_channel", "qerror_loc")],
    "inside": [QuantumCircuit(1, name="noisy")],
}
CHANNELS["inside"][0].append(FLIPS, [0])


@pytest.mark.parametrize("name", CHANNELS)
def test_noise_is_refused_by_that_name(name):
    channels = CHANNELS[name] if isinstance(CHANNELS[name], list) else [CHANNELS[name]]
    for channel in channels:
        circuit = QuantumCircuit(2, name="circuit")
        circuit.h(0)
        circuit.append(channel, [1])
        with pytest.raises(LoweringError, match=r"on qubit 1 of circuit 'circuit': noise is not simulated\. Remove"):
            lower(circuit)


def test_what_only_borrows_a_channels_name_runs():
    circuit = QuantumCircuit(1)
    gate = QuantumCircuit(1, name="kraus")
    gate.sx(0)
    circuit.append(gate.to_gate(), [0])
    circuit.append(Kraus([np.array([[0, 1], [1, 0]])]), [0])  # Qiskit makes it a unitary gate
    circuit.append(Opaque(np.diag([1, 1j])), [0])
    np.testing.assert_allclose(state_of(circuit), Statevector(circuit).data, atol=1e-14)
