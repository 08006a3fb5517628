"""Lowers a `QuantumCircuit` to a `Program`; no later stage sees Qiskit's circuits.

In: a circuit with every parameter bound. Out: a `Program`. It may not leave out an instruction in silence: one that
cannot be simulated raises an error that names the gate, its qubits, the circuit and the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    Barrier,
    Bit,
    CircuitInstruction,
    ControlFlowOp,
    Delay,
    Gate,
    library,
)
from qiskit.circuit import Measure as QiskitMeasure
from qiskit.circuit import Reset as QiskitReset
from qiskit.circuit.library import UnitaryGate

import qsim_ozaki._native as _native
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import KIND_NUMBERS, Initialize, Instruction, Kind, Measure, Op, OpList, Program, Reset
from qsim_ozaki.lowering import control
from qsim_ozaki.lowering.classical import Variables, stored_bits
from qsim_ozaki.lowering.gates import ANY, GATES, ROWS, Entries, GateRow, row_op
from qsim_ozaki.lowering.layout import final_order
from qsim_ozaki.lowering.saves import save_of, set_of, unit_vector
from qsim_ozaki.lowering.site import Deviation, Site, matched, numbers
from qsim_ozaki.lowering.unitary import phase_ops, unitary_ops

IDLE_NAMES = frozenset({"barrier", "delay", "id", "measure"})  # these and `save_...` leave an idle qubit in |0>
BARRIER_OR_MEASURE = frozenset({"barrier", "measure"})  # the walk handles both itself, without `HANDLERS`
LABEL_GATES = {"0": (), "1": ("x",), "+": ("h",), "-": ("x", "h"), "r": ("h", "s"), "l": ("h", "sdg")}

UNITARY_ROUNDING: float = _native.UNITARY_ROUNDING
TABLE = _native.GateTable()  # the C++ extension's copy of the standard gates


def _add_to_table(row: GateRow) -> tuple[int, Callable[..., Entries] | None]:
    """Adds a gate to `TABLE`; returns its number there and the function from angles to data, None without angles."""
    build = row.build if row.num_params else None
    kind = KIND_NUMBERS[row.kind]
    size = 1 << row.num_targets
    if build is None:
        values, num_entries = np.array(row.build(), complex), 0
    else:
        values, num_entries = np.array((), complex), size * size if row.kind is Kind.UNITARY else size
    number = TABLE.add(kind, row.num_targets, row.num_controls, num_entries, values, row.permutation, row.name)
    return number, build


# Standard gates with a fixed number of qubits; "id" is not among them, because it does not make its qubit active.
STANDARD = {row.name: _add_to_table(row) for row in ROWS if row.num_controls != ANY and row.name != "id"}


def lower(circuit: QuantumCircuit, inputs: Mapping[Any, Any] | None = None) -> Program:
    """Lowers ``circuit`` to the program that computes the product of its operators, with the global phase exact.

    Args:
        circuit: any width; qubits that no instruction changes cost nothing.
        inputs: values of the circuit's input variables, by name or `expr.Var`.

    Raises:
        LoweringError: an instruction cannot be simulated; the message names it and the way out.
    """
    _check_bound(circuit)
    active, qubits = _active_qubits(circuit), circuit.qubits
    number = {qubit: ~index for index, qubit in enumerate(qubits)}  # ~i: the circuit's idle qubit i
    number.update({qubits[qubit]: index for index, qubit in enumerate(active)})
    bits = {bit: index for index, bit in enumerate(circuit.clbits)}
    phase = phase_ops(circuit.global_phase, Site(circuit.name, "global_phase", ()))
    walker = _Walker(circuit.name, active, [], Variables(), phase)
    assignments = tuple(walker.variables.inputs(circuit, inputs or {}))
    walker.walk(circuit, _Scope(number, bits))
    walker.close()
    # The phase stands behind the boundaries that set the first state: an engine that writes this state would lose it.
    start = 0
    while start < len(walker.body) and isinstance(walker.body[start], (Reset, Initialize)):
        start += 1
    # `_append_initialize` has put the phase behind an Initialize of all qubits.
    has_phase = any(isinstance(item, Initialize) and len(item.qubits) == len(active) for item in walker.body[:start])
    walker.body[start:start] = assignments if has_phase else (*assignments, *phase)
    output = tuple(max(number[qubits[qubit]], -1) for qubit in final_order(circuit))
    body, num_variables, deviation = tuple(walker.body), len(walker.variables.slots), walker.deviation.largest
    return Program(
        len(active), len(bits), body, active, circuit.num_qubits, output, circuit.name, num_variables, deviation
    )


def _check_bound(circuit: QuantumCircuit) -> None:
    """Raises a LoweringError that names the first gate with an unbound parameter, if there is one."""
    unbound = circuit.parameters
    if not unbound:
        return
    names = ", ".join(sorted(parameter.name for parameter in unbound))
    first = ""
    for instruction in circuit.data:
        if instruction.is_parameterized():
            qubits = [circuit.find_bit(qubit).index for qubit in instruction.qubits]
            first = f" (first in {instruction.name!r} on qubits {qubits})"
            break
    remedy = "Bind them with circuit.assign_parameters({...})"
    raise LoweringError(f"circuit {circuit.name!r} has unbound parameters: {names}{first}. {remedy}.")


def _active_qubits(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Returns the circuit indices, ascending, of the qubits that an instruction acts on.

    The measurement of an otherwise idle qubit gives 0, which its classical bit holds from the start. Such a measurement
    makes the qubit active in two cases only: another instruction writes the same bit, so that the 0 can matter; or the
    program would have no measurement left.
    """
    acted: set[Any] = set()
    written: set[Any] = set()
    measures: list[tuple[Any, Any]] = []
    num_qubits = circuit.num_qubits
    for instruction in circuit.data:
        if len(acted) == num_qubits:
            return tuple(range(num_qubits))
        name = instruction.name
        if (name in IDLE_NAMES or name.startswith("save_")) and _leaves_idle(instruction):
            if name == "measure":
                measures.append((instruction.qubits[0], instruction.clbits[0]))
            continue
        acted.update(instruction.qubits)
        written.update(stored_bits(instruction.operation) if name == "store" else instruction.clbits)
    if measures and not written and not any(qubit in acted for qubit, _ in measures):
        acted.add(measures[0][0])
    changed = True
    while changed:
        written.update(bit for qubit, bit in measures if qubit in acted)
        more = {qubit for qubit, bit in measures if bit in written} - acted
        acted |= more
        changed = bool(more)
    return tuple(index for index, qubit in enumerate(circuit.qubits) if qubit in acted)


def _leaves_idle(instruction: CircuitInstruction) -> bool:
    """Whether the instruction is what its name in `IDLE_NAMES` says, and not a user's gate of the same name."""
    if instruction.is_standard_gate():
        return True
    if instruction.name.startswith("save_"):
        return not isinstance(instruction.operation, Gate)
    return isinstance(instruction.operation, (Barrier, Delay, QiskitMeasure))


@dataclass(frozen=True, slots=True)
class _Scope:
    """The program's indices of one circuit's bits.

    Attributes:
        qubits: index of the program qubit; ~i for the circuit's idle qubit i.
        clbits: index of the classical bit.
        outer: scope of the circuit around this one.
    """

    qubits: dict[Any, int]
    clbits: dict[Any, int]
    outer: _Scope | None = None

    def clbit(self, bit: Bit) -> int:
        """The index of a classical bit; a block of control flow may use the bits of the circuit around it."""
        if bit in self.clbits or self.outer is None:
            return self.clbits[bit]
        return self.outer.clbit(bit)


@dataclass(slots=True)
class _Walker:
    """Appends the instructions of circuits to ``body``.

    Standard gates are collected as rows of `STANDARD`; they become operators when another instruction follows.

    Attributes:
        name: of the user's circuit.
        active: the circuit's index of each program qubit.
        body: the program so far.
        variables: the slots of classical variables.
        phase: the global phase of the whole circuit, as operators.
        ops: the operators since the last boundary.
        rows: collected standard gates, by their number in `TABLE`.
        qubits: program qubits of all collected gates, one gate after the other.
        values: data of all collected gates that have angles, one gate after the other.
        deviation: of the user's matrices and vectors.
    """

    name: str
    active: tuple[int, ...]
    body: list[Instruction]
    variables: Variables
    phase: list[Op]
    ops: OpList = field(default_factory=OpList)
    rows: list[int] = field(default_factory=list)
    qubits: list[int] = field(default_factory=list)
    values: list[complex] = field(default_factory=list)
    deviation: Deviation = field(default_factory=Deviation)

    def walk(self, circuit: QuantumCircuit, scope: _Scope) -> None:
        """Appends every instruction of ``circuit``, without its global phase."""
        rows, qubits, values, index, standard = self.rows, self.qubits, self.values, scope.qubits, STANDARD.get
        reads: list[tuple[int, int]] = []  # (qubit, bit) of measurements that are not appended yet
        for instruction in circuit._data:  # the public `circuit.data` is a view that iterates at half the speed
            name = instruction.name
            row = standard(name)
            if row is None or not instruction.is_standard_gate():
                kind = getattr(instruction.operation, "base_class", None) if name in BARRIER_OR_MEASURE else None
                if kind is Barrier:  # a barrier does nothing to an ideal state
                    continue
                if kind is QiskitMeasure:
                    reads.append((index[instruction.qubits[0]], scope.clbit(instruction.clbits[0])))
                    continue
                self._measure(reads, circuit, scope)
                self._gather(circuit, scope)
                self._instruction(instruction, scope)
                continue
            if reads:
                self._measure(reads, circuit, scope)
            number, build = row
            if build is not None:
                try:
                    values.extend(build(*instruction.params))
                except (TypeError, ValueError, OverflowError):
                    values.extend(build(*numbers(instruction.params, self.site(instruction, scope))))
            rows.append(number)
            for qubit in instruction.qubits:
                qubits.append(index[qubit])
        self._measure(reads, circuit, scope)
        self._gather(circuit, scope)

    def add(self, ops: Iterable[Op]) -> None:
        """Appends operators."""
        for op in ops:
            self.ops.append(op)

    def close(self) -> None:
        """Moves the operators since the last boundary into the body; call it before the next boundary."""
        if self.ops:
            self.body.append(self.ops)
            self.ops = OpList()

    def _gather(self, circuit: QuantumCircuit, scope: _Scope) -> None:
        """Turns the collected standard gates, which are from ``circuit``, into operators."""
        if not self.rows:
            return
        if not self.ops.native.extend_rows(TABLE, self.rows, self.qubits, self.values):
            for instruction in circuit.data:  # an angle is not finite: `numbers` raises an error that names the first
                if instruction.name in STANDARD and instruction.is_standard_gate():
                    numbers(instruction.params, self.site(instruction, scope))
        self.rows.clear()
        self.qubits.clear()
        self.values.clear()

    def _measure(self, reads: list[tuple[int, int]], circuit: QuantumCircuit, scope: _Scope) -> None:
        """Appends the measurements ``reads``, (qubit, bit) pairs in ``circuit``, and empties the list.

        Measurements of different qubits become one `Measure`. Idle qubits are left out: see `_active_qubits`.
        """
        if not reads:
            return
        self._gather(circuit, scope)
        self.close()
        last = self.body[-1] if self.body else None
        joined: dict[int, int] = {}
        if isinstance(last, Measure):
            self.body.pop()
            joined = dict(zip(last.qubits, last.clbits, strict=True))
        for qubit, clbit in reads:
            if qubit < 0:
                continue
            if qubit in joined:
                self.body.append(Measure(tuple(joined), tuple(joined.values())))
                joined = {}
            joined[qubit] = clbit
        if joined:
            self.body.append(Measure(tuple(joined), tuple(joined.values())))
        reads.clear()

    def site(self, instruction: CircuitInstruction, scope: _Scope) -> Site:
        """The place of ``instruction`` in the user's circuit, for messages."""
        program = [scope.qubits[qubit] for qubit in instruction.qubits]
        return Site(self.name, instruction.name, program, self.active, self.deviation)

    def _instruction(self, instruction: CircuitInstruction, scope: _Scope) -> None:
        """Appends an instruction that is not a row of `STANDARD`."""
        if instruction.name == "id" and instruction.is_standard_gate():
            return
        operation = instruction.operation
        if isinstance(operation, Gate):
            self._gate(operation, instruction, scope)
            return
        handler = HANDLERS.get(getattr(operation, "base_class", type(operation)))
        if handler is not None:
            self.close()
            handler(self, instruction, scope)
        elif isinstance(operation, ControlFlowOp):
            raise self.site(instruction, scope).error(
                "this control flow is not known", "Use Qiskit's own if_else, switch, for, while and box"
            )
        elif instruction.name.startswith(("save_", "set_")):
            self.close()
            _save(self, instruction, scope)
        elif isinstance(operation, AnnotatedOperation) or getattr(operation, "definition", None) is None:
            self._gate(operation, instruction, scope)
        else:
            self.nested(operation.definition, instruction, scope)

    def _gate(self, operation: Any, instruction: CircuitInstruction, scope: _Scope) -> None:
        """Appends a unitary instruction."""
        qubits = tuple([scope.qubits[qubit] for qubit in instruction.qubits])
        if type(operation) is UnitaryGate:
            distance = self.ops.append_unitary(operation.params[0], qubits, "unitary")
            if distance <= UNITARY_ROUNDING:
                if distance > self.deviation.largest:
                    self.deviation.add(distance)
                return
        site = Site(self.name, instruction.name, qubits, self.active, self.deviation)
        for op in unitary_ops(operation, qubits, site):
            self.ops.append(op)

    def nested(self, circuit: QuantumCircuit, instruction: CircuitInstruction, scope: _Scope) -> None:
        """Appends an inner circuit, whose bits in order are the bits of ``instruction``."""
        qubits = [scope.qubits[qubit] for qubit in instruction.qubits]
        clbits = [scope.clbit(bit) for bit in instruction.clbits]
        site = self.site(instruction, scope)
        inner = _Scope(
            matched(circuit.qubits, qubits, "qubits", site),
            matched(circuit.clbits, clbits, "classical bits", site),
            scope,
        )
        self.add(phase_ops(circuit.global_phase, site))
        self.walk(circuit, inner)


def _skip(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    """Appends nothing: a delay does nothing to an ideal state."""


def _reset(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    _append_reset(walker, [scope.qubits[qubit] for qubit in instruction.qubits])


def _append_reset(walker: _Walker, qubits: Sequence[int]) -> None:
    """Appends a reset, joined with a reset of other qubits that comes right before it."""
    last = walker.body[-1] if walker.body else None
    if isinstance(last, Reset) and not set(qubits) & set(last.qubits):
        walker.body[-1] = Reset((*last.qubits, *qubits))
    else:
        walker.body.append(Reset(tuple(qubits)))


def _initialize(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    """Appends an `Initialize` for a vector; for a label or an integer, a reset and one-qubit gates at any width."""
    site = walker.site(instruction, scope)
    qubits = tuple([scope.qubits[qubit] for qubit in instruction.qubits])
    params = instruction.params
    if isinstance(params[0], str):
        label = "".join(params)
    elif len(params) == 1:
        label = f"{int(complex(params[0]).real):0{len(qubits)}b}"
    else:
        _append_initialize(walker, Initialize(qubits, unit_vector(params, len(qubits), site)))
        return
    if len(label) != len(qubits):
        raise site.error(f"{label!r} has {len(label)} letters", f"{len(qubits)} qubits need as many")
    _append_reset(walker, qubits)
    for qubit, letter in zip(qubits, reversed(label), strict=True):
        walker.add(row_op(GATES[name], (), (qubit,)) for name in LABEL_GATES[letter])


def _save(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    """Appends a ``save_...`` or ``set_...`` instruction, ours or Aer's; its qubits stay in the instruction's order."""
    site = walker.site(instruction, scope)
    qubits = tuple(max(scope.qubits[qubit], -1) for qubit in instruction.qubits)
    if instruction.name.startswith("save_"):
        walker.body.append(save_of(instruction.operation, qubits, len(walker.active), site))
    else:
        _append_initialize(walker, set_of(instruction.operation, qubits, len(walker.active), site))


def _append_initialize(walker: _Walker, item: Initialize) -> None:
    """Appends an `Initialize`; behind one of all qubits, which overwrites the global phase, it appends the phase."""
    walker.body.append(item)
    if len(item.qubits) == len(walker.active):
        walker.add(walker.phase)


HANDLERS: dict[Any, Callable[[_Walker, CircuitInstruction, _Scope], None]] = {
    Delay: _skip,
    QiskitReset: _reset,
    library.Initialize: _initialize,
} | control.HANDLERS
