"""Converts Qiskit's classical expressions and variables to the program's.

In: `expr.Expr` trees, Qiskit variables, Python values of inputs. Out: expressions and slots of the memory. It may not
evaluate an expression.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qiskit import QuantumCircuit
from qiskit.circuit import ClassicalRegister, Clbit, Duration, Store
from qiskit.circuit.classical import expr, types

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import (
    BOOL,
    DURATION,
    FLOAT,
    STRETCH,
    Assign,
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
    Variable,
    bits_equal,
    uint,
)

Resolve = Callable[[Clbit], int]  # a classical bit to its index in the program


def type_of(type_: types.Type) -> Type:
    """Converts a Qiskit type."""
    if type_.kind is types.Uint:
        return uint(type_.width)
    return {types.Bool: BOOL, types.Float: FLOAT, types.Duration: DURATION}[type_.kind]


@dataclass(slots=True)
class Variables:
    """The memory slots of variables, numbered in the order in which they first occur."""

    slots: dict[Any, int] = field(default_factory=dict)

    def variable(self, var: expr.Var) -> Variable:
        """Converts a Qiskit variable; a new one gets the next slot."""
        return Variable(self.slots.setdefault(var.var, len(self.slots)), type_of(var.type), var.name)

    def expression(self, node: expr.Expr, resolve: Resolve) -> Expression:
        """Converts a Qiskit expression.

        Args:
            node: any expression.
            resolve: maps a classical bit to its index.
        """
        type_ = type_of(node.type)
        if isinstance(node, expr.Value):
            return Constant(constant(node.value, type_), type_)
        if isinstance(node, expr.Stretch):
            return Constant(Length.of(1, f"{STRETCH}{node.name!r} ({node.var})"), type_)
        if isinstance(node, expr.Var):
            return self._var(node, type_, resolve)
        if isinstance(node, expr.Cast):
            return Cast(self.expression(node.operand, resolve), type_)
        if isinstance(node, expr.Unary):
            return Unary(node.op.name.lower(), self.expression(node.operand, resolve), type_)
        if isinstance(node, expr.Index):
            return Index(self.expression(node.target, resolve), self.expression(node.index, resolve), type_)
        left, right = self.expression(node.left, resolve), self.expression(node.right, resolve)
        return Binary(node.op.name.lower(), left, right, type_)

    def target(self, node: expr.Expr, resolve: Resolve) -> Target:
        """Converts the left side of a store."""
        target = self.expression(node, resolve)
        assert isinstance(target, (Bits, Variable, Index)), "Qiskit's Store takes nothing else"
        return target

    def inputs(self, circuit: QuantumCircuit, values: Mapping[Any, Any]) -> Iterable[Assign]:
        """Yields an assignment for each variable that ``circuit`` expects from outside.

        Args:
            circuit: the user's circuit.
            values: values by name or by `expr.Var`.

        Raises:
            LoweringError: a variable has no value, a value does not fit its variable, or a name is not known.
        """
        expected = [*circuit.iter_input_vars(), *circuit.iter_captured_vars()]
        for name in values:
            if name not in expected and name not in [var.name for var in expected]:
                names = ", ".join(var.name for var in expected) or "none"
                raise LoweringError(
                    f"circuit {circuit.name!r} has no input variable {name!r}. Its input variables: {names}."
                )
        for var in expected:
            value = values.get(var, values.get(var.name))
            if value is None:
                raise LoweringError(
                    f"circuit {circuit.name!r}: input variable {var.name!r} of type {var.type} has no value. "
                    f"Give one: run(circuit, inputs={{{var.name!r}: ...}})."
                )
            try:
                fitting = constant(value, type_of(var.type))
                if isinstance(fitting, float) and not math.isfinite(fitting):
                    raise ValueError(value)
            except (TypeError, ValueError):
                raise LoweringError(
                    f"circuit {circuit.name!r}: {value!r} is no value for input variable {var.name!r}. "
                    f"Its type is {var.type}; give a finite one of it."
                ) from None
            yield Assign(self.variable(var), Constant(fitting, type_of(var.type)))

    def _var(self, node: expr.Var, type_: Type, resolve: Resolve) -> Expression:
        if node.standalone:
            return self.variable(node)
        bits = [node.var] if isinstance(node.var, Clbit) else node.var
        return Bits(tuple(resolve(bit) for bit in bits), type_)


def constant(value: Any, type_: Type) -> bool | int | float | Length:
    """Converts a Python value, or a Qiskit `Duration`, to a value of ``type_``.

    Raises:
        TypeError: the value is of another type.
        ValueError: the value is out of the type's range.
    """
    if type_.sort is Sort.DURATION:
        if not isinstance(value, Duration):
            raise TypeError(value)
        return Length.of(value.value(), value.unit())
    if type_.sort is Sort.FLOAT:
        return float(value)
    if type_.sort is Sort.BOOL:
        if value not in (0, 1):
            raise ValueError(value)
        return bool(value)
    number = operator.index(value)
    if not 0 <= number <= type_.mask:
        raise ValueError(value)
    return number


def stored_bits(store: Store) -> set[Clbit]:
    """The classical bits that ``store`` may change, as Qiskit's objects."""
    bits: set[Clbit] = set()
    for var in expr.iter_vars(store.lvalue):
        if not var.standalone:
            bits.update([var.var] if isinstance(var.var, Clbit) else var.var)
    return bits


def condition(
    variables: Variables, test: tuple[Clbit | ClassicalRegister, int] | expr.Expr, resolve: Resolve
) -> Expression:
    """Converts a condition of control flow: an expression, or a bit or register with the value it must read."""
    if isinstance(test, expr.Expr):
        return variables.expression(test, resolve)
    bits, value = test
    return bits_equal(tuple(resolve(bit) for bit in ([bits] if isinstance(bits, Clbit) else bits)), int(value))
