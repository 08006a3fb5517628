"""The intermediate representation: operators, boundaries, steps, programs.

In: nothing of Qiskit, only tuples and NumPy arrays. Out: frozen dataclasses that every later stage reads.
It may not touch a state and may not choose anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.expressions import Expression, Index, Target, bits_assigned, bits_in

ComplexArray: TypeAlias = NDArray[np.complex128]
IndexArray: TypeAlias = NDArray[np.int64]


class Kind(Enum):
    """The strongest structure that is true of an operator; it says which kernel serves it."""

    DIAGONAL = auto()  # data: (2**k,) factors; k = 0 is a global phase
    PERMUTATION = auto()  # data: permutation[j] is where amplitude j goes, phases[j] its factor
    HADAMARD = auto()  # no data: H on each target
    UNITARY = auto()  # data: (2**k, 2**k) row-major matrix


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operator on a few qubits: ``data`` on ``targets`` where the ``controls`` read ``ctrl_state``.

    Attributes:
        kind: which structure ``data`` has.
        targets: k distinct qubits; ``targets[0]`` is bit 0 of the matrix index.
        data: complex128; UNITARY ``(2**k, 2**k)``, DIAGONAL ``(2**k,)``, PERMUTATION ``(2**k,)`` phases,
            HADAMARD empty.
        controls: distinct qubits, none of them a target.
        ctrl_state: bit b is the value at which ``controls[b]`` is satisfied.
        permutation: int64 ``(2**k,)``, PERMUTATION only: amplitude j goes to ``permutation[j]``, times ``data[j]``.
        name: the gate's name, for plans and messages only.
    """

    kind: Kind
    targets: tuple[int, ...]
    data: ComplexArray
    controls: tuple[int, ...] = ()
    ctrl_state: int = 0
    permutation: IndexArray | None = None
    name: str = ""

    @property
    def qubits(self) -> tuple[int, ...]:
        """Targets, then controls."""
        return self.targets + self.controls

    @property
    def mixed_qubits(self) -> tuple[int, ...]:
        """Qubits whose value the operator changes: a tile must contain them (none for a diagonal)."""
        return () if self.kind is Kind.DIAGONAL else self.targets

    def matrix(self) -> ComplexArray:
        """The ``(2**k, 2**k)`` matrix on the targets alone, controls not included."""
        size = 1 << len(self.targets)
        if self.kind is Kind.UNITARY:
            return self.data
        if self.kind is Kind.DIAGONAL:
            return np.asarray(np.diag(self.data), complex)
        if self.kind is Kind.PERMUTATION:
            out = np.zeros((size, size), complex)
            out[self.permutation, np.arange(size)] = self.data
            return out
        out = np.ones((1, 1), complex)
        for _ in self.targets:
            out = np.asarray(np.kron(HADAMARD_MATRIX, out), complex)
        return out


HADAMARD_MATRIX: ComplexArray = np.array([[1, 1], [1, -1]], complex) / np.sqrt(2)
CORE = "core"  # name of a two-qubit unitary whose matrix has two 2x2 blocks, on {00, 11} and on {01, 10}
EMPTY: ComplexArray = np.empty(0, complex)
for _constant in (HADAMARD_MATRIX, EMPTY):
    _constant.setflags(write=False)


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


class Path(Enum):
    """Which arithmetic a dense block uses."""

    NATIVE = "native"
    OZAKI = "ozaki"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a step is expected to cost on one device, and which of its limits bounds it."""

    seconds: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    passes: float = 0.0
    bound_by: str = "launch"


@dataclass(frozen=True, slots=True, eq=False)
class TilePass:
    """One read and one write of the state: every op applied inside tiles of ``2**len(qubits)`` amplitudes.

    Attributes:
        qubits: ascending; every op's mixed qubits are among them.
        ops: in order.
        zero_qubits: qubits outside the tile that still are |0>: tiles where one of them reads 1 hold only zeros.
        one_qubits: qubits outside the tile that still are |1>; an engine may leave out what holds only zeros.
        swaps: pairs of ``qubits`` that change places at the store, which costs nothing there; no qubit twice.
        fresh_qubits: qubits of the tile that are |0>: an engine need not read what holds only zeros.
        row: it differs from an earlier plan's in numbers alone, as more may: it is likely to run once.
    """

    qubits: tuple[int, ...]
    ops: Sequence[Op]
    zero_qubits: tuple[int, ...] = ()
    one_qubits: tuple[int, ...] = ()
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    swaps: tuple[tuple[int, int], ...] = ()
    fresh_qubits: tuple[int, ...] = ()
    row: bool = False


@dataclass(frozen=True, slots=True)
class HadamardPass:
    """H on each of ``qubits`` by a fast Walsh-Hadamard transform, scaled by ``2**(-m/2)`` at the last store."""

    qubits: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DenseBlock:
    """One ``2**k`` x ``2**k`` matrix on arbitrary targets, by a matrix product.

    Attributes:
        op: its matrix, targets and controls.
        path: which arithmetic.
        num_moduli: of the emulated product.
        zero_qubits: as in `TilePass`.
        one_qubits: as in `TilePass`.
        error_bound: proved, of the emulated product: largest error of an entry over its column's norm.
    """

    op: Op
    path: Path = Path.NATIVE
    num_moduli: int = 0
    zero_qubits: tuple[int, ...] = ()
    one_qubits: tuple[int, ...] = ()
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    error_bound: float = 0.0


@dataclass(frozen=True, slots=True)
class Relabel:
    """Qubits change names: what was on qubit q is on ``permutation[q]`` from here on. No data moves."""

    permutation: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Prepare:
    """Writes a product state: qubit q holds ``factors[q, 0]|0> + factors[q, 1]|1>``.

    Attributes:
        factors: complex128 ``(num_qubits, 2)``.
        alone: it is |0...0> but for a factor, and no step that follows reads amplitudes that are known to be 0: an
            engine whose passes keep to their ``zero_qubits`` and ``fresh_qubits`` need write no other amplitude.
    """

    factors: ComplexArray
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """All of a small circuit: its operators as they come, on a state that stays in the cache, other rows beside it."""

    qubits: tuple[int, ...]
    ops: Sequence[Op]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


Step: TypeAlias = TilePass | HadamardPass | DenseBlock | Relabel | Prepare | Stack


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
