"""Writes control flow out as circuits: the rounds of for loops, and blocks with parameters.

In: Qiskit's control-flow instructions. Out: circuits in the order in which they run. It may not lower a circuit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from qiskit import QuantumCircuit
from qiskit.circuit import BoxOp, ControlFlowOp, ForLoopOp, Parameter
from qiskit.exceptions import QiskitError

from qsim_ozaki.errors import LoweringError

MAX_UNROLLED = 1_000_000  # instructions of an unrolled for loop: some 100 MB if all of them differ
NOT_STRAIGHT = frozenset({"break_loop", "continue_loop", "store"})


def free_parameters(operation: ControlFlowOp) -> set[Parameter]:
    """Returns the parameters that must be bound before ``operation`` runs; a loop's own one is none of them."""
    parameters = {parameter for block in operation.blocks for parameter in block.parameters}
    if isinstance(operation, ForLoopOp):
        parameters.discard(operation.params[1])
    return parameters


def rounds(loop: ForLoopOp) -> Iterator[QuantumCircuit]:
    """Yields the block of each round of a for loop, at the round's value of the loop's parameter.

    Raises:
        LoweringError: an angle is not a finite real number at some value.
    """
    values, parameter, block = loop.params
    if not isinstance(parameter, Parameter) or parameter not in block.parameters:
        yield from repeat(block, len(values))
        return
    for value in values:
        try:
            yield block.assign_parameters({parameter: value})
        except (QiskitError, ArithmeticError, TypeError, ValueError, RuntimeError) as error:
            raise LoweringError(
                f"an angle of a for loop is not a finite real number at {parameter.name} = {value}: {error}. "
                f"Give values at which it is finite."
            ) from None


def straight_blocks(operation: ControlFlowOp) -> Sequence[QuantumCircuit] | None:
    """Returns the circuits that ``operation`` runs one after the other, None if that depends on classical values.

    Only for loops and boxes are written out, and only up to `MAX_UNROLLED` instructions.
    """
    if not isinstance(operation, (BoxOp, ForLoopOp)) or not _is_straight(operation):
        return None
    if not isinstance(operation, ForLoopOp):
        return list(operation.blocks)
    values, _, block = operation.params
    return list(rounds(operation)) if len(values) * (1 + len(block.data)) <= MAX_UNROLLED else None


def _is_straight(operation: Any) -> bool:
    """Whether the blocks of ``operation`` have no variable, no store, no branch and no jump."""
    for block in operation.blocks:
        if block.num_vars or block.num_stretches:
            return False
        for instruction in block.data:
            if instruction.name in NOT_STRAIGHT:
                return False
            inner = instruction.operation if instruction.is_control_flow() else None
            if inner is not None and not (isinstance(inner, (BoxOp, ForLoopOp)) and _is_straight(inner)):
                return False
    return True
