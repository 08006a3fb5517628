"""Lowering: a `QuantumCircuit` to a `Program`, the last place that sees Qiskit's circuits.

In: a circuit with every parameter bound. Out: a `Program`. Whatever cannot be simulated is refused here, with the gate,
its qubits, the circuit and the way out; nothing is left out in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    Clbit,
    ControlledGate,
    ControlModifier,
    IfElseOp,
    InverseModifier,
    Operation,
)
from qiskit.circuit import library as lib
from qiskit.circuit.classical import expr
from qiskit.quantum_info import Operator, Statevector

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.gates import BY_CLASS, GATES, Gate, gate_data, gate_permutation
from qsim_ozaki.ops import (
    Branch,
    ComplexArray,
    Condition,
    Initialize,
    Instruction,
    Kind,
    Measure,
    Op,
    Program,
    Reset,
    Save,
)

UNITARY_TOLERANCE = 1e-8  # largest entry of U^dagger U - 1, Qiskit's own default
NORM_TOLERANCE = 1e-8
MAX_OPAQUE_QUBITS = 12  # an operation known only by its matrix: 4096 x 4096, 256 MiB
SKIPPED = {"barrier", "delay", "id"}
TOUCHES_NOTHING = {"barrier", "delay", "id", "save_statevector"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operation acts: program qubits and classical bits in its own order, and controls around it."""

    qubits: tuple[int, ...]
    clbits: tuple[int, ...] = ()
    controls: tuple[int, ...] = ()
    ctrl_state: int = 0


def lower(circuit: QuantumCircuit) -> Program:
    """The program of ``circuit``.

    Args:
        circuit: any width; qubits that no instruction touches cost nothing.

    Raises:
        LoweringError: something in it cannot be simulated; the message names it and the way out.
    """
    unbound = circuit.parameters
    if unbound:
        names = ", ".join(sorted(p.name for p in unbound))
        raise LoweringError(
            f"circuit {circuit.name!r} has unbound parameters: {names}. Bind them first, e.g. with assign_parameters()"
        )
    active = active_qubits(circuit)
    number = {q: k for k, q in enumerate(active)}
    lowering = _Lowering(circuit, number)
    lowering.phase(circuit.global_phase, Place(()))
    lowering.circuit(circuit, {bit: number.get(k, -1) for k, bit in enumerate(circuit.qubits)}, lowering.clbits)
    output = tuple(number.get(q, -1) for q in output_order(circuit))
    body = tuple(lowering.body)
    return Program(len(active), circuit.num_clbits, body, active, circuit.num_qubits, output, circuit.name)


def active_qubits(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Circuit indices of the qubits that some instruction touches, ascending."""
    found: set[Any] = set()
    for instruction in circuit.data:
        if instruction.name not in TOUCHES_NOTHING:
            found.update(instruction.qubits)
            if len(found) == circuit.num_qubits:
                break
    return tuple(k for k, bit in enumerate(circuit.qubits) if bit in found)


def output_order(circuit: QuantumCircuit) -> list[int]:
    """Circuit qubit that holds the user's qubit i at the end, for each i: it undoes a transpiler's layout."""
    layout = circuit.layout
    if layout is None:
        return list(range(circuit.num_qubits))
    return list(layout.final_index_layout(filter_ancillas=True))


def strongest(matrix: ComplexArray, targets: tuple[int, ...], name: str) -> Op:
    """The op of ``matrix`` with the strongest structure that its exact zeros show."""
    size = len(matrix)
    rows = np.argmax(matrix != 0, axis=0)
    if np.count_nonzero(matrix) == size and len(set(rows.tolist())) == size:
        entries = np.ascontiguousarray(matrix[rows, np.arange(size)])
        if np.array_equal(rows, np.arange(size)):
            return Op(Kind.DIAGONAL, targets, entries, name=name)
        return Op(Kind.PERMUTATION, targets, entries, permutation=rows.astype(np.int64), name=name)
    return Op(Kind.UNITARY, targets, np.ascontiguousarray(matrix), name=name)


class _Lowering:
    """Appends instructions to ``body``; one method per family of operations."""

    def __init__(self, circuit: QuantumCircuit, number: dict[int, int]) -> None:
        self.top = circuit
        self.body: list[Instruction] = []
        self.clbits: dict[Any, int] = {bit: k for k, bit in enumerate(circuit.clbits)}
        self.circuit_qubit = {k: q for q, k in number.items()}
        self.special: dict[str, Callable[[Any, Place], None]] = {
            "measure": self.measure,
            "reset": lambda operation, place: self.body.append(Reset(place.qubits)),
            "initialize": self.initialize,
            "save_statevector": self.save,
            "unitary": self.unitary,
            "diagonal": self.diagonal,
            "permutation": self.permutation,
            "pauli": self.pauli,
            "multiplexer": self.multiplexer,
            "ucrx": self.multiplexed_rotation,
            "ucry": self.multiplexed_rotation,
            "ucrz": self.multiplexed_rotation,
        }

    # --- walking -------------------------------------------------------------------------------------------------

    def circuit(
        self, circuit: QuantumCircuit, qubits: dict[Any, int], clbits: dict[Any, int], controls: Place | None = None
    ) -> None:
        """Every instruction of ``circuit``; ``controls`` around all of them."""
        extra, state = (controls.controls, controls.ctrl_state) if controls else ((), 0)
        outer, self.clbits = self.clbits, clbits
        for instruction in circuit.data:
            name = instruction.name
            if name in SKIPPED:
                continue
            targets = tuple([qubits[bit] for bit in instruction.qubits])
            row = GATES.get(name) if instruction.is_standard_gate() else None
            if row is not None:
                self.row(row, instruction.params, targets, Place(targets, (), extra, state) if extra else None)
            else:
                bits = tuple([clbits[bit] for bit in instruction.clbits])
                self.operation(instruction.operation, Place(targets, bits, extra, state))
        self.clbits = outer

    def row(self, row: Gate, params: Sequence[Any], qubits: tuple[int, ...], around: Place | None) -> None:
        """A gate of the table."""
        values: tuple[float, ...] = ()
        if params:
            values = tuple([float(p) for p in params])
            for value in values:
                if not math.isfinite(value):
                    raise self.error(row.name, qubits, f"a parameter is {value}", "give finite angles")
        count = row.num_controls
        controls, state = qubits[:count], (1 << count) - 1
        if around is not None:
            state |= around.ctrl_state << count
            controls += around.controls
        data, permutation = gate_data(row.name, values), gate_permutation(row.name)
        self.body.append(Op(row.kind, qubits[count:], data, controls, state, permutation, row.name))

    def operation(self, operation: Any, place: Place) -> None:
        """Anything that is not one of Qiskit's own standard gates in its plain form."""
        row = BY_CLASS.get(getattr(operation, "base_class", type(operation)))
        if row is not None and not isinstance(operation, ControlledGate):
            return self.row(row, operation.params, place.qubits, place if place.controls else None)
        if isinstance(operation, ControlledGate):
            return self.controlled(operation, place)
        if isinstance(operation, AnnotatedOperation):
            return self.annotated(operation, place)
        if isinstance(operation, IfElseOp):
            return self.if_else(operation, place)
        handler = self.special.get(operation.name)
        if handler is not None:
            return handler(operation, place)
        return self.definition(operation, place)

    def definition(self, operation: Any, place: Place) -> None:
        """An operation through its definition, else through its matrix."""
        name = operation.name
        if name.startswith(("save_", "set_")) or getattr(operation, "blocks", None) is not None:
            way = "use save_statevector" if name.startswith("save_") else "only if/else is simulated so far"
            raise self.error(name, place.qubits, "it is not supported", way)
        if name == "store":
            raise self.error(name, place.qubits, "classical variables are not supported yet", "use classical registers")
        definition = getattr(operation, "definition", None)
        if definition is not None:
            self.phase(definition.global_phase, place)
            inner = dict(zip(definition.qubits, place.qubits, strict=True))
            bits = dict(zip(definition.clbits, place.clbits, strict=True))
            return self.circuit(definition, inner, bits, place if place.controls else None)
        return self.opaque(operation, place)

    def opaque(self, operation: Operation, place: Place) -> None:
        """An operation that is known only by its matrix."""
        if len(place.qubits) > MAX_OPAQUE_QUBITS:
            reason = f"it has no definition and {len(place.qubits)} qubits; the limit is {MAX_OPAQUE_QUBITS}"
            raise self.error(operation.name, place.qubits, reason, "give it a definition")
        try:
            matrix = np.asarray(Operator(operation).data, complex)
        except Exception as error:
            way = "transpile for this backend, or give it a definition or a to_matrix()"
            raise self.error(operation.name, place.qubits, "it has neither definition nor matrix", way) from error
        self.matrix(operation.name, matrix, place)

    # --- unitary families ----------------------------------------------------------------------------------------

    def emit(self, op: Op, place: Place) -> None:
        """``op`` under the controls of ``place``."""
        if place.controls:
            state = op.ctrl_state | place.ctrl_state << len(op.controls)
            op = Op(op.kind, op.targets, op.data, op.controls + place.controls, state, op.permutation, op.name)
        self.body.append(op)

    def phase(self, angle: Any, place: Place) -> None:
        """The factor exp(i angle), on the amplitudes where the controls hold."""
        value = float(angle)
        if not math.isfinite(value):
            raise self.error("global_phase", place.qubits, f"the angle is {value}", "give a finite angle")
        if value:
            self.emit(Op(Kind.DIAGONAL, (), gate_data("global_phase", (value,)), name="global_phase"), place)

    def matrix(self, name: str, matrix: ComplexArray, place: Place) -> None:
        """A unitary by its matrix, checked."""
        if not np.all(np.isfinite(matrix)):
            raise self.error(name, place.qubits, "its matrix holds NaN or infinity", "give finite entries")
        size = 1 << len(place.qubits)
        if matrix.shape != (size, size):
            raise self.error(name, place.qubits, f"its matrix is {matrix.shape}, not {(size, size)}", "give one that fits")
        error = float(np.max(np.abs(matrix.conj().T @ matrix - np.eye(size))))
        if error > UNITARY_TOLERANCE:
            reason = f"its matrix is not unitary: off by {error:.2g}, the tolerance is {UNITARY_TOLERANCE:g}"
            raise self.error(name, place.qubits, reason, "give a unitary matrix")
        self.emit(strongest(matrix, place.qubits, name), place)

    def unitary(self, operation: Any, place: Place) -> None:
        self.matrix("unitary", np.asarray(operation.params[0], complex), place)

    def diagonal(self, operation: Any, place: Place) -> None:
        data = np.array([complex(z) for z in operation.params])
        error = float(np.max(np.abs(np.abs(data) - 1)))
        if not error <= UNITARY_TOLERANCE:
            reason = f"an entry's modulus is off 1 by {error:.2g}"
            raise self.error("diagonal", place.qubits, reason, "give entries of modulus 1")
        self.emit(Op(Kind.DIAGONAL, place.qubits, data, name="diagonal"), place)

    def permutation(self, operation: Any, place: Place) -> None:
        """Position i takes the qubit that was at ``pattern[i]``: a chain of SWAPs, which the planner only relabels."""
        pattern = [int(p) for p in operation.params[0]]
        held = list(range(len(pattern)))  # original qubit now at each position
        for i, wanted in enumerate(pattern):
            k = held.index(wanted)
            if k != i:
                held[i], held[k] = held[k], held[i]
                pair = (place.qubits[i], place.qubits[k])
                self.row(GATES["swap"], (), pair, place if place.controls else None)

    def pauli(self, operation: Any, place: Place) -> None:
        for qubit, letter in zip(place.qubits, reversed(operation.params[0]), strict=True):
            if letter != "I":
                self.row(GATES[letter.lower()], (), (qubit,), place if place.controls else None)

    def multiplexer(self, operation: Any, place: Place) -> None:
        """A matrix on the first qubit for each value of the others."""
        if getattr(operation, "up_to_diagonal", False):
            return self.definition(operation, place)
        target, select = place.qubits[0], place.qubits[1:]
        for value, matrix in enumerate(operation.params):
            around = Place((target,), (), select + place.controls, value | place.ctrl_state << len(select))
            self.matrix("multiplexer", np.asarray(matrix, complex), around)
        return None

    def multiplexed_rotation(self, operation: Any, place: Place) -> None:
        """A rotation of the first qubit by an angle for each value of the others."""
        name = "r" + operation.name[-1]
        target, select = place.qubits[0], place.qubits[1:]
        for value, angle in enumerate(operation.params):
            around = Place((), (), select + place.controls, value | place.ctrl_state << len(select))
            self.row(GATES[name], [angle], (target,), around if around.controls else None)

    def controlled(self, operation: ControlledGate, place: Place) -> None:
        """Any number of controls at any state around a base gate."""
        count = operation.num_ctrl_qubits
        base = operation.base_gate
        if operation.num_qubits != count + base.num_qubits:  # ancillas: only the definition knows their use
            return self.definition(operation, place)
        state = operation.ctrl_state | place.ctrl_state << count
        around = Place(place.qubits[count:], (), place.qubits[:count] + place.controls, state)
        if isinstance(base, lib.UGate) and len(operation.params) == 4:  # CU in any form: the fourth is its own phase
            self.phase(operation.params[3], around)
            return self.row(GATES["u"], operation.params[:3], around.qubits, around)
        return self.operation(base, around)

    def annotated(self, operation: AnnotatedOperation, place: Place) -> None:
        """Modifiers around a base operation: the last control's qubits come first."""
        base, modifiers = operation.base_op, list(operation.modifiers)
        qubits, controls, state = place.qubits, place.controls, place.ctrl_state
        for modifier in reversed(modifiers):
            if isinstance(modifier, ControlModifier):
                count = modifier.num_ctrl_qubits
                state = modifier.ctrl_state | state << count
                controls = qubits[:count] + controls
                qubits = qubits[count:]
        around = Place(qubits, (), controls, state)
        rest = [m for m in modifiers if not isinstance(m, ControlModifier)]
        if all(isinstance(m, InverseModifier) for m in rest):
            return self.operation(base.inverse() if len(rest) % 2 else base, around)
        matrix = Operator(base)
        for modifier in rest:
            matrix = matrix.adjoint() if isinstance(modifier, InverseModifier) else matrix.power(modifier.power)
        return self.matrix(base.name, np.asarray(matrix.data, complex), around)

    # --- boundaries ----------------------------------------------------------------------------------------------

    def measure(self, operation: Any, place: Place) -> None:
        last = self.body[-1] if self.body else None
        if isinstance(last, Measure):
            self.body[-1] = Measure(last.qubits + place.qubits, last.clbits + place.clbits)
        else:
            self.body.append(Measure(place.qubits, place.clbits))

    def initialize(self, operation: Any, place: Place) -> None:
        params = operation.params
        if getattr(operation, "_from_label", False):
            vector = Statevector.from_label("".join(params)).data
        elif getattr(operation, "_from_int", False):
            vector = Statevector.from_int(int(complex(params[0]).real), 1 << len(place.qubits)).data
        else:
            vector = np.array([complex(z) for z in params])
        norm = float(np.linalg.norm(vector))
        if not abs(norm - 1) <= NORM_TOLERANCE:
            raise self.error("initialize", place.qubits, f"the vector's norm is {norm:.9g}", "normalise it")
        self.body.append(Initialize(place.qubits, np.ascontiguousarray(vector, complex)))

    def save(self, operation: Any, place: Place) -> None:
        if getattr(operation, "_subtype", "single") != "single":
            reason = f"the form {operation._subtype!r} is not supported"
            raise self.error(operation.name, place.qubits, reason, "save without pershot or conditional")
        label = getattr(operation, "_label", None) or operation.label or "statevector"
        self.body.append(Save("statevector", label, place.qubits))

    def if_else(self, operation: IfElseOp, place: Place) -> None:
        condition = self.condition(operation.condition, operation, place)
        then, otherwise = ([*operation.blocks, None])[:2]
        self.body.append(Branch(condition, self.block(then, place), self.block(otherwise, place)))

    def block(self, block: QuantumCircuit | None, place: Place) -> tuple[Instruction, ...]:
        """The instructions of a body of control flow."""
        if block is None:
            return ()
        outer, self.body = self.body, []
        self.phase(block.global_phase, place)
        inner = dict(zip(block.qubits, place.qubits, strict=True))
        self.circuit(block, inner, dict(zip(block.clbits, place.clbits, strict=True)))
        body, self.body = tuple(self.body), outer
        return body

    def condition(self, condition: Any, operation: IfElseOp, place: Place) -> Condition:
        """A bit or a register compared with a value."""
        if isinstance(condition, tuple):
            bits, value = condition
            return Condition(self.bits_of(bits), int(value))
        match condition:
            case expr.Var(var=bits) if isinstance(bits, Clbit):
                return Condition(self.bits_of(bits), 1)
            case expr.Unary(operand=expr.Var(var=bits)) if isinstance(bits, Clbit) and "NOT" in condition.op.name:
                return Condition(self.bits_of(bits), 0)
            case expr.Binary(op=expr.Binary.Op.EQUAL, left=left, right=right):
                for side, other in ((left, right), (right, left)):
                    inner = side.operand if isinstance(side, expr.Cast) else side
                    if isinstance(inner, expr.Var) and isinstance(other, expr.Value) and not inner.standalone:
                        return Condition(self.bits_of(inner.var), int(other.value))
        raise self.error(
            operation.name, place.qubits, f"the condition {condition} is not supported", "compare a register with a value"
        )

    def bits_of(self, bits: Any) -> tuple[int, ...]:
        """Indices of a bit or of a register's bits, in the whole circuit."""
        members: Iterable[Any] = [bits] if isinstance(bits, Clbit) else bits
        return tuple(self.clbits[bit] for bit in members)

    def error(self, name: str, qubits: Iterable[int], reason: str, remedy: str) -> LoweringError:
        """An error that names gate, qubits, circuit and remedy."""
        where = [self.circuit_qubit.get(q, q) for q in qubits]
        return LoweringError(f"gate {name!r} on qubits {where} of circuit {self.top.name!r}: {reason}. To fix it: {remedy}")
