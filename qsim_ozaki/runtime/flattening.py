"""Flattens a program into segments, boundaries and jumps, and defers measurements to the end where it is legal.

In: a `Program`. Out: an `Executable`. It may not run anything or depend on a device or a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from qsim_ozaki.errors import LoweringError, OptionError
from qsim_ozaki.ir import (
    Body,
    Branch,
    Initialize,
    Instruction,
    Iterations,
    Measure,
    Op,
    OpList,
    Program,
    Reset,
    Save,
    Switch,
    While,
    arms,
    bits_read,
    bits_written,
    qubits_of,
    walk,
)
from qsim_ozaki.runtime.bytecode import Assembler, CodeItem, Executable, Jump, Segment


def flatten(program: Program) -> Executable:
    """Flattens ``program``.

    A measurement is deferred to the end, so that all shots come from one state, where that changes no result: no later
    operator mixes its qubit, no later reset or initialisation touches it, no condition reads its bit, no state is saved
    later. Resets of qubits still |0>, and resets after which the qubit is not used, are dropped.

    Raises:
        LoweringError: two saved states have one label.
    """
    plain = _plain_code(program)
    if plain is not None:
        return plain
    body = tuple(_pruned(program.body))
    _check_labels(body, program.name)
    measures = any(bits_written(item) for item in walk(body))
    if not measures and not any(isinstance(item, Save) for item in walk(body)):
        body += (Save("statevector", "statevector", program.output_qubits),)
    body, reads = _defer(_without_unseen(body))
    writer = Assembler(restorable=tuple(range(program.num_qubits)))
    writer.write(body)
    writer.flush()
    items = tuple(writer.items)
    return Executable(program, items, reads, frozenset(_fresh_initializations(items, program.num_qubits)), measures)


def _plain_code(program: Program) -> Executable | None:
    """The code of a program of operators and then one measurement, as most are; None for any other program."""
    if len(program.body) != 2:
        return None
    ops, measure = program.body
    if not isinstance(ops, OpList) or not isinstance(measure, Measure) or ops.used_qubits().isdisjoint(measure.qubits):
        return None
    last = dict(zip(measure.clbits, measure.qubits, strict=True))  # of a bit that is written twice
    reads = tuple([(qubit, bit) for bit, qubit in last.items()])
    return Executable(program, (Segment(0, ops),), reads, frozenset(), measures=True)


def check_saves(code: Executable, shots: int | None) -> None:
    """Refuses a state that is saved after a collapse where the shots would leave different states.

    Args:
        code: the flattened program.
        shots: None stands for exact probabilities.

    Raises:
        OptionError: such a state is saved; the message names its label and the way out.
    """
    collapsed = False
    for index, item in enumerate(code.items):
        collapsed = collapsed or code.collapses_at(index)
        if not isinstance(item, Save):
            continue
        where = f"circuit {code.program.name!r}, shots={shots}: state {item.label!r}"
        if item.form == "list" and shots is None:
            raise OptionError(f"{where} is saved once per shot. Give a number of shots.")
        if item.form == "single" and not item.conditional and collapsed and shots != 1:
            explicit = code.measures or len(code.saves) > 1
            way_out = (
                f"Save {item.label!r} before the first one, or with pershot=True" if explicit else "Add measurements"
            )
            raise OptionError(
                f"{where} comes after a measurement or reset, so each shot leaves its own. {way_out}, or run with "
                f"shots=1 for one collapsed state."
            )


def _pruned(body: Body) -> Iterator[Instruction]:
    """``body`` without branches and switches whose arms are all empty; an empty loop may never end, so it stays."""
    for item in body:
        if isinstance(item, Branch):
            item = replace(item, then=tuple(_pruned(item.then)), otherwise=tuple(_pruned(item.otherwise)))
        elif isinstance(item, Switch):
            item = replace(item, cases=tuple((values, tuple(_pruned(case))) for values, case in item.cases))
        if not isinstance(item, (Branch, Switch)) or any(arms(item)):
            yield item


def _check_labels(body: Body, name: str) -> set[str]:
    """The labels saved in ``body``; the arms of a branch may share one, for only one of them runs."""
    seen: set[str] = set()
    for item in body:
        new = {item.label} if isinstance(item, Save) else set().union(*(_check_labels(arm, name) for arm in arms(item)))
        inside = [save for arm in arms(item) for save in walk(arm) if isinstance(save, Save) and save.form == "list"]
        if inside:
            raise LoweringError(
                f"circuit {name!r} saves {inside[0].label!r} for each shot inside control flow, which not every shot "
                f"passes once. Save it outside, or without pershot."
            )
        if new and isinstance(item, (While, Iterations)):
            raise LoweringError(
                f"circuit {name!r} saves {min(new)!r} inside a loop, once in each round. Save it after the loop."
            )
        if twice := seen & new:
            raise LoweringError(
                f"circuit {name!r} saves two states under label {min(twice)!r}; the second would hide the first. "
                f"Give each save its own label, and save after a loop, not in it."
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
    return {qubit for arm in arms(item) for inner in arm for qubit in _changed_qubits(inner)}


def _used_qubits(item: Instruction) -> set[int]:
    """Qubits whose value before ``item`` may matter to it."""
    used: set[int] = set()
    for inner in walk((item,)):
        used |= OpList.of(inner).used_qubits() if isinstance(inner, Sequence) else set(qubits_of(inner))
    return used - {-1}


def _without_unseen(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """``body`` without resets of qubits still |0>, and without resets and operators that no later result depends on."""
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
    saved = any(isinstance(item, Save) for item in walk(body))
    backward: list[Instruction] = []
    for item in reversed(forward):
        if isinstance(item, Sequence) and not saved and not used & _used_qubits(item):
            continue
        if isinstance(item, Reset):
            item = Reset(tuple(qubit for qubit in item.qubits if qubit in used))
            if not item.qubits:
                continue
        used |= _used_qubits(item)
        backward.append(item)
    return tuple(reversed(backward))


@dataclass(slots=True)
class _Later:
    """The effects of all instructions after the current one that may keep a measurement from being deferred."""

    changed: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    maybe_written: set[int] = field(default_factory=set)
    saved: bool = False

    def add(self, item: Instruction) -> None:
        self.changed |= _changed_qubits(item)
        for inner in walk((item,)):
            self.read |= bits_read(inner)
            self.maybe_written |= bits_written(inner)
            self.saved = self.saved or isinstance(inner, Save)


def _defer(body: tuple[Instruction, ...]) -> tuple[tuple[Instruction, ...], tuple[tuple[int, int], ...]]:
    """``body`` without the measurements that can be deferred, and these as pairs (qubit, bit)."""
    later = _Later()
    remaining: list[Instruction] = []
    reads: list[tuple[int, int]] = []
    for item in reversed(body):
        if not isinstance(item, Measure):
            later.add(item)
            remaining.append(item)
            continue
        not_deferred: list[tuple[int, int]] = []
        for qubit, bit in zip(reversed(item.qubits), reversed(item.clbits), strict=True):
            if later.saved or qubit in later.changed or bit in later.read or bit in later.maybe_written:
                not_deferred.append((qubit, bit))
            elif bit not in later.written:
                reads.append((qubit, bit))
            later.written.add(bit)
        if not_deferred:
            qubits, bits = zip(*reversed(not_deferred), strict=True)
            remaining.append(Measure(qubits, bits))
    return tuple(reversed(remaining)), tuple(reversed(reads))


def _fresh_initializations(items: tuple[CodeItem, ...], num_qubits: int) -> Iterator[int]:
    """Indices of the initialisations that collapse nothing, whichever jumps are taken."""
    loops = [(item.target, index) for index, item in enumerate(items) if isinstance(item, Jump) and item.target < index]
    touched: set[int] = set()
    for index, item in enumerate(items):
        if isinstance(item, Initialize):
            again = any(start <= index <= end for start, end in loops)
            if len(item.qubits) == num_qubits or not (again or touched & set(item.qubits)):
                yield index
            touched |= set(item.qubits)
        if isinstance(item, Segment):
            touched |= item.ops.changed_qubits()
