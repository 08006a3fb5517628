"""A program's body as a flat list of segments, boundaries and jumps, with the measurements that can wait for the end.

In: a `Program`. Out: `Code`. It runs nothing and knows neither device nor state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from qsim_ozaki.errors import LoweringError, OptionError
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Branch, Condition, Initialize, Instruction, Measure, Op, Program, Reset, Save

MAX_JOINT_QUBITS = 8  # measured at once: 256 probabilities per collapse, and a split costs no more than that


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Operators with no boundary between them: the planner's unit.

    Attributes:
        index: its place among the segments, a key for cached plans.
        ops: in order, on program qubits.
        restore_order: a saved state follows, so the plan had better end in program order.
    """

    index: int
    ops: OpList
    restore_order: bool = False


@dataclass(frozen=True, slots=True)
class Jump:
    """Goes on at ``target``, unless there is a ``condition`` and it holds."""

    target: int
    condition: Condition | None = None


CodeItem: TypeAlias = Segment | Measure | Reset | Initialize | Save | Jump


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A program ready to run.

    Attributes:
        program: where it came from.
        items: in order; jumps go forward.
        reads: (program qubit, classical bit) of the measurements that are sampled from the final state.
        fresh: indices of the `Initialize` items whose qubits are still |0>, so that nothing collapses.
        measures: whether the program measures at all.
    """

    program: Program
    items: tuple[CodeItem, ...]
    reads: tuple[tuple[int, int], ...]
    fresh: frozenset[int]
    measures: bool

    @property
    def num_qubits(self) -> int:
        """Width of the state; a program without qubits runs on one that stays |0>."""
        return max(1, self.program.num_qubits)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """In order."""
        return tuple(item for item in self.items if isinstance(item, Segment))

    @property
    def saves(self) -> tuple[Save, ...]:
        """In order."""
        return tuple(item for item in self.items if isinstance(item, Save))

    def collapses_at(self, index: int) -> bool:
        """Whether the item at ``index`` draws an outcome from the state."""
        item = self.items[index]
        return isinstance(item, (Measure, Reset)) or (isinstance(item, Initialize) and index not in self.fresh)


def link(program: Program) -> Code:
    """Flattens ``program``.

    A measurement waits for the end, so that all shots come from one state, if nothing later can tell: no later operator
    mixes its qubit, no later reset or initialisation touches it, no condition reads its bit, no state is saved later.
    Resets of qubits still |0> and resets after which the qubit is not used are dropped.

    Raises:
        LoweringError: two saved states have one label.
    """
    body = tuple(_pruned(program.body))
    _check_labels(body, program.name)
    measures = any(isinstance(item, Measure) for item in _walk(body))
    if not measures and not any(isinstance(item, Save) for item in _walk(body)):
        body += (Save("statevector", "statevector", program.output_qubits),)
    body, reads = _defer(_without_idle_resets(body))
    writer = _Writer(restorable=tuple(range(program.num_qubits)))
    writer.write(body)
    writer.flush()
    items = tuple(writer.items)
    return Code(program, items, reads, frozenset(_fresh_initializations(items)), measures)


def check_saves(code: Code, shots: int) -> None:
    """Refuses a state that is saved after a collapse where more than one shot would each leave another state.

    Raises:
        OptionError: with the label and the way out.
    """
    collapsed = False
    for index, item in enumerate(code.items):
        collapsed = collapsed or code.collapses_at(index)
        if isinstance(item, Save) and collapsed and shots > 1:
            explicit = code.measures or len(code.saves) > 1
            way_out = f"Save {item.label!r} before the first one" if explicit else "Add measurements"
            raise OptionError(
                f"circuit {code.program.name!r}, shots={shots}: state {item.label!r} comes after a measurement "
                f"or reset, so each shot leaves its own. {way_out}, or run with shots=1 for one collapsed state."
            )


def _walk(body: Iterable[Instruction]) -> Iterator[Instruction]:
    """Every instruction, those inside branches included; operators that stand together stay so."""
    for item in body:
        yield item
        if isinstance(item, Branch):
            yield from _walk(item.then)
            yield from _walk(item.otherwise)


def _pruned(body: Iterable[Instruction]) -> Iterator[Instruction]:
    """``body`` without branches that do nothing either way."""
    for item in body:
        if isinstance(item, Branch):
            item = replace(item, then=tuple(_pruned(item.then)), otherwise=tuple(_pruned(item.otherwise)))
            if not item.then and not item.otherwise:
                continue
        yield item


def _check_labels(body: Iterable[Instruction], name: str) -> set[str]:
    """The labels saved in ``body``; the two arms of a branch may share one, for only one of them runs."""
    seen: set[str] = set()
    for item in body:
        new: set[str] = set()
        if isinstance(item, Save):
            new = {item.label}
        elif isinstance(item, Branch):
            new = _check_labels(item.then, name) | _check_labels(item.otherwise, name)
        if twice := seen & new:
            raise LoweringError(
                f"circuit {name!r} saves two states under label {min(twice)!r}; the second would hide the first. "
                f"Give each save its own label."
            )
        seen |= new
    return seen


def _changed_qubits(item: Instruction) -> set[int]:
    """Qubits that may leave |0> or lose their measured value by ``item``."""
    if isinstance(item, Op):
        return set(item.mixed_qubits)
    if isinstance(item, Sequence):
        return OpList.of(item).changed_qubits()
    if isinstance(item, (Reset, Initialize)):
        return set(item.qubits)
    if isinstance(item, Branch):
        return {qubit for inner in _walk(item.then + item.otherwise) for qubit in _changed_qubits(inner)}
    return set()


def _used_qubits(item: Instruction) -> set[int]:
    """Qubits whose value before ``item`` may matter to it."""
    if isinstance(item, Branch):
        return {qubit for inner in _walk(item.then + item.otherwise) for qubit in _used_qubits(inner)}
    if isinstance(item, Sequence):
        return OpList.of(item).used_qubits()
    return {qubit for qubit in item.qubits if qubit >= 0}


def _without_idle_resets(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """``body`` without the resets of qubits still |0> and of qubits that nothing uses afterwards."""
    touched: set[int] = set()
    forward: list[Instruction] = []
    for item in body:
        if isinstance(item, Reset):
            item = Reset(tuple(qubit for qubit in item.qubits if qubit in touched))
            touched -= set(item.qubits)
        else:
            touched |= _changed_qubits(item)
        forward.append(item)
    used: set[int] = set()
    backward: list[Instruction] = []
    for item in reversed(forward):
        if isinstance(item, Reset):
            item = Reset(tuple(qubit for qubit in item.qubits if qubit in used))
            if not item.qubits:
                continue
        used |= _used_qubits(item)
        backward.append(item)
    return tuple(reversed(backward))


@dataclass(slots=True)
class _Later:
    """What happens after the current instruction, as a measurement that might wait sees it."""

    changed: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    maybe_written: set[int] = field(default_factory=set)
    saved: bool = False

    def add(self, item: Instruction) -> None:
        self.changed |= _changed_qubits(item)
        for inner in _walk((item,)):
            if isinstance(inner, Branch):
                self.read |= set(inner.condition.clbits)
            elif isinstance(inner, Measure):
                self.maybe_written |= set(inner.clbits)
            elif isinstance(inner, Save):
                self.saved = True


def _defer(body: tuple[Instruction, ...]) -> tuple[tuple[Instruction, ...], tuple[tuple[int, int], ...]]:
    """``body`` without the measurements that can wait, and those as (qubit, bit)."""
    later = _Later()
    kept: list[Instruction] = []
    reads: list[tuple[int, int]] = []
    for item in reversed(body):
        if not isinstance(item, Measure):
            later.add(item)
            kept.append(item)
            continue
        now: list[tuple[int, int]] = []
        for qubit, bit in zip(reversed(item.qubits), reversed(item.clbits), strict=True):
            if later.saved or qubit in later.changed or bit in later.read or bit in later.maybe_written:
                now.append((qubit, bit))
            elif bit not in later.written:
                reads.append((qubit, bit))
            later.written.add(bit)
        if now:
            qubits, bits = zip(*reversed(now), strict=True)
            kept.append(Measure(qubits, bits))
    return tuple(reversed(kept)), tuple(reversed(reads))


def _fresh_initializations(items: tuple[CodeItem, ...]) -> Iterator[int]:
    """Indices of the initialisations of qubits that are still |0>, whichever jumps were taken."""
    touched: set[int] = set()
    for index, item in enumerate(items):
        if isinstance(item, Initialize) and not touched & set(item.qubits):
            yield index
        if isinstance(item, Segment):
            touched |= item.ops.changed_qubits()
        if isinstance(item, Initialize):
            touched |= set(item.qubits)


@dataclass(slots=True)
class _Writer:
    """Writes instructions as code items; operators gather until a boundary comes."""

    restorable: tuple[int, ...]  # a save in this order wants the segment before it to end in program order
    items: list[CodeItem] = field(default_factory=list)
    ops: OpList = field(default_factory=OpList)
    num_segments: int = 0

    def flush(self, restore_order: bool = False) -> None:
        if self.ops:
            self.items.append(Segment(self.num_segments, self.ops, restore_order))
            self.num_segments += 1
            self.ops = OpList()

    def write(self, body: Iterable[Instruction]) -> None:
        for item in body:
            if isinstance(item, Op):
                self.ops.append(item)
                continue
            if isinstance(item, Sequence):
                self.ops.extend(OpList.of(item))
                continue
            in_order = isinstance(item, Save) and tuple(q for q in item.qubits if q >= 0) == self.restorable
            self.flush(in_order)
            if isinstance(item, Branch):
                self._write_branch(item)
            elif isinstance(item, Measure):
                for start in range(0, len(item.qubits), MAX_JOINT_QUBITS):
                    part = slice(start, start + MAX_JOINT_QUBITS)
                    self.items.append(Measure(item.qubits[part], item.clbits[part]))
            elif isinstance(item, Reset):
                for start in range(0, len(item.qubits), MAX_JOINT_QUBITS):
                    self.items.append(Reset(item.qubits[start : start + MAX_JOINT_QUBITS]))
            else:
                self.items.append(item)

    def _write_branch(self, branch: Branch) -> None:
        skip = len(self.items)
        self.items.append(Jump(0))  # its target is known once the arm is written
        self.write(branch.then)
        self.flush()
        if branch.otherwise:
            leave = len(self.items)
            self.items.append(Jump(0))
            self.items[skip] = Jump(len(self.items), branch.condition)
            self.write(branch.otherwise)
            self.flush()
            self.items[leave] = Jump(len(self.items))
        else:
            self.items[skip] = Jump(len(self.items), branch.condition)
