"""Makes templates: circuits with free parameters that are lowered once for all rows of parameters.

In: a `QuantumCircuit` with free parameters. Out: the circuit with slots, and a `Template`, which computes the numbers
of the slots at each row. It may not run anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.circuit import CircuitInstruction, ControlFlowOp, ControlledGate, Parameter, ParameterExpression
from qiskit.circuit.library import GlobalPhaseGate
from qiskit.exceptions import QiskitError

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import Kind
from qsim_ozaki.lowering.angles import gate_derivatives, gate_rows
from qsim_ozaki.lowering.bindings import Values
from qsim_ozaki.lowering.gates import GATE_OF_CLASS, GATES, GateRow
from qsim_ozaki.lowering.loops import free_parameters, straight_blocks
from qsim_ozaki.lowering.slots import SlotGate
from qsim_ozaki.lowering.start import without_instructions

MAX_TOLD = 4  # parameters that a message names


@dataclass(frozen=True, slots=True, eq=False)
class Angle:
    """One angle of one gate as a function of the parameters.

    Attributes:
        constant: value at parameters that are all 0, if the angle is affine.
        terms: (parameter's place, factor), if the angle is affine.
        expression: the angle, if it is not affine; else None.
        partials: (parameter's place, derivative as an expression), if the angle is not affine.
    """

    constant: float
    terms: tuple[tuple[int, float], ...]
    expression: ParameterExpression | None = None
    partials: tuple[tuple[int, Any], ...] = ()

    def term(self, number: int) -> tuple[int, float]:
        """Returns the term of this number, or one that adds 0 if there are fewer terms."""
        return self.terms[number] if number < len(self.terms) else (0, 0.0)

    def at(self, values: Values, parameters: Sequence[Parameter]) -> NDArray[np.float64]:
        """Returns the angle at each row, ``(rows,)``."""
        if self.expression is not None:
            return _evaluated(self.expression, values, parameters)
        angle = np.full(len(values), self.constant)
        for place, factor in self.terms:
            angle += factor * values[:, place]
        return angle

    def derivatives(
        self, values: Values, parameters: Sequence[Parameter]
    ) -> Iterable[tuple[int, NDArray[np.float64] | float]]:
        """Returns pairs (parameter's place, derivative at each row) of the derivatives that are not zero."""
        if self.expression is None:
            return self.terms
        return [(place, _evaluated(partial, values, parameters)) for place, partial in self.partials]


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A gate of a template: its angles are not known yet.

    Attributes:
        gate: name in the gate table.
        angles: functions of the parameters.
        offset: place of the gate's first number in a row of numbers.
        size: number of entries of the gate's data.
    """

    gate: str
    angles: tuple[Angle, ...]
    offset: int
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class SlotGroup:
    """The slots of one gate as arrays: their angles, and the places of their data.

    Attributes:
        gate: name in the gate table.
        constants: constants of the affine angles, ``(slots, angles)``.
        terms: a pair (parameters' places, factors), arrays ``(slots, angles)``, for the first, second, ... term of all
            angles.
        expressions: (slot, angle, expression) of the angles that are not affine.
        columns: places in a row of numbers: the data of one slot after the other.
    """

    gate: str
    constants: NDArray[np.float64]
    terms: tuple[tuple[NDArray[np.int64], NDArray[np.float64]], ...]
    expressions: tuple[tuple[int, int, ParameterExpression], ...]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, slots: Sequence[Slot]) -> SlotGroup:
        """Makes the group of ``slots``, which all have the same gate."""
        slot_angles = [slot.angles for slot in slots]
        terms = []
        for number in range(max((len(angle.terms) for angles in slot_angles for angle in angles), default=0)):
            chosen = np.array([[angle.term(number) for angle in angles] for angles in slot_angles])
            terms.append((chosen[..., 0].astype(np.int64), chosen[..., 1]))
        return cls(
            slots[0].gate,
            np.array([[angle.constant for angle in angles] for angles in slot_angles]),
            tuple(terms),
            tuple(
                (slot, index, angle.expression)
                for slot, angles in enumerate(slot_angles)
                for index, angle in enumerate(angles)
                if angle.expression is not None
            ),
            np.concatenate([np.arange(slot.offset, slot.offset + slot.size) for slot in slots]),
        )

    def _check_finite(self, angles: NDArray[np.float64], values: Values, parameters: Sequence[Parameter]) -> None:
        """Raises a LoweringError that names the parameters' values if one of ``angles`` overflows or is NaN."""
        finite = np.isfinite(angles)
        if not finite.all():
            row, slot, index = (int(place) for place in np.argwhere(~finite)[0])
            raise LoweringError(
                f"an angle of gate {self.gate!r} is {angles[row, slot, index]}, which is not finite, at "
                f"{_told(values[row], parameters)}. Give values at which it is finite."
            )

    def data(self, values: Values, parameters: Sequence[Parameter]) -> NDArray[np.complex128]:
        """Returns the numbers for ``columns`` at each row; a row does not depend on the others."""
        angles = np.repeat(self.constants[None], len(values), axis=0)
        with np.errstate(over="ignore", invalid="ignore"):  # the error below names what overflows
            for places, factors in self.terms:
                angles += factors * values[:, places]
        for slot, index, expression in self.expressions:
            angles[:, slot, index] = _evaluated(expression, values, parameters)
        self._check_finite(angles, values, parameters)
        return gate_rows(self.gate, angles.reshape(-1, angles.shape[-1])).reshape(len(values), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Computes the numbers in a circuit's slots at each row of parameters; it can be sent to another process.

    Attributes:
        parameters: in the order of ``circuit.parameters``.
        names: names of the parameters.
        slots: in the order of the circuit.
        width: length of a row of numbers, which holds the data of all slots.
        groups: the slots, grouped by gate.
    """

    parameters: tuple[Parameter, ...]
    names: tuple[str, ...]
    slots: tuple[Slot, ...]
    width: int
    groups: tuple[SlotGroup, ...]

    def data(self, values: Values) -> NDArray[np.complex128]:
        """Returns the slots' data at each row, ``(rows, width)``."""
        out = np.empty((len(values), self.width), complex)
        for group in self.groups:
            out[:, group.columns] = group.data(values, self.parameters)
        return out

    def chain(self, values: Values, overlaps: NDArray[np.complex128]) -> Values:
        """Returns the gradient ``(rows, parameters)``: 2 Re sum of the data's derivatives times ``overlaps``."""
        gradient = np.zeros((len(values), len(self.parameters)))
        for slot in self.slots:
            angles = np.stack([angle.at(values, self.parameters) for angle in slot.angles], axis=1)
            part = overlaps[:, slot.offset : slot.offset + slot.size]
            for index, angle in enumerate(slot.angles):
                inner = list(angle.derivatives(values, self.parameters))
                if inner:
                    slope = 2 * (gate_derivatives(slot.gate, angles, index) * part).sum(axis=1).real
                for place, factor in inner:
                    gradient[:, place] += slope * factor
        return gradient


def make_template(circuit: QuantumCircuit) -> tuple[QuantumCircuit, Template] | None:
    """Returns ``circuit`` with `SlotGate`s in place of parametric gates, and its template.

    None if a parameter is in a place that takes no slot: inside control flow, or in a gate that is neither in the gate
    table nor defined by other gates. Parametric gates that are not in the table are replaced by their definitions.
    """
    builder = _Builder(tuple(circuit.parameters))
    slotted = without_instructions(circuit)
    try:
        builder.phase(circuit.global_phase, slotted)
        builder.fill(circuit, slotted, slotted.qubits, slotted.clbits)
    except _NoSlotError:
        return None
    names = tuple(parameter.name for parameter in builder.parameters)
    by_gate: dict[str, list[Slot]] = {}
    for slot in builder.slots:
        by_gate.setdefault(slot.gate, []).append(slot)
    groups = tuple(SlotGroup.of(slots) for slots in by_gate.values())
    return slotted, Template(builder.parameters, names, tuple(builder.slots), builder.width, groups)


class _NoSlotError(Exception):
    """A parameter is in a place that takes no slot."""


class _Builder:
    """Copies circuits, with slots for parametric gates."""

    def __init__(self, parameters: tuple[Parameter, ...]) -> None:
        self.parameters = parameters
        self.place = {parameter: index for index, parameter in enumerate(parameters)}
        self.slots: list[Slot] = []
        self.width = 0

    def phase(self, angle: Any, out: QuantumCircuit) -> None:
        """Appends a global phase to ``out``, as a slot if it is parametric."""
        if isinstance(angle, ParameterExpression) and angle.parameters:
            out.append(self.slot(GATES["global_phase"], [angle], 0, None), [])
        elif angle:
            out.append(GlobalPhaseGate(angle), [])

    def fill(self, circuit: QuantumCircuit, out: QuantumCircuit, qubits: Sequence[Any], clbits: Sequence[Any]) -> None:
        """Appends ``circuit``'s instructions to ``out``, its bits on ``qubits`` and ``clbits``."""
        same = qubits is out.qubits
        if circuit.num_qubits > len(qubits):
            raise _NoSlotError  # `lower` names the gate
        qubit_of = dict(zip(circuit.qubits, qubits, strict=False))
        clbit_of = dict(zip(circuit.clbits, clbits, strict=True))
        for instruction in circuit.data:
            if instruction.is_control_flow() and free_parameters(instruction.operation):
                on = [qubit_of[qubit] for qubit in instruction.qubits]
                self.blocks(instruction.operation, out, on, [clbit_of[bit] for bit in instruction.clbits])
                continue
            if not instruction.is_parameterized():
                if same:
                    out._append(instruction)
                else:
                    on = [qubit_of[qubit] for qubit in instruction.qubits]
                    out.append(instruction.operation, on, [clbit_of[bit] for bit in instruction.clbits])
                continue
            on = [qubit_of[qubit] for qubit in instruction.qubits]
            table_gate: tuple[GateRow, Any, int | None] | None
            if instruction.is_standard_gate() and instruction.name in GATES:
                table_gate = GATES[instruction.name], instruction, None
            else:
                operation = instruction.operation
                table_gate = _table_gate(operation)
            if table_gate is not None:
                row, gate, ctrl_state = table_gate
                out._append(CircuitInstruction(self.slot(row, gate.params, len(on), ctrl_state), on))
                continue
            definition = _definition(operation)
            self.phase(definition.global_phase, out)
            self.fill(definition, out, on, [])

    def blocks(
        self, operation: ControlFlowOp, out: QuantumCircuit, qubits: Sequence[Any], clbits: Sequence[Any]
    ) -> None:
        """Appends the blocks of a for loop or a box with parameters, written out."""
        straight = straight_blocks(operation)
        if straight is None:
            raise _NoSlotError
        for block in straight:
            self.phase(block.global_phase, out)
            self.fill(block, out, qubits, clbits)

    def slot(self, row: GateRow, params: Sequence[Any], num_qubits: int, ctrl_state: int | None) -> SlotGate:
        """Adds a slot for a gate of the table, and returns its placeholder."""
        side = 1 << row.num_targets
        size = side * side if row.kind is Kind.UNITARY else side
        gate = SlotGate(self.width, row.name, num_qubits, ctrl_state)
        self.slots.append(Slot(row.name, tuple(self.angle(param) for param in params), self.width, size))
        self.width += size
        return gate

    def angle(self, param: Any) -> Angle:
        """Converts a gate's parameter to an `Angle`."""
        if not isinstance(param, ParameterExpression) or not param.parameters:
            return Angle(float(param), ())
        if isinstance(param, Parameter):
            return Angle(0.0, ((self.place[param], 1.0),))
        ordered = sorted(
            param.parameters, key=self.place.__getitem__
        )  # the order of a set varies, and with it the rounding
        try:
            partials = [(self.place[parameter], param.gradient(parameter)) for parameter in ordered]
            if all(_is_number(partial) for _, partial in partials):
                constant = float(param.bind(dict.fromkeys(ordered, 0.0)))
                return Angle(constant, tuple((place, float(partial)) for place, partial in partials))
        except (TypeError, ValueError, RuntimeError):  # complex, or no derivative: bound row by row
            raise _NoSlotError from None
        return Angle(0.0, (), param, tuple(partials))


def _table_gate(operation: Any) -> tuple[GateRow, Any, int | None] | None:
    """Returns (row, gate that holds the angles, control state) of a gate of the table, or of one with more controls."""
    row = GATE_OF_CLASS.get(getattr(operation, "base_class", type(operation)))
    if row is not None:
        return row, operation, getattr(operation, "ctrl_state", None)
    if not isinstance(operation, ControlledGate) or operation.base_gate is None:
        return None
    inner = _table_gate(operation.base_gate)
    controls = operation.num_ctrl_qubits
    if inner is None or operation.num_qubits != controls + operation.base_gate.num_qubits:
        return None
    row, gate, state = inner
    if row.num_params != len(gate.params):
        return None  # the controls of CUGate call their base "u", with four angles
    if state is None:
        state = (1 << (operation.base_gate.num_qubits - row.num_targets)) - 1
    return row, gate, operation.ctrl_state | state << controls


def _definition(operation: Any) -> QuantumCircuit:
    """Returns the definition of a parametric gate; raises _NoSlotError if there is none."""
    if hasattr(operation, "blocks"):
        raise _NoSlotError
    try:
        definition = getattr(operation, "definition", None)
    except (QiskitError, TypeError):
        definition = None  # Qiskit can only synthesise it for numbers
    if definition is None or definition.clbits:
        raise _NoSlotError
    return definition


def _is_number(value: Any) -> bool:
    return not isinstance(value, ParameterExpression) or not value.parameters


def _evaluated(expression: Any, values: Values, parameters: Sequence[Parameter]) -> NDArray[np.float64]:
    """Evaluates ``expression`` at each row, ``(rows,)``.

    Raises:
        LoweringError: the value at a row is not a finite real number.
    """
    if _is_number(expression):
        return np.full(len(values), float(expression))
    names = [(parameter, index) for index, parameter in enumerate(parameters) if parameter in expression.parameters]
    out = np.empty(len(values))
    for number, row in enumerate(values.tolist()):
        try:
            out[number] = float(expression.bind({parameter: row[index] for parameter, index in names}))
            reason = "" if np.isfinite(out[number]) else f"it is {out[number]}"
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            reason = str(error)
        if reason:
            raise LoweringError(
                f"expression {expression} is not a finite real number at "
                f"{_told([row[index] for _, index in names], [parameter for parameter, _ in names])}: {reason}. "
                f"Give values at which it is."
            )
    return out


def _told(values: Iterable[float], parameters: Sequence[Parameter]) -> str:
    """Parameters and their values, for messages; of many, the first few."""
    pairs = [f"{parameter.name} = {value:.17g}" for parameter, value in zip(parameters, values, strict=True)]
    return ", ".join(pairs[:MAX_TOLD]) + (", ..." if len(pairs) > MAX_TOLD else "")
