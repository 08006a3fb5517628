"""Evaluates classical expressions over the values of classical bits and variables.

In: expressions and a `Memory`. Out: values; assignments change the memory. It may not depend on a circuit or a state.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from qsim_ozaki.errors import ProgramError
from qsim_ozaki.ir import (
    Binary,
    Bits,
    Cast,
    Constant,
    Expression,
    Index,
    Length,
    Sort,
    Target,
    Type,
    Unary,
    Value,
    Variable,
)


@dataclass(slots=True)
class Memory:
    """The classical bits as one integer, and a value or None per variable; both are replaced, not changed in place."""

    clbits: int = 0
    variables: tuple[Value | None, ...] = ()


def evaluate(expression: Expression, memory: Memory) -> Value:
    """The value of ``expression``.

    Raises:
        ProgramError: a variable has no value yet, a UINT is divided by 0, an index or a cast is out of range, or a
            duration depends on the length of a unit.
    """
    return _EVALUATE[type(expression)](expression, memory)


def assign(target: Target, value: Value, memory: Memory) -> None:
    """Stores ``value`` in ``target``.

    Raises:
        ProgramError: as `evaluate`, for an index.
    """
    if isinstance(target, Variable):
        before = memory.variables
        memory.variables = (*before[: target.slot], value, *before[target.slot + 1 :])
    elif isinstance(target, Bits):
        bits = int(value)  # type: ignore[arg-type]
        for place, bit in enumerate(target.clbits):
            memory.clbits = with_bit(memory.clbits, bit, bits >> place & 1)
    else:
        place = _index(target, memory)
        whole = evaluate(target.target, memory)
        assign(target.target, with_bit(whole, place, int(value)), memory)  # type: ignore[arg-type]


def forget(slots: tuple[int, ...], memory: Memory) -> None:
    """Removes the values of the variables in ``slots``."""
    memory.variables = tuple(None if slot in slots else value for slot, value in enumerate(memory.variables))


def with_bit(word: int, bit: int, value: int) -> int:
    """``word`` with its bit ``bit`` set to ``value``."""
    return word | 1 << bit if value else word & ~(1 << bit)


@lru_cache(4096)
def _span(clbits: tuple[int, ...]) -> tuple[int, int] | None:
    """(lowest bit, mask) of consecutive bits, None for other bits."""
    first = clbits[0] if clbits else 0
    return (first, (1 << len(clbits)) - 1) if clbits == tuple(range(first, first + len(clbits))) else None


def _bits(node: Bits, memory: Memory) -> Value:
    span = _span(node.clbits)
    if span is not None:
        value = memory.clbits >> span[0] & span[1]
    else:
        value = sum((memory.clbits >> bit & 1) << place for place, bit in enumerate(node.clbits))
    return bool(value) if node.type.sort is Sort.BOOL else value


def _variable(node: Variable, memory: Memory) -> Value:
    value = memory.variables[node.slot]
    if value is None:
        raise ProgramError(f"variable {node.name!r} is read before it has a value. Store one first")
    return value


def _cast(node: Cast, memory: Memory) -> Value:
    value: Any = evaluate(node.operand, memory)
    if node.type.sort is Sort.DURATION:
        assert isinstance(value, Length)
        return value
    if node.type.sort is Sort.BOOL:
        return bool(value)
    if node.type.sort is Sort.FLOAT:
        return _float(value)
    if isinstance(value, float) and not (math.isfinite(value) and -1 < value < 1 << node.type.width):
        raise ProgramError(f"{value} is cast to an unsigned integer of {node.type.width} bits. Check its range before")
    return int(value) & node.type.mask


def _float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ProgramError(
            f"an integer of {value.bit_length()} bits is cast to a float. Use at most 1023 bits"
        ) from None


def _unary(node: Unary, memory: Memory) -> Value:
    value: Any = evaluate(node.operand, memory)
    if node.op == "negate":
        return value.times(-1) if isinstance(value, Length) else -value
    if node.type.sort is Sort.BOOL:
        return not value
    return int(value) ^ node.type.mask


def _binary(node: Binary, memory: Memory) -> Value:
    left = evaluate(node.left, memory)
    if node.op == "logic_and":
        return bool(left) and bool(evaluate(node.right, memory))
    if node.op == "logic_or":
        return bool(left) or bool(evaluate(node.right, memory))
    value = OPERATIONS[node.op](left, evaluate(node.right, memory), node.type)
    return cast("Value", value & node.type.mask if node.type.sort is Sort.UINT else value)


def _index(node: Index, memory: Memory) -> int:
    place = evaluate(node.index, memory)
    width = node.target.type.width
    assert isinstance(place, int)
    if place >= width:
        raise ProgramError(f"bit {place} of an integer of {width} bits is asked for. Use an index below {width}")
    return place


def _bit_at(node: Index, memory: Memory) -> Value:
    place = _index(node, memory)
    return bool(evaluate(node.target, memory) >> place & 1)  # type: ignore[operator]


_EVALUATE: dict[type, Callable[[Any, Memory], Value]] = {
    Constant: lambda node, _: node.value,
    Bits: _bits,
    Variable: _variable,
    Cast: _cast,
    Unary: _unary,
    Binary: _binary,
    Index: _bit_at,
}


def _add(left: Any, right: Any, _: Type) -> Any:
    return left.plus(right) if isinstance(left, Length) else left + right


def _sub(left: Any, right: Any, _: Type) -> Any:
    return left.plus(right, -1) if isinstance(left, Length) else left - right


def _mul(left: Any, right: Any, _: Type) -> Any:
    if isinstance(left, Length):
        return left.times(right)
    return right.times(left) if isinstance(right, Length) else left * right


def _div(left: Any, right: Any, type_: Type) -> Any:
    """The quotient: rounded down for UINTs, by IEEE rules for FLOATs, exact for durations."""
    if isinstance(right, Length):
        return left.ratio(right)
    if right == 0 and not isinstance(left, float):
        raise ProgramError("a division by 0. Check the divisor before the division")
    if isinstance(left, Length):
        return left.over(right)
    if type_.sort is Sort.UINT:
        return left // right
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _compare(relation: Callable[[Any, Any], bool]) -> Callable[[Any, Any, Type], Any]:
    def compared(left: Any, right: Any, _: Type) -> Any:
        if isinstance(left, Length):
            return relation(left.plus(right, -1).sign(), 0)
        return relation(left, right)

    return compared


OPERATIONS: dict[str, Callable[[Any, Any, Type], Any]] = {
    "bit_and": lambda left, right, _: left & right,
    "bit_or": lambda left, right, _: left | right,
    "bit_xor": lambda left, right, _: left ^ right,
    "equal": _compare(operator.eq),
    "not_equal": _compare(operator.ne),
    "less": _compare(operator.lt),
    "less_equal": _compare(operator.le),
    "greater": _compare(operator.gt),
    "greater_equal": _compare(operator.ge),
    # a shift by the width or more leaves 0; Python would first build an integer of that many bits
    "shift_left": lambda left, right, type_: left << right if right < type_.width else 0,
    "shift_right": lambda left, right, type_: left >> right if right < type_.width else 0,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
}
