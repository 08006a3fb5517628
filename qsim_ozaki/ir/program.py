"""Programs: operators with the measurements, resets, saves and control flow between them.

In: operators and classical expressions. Out: frozen dataclasses that later stages read. It may not use Qiskit, touch a
state or choose anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from qsim_ozaki.ir.expressions import Expression, Index, Target, bits_assigned, bits_in
from qsim_ozaki.ir.ops import ComplexArray, Op


@dataclass(frozen=True, slots=True)
class Measure:
    """A projective measurement of ``qubits[i]`` into ``clbits[i]`` in that order; the last write to a bit wins."""

    qubits: tuple[int, ...]
    clbits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """Measures every one of ``qubits``, forgets the outcome and sets the qubit to 0."""

    qubits: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Initialize:
    """Resets ``qubits`` and gives them ``vector`` (complex128 ``(2**k,)``, unit norm, ``qubits[0]`` is bit 0)."""

    qubits: tuple[int, ...]
    vector: ComplexArray


@dataclass(frozen=True, slots=True)
class Save:
    """Saves a property of the current state under ``label``.

    Attributes:
        what: the property, a key of `saving.SAVED_KINDS`.
        label: key in the result.
        qubits: index bit j is ``qubits[j]``; -1 stands for an idle qubit, which is always 0.
        form: ``"single"``; ``"average"`` or ``"accum"`` (the sum) over the shots; or ``"list"``, one entry per shot.
        conditional: whether there is a separate entry for each value of the classical bits.
        details: Pauli labels and real factors of an observable, masks of Pauli strings, or indices of amplitudes.
    """

    what: str
    label: str
    qubits: tuple[int, ...]
    form: str = "single"
    conditional: bool = False
    details: tuple[Any, ...] = ()


# These properties are read correctly in any order of the physical qubits.
ORDERLESS = ("amplitudes", "amplitudes_squared", "expectation_value", "pauli_values")


@dataclass(frozen=True, slots=True)
class Assign:
    """Assigns the value of ``value`` to ``target``."""

    target: Target
    value: Expression


@dataclass(frozen=True, slots=True)
class Forget:
    """Begins the scope of the variables in ``slots``: they have no value until the next assignment."""

    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """Runs ``then`` if ``condition`` holds, else ``otherwise``."""

    condition: Expression
    then: Body
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class Switch:
    """Runs the body of the first of ``cases`` whose values contain ``target``; None stands for any value."""

    target: Expression
    cases: tuple[tuple[tuple[int, ...] | None, Body], ...]


@dataclass(frozen=True, slots=True)
class While:
    """Runs ``body`` as long as ``condition``, checked before each round, holds."""

    condition: Expression
    body: Body


@dataclass(frozen=True, slots=True)
class Iterations:
    """Runs ``bodies`` in order: an unrolled loop of known length."""

    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Leaves the innermost `While` or `Iterations`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """Continues with the next round of the innermost `While` or `Iterations`."""


Control: TypeAlias = Branch | Switch | While | Iterations
Boundary: TypeAlias = Measure | Reset | Initialize | Save | Assign | Forget | Control | Break | Continue
Instruction: TypeAlias = Op | Sequence[Op] | Boundary  # consecutive operators may share one sequence
Body: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A circuit without any Qiskit object.

    Attributes:
        num_qubits: number of qubits that some instruction touches; they are numbered from 0 without gaps.
        num_clbits: number of all classical bits of the circuit.
        body: instructions in order.
        active: ``active[q]`` is the circuit's index of program qubit q; all other circuit qubits stay 0.
        circuit_qubits: number of qubits of the circuit, idle ones included.
        output_qubits: ``output_qubits[i]`` is the program qubit that holds the user's qubit i at the end (-1: idle);
            it undoes a layout.
        name: the circuit's name, for messages.
        num_variables: number of slots for classical variables; none has a value at the start.
        input_deviation: largest distance of the user's matrices from unitary ones (largest entry of |U^dagger U - 1|)
            and of the user's vectors from unit norm; the program has the nearest unitary matrices and unit vectors.
    """

    num_qubits: int
    num_clbits: int
    body: tuple[Instruction, ...]
    active: tuple[int, ...]
    circuit_qubits: int
    output_qubits: tuple[int, ...]
    name: str = ""
    num_variables: int = 0
    input_deviation: float = 0.0


def walk(body: Iterable[Instruction]) -> Iterator[Instruction]:
    """Yields every instruction of ``body`` and of the control flow in it; a sequence of operators stays one item."""
    for instruction in body:
        yield instruction
        for arm in arms(instruction):
            yield from walk(arm)


def arms(instruction: Instruction) -> tuple[Body, ...]:
    """Returns the bodies inside ``instruction``."""
    if isinstance(instruction, Branch):
        return instruction.then, instruction.otherwise
    if isinstance(instruction, Switch):
        return tuple(body for _, body in instruction.cases)
    if isinstance(instruction, While):
        return (instruction.body,)
    return instruction.bodies if isinstance(instruction, Iterations) else ()


def qubits_of(instruction: Instruction) -> tuple[int, ...]:
    """Returns the qubits that ``instruction`` itself names, without those of the bodies inside it."""
    return instruction.qubits if isinstance(instruction, (Op, Measure, Reset, Initialize, Save)) else ()


def bits_read(instruction: Instruction) -> set[int]:
    """Returns the classical bits on which ``instruction`` itself depends, without those of the bodies inside it."""
    if isinstance(instruction, Assign):
        target_bits = bits_in(instruction.target) if isinstance(instruction.target, Index) else set()
        return bits_in(instruction.value) | target_bits
    if isinstance(instruction, (Branch, While)):
        return bits_in(instruction.condition)
    return bits_in(instruction.target) if isinstance(instruction, Switch) else set()


def bits_written(instruction: Instruction) -> set[int]:
    """Returns the classical bits that ``instruction`` itself may change, without those of the bodies inside it."""
    if isinstance(instruction, Measure):
        return set(instruction.clbits)
    return bits_assigned(instruction.target) if isinstance(instruction, Assign) else set()
