"""A program as a flat list of code items: segments of operators, boundaries, and jumps between them.

In: instructions with control flow. Out: code items in order. It may not depend on a device or a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import (
    ORDERLESS,
    Assign,
    Body,
    Branch,
    Break,
    Continue,
    Control,
    Expression,
    Forget,
    Initialize,
    Instruction,
    Iterations,
    Measure,
    Op,
    OpList,
    Program,
    Reset,
    Save,
    Switch,
    While,
)

# Qubits measured at one time: a collapse then has at most 256 probabilities, and splitting it costs little.
MAX_JOINT_QUBITS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Operators with no boundary between them: the unit that the planner plans.

    Attributes:
        index: the segment's number, a key for cached plans.
        ops: in order, on program qubits.
        restore_order: whether the plan should end in program order, because a save that follows reads the state so.
    """

    index: int
    ops: OpList
    restore_order: bool = False


@dataclass(frozen=True, slots=True)
class Jump:
    """Continues at item ``target``, unless there is a ``condition`` and it holds."""

    target: int
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Continues at the item that ``table`` has for the value of ``expression``, at ``default`` for any other value."""

    expression: Expression
    table: dict[int, int]
    default: int


CodeItem: TypeAlias = Segment | Measure | Reset | Initialize | Save | Assign | Forget | Jump | Dispatch


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """A program ready to run.

    Attributes:
        program: the program before it was flattened.
        items: in order; only loops jump back.
        reads: pairs (program qubit, classical bit) of the measurements that are sampled from the final state.
        fresh: indices of the `Initialize` items that collapse nothing: they write all qubits, or qubits still |0>.
        measures: whether the program measures, or writes a classical bit otherwise.
    """

    program: Program
    items: tuple[CodeItem, ...]
    reads: tuple[tuple[int, int], ...]
    fresh: frozenset[int]
    measures: bool

    @property
    def num_qubits(self) -> int:
        """The width of the state; a program without qubits runs on one qubit that stays |0>."""
        return max(1, self.program.num_qubits)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments in order."""
        return tuple(item for item in self.items if isinstance(item, Segment))

    @property
    def saves(self) -> tuple[Save, ...]:
        """The saves in order."""
        return tuple(item for item in self.items if isinstance(item, Save))

    @property
    def num_ops(self) -> int:
        """The number of operators of all segments."""
        return sum([len(segment.ops) for segment in self.segments])

    def joined_ops(self) -> OpList:
        """The operators of all segments, in order."""
        segments = self.segments
        if len(segments) == 1:
            return segments[0].ops
        joined = OpList()
        for segment in segments:
            joined.extend(segment.ops)
        return joined

    def filled(self, row: NDArray[np.complex128]) -> Executable:
        """A copy of this code whose slots are filled from ``row``, the data of all slots in order."""
        items = [
            replace(item, ops=OpList(item.ops.native.filled(row))) if isinstance(item, Segment) else item
            for item in self.items
        ]
        return replace(self, items=tuple(items))

    def collapses_at(self, index: int) -> bool:
        """Whether the item at ``index`` draws an outcome from the state."""
        item = self.items[index]
        return isinstance(item, (Measure, Reset)) or (isinstance(item, Initialize) and index not in self.fresh)


@dataclass(slots=True)
class Assembler:
    """Writes instructions as code items; operators gather in a segment until a boundary comes."""

    restorable: tuple[int, ...]  # before a save in this order, a segment should end in program order
    items: list[CodeItem] = field(default_factory=list)
    ops: OpList = field(default_factory=OpList)
    num_segments: int = 0
    breaks: list[int] = field(default_factory=list)  # jumps of the innermost loop to its end
    continues: list[int] = field(default_factory=list)  # and to its next round

    def flush(self, restore_order: bool = False) -> None:
        """Ends the segment of the operators so far."""
        if self.ops:
            self.items.append(Segment(self.num_segments, self.ops, restore_order))
            self.num_segments += 1
            self.ops = OpList()

    def _needs_order(self, save: Save) -> bool:
        return save.what not in ORDERLESS and tuple(q for q in save.qubits if q >= 0) == self.restorable

    def write(self, body: Iterable[Instruction]) -> None:
        """Appends ``body``; its last operators wait for `flush`."""
        for item in body:
            if isinstance(item, Op):
                self.ops.append(item)
                continue
            if isinstance(item, Sequence):
                self.ops.extend(OpList.of(item))
                continue
            self.flush(isinstance(item, Save) and self._needs_order(item))
            if isinstance(item, Control):
                self._write_control(item)
            elif isinstance(item, (Break, Continue)):
                (self.breaks if isinstance(item, Break) else self.continues).append(self._hole())
            elif isinstance(item, Measure):
                for start in range(0, len(item.qubits), MAX_JOINT_QUBITS):
                    part = slice(start, start + MAX_JOINT_QUBITS)
                    self.items.append(Measure(item.qubits[part], item.clbits[part]))
            elif isinstance(item, Reset):
                for start in range(0, len(item.qubits), MAX_JOINT_QUBITS):
                    self.items.append(Reset(item.qubits[start : start + MAX_JOINT_QUBITS]))
            else:
                self.items.append(item)

    def _hole(self) -> int:
        """Appends a jump whose target is not known yet; returns its index."""
        self.items.append(Jump(0))
        return len(self.items) - 1

    def _fill(self, holes: Iterable[int], condition: Expression | None = None) -> None:
        """Lets the jumps at ``holes`` go to the item that is written next."""
        for hole in holes:
            self.items[hole] = Jump(len(self.items), condition)

    def _arm(self, body: Body) -> None:
        self.write(body)
        self.flush()

    def _write_control(self, item: Control) -> None:
        if isinstance(item, Branch):
            self._write_branch(item)
        elif isinstance(item, Switch):
            self._write_switch(item)
        else:
            outer = self.breaks, self.continues
            self.breaks, self.continues = [], []
            if isinstance(item, While):
                self._write_while(item)
            else:
                self._write_iterations(item)
            self._fill(self.breaks)
            self.breaks, self.continues = outer

    def _write_branch(self, branch: Branch) -> None:
        skip = self._hole()
        self._arm(branch.then)
        if branch.otherwise:
            leave = self._hole()
            self._fill([skip], branch.condition)
            self._arm(branch.otherwise)
            self._fill([leave])
        else:
            self._fill([skip], branch.condition)

    def _write_switch(self, switch: Switch) -> None:
        dispatch = self._hole()
        leaves: list[int] = []
        table: dict[int, int] = {}
        default = None
        for values, body in switch.cases:
            if values is None:
                default = len(self.items)
            table.update((value, len(self.items)) for value in values or () if value not in table)
            self._arm(body)
            leaves.append(self._hole())
        self._fill(leaves)
        self.items[dispatch] = Dispatch(switch.target, table, len(self.items) if default is None else default)

    def _write_while(self, loop: While) -> None:
        start = self._hole()
        self._arm(loop.body)
        for hole in (*self.continues, self._hole()):
            self.items[hole] = Jump(start)
        self._fill([start], loop.condition)

    def _write_iterations(self, loop: Iterations) -> None:
        for body in loop.bodies:
            self._arm(body)
            self._fill(self.continues)
            self.continues.clear()
