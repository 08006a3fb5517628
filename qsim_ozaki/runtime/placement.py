"""Where the qubits of a state lie, what is planned next, and where they lie after it.

In: segments, initialisations, saves. Out: parts to plan. The executor and the plan of a whole program follow a register
by the same `Placement`. It plans and runs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from qsim_ozaki.ir import Initialize, Kind, Op, Save
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime.bytecode import Segment
from qsim_ozaki.runtime.vectors import unitary_with_first_column

MAX_PREPARED_QUBITS = 5  # a 32 x 32 unitary is still one pass; wider vectors are written by the host
Position: TypeAlias = tuple[int, ...]  # physical qubit of each program qubit


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Operators that are planned together.

    Attributes:
        key: the same for the same part of a program.
        title: as the plan of a whole program shows it.
        ops: in order, on program qubits.
        position: of the qubits before.
        from_zero: whether the state is |0...0> before.
        restore_order: whether the plan ends with program qubit q on physical qubit q.
        after: where the qubits lie then, if the part names them in another order than the program; else None.
    """

    key: Hashable
    title: str
    ops: Sequence[Op]
    position: Position
    from_zero: bool = False
    restore_order: bool = False
    after: Position | None = None

    def options(self, asked: PlanOptions) -> PlanOptions:
        """The planner's options for this part, where ``asked`` are those of the whole program."""
        return replace(asked, from_zero=self.from_zero, restore_order=self.restore_order)


class Placement:
    """Where the qubits of a register lie, and whether it still is |0...0>.

    Attributes:
        position: physical qubit of each program qubit.
        fresh: whether nothing has touched the state: it is |0...0>, and need not be allocated yet.
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
        """The state is read, collapsed or written from here on."""
        self.fresh = False

    def done(self, part: Part, final_position: Position) -> None:
        """Goes on after ``part``, whose plan ended with the qubits at ``final_position``."""
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
        """Prepares for ``item``; returns whether it writes all qubits: then nothing is left of the state."""
        whole = len(item.qubits) == len(self.position)
        if whole:
            self.position, self.fresh = tuple(range(len(self.position))), True
        return whole

    def initialize(self, item: Initialize, index: int) -> Part | None:
        """The part that writes ``item``, a program's at ``index``, to qubits that are |0>; None: the host writes it."""
        if len(item.qubits) > MAX_PREPARED_QUBITS:
            return None
        op = Op(Kind.UNITARY, item.qubits, unitary_with_first_column(item.vector), name="initialize")
        return Part(("initialize", index), "initialize", [op], self.position, self.fresh)

    def load(self, item: Initialize) -> None:
        """The host has written ``item`` to all qubits: they lie in its order, whatever it was before."""
        position = [0] * len(item.qubits)
        for index, qubit in enumerate(item.qubits):
            position[qubit] = index
        self.position, self.fresh = tuple(position), False

    def save(self, save: Save) -> Part | None:
        """The part after which the qubits lie as ``save`` names them, the others behind; None where they do already."""
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
