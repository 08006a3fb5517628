"""Classical expressions: a tree of frozen dataclasses over bits, variables and constants.

In: numbers. Out: the tree, and the bits that it reads. It may not know the values of bits, or a circuit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from qsim_ozaki.ir.durations import Length

Value: TypeAlias = bool | int | float | Length


class Sort(Enum):
    """The sort of a value: a Python bool, an int of some width, a float or a `Length`."""

    BOOL = auto()
    UINT = auto()
    FLOAT = auto()
    DURATION = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value: its sort, and for a UINT the number of bits in ``width``."""

    sort: Sort
    width: int = 0

    @property
    def mask(self) -> int:
        """The largest value of a UINT, which has a 1 in all of its bits."""
        return (1 << self.width) - 1


BOOL = Type(Sort.BOOL)
FLOAT = Type(Sort.FLOAT)
DURATION = Type(Sort.DURATION)


def uint(width: int) -> Type:
    """Returns the type of unsigned integers of ``width`` bits."""
    return Type(Sort.UINT, width)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that fits its type."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Bits:
    """Classical bits: one bit as a BOOL, or a register as a UINT whose bit j is ``clbits[j]``."""

    clbits: tuple[int, ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Variable:
    """The variable in slot ``slot`` of the memory; only messages show its ``name``."""

    slot: int
    type: Type
    name: str


@dataclass(frozen=True, slots=True)
class Cast:
    """``operand`` as another type: a UINT keeps its low bits, a FLOAT loses its fraction, BOOL means "not 0"."""

    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Unary:
    """An operation on one operand: ``bit_not``, ``logic_not`` or ``negate``."""

    op: str
    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Binary:
    """An operation on two operands: a key of `classical_values.OPERATIONS`, ``logic_and`` or ``logic_or``.

    ``logic_and`` and ``logic_or`` evaluate ``right`` only where ``left`` leaves the result open.
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
Target: TypeAlias = Bits | Variable | Index  # an assignment may change these


def bits_equal(clbits: tuple[int, ...], value: int) -> Expression:
    """Returns the expression that is true where the bits ``clbits``, bit 0 first, read ``value``."""
    type_ = uint(max(len(clbits), value.bit_length()))
    return Binary("equal", Bits(clbits, type_), Constant(value, type_), BOOL)


def nodes(expression: Expression) -> Iterator[Expression]:
    """Yields ``expression``, then every expression inside it."""
    yield expression
    for name in ("operand", "left", "right", "target", "index"):
        if hasattr(expression, name):
            yield from nodes(getattr(expression, name))


def bits_in(expression: Expression) -> set[int]:
    """Returns the classical bits that ``expression`` reads."""
    return {bit for node in nodes(expression) if isinstance(node, Bits) for bit in node.clbits}


def bits_assigned(target: Target) -> set[int]:
    """Returns the classical bits that an assignment to ``target`` may change."""
    while isinstance(target, Index):
        target = target.target  # type: ignore[assignment]
    return set(target.clbits) if isinstance(target, Bits) else set()
