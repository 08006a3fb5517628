"""Follows the places of a program's qubits in the state, and describes the next part to plan.

In: segments, initialisations and saves. Out: parts to plan. The executor and the plan of a whole program use the same
`Placement`. It may not plan or run anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from qsim_ozaki.ir import Initialize, Kind, Op, Save
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime.bytecode import Segment
from qsim_ozaki.runtime.vectors import unitary_with_first_column

MAX_PREPARED_QUBITS = 5  # a 32 x 32 unitary is still one pass; the host writes wider vectors
Position: TypeAlias = tuple[int, ...]  # physical qubit of each program qubit


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Operators that are planned together.

    Attributes:
        key: identifies the part within its program.
        title: the title in the plan of a whole program.
        ops: in order, on program qubits.
        position: the physical qubit of each program qubit before the part.
        from_zero: whether the state before the part is |0...0>.
        restore_order: whether the plan ends with program qubit q on physical qubit q.
        after: the position after the part where the part orders the qubits otherwise than the program; else None.
    """

    key: Hashable
    title: str
    ops: Sequence[Op]
    position: Position
    from_zero: bool = False
    restore_order: bool = False
    after: Position | None = None

    def options(self, program_options: PlanOptions) -> PlanOptions:
        """The planner's options for this part, from the options of the whole program."""
        return replace(program_options, from_zero=self.from_zero, restore_order=self.restore_order)


class Placement:
    """The places of a register's qubits in the state, and whether the state is still |0...0>.

    Attributes:
        position: the physical qubit of each program qubit.
        fresh: whether no item has touched the state: it is |0...0> and need not be allocated yet.
    """

    __slots__ = ("fresh", "position")

    def __init__(self, num_qubits: int) -> None:
        self.position: Position = tuple(range(num_qubits))
        self.fresh = True

    def copy(self) -> Placement:
        """An independent copy."""
        other = Placement(0)
        other.position, other.fresh = self.position, self.fresh
        return other

    def touch(self) -> None:
        """Notes that the state is read, collapsed or written."""
        self.fresh = False

    def done(self, part: Part, final_position: Position) -> None:
        """Moves on past ``part``, whose plan ended with the qubits at ``final_position``."""
        if part.after is not None:
            assert final_position == tuple(range(len(final_position))), "the planner did not restore the order"
        self.position = final_position if part.after is None else part.after
        self.fresh = False

    def segment(self, segment: Segment) -> Part:
        """The part of ``segment``."""
        title, restore_order = f"segment {segment.index}", segment.restore_order
        return Part(segment.index, title, segment.ops, self.position, self.fresh, restore_order)

    def flips(self, qubits: tuple[int, ...], ops: Sequence[Op]) -> Part:
        """The part of ``ops``, which turn ``qubits`` from |1> to |0>."""
        return Part(("flip", qubits), "reset", ops, self.position)

    def begin_initialize(self, item: Initialize) -> bool:
        """Prepares for ``item``; returns whether it writes all qubits, so that it replaces the whole state."""
        whole = len(item.qubits) == len(self.position)
        if whole:
            self.position, self.fresh = tuple(range(len(self.position))), True
        return whole

    def initialize(self, item: Initialize, index: int) -> Part | None:
        """The part that writes ``item``, code item ``index``, to qubits that are |0>; None: the host writes it."""
        if len(item.qubits) > MAX_PREPARED_QUBITS:
            return None
        op = Op(Kind.UNITARY, item.qubits, unitary_with_first_column(item.vector), name="initialize")
        return Part(("initialize", index), "initialize", [op], self.position, self.fresh)

    def load(self, item: Initialize) -> None:
        """Notes that the host has written ``item`` to all qubits, which now lie in its order."""
        position = [0] * len(item.qubits)
        for index, qubit in enumerate(item.qubits):
            position[qubit] = index
        self.position, self.fresh = tuple(position), False

    def save(self, save: Save) -> Part | None:
        """The part that brings the qubits in the order of ``save``, the others after them; None where they lie so."""
        named = dict.fromkeys(qubit for qubit in save.qubits if qubit >= 0)
        order = (*named, *(qubit for qubit in range(len(self.position)) if qubit not in named))
        position = tuple(self.position[qubit] for qubit in order)
        if position == tuple(range(len(position))):
            return None
        after = [0] * len(order)
        for place, qubit in enumerate(order):
            after[qubit] = place
        title = f"order of {save.label!r}"
        return Part(("restore", position), title, [], position, restore_order=True, after=tuple(after))
