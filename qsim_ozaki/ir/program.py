"""Programs: operators with the measurements, resets, saves and control flow between them.

In: operators and classical expressions, nothing of Qiskit. Out: frozen dataclasses that later stages read.
It may not touch a state and may not choose anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from qsim_ozaki.ir.expressions import Expression, Index, Target, bits_assigned, bits_in
from qsim_ozaki.ir.ops import ComplexArray, Op


@dataclass(frozen=True, slots=True)
class Measure:
    """Projective measurement of ``qubits[i]`` into ``clbits[i]``, in that order (a later write to a bit wins)."""

    qubits: tuple[int, ...]
    clbits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Each of ``qubits`` is measured, the outcome forgotten, and set to 0."""

    qubits: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Initialize:
    """``qubits`` are reset, then hold ``vector`` (complex128 ``(2**k,)``, unit norm, ``qubits[0]`` is bit 0)."""

    qubits: tuple[int, ...]
    vector: ComplexArray


@dataclass(frozen=True, slots=True)
class Save:
    """Something of the state so far is saved under ``label``.

    Attributes:
        what: a key of `saving.SAVED_KINDS`.
        label: key in the result.
        qubits: index bit j is ``qubits[j]`` (-1: an idle qubit, always 0).
        form: ``"single"``; ``"average"`` or ``"accum"`` (the sum) over shots; or ``"list"``, an entry per shot.
        conditional: whether each value of the classical bits has an entry of its own.
        details: Pauli labels and real factors of an observable, masks of Pauli strings, or indices of amplitudes.
    """

    what: str
    label: str
    qubits: tuple[int, ...]
    form: str = "single"
    conditional: bool = False
    details: tuple[Any, ...] = ()


ORDERLESS = ("amplitudes", "amplitudes_squared", "expectation_value", "pauli_values")  # read wherever the qubits lie


@dataclass(frozen=True, slots=True)
class Assign:
    """``target`` takes the value of ``value``."""

    target: Target
    value: Expression


@dataclass(frozen=True, slots=True)
class Forget:
    """The variables in ``slots`` have no value until the next assignment: their scope begins."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Runs ``then`` where ``condition`` holds, else ``otherwise``."""

    condition: Expression
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """Runs the first of ``cases`` among whose values ``target`` is; None stands for any value."""

    target: Expression
    cases: tuple[tuple[tuple[int, ...] | None, Body], ...]


@dataclass(frozen=True, slots=True)
class While:
    """Runs ``body`` again and again as long as ``condition`` holds before it."""

    condition: Expression
    body: Body


@dataclass(frozen=True, slots=True)
class Iterations:
    """Runs ``bodies`` in order: a loop of known length, written out."""

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Leaves the innermost `While` or `Iterations`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Goes on with the next round of the innermost `While` or `Iterations`."""


Control: TypeAlias = Branch | Switch | While | Iterations
Boundary: TypeAlias = Measure | Reset | Initialize | Save | Assign | Forget | Control | Break | Continue
Instruction: TypeAlias = Op | Sequence[Op] | Boundary  # operators with nothing between them may stand together
Body: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A circuit with nothing of Qiskit left in it.

    Attributes:
        num_qubits: the qubits that some instruction touches, numbered densely from 0.
        num_clbits: classical bits of the circuit, all of them.
        body: instructions in order.
        active: ``active[q]`` is the circuit's index of program qubit q; all other circuit qubits stay 0.
        circuit_qubits: qubits of the circuit, idle ones included.
        output_qubits: program qubit that holds the user's qubit i at the end (-1: idle): it undoes a layout.
        name: the circuit's name, for messages.
        num_variables: slots of classical variables; none has a value at the start.
    """

    num_qubits: int
    num_clbits: int
    body: tuple[Instruction, ...]
    active: tuple[int, ...]
    circuit_qubits: int
    output_qubits: tuple[int, ...]
    name: str = ""
    num_variables: int = 0


def walk(body: Iterable[Instruction]) -> Iterator[Instruction]:
    """Every instruction of ``body``, those inside control flow included; operators that stand together stay so."""
    for instruction in body:
        yield instruction
        for arm in arms(instruction):
            yield from walk(arm)


def arms(instruction: Instruction) -> tuple[Body, ...]:
    """The bodies inside ``instruction``."""
    if isinstance(instruction, Branch):
        return instruction.then, instruction.otherwise
    if isinstance(instruction, Switch):
        return tuple(body for _, body in instruction.cases)
    if isinstance(instruction, While):
        return (instruction.body,)
    return instruction.bodies if isinstance(instruction, Iterations) else ()


def qubits_of(instruction: Instruction) -> tuple[int, ...]:
    """The qubits that ``instruction`` names itself, not those inside control flow."""
    return instruction.qubits if isinstance(instruction, (Op, Measure, Reset, Initialize, Save)) else ()


def bits_read(instruction: Instruction) -> set[int]:
    """The classical bits on whose value ``instruction`` itself depends, not what is inside control flow."""
    if isinstance(instruction, Assign):
        place = bits_in(instruction.target) if isinstance(instruction.target, Index) else set()
        return bits_in(instruction.value) | place
    if isinstance(instruction, (Branch, While)):
        return bits_in(instruction.condition)
    return bits_in(instruction.target) if isinstance(instruction, Switch) else set()


def bits_written(instruction: Instruction) -> set[int]:
    """The classical bits that ``instruction`` itself may change, not what is inside control flow."""
    if isinstance(instruction, Measure):
        return set(instruction.clbits)
    return bits_assigned(instruction.target) if isinstance(instruction, Assign) else set()
