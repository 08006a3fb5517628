"""Classical expressions: a tree of frozen dataclasses over bits, variables and constants.

In: nothing but numbers. Out: the tree, and the bits it reads. It knows no values of bits and no circuit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from qsim_ozaki.ir.durations import Length

Value: TypeAlias = bool | int | float | Length


class Sort(Enum):
    """The sort of a value: a Python bool, an int of some width, a float, a `Length`."""

    BOOL = auto()
    UINT = auto()
    FLOAT = auto()
    DURATION = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """A sort of values; ``width`` is the bits of a UINT."""

    sort: Sort
    width: int = 0

    @property
    def mask(self) -> int:
        """The largest value of a UINT."""
        return (1 << self.width) - 1


BOOL = Type(Sort.BOOL)
FLOAT = Type(Sort.FLOAT)
DURATION = Type(Sort.DURATION)


def uint(width: int) -> Type:
    """The type of integers of ``width`` bits."""
    return Type(Sort.UINT, width)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value, which fits its type."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Bits:
    """Classical bits: one as a BOOL, or a register as a UINT whose bit j is ``clbits[j]``."""

    clbits: tuple[int, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable in ``slot`` of the memory; ``name`` is for messages."""

    slot: int
    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Cast:
    """``operand`` as another type: UINTs keep their low bits, FLOATs lose their fraction, BOOL is "not 0"."""

    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Unary:
    """``bit_not``, ``logic_not`` or ``negate`` of one operand."""

    op: str
    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation of two operands: a key of `classical_values.OPERATIONS`, ``logic_and`` or ``logic_or``.

    The last two evaluate ``right`` only where ``left`` leaves the result open.
    """

    op: str
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Index:
    """Bit ``index`` of a UINT, as a BOOL."""

    target: Expression
    index: Expression
    type: Type = BOOL


Expression: TypeAlias = Constant | Bits | Variable | Cast | Unary | Binary | Index
Target: TypeAlias = Bits | Variable | Index  # what can be assigned to


def bits_equal(clbits: tuple[int, ...], value: int) -> Expression:
    """Whether the bits ``clbits``, bit 0 first, read ``value``."""
    type_ = uint(max(len(clbits), value.bit_length()))
    return Binary("equal", Bits(clbits, type_), Constant(value, type_), BOOL)


def nodes(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything in it."""
    yield expression
    for name in ("operand", "left", "right", "target", "index"):
        if hasattr(expression, name):
            yield from nodes(getattr(expression, name))


def bits_in(expression: Expression) -> set[int]:
    """The classical bits that ``expression`` reads."""
    return {bit for node in nodes(expression) if isinstance(node, Bits) for bit in node.clbits}


def bits_assigned(target: Target) -> set[int]:
    """The classical bits that an assignment to ``target`` may change."""
    while isinstance(target, Index):
        target = target.target  # type: ignore[assignment]
    return set(target.clbits) if isinstance(target, Bits) else set()
