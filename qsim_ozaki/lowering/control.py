"""Lowers control flow: branches, switches, loops, boxes and stores.

In: Qiskit's control-flow instructions, and the walker that lowers the circuits inside them. Out: instructions of the
program, appended to the walker's body. It may not evaluate a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from qiskit import QuantumCircuit
from qiskit.circuit import (
    CASE_DEFAULT,
    BoxOp,
    BreakLoopOp,
    CircuitInstruction,
    Clbit,
    ContinueLoopOp,
    ForLoopOp,
    IfElseOp,
    Parameter,
    Store,
    SwitchCaseOp,
    WhileLoopOp,
)
from qiskit.circuit.classical import expr

from qsim_ozaki.ir import (
    Assign,
    Bits,
    Body,
    Branch,
    Break,
    Constant,
    Continue,
    Expression,
    Forget,
    Instruction,
    Iterations,
    Switch,
    While,
    arms,
    uint,
)
from qsim_ozaki.lowering.classical import Variables, condition
from qsim_ozaki.lowering.loops import MAX_UNROLLED, rounds
from qsim_ozaki.lowering.site import Site


class Scope(Protocol):
    """The program's indices of a circuit's bits."""

    def clbit(self, bit: Clbit) -> int:
        """The index of a classical bit."""


class Walker(Protocol):
    """Appends lowered circuits to ``body``."""

    body: list[Instruction]
    variables: Variables

    def site(self, instruction: CircuitInstruction, scope: Any) -> Site:
        """The place of ``instruction`` in the user's circuit, for messages."""

    def close(self) -> None:
        """Moves the operators since the last boundary into the body."""

    def nested(self, circuit: QuantumCircuit, instruction: CircuitInstruction, scope: Any) -> None:
        """Appends an inner circuit, whose bits in order are the bits of ``instruction``."""


def body_of(walker: Walker, circuit: QuantumCircuit, instruction: CircuitInstruction, scope: Scope) -> Body:
    """Lowers ``circuit``, a block of ``instruction``.

    The block begins by clearing the variables that it declares: they have no value from an earlier round.
    """
    outer, walker.body = walker.body, []
    slots = tuple(walker.variables.variable(var).slot for var in circuit.iter_declared_vars())
    if slots:
        walker.body.append(Forget(slots))
    walker.nested(circuit, instruction, scope)
    walker.close()
    body = tuple(walker.body)
    walker.body = outer
    return body


def _if_else(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    operation = instruction.operation
    test = condition(walker.variables, operation.condition, scope.clbit)
    walker.body.append(Branch(test, *(body_of(walker, block, instruction, scope) for block in operation.blocks)))


def _switch(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    operation = instruction.operation
    target: Expression
    if isinstance(operation.target, expr.Expr):
        target = walker.variables.expression(operation.target, scope.clbit)
    else:
        bits = [operation.target] if isinstance(operation.target, Clbit) else operation.target
        target = Bits(tuple(scope.clbit(bit) for bit in bits), uint(len(bits)))
    cases = tuple(
        (None if CASE_DEFAULT in values else tuple(map(int, values)), body_of(walker, block, instruction, scope))
        for values, block in operation.cases_specifier()
    )
    walker.body.append(Switch(target, cases))


def _while(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    operation = instruction.operation
    test = condition(walker.variables, operation.condition, scope.clbit)
    walker.body.append(While(test, body_of(walker, operation.blocks[0], instruction, scope)))


def _for(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    """Unrolls a for loop, so that operators of different rounds may share a step.

    The rounds become one run of instructions; a loop with a break or continue becomes `Iterations` instead.
    """
    bodies: list[Body] = []
    size = 0
    for body in _rounds(walker, instruction, scope):
        bodies.append(body)
        size += 1 + _size(body)
        if size > MAX_UNROLLED:
            raise walker.site(instruction, scope).error(
                f"written out it has more than {MAX_UNROLLED} instructions", "Use a while loop with a variable"
            )
    if any(_leaves(body) for body in bodies):
        walker.body.append(Iterations(tuple(bodies)))
    else:
        walker.body += [item for body in bodies for item in body]


def _rounds(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> Iterable[Body]:
    """Yields the body of each round; the bodies differ if an angle or a variable depends on the round."""
    values, parameter, block = instruction.operation.params
    if isinstance(parameter, Parameter) and parameter in block.parameters:
        for circuit in rounds(instruction.operation):
            yield body_of(walker, circuit, instruction, scope)
        return
    body = body_of(walker, block, instruction, scope) if len(values) else ()
    for value in values:
        if not isinstance(parameter, expr.Var):
            yield body
            continue
        variable = walker.variables.variable(parameter)
        if not 0 <= value <= variable.type.mask:
            raise walker.site(instruction, scope).error(
                f"{value} does not fit its variable {parameter.name!r} of type {parameter.type}",
                f"Give values from 0 to {variable.type.mask}, or a wider variable",
            )
        yield (Assign(variable, Constant(int(value), variable.type)), *body)


def _size(body: Body) -> int:
    """The number of instructions in ``body``, nested blocks included."""
    size = 0
    for item in body:
        if isinstance(item, Sequence):  # a list of operators
            size += len(item)
        else:
            size += 1 + sum(_size(arm) for arm in arms(item))
    return size


def _leaves(body: Body) -> bool:
    """Whether ``body`` has a `Break` or `Continue` of the loop around it."""
    for item in body:
        if isinstance(item, (Break, Continue)):
            return True
        if not isinstance(item, (While, Iterations)) and any(_leaves(arm) for arm in arms(item)):
            return True
    return False


def _box(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    walker.body += body_of(walker, instruction.operation.blocks[0], instruction, scope)


def _break(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    walker.body.append(Break())


def _continue(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    walker.body.append(Continue())


def _store(walker: Walker, instruction: CircuitInstruction, scope: Scope) -> None:
    operation = instruction.operation
    target = walker.variables.target(operation.lvalue, scope.clbit)
    walker.body.append(Assign(target, walker.variables.expression(operation.rvalue, scope.clbit)))


HANDLERS: dict[Any, Callable[[Any, CircuitInstruction, Any], None]] = {
    IfElseOp: _if_else,
    SwitchCaseOp: _switch,
    WhileLoopOp: _while,
    ForLoopOp: _for,
    BoxOp: _box,
    BreakLoopOp: _break,
    ContinueLoopOp: _continue,
    Store: _store,
}
