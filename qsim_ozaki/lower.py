"""Lowering: a `QuantumCircuit` to a `Program`, the last place that sees Qiskit's circuits.

In: a circuit with every parameter bound. Out: a `Program`. Whatever cannot be simulated is refused here, with the gate,
its qubits, the circuit and the way out; nothing is left out in silence.
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
from qsim_ozaki import control
from qsim_ozaki.classical import Variables, stored_bits
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.expand import phase_ops, unitary_ops
from qsim_ozaki.gates import ANY, GATES, ROWS, GateRow, Values, row_op
from qsim_ozaki.op_list import KIND_NUMBERS, OpList
from qsim_ozaki.ops import Initialize, Instruction, Kind, Measure, Op, Program, Reset
from qsim_ozaki.saves import save_of, set_of, unit_vector
from qsim_ozaki.site import Site, numbers

IDLE_NAMES = frozenset({"barrier", "delay", "id", "measure"})  # may leave a qubit in |0>; `save_` does too
IN_PASSING = frozenset({"barrier", "measure"})  # end no run of gates by themselves
LABEL_GATES = {"0": (), "1": ("x",), "+": ("h",), "-": ("x", "h"), "r": ("h", "s"), "l": ("h", "sdg")}


TABLE = _native.GateTable()


def _add_to_table(row: GateRow) -> tuple[int, Callable[..., Values] | None]:
    """The number in `TABLE` of a standard gate's row, and what makes its data of its angles."""
    fixed = not row.num_params
    values = np.array(row.build() if fixed else (), complex)
    size = 1 << row.num_targets
    count = 0 if fixed else size * size if row.kind is Kind.UNITARY else size
    kind = KIND_NUMBERS[row.kind]
    number = TABLE.add(kind, row.num_targets, row.num_controls, count, values, row.permutation, row.name)
    return number, None if fixed else row.build


# Standard gates with a fixed number of qubits; the identity is none, for it leaves out its qubit.
STANDARD = {row.name: _add_to_table(row) for row in ROWS if row.num_controls != ANY and row.name != "id"}


def lower(circuit: QuantumCircuit, inputs: Mapping[Any, Any] | None = None) -> Program:
    """The program of ``circuit``: the product of its operators, with every boundary in its place, global phase exact.

    Args:
        circuit: any width; qubits that no instruction changes cost nothing.
        inputs: values of its input variables, by name or `expr.Var`.

    Raises:
        LoweringError: something in it cannot be simulated; the message names it and the way out.
    """
    _check_bound(circuit)
    active, qubits = _active_qubits(circuit), circuit.qubits
    number = {qubit: ~index for index, qubit in enumerate(qubits)}
    number.update({qubits[qubit]: index for index, qubit in enumerate(active)})
    bits = {bit: index for index, bit in enumerate(circuit.clbits)}
    phase = phase_ops(circuit.global_phase, Site(circuit.name, "global_phase", ()))
    walker = _Walker(circuit.name, active, [], Variables(), phase)
    given = tuple(walker.variables.inputs(circuit, inputs or {}))
    walker.walk(circuit, _Scope(number, bits))
    walker.close()
    # behind the boundaries that set the first state, so that an engine that writes that state does not lose it
    start = next(
        (i for i, item in enumerate(walker.body) if not isinstance(item, (Reset, Initialize))), len(walker.body)
    )
    written = any(isinstance(item, Initialize) and len(item.qubits) == len(active) for item in walker.body[:start])
    walker.body[start:start] = [*given, *([] if written else phase)]
    output = [max(number[qubits[qubit]], -1) for qubit in _output_order(circuit)]
    body = tuple(walker.body)
    variables = len(walker.variables.slots)
    return Program(len(active), len(bits), body, active, circuit.num_qubits, tuple(output), circuit.name, variables)


def _check_bound(circuit: QuantumCircuit) -> None:
    """Raises LoweringError where a parameter has no value, with the first gate that needs it."""
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


def _output_order(circuit: QuantumCircuit) -> Sequence[int]:
    """The circuit's qubit that holds the user's qubit i at the end, for each i: it undoes a transpiler's layout."""
    if circuit.layout is None:
        return range(circuit.num_qubits)
    order: list[int] = circuit.layout.final_index_layout(filter_ancillas=True)
    return order


def _active_qubits(circuit: QuantumCircuit) -> tuple[int, ...]:
    """Circuit indices, ascending, of the qubits that some instruction acts on.

    A measurement of a qubit that nothing else acts on gives 0: it makes the qubit active only where another measurement
    writes the same bit, so that this 0 could be seen, or where no other measurement is left at all.
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
    """Whether an instruction with such a name is indeed what the name says, and no gate that a user called so."""
    if instruction.is_standard_gate():
        return True
    if instruction.name.startswith("save_"):
        return not isinstance(instruction.operation, Gate)
    return isinstance(instruction.operation, (Barrier, Delay, QiskitMeasure))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where one circuit's bits live: program qubits (~i: idle qubit i), classical bits; and the scope around it."""

    qubits: dict[Any, int]
    clbits: dict[Any, int]
    outer: _Scope | None = None

    def clbit(self, bit: Bit) -> int:
        """Index of a classical bit, which the bodies of control flow may name as the circuit around them does."""
        if bit in self.clbits or self.outer is None:
            return self.clbits[bit]
        return self.outer.clbit(bit)


@dataclass(slots=True)
class _Walker:
    """Appends the instructions of circuits to ``body``.

    Standard gates gather as rows of `STANDARD`, with the program qubits and the data of each; they become operators
    when something else comes.
    """

    name: str
    active: tuple[int, ...]
    body: list[Instruction]
    variables: Variables
    phase: list[Op]  # of the whole circuit
    ops: OpList = field(default_factory=OpList)  # operators since the last boundary
    rows: list[int] = field(default_factory=list)
    qubits: list[int] = field(default_factory=list)
    values: list[complex] = field(default_factory=list)

    def walk(self, circuit: QuantumCircuit, scope: _Scope) -> None:
        """Every instruction of ``circuit``, its global phase not included."""
        rows, qubits, values, index, standard = self.rows, self.qubits, self.values, scope.qubits, STANDARD.get
        reads: list[tuple[int, int]] = []  # (qubit, bit) of the measurements since anything else
        for instruction in circuit._data:  # the list itself: its public view walks at half the speed
            name = instruction.name
            row = standard(name)
            if row is None or not instruction.is_standard_gate():
                kind = getattr(instruction.operation, "base_class", None) if name in IN_PASSING else None
                if kind is Barrier:  # does nothing to an ideal state
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
                    values.extend(build(*numbers(instruction.params, self._site(instruction, scope))))
            rows.append(number)
            for qubit in instruction.qubits:
                qubits.append(index[qubit])
        self._measure(reads, circuit, scope)
        self._gather(circuit, scope)

    def add(self, ops: Iterable[Op]) -> None:
        """Operators after all that came before."""
        for op in ops:
            self.ops.append(op)

    def close(self) -> None:
        """Puts the operators gathered into the body: a boundary follows."""
        if self.ops:
            self.body.append(self.ops)
            self.ops = OpList()

    def _gather(self, circuit: QuantumCircuit, scope: _Scope) -> None:
        """Makes operators of the rows, which stem from ``circuit``."""
        if not self.rows:
            return
        if not self.ops.native.extend_rows(TABLE, self.rows, self.qubits, self.values):
            for instruction in circuit.data:  # some angle is not finite: the first one is named
                if instruction.name in STANDARD and instruction.is_standard_gate():
                    numbers(instruction.params, self._site(instruction, scope))
        self.rows.clear()
        self.qubits.clear()
        self.values.clear()

    def _measure(self, reads: list[tuple[int, int]], circuit: QuantumCircuit, scope: _Scope) -> None:
        """Appends measurements in ``circuit``, together as long as their qubits differ, and empties ``reads``.

        An idle qubit reads 0, which its bit holds: see `_active_qubits`.
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

    def _site(self, instruction: CircuitInstruction, scope: _Scope) -> Site:
        """Where ``instruction`` stands, in the qubits of the user's circuit."""
        program = [scope.qubits[qubit] for qubit in instruction.qubits]
        return Site(self.name, instruction.name, program, self.active)

    def _instruction(self, instruction: CircuitInstruction, scope: _Scope) -> None:
        """Anything that is not one of Qiskit's standard gates in its plain form."""
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
            raise self._site(instruction, scope).error(
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
        """Anything unitary."""
        qubits = tuple([scope.qubits[qubit] for qubit in instruction.qubits])
        if type(operation) is UnitaryGate and self.ops.append_unitary(operation.params[0], qubits, "unitary"):
            return
        site = Site(self.name, instruction.name, qubits, self.active)
        for op in unitary_ops(operation, qubits, site):
            self.ops.append(op)

    def nested(self, circuit: QuantumCircuit, instruction: CircuitInstruction, scope: _Scope) -> None:
        """A circuit inside the circuit: ``instruction``'s bits in order are the bits of ``circuit``."""
        qubits = [scope.qubits[qubit] for qubit in instruction.qubits]
        clbits = [scope.clbit(bit) for bit in instruction.clbits]
        inner = _Scope(
            dict(zip(circuit.qubits, qubits, strict=True)), dict(zip(circuit.clbits, clbits, strict=True)), scope
        )
        self.add(phase_ops(circuit.global_phase, self._site(instruction, scope)))
        self.walk(circuit, inner)


def _skip(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    """A delay does nothing to an ideal state."""


def _reset(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    _append_reset(walker, [scope.qubits[qubit] for qubit in instruction.qubits])


def _append_reset(walker: _Walker, qubits: Sequence[int]) -> None:
    """Joins the reset before it where that is of other qubits."""
    last = walker.body[-1] if walker.body else None
    if isinstance(last, Reset) and not set(qubits) & set(last.qubits):
        walker.body[-1] = Reset((*last.qubits, *qubits))
    else:
        walker.body.append(Reset(tuple(qubits)))


def _initialize(walker: _Walker, instruction: CircuitInstruction, scope: _Scope) -> None:
    """A vector as it is; a label or a number as a reset and one-qubit gates, whatever the width."""
    site = walker._site(instruction, scope)
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
    """``save_…`` and ``set_…``, ours or Aer's; the qubits keep the order in which it lists them."""
    site = walker._site(instruction, scope)
    qubits = tuple(max(scope.qubits[qubit], -1) for qubit in instruction.qubits)
    if instruction.name.startswith("save_"):
        walker.body.append(save_of(instruction.operation, qubits, len(walker.active), site))
    else:
        _append_initialize(walker, set_of(instruction.operation, qubits, len(walker.active), site))


def _append_initialize(walker: _Walker, item: Initialize) -> None:
    """One that writes all qubits loses the global phase, so that it is put behind it."""
    walker.body.append(item)
    if len(item.qubits) == len(walker.active):
        walker.add(walker.phase)


HANDLERS: dict[Any, Callable[[_Walker, CircuitInstruction, _Scope], None]] = {
    Delay: _skip,
    QiskitReset: _reset,
    library.Initialize: _initialize,
} | control.HANDLERS
