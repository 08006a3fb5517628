"""Two-qubit cores as turns and diagonals, which the cores of a stage share.

In: the work of one `Stage`. Out: the same work with `Table` and `Turn` in place of cores. It writes no source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.tile.items import LEAST_COS, Item, angles_of, is_core
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms
from qsim_ozaki.ir import ComplexArray

CLASSES = ((0, 3), (2, 1))  # indices of a 4x4 matrix with even and with odd parity; bit 0 is 1 in the second
UNITARY = 1e-13


@dataclass(slots=True, eq=False)
class Table:
    """A product of diagonals, each on two register qubits.

    Attributes:
        factors: (qubits, values) of each; the first value is 1.
        angle: of the factor that they all lack, in 2**-64 of a turn.
    """

    factors: list[tuple[tuple[int, int], ComplexArray]] = field(default_factory=list)
    angle: int = 0

    def entries(self, registers: Sequence[int]) -> tuple[list[int], ComplexArray, list[int]]:
        """Register bits that it depends on, its value for each value of these, register indices where that is not 1."""
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
    """Of both parities of two qubits: a phase where bit 0 is 1, a real rotation; without factors that a `Table` has.

    Attributes:
        qubits: bit 0 and bit 1 of the index.
        values: (p, u, v) of {00, 11}, then of {10, 01}.
        near: of each whether the phase is 1 + ip, else p + i; whether the rotation is (x0 - u x1, x1 + v x0), else
            (u x0 - x1, x0 + v x1).
        scale: the factor left out.
    """

    qubits: tuple[int, int]
    values: tuple[float, ...]
    near: tuple[bool, bool, bool, bool]
    scale: float


Work = Item | PhaseTerms | PairBlock | Table | Turn


def share_tables(work: Sequence[Work]) -> list[Work]:
    """``work`` with every unconditional unitary core as turn and table; those of disjoint cores are one table.

    A core waits for another as long as nothing in between is on its qubits.
    """
    out: list[Work] = []
    group: list[Item] = []
    held = 0
    for step in work:
        if held & _touched(step):
            out += _apart(group)
            group, held = [], 0
        if isinstance(step, Item) and is_core(step) and not step.condition[0] and _is_unitary(step.data):
            group.append(step)
            held |= step.mixed
        else:
            out.append(step)
    return out + _apart(group)


def _touched(work: Work) -> int:
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


def _apart(cores: Sequence[Item]) -> list[Work]:
    table = Table()
    turns = []
    for core in cores:
        turn, last = _split(core)
        table.factors.append((turn.qubits, np.array([1, *(last[1:] / last[0])])))
        table.angle += angles_of(last[:1])[0]
        turns.append(turn)
    return [*turns, table] if turns else []


def _split(core: Item) -> tuple[Turn, ComplexArray]:
    """``core = scale diag(last) turn``.

    Each parity's 2x2 block is diag(p, q) [[cos, -sin], [sin, cos]] diag(1, r). With r = s (1 + ip) or s (p + i) for a
    real s, what r leaves of x1 is s x1: it goes into the rotation's tangents and one of its outputs.
    """
    assert core.data is not None
    last = np.ones(4, complex)
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
        last[zero], last[one] = (p, q * s) if near else (p * s, q)
        last[[zero, one]] *= factor
        u, v = tangent * s, tangent / s
        if not near:
            u, v = v, u
        values += [r.imag / s if upright else r.real / s, u, v]
        nears += [upright, near]
        factors.append(factor)
    last /= factors[0]
    qubits = (core.qubits[0], core.qubits[1])
    return Turn(qubits, tuple(values), (nears[0], nears[1], nears[2], nears[3]), factors[0]), last
