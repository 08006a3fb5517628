"""Splits the two-qubit cores of a stage into turns and diagonals; the cores share one table of diagonals.

A core is a 4x4 matrix without entries between states of different parity.
In: the work of one `Stage`. Out: the same work with `Table` and `Turn` in place of cores. It may not write source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.tile.items import LEAST_COS, Item, angles_of, is_core
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms
from qsim_ozaki.ir import ComplexArray

CLASSES = ((0, 3), (2, 1))  # matrix indices of even and of odd parity; bit 0 is 1 in the second index of a class
UNITARY = 1e-13  # largest entry of U U^+ - 1 of a matrix that counts as unitary


@dataclass(slots=True, eq=False)
class Table:
    """A product of diagonals, each on two register qubits.

    Attributes:
        factors: (qubits, values) of each diagonal; its first value is 1.
        angle: the angle of the factor that was divided out of all diagonals, in 2**-64 of a turn.
    """

    factors: list[tuple[tuple[int, int], ComplexArray]] = field(default_factory=list)
    angle: int = 0

    def entries(self, registers: Sequence[int]) -> tuple[list[int], ComplexArray, list[int]]:
        """Returns the table for the given register qubits.

        Returns:
            (register bits that the table depends on, ascending; its value for each value of these bits; register
            indices that need a product, for one of a factor's qubits is 1).
        """
        bits = sorted(registers.index(q) for pair, _ in self.factors for q in pair)
        number, index = np.arange(1 << len(bits)), np.arange(1 << len(registers))
        values, on = np.ones(len(number), complex), np.zeros(len(index), bool)
        for pair, factor in self.factors:
            a, b = (registers.index(q) for q in pair)
            on |= (index >> a & 1 | index >> b & 1) != 0
            a, b = bits.index(a), bits.index(b)
            values *= factor[(number >> a & 1) | (number >> b & 1) << 1]
        return bits, values, index[on].tolist()


@dataclass(frozen=True, slots=True)
class Turn:
    """A core without the diagonal that a `Table` holds.

    For each parity of the two qubits it applies a phase where bit 0 is 1, then a real rotation.

    Attributes:
        qubits: bit 0 and bit 1 of the matrix index.
        values: (p, u, v) of the states {00, 11}, then of {10, 01}.
        near: two flags per parity. First, whether the phase is 1 + ip (else p + i). Second, whether the rotation is
            (x0 - u x1, x1 + v x0), else (u x0 - x1, x0 + v x1).
        scale: the real factor left out of the statement.
    """

    qubits: tuple[int, int]
    values: tuple[float, ...]
    near: tuple[bool, bool, bool, bool]
    scale: float


Work = Item | PhaseTerms | PairBlock | Table | Turn


def share_tables(work: Sequence[Work]) -> list[Work]:
    """Returns ``work`` with every unconditional unitary core as a turn and a table; disjoint cores share one table.

    A core waits for further cores until other work on its qubits follows.
    """
    out: list[Work] = []
    group: list[Item] = []
    held = 0
    for step in work:
        if held & _touched_qubits(step):
            out += _turns_and_table(group)
            group, held = [], 0
        if isinstance(step, Item) and is_core(step) and not step.condition[0] and _is_unitary(step.data):
            group.append(step)
            held |= step.mixed
        else:
            out.append(step)
    return out + _turns_and_table(group)


def _touched_qubits(work: Work) -> int:
    """Returns the mask of the qubits that the work reads or changes."""
    if isinstance(work, PhaseTerms):
        keys = 0
        for key in work.terms:
            keys |= key
        return keys
    if isinstance(work, PairBlock):
        return work.mask | work.selecting
    assert isinstance(work, Item)
    return work.mixed | work.used


def _is_unitary(matrix: ComplexArray | None) -> bool:
    return matrix is not None and bool(np.abs(matrix @ matrix.conj().T - np.eye(4)).max() < UNITARY)


def _turns_and_table(cores: Sequence[Item]) -> list[Work]:
    """Returns the turns of disjoint cores, then the one table of their diagonals."""
    table = Table()
    turns = []
    for core in cores:
        turn, diagonal = _split_core(core)
        table.factors.append((turn.qubits, np.array([1, *(diagonal[1:] / diagonal[0])])))
        table.angle += angles_of(diagonal[:1])[0]
        turns.append(turn)
    return [*turns, table] if turns else []


def _split_core(core: Item) -> tuple[Turn, ComplexArray]:
    """Splits a core into a turn and a diagonal: ``core = scale diag(diagonal) turn``.

    The 2x2 block of each parity is diag(p, q) [[cos, -sin], [sin, cos]] diag(1, r). The phase r is s (1 + ip) or
    s (p + i) for a real s. The turn multiplies x1 by the part without s; the factor s goes into the rotation's tangents
    and into one of its outputs.
    """
    assert core.data is not None
    diagonal = np.ones(4, complex)
    values, nears, factors = [], [], []
    for zero, one in CLASSES:
        a, b, c, d = (complex(core.data[row, column]) for row in (zero, one) for column in (zero, one))
        norm = float(np.hypot(abs(a), abs(c)))
        cos, sin = abs(a) / norm, abs(c) / norm
        p = a / abs(a) if a else 1.0
        q = c / abs(c) if c else 1.0
        r = d / q if cos >= sin else -b / p
        r /= abs(r)
        upright, near = abs(r.real) >= LEAST_COS, cos >= LEAST_COS
        s = r.real if upright else r.imag
        tangent = sin / cos if near else cos / sin
        factor = cos if near else sin
        diagonal[zero], diagonal[one] = (p, q * s) if near else (p * s, q)
        diagonal[[zero, one]] *= factor
        u, v = tangent * s, tangent / s
        if not near:
            u, v = v, u
        values += [r.imag / s if upright else r.real / s, u, v]
        nears += [upright, near]
        factors.append(factor)
    diagonal /= factors[0]
    qubits = (core.qubits[0], core.qubits[1])
    return Turn(qubits, tuple(values), (nears[0], nears[1], nears[2], nears[3]), factors[0]), diagonal
