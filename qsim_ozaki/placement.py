"""Where qubits lie when a state is written or read as a whole, and what moves them.

In: initialisations, saves, positions. Out: operators and positions, for the executor to do and for a plan to show.
"""

from __future__ import annotations

from collections.abc import Sequence

from qsim_ozaki.ops import Kind, Op
from qsim_ozaki.program import Initialize, Save
from qsim_ozaki.vectors import unitary_with_first_column

MAX_PREPARED_QUBITS = 5  # a 32 x 32 unitary is still one pass; wider vectors are written by the host
Position = tuple[int, ...]  # physical qubit of each program qubit


def initialize_op(item: Initialize) -> Op | None:
    """The unitary that writes ``item`` to qubits that are |0>, None where the host writes it."""
    if len(item.qubits) > MAX_PREPARED_QUBITS:
        return None
    return Op(Kind.UNITARY, item.qubits, unitary_with_first_column(item.vector), name="initialize")


def loaded(item: Initialize) -> Position:
    """Where the qubits lie after the host wrote all of them: in the order of ``item``, whatever it was before."""
    position = [0] * len(item.qubits)
    for index, qubit in enumerate(item.qubits):
        position[qubit] = index
    return tuple(position)


def saved_order(save: Save, position: Sequence[int]) -> tuple[Position, Position]:
    """Where the qubits that ``save`` names lie, the others after them; and where all lie once these are in order.

    The first is ``(0, 1, ...)`` where nothing has to move; else it is the position from which order is restored.
    """
    wanted = [qubit for qubit in save.qubits if qubit >= 0]
    named = (*wanted, *(qubit for qubit in range(len(position)) if qubit not in set(wanted)))
    after = [0] * len(named)
    for place, qubit in enumerate(named):
        after[qubit] = place
    return tuple(position[qubit] for qubit in named), tuple(after)
