"""Compiles programs on few qubits for the extension, which follows all their histories without a Python step each.

In: an `Executable`, plans, an engine. Out: a `Compiled` program, and its leaves and tallies when it runs. It may not
change a result: the histories, their random numbers and their arithmetic are those of the executor, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.engines import Engine, HostProgram
from qsim_ozaki.errors import ProgramError
from qsim_ozaki.ir import Assign, Bits, Expression, Measure, Relabel, Reset, Step, bits_in
from qsim_ozaki.planner import Plan
from qsim_ozaki.runtime import readout, sampling
from qsim_ozaki.runtime.bytecode import CodeItem, Dispatch, Executable, Jump, Segment
from qsim_ozaki.runtime.classical import Memory, evaluate
from qsim_ozaki.runtime.history import Leaf, Leaves
from qsim_ozaki.runtime.placement import Part, Placement, Position
from qsim_ozaki.runtime.readout import NEGLIGIBLE, NORM_DRIFT, Request, places_shown
from qsim_ozaki.runtime.sampling import Outcomes

MAX_COMPILED_QUBITS = 13  # two states of 128 KiB stay in a second-level cache: one thread follows a history alone
MAX_TABLE_READS = 10  # classical bits that a condition may read: a table of 1024 values takes some milliseconds
MAX_CONTENT_BYTES = 1 << 14  # of a segment's operators, to be compared with those of others
MAX_NODES = 1 << 20  # of a program: some 100 MiB
STATES_PER_THREAD = 128  # at most 60 histories that part, and as many states for histories to come

NORM, ROUNDS, BRANCHES, OUTCOMES = range(4)  # reasons of a `Failure`, as the extension numbers them

# (next code item, position, whether the state is still |0...0>)
Entry = tuple[int, Position, bool]


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason for which a run cannot go on.

    Attributes:
        reason: `NORM`, `ROUNDS`, `BRANCHES` or `OUTCOMES`.
        qubits: the program qubits of the measurement, for `NORM`.
        norm: the norm of the state, for `NORM`.
    """

    reason: int
    qubits: tuple[int, ...]
    norm: float


@dataclass(slots=True)
class Done:
    """The results of a run.

    Attributes:
        leaves: the ends of all histories.
        histories: their number.
        steps: pairs (steps of a part, how often it ran).
        resets: (qubits set from 1 to 0, their position, how often).
    """

    leaves: Leaves
    histories: int
    steps: list[tuple[tuple[Step, ...], int]]
    resets: list[tuple[tuple[int, ...], Position, int]]


class _NotCompilableError(Exception):
    """An item has no node."""


def is_compilable(code: Executable, request: Request, threads: int) -> bool:
    """Whether the items of ``code`` may have nodes: few qubits, a collapse, and nothing but bits to remember."""
    items = (Segment, Measure, Reset, Assign, Jump, Dispatch)
    if code.num_qubits > MAX_COMPILED_QUBITS or not all(isinstance(item, items) for item in code.items):
        return False
    if request.shots is not None and request.shots > sampling.SHOTS_PER_BLOCK:
        return False
    if request.max_states < STATES_PER_THREAD * threads:
        return False
    return any(code.collapses_at(index) for index in range(len(code.items)))


@dataclass(slots=True, eq=False)
class Compiled:
    """A program of the extension.

    Attributes:
        program: its nodes.
        steps: the steps of the part that begins at a node.
        collapses: qubits and position of the measurement or reset at a node.
    """

    program: _native.HistoryProgram
    steps: dict[int, tuple[Step, ...]] = field(default_factory=dict)
    collapses: dict[int, tuple[tuple[int, ...], Position]] = field(default_factory=dict)

    def run(self, request: Request, threads: int, limits: tuple[int, int], check: Callable[[], None]) -> Done | Failure:
        """Follows all histories.

        Args:
            request: the shots, the seed and what is shown.
            threads: the number of threads.
            limits: rounds of loops of one history, and histories with exact probabilities.
            check: called every 20 ms; an exception of it ends the run.
        """
        precision = request.plan_options.precision
        result = self.program.run(
            request.shots or 0,
            request.memory and request.shots is not None,
            sampling.seed_words(request.seed),
            sampling.seed_words(request.index),
            threads,
            [NORM_DRIFT[precision], NEGLIGIBLE[precision]],
            [*limits, readout.MAX_EXACT_OUTCOMES],
            check,
        )
        if len(result) == 3:
            reason, node, norm = result
            qubits, _ = self.collapses.get(node, ((), ()))
            return Failure(reason, qubits, norm)
        labels, values, order, histories, neglected, visits, resets = result
        leaves = Leaves(neglected=neglected)
        if request.shots is None:
            leaves.add_exact(labels, values.tolist())
        else:
            outcomes = Outcomes(labels, values, order if request.memory else None)
            leaves.sampled.append(Leaf((request.index,), request.shots, [outcomes], (), histories))
        steps = [(steps, visits[node]) for node, steps in self.steps.items() if visits[node]]
        return Done(leaves, histories, steps, self._flips(resets))

    def _flips(self, resets: list[list[int]]) -> list[tuple[tuple[int, ...], Position, int]]:
        flips = []
        for node, counts in enumerate(resets):
            for outcome, count in enumerate(counts):
                qubits, position = self.collapses[node]
                ones = tuple(qubit for index, qubit in enumerate(qubits) if outcome >> index & 1)
                if ones and count:
                    flips.append((ones, position, count))
        return flips


class Compiler:
    """Writes the nodes of a program; a code item has one entry per position of the qubits that it starts from."""

    def __init__(self, code: Executable, engine: Engine, request: Request, plan: Callable[[Part], Plan]) -> None:
        self.code = code
        self.engine = engine
        self.request = request
        self.plan = plan
        precision = request.plan_options.precision
        self.program = _native.HistoryProgram(code.num_qubits, precision == "single", code.program.num_clbits)
        self.compiled = Compiled(self.program)
        self.entries: dict[Entry, int] = {}
        self.pending: list[Entry] = []
        self.programs: dict[tuple[int, ...], tuple[Plan, list[HostProgram]]] = {}
        self.plans: dict[tuple[bytes, Position, bool, bool], Plan] = {}
        self.num_nodes = 0

    def compile(self) -> Compiled | None:
        """The program; None where an item has no node: its condition reads too much, or its product is emulated."""
        try:
            self._entry(0, Placement(self.code.num_qubits))
            while self.pending:
                index, position, fresh = self.pending.pop()
                placement = Placement(0)
                placement.position, placement.fresh = position, fresh
                self._write(self.entries[index, position, fresh], index, placement)
        except _NotCompilableError:
            return None
        return self.compiled

    def _entry(self, index: int, placement: Placement) -> int:
        """The node at which the item ``index`` begins from ``placement``: one that only goes on to the item's nodes."""
        key = (index, placement.position, placement.fresh)
        if key not in self.entries:
            self.entries[key] = self._counted(self.program.add_choose([], [False]))
            self.pending.append(key)
        return self.entries[key]

    def _counted(self, node: int) -> int:
        self.num_nodes += 1
        if self.num_nodes > MAX_NODES:
            raise _NotCompilableError
        return node

    def _write(self, entry: int, index: int, placement: Placement) -> None:
        """Writes the nodes of the item ``index`` behind the node ``entry``."""
        if index == len(self.code.items):
            self.program.set_target(entry, 0, self._end(placement))
            return
        item = self.code.items[index]
        if isinstance(item, (Jump, Dispatch)):
            self._write_jump(entry, index, item, placement)
            return
        nodes = self._nodes(entry, item, placement)
        following = self._entry(index + 1, placement)
        if not nodes:
            self.program.set_target(entry, 0, following)
            return
        self.program.set_target(entry, 0, nodes[0])
        for node, successor in zip(nodes, (*nodes[1:], following), strict=True):
            self.program.set_next(node, successor)

    def _nodes(self, entry: int, item: CodeItem, placement: Placement) -> list[int]:
        """The nodes of an item that does not jump; moves ``placement`` past it."""
        if isinstance(item, Segment):
            return self._segment(entry, item, placement)
        if isinstance(item, Measure):
            qubits = tuple(dict.fromkeys(item.qubits))
            places = [placement.position[qubit] for qubit in qubits]
            clbits = [(qubits.index(qubit), bit) for qubit, bit in zip(item.qubits, item.clbits, strict=True)]
            node = self._counted(self.program.add_measure(places, clbits))
            self.compiled.collapses[node] = qubits, placement.position
            placement.touch()
            return [node]
        if isinstance(item, Reset):
            places = [placement.position[qubit] for qubit in item.qubits]
            node = self._counted(self.program.add_reset(places))
            self.compiled.collapses[node] = item.qubits, placement.position
            placement.touch()
            return [node]
        assert isinstance(item, Assign), f"{item} has been refused"
        if not isinstance(item.target, Bits) or len(item.target.clbits) > 64:
            raise _NotCompilableError
        bits, values = self._table(item.value)
        words = [int(value) & (1 << len(item.target.clbits)) - 1 for value in values]  # type: ignore[call-overload]
        return [self._counted(self.program.add_assign(bits, words, list(item.target.clbits)))]

    def _segment(self, entry: int, segment: Segment, placement: Placement) -> list[int]:
        part = placement.segment(segment)
        plan = self._segment_plan(part, segment)
        moving = [step for step in plan.steps if not isinstance(step, Relabel)]
        key = tuple(id(step) for step in moving)  # the plan that is kept beside them keeps the steps alive
        if key not in self.programs:
            precision = self.request.plan_options.precision
            programs = self.engine.host_programs(self.code.num_qubits, precision, moving)
            if programs is None:
                raise _NotCompilableError
            self.programs[key] = plan, programs
        nodes = []
        for program in self.programs[key][1]:
            if isinstance(program, np.ndarray):
                nodes.append(self._counted(self.program.add_prepare(program.reshape(-1))))
            else:
                nodes.append(self._counted(self.program.add_pass(program)))
        self.compiled.steps[entry] = plan.steps
        placement.done(part, plan.final_position)
        return nodes

    def _segment_plan(self, part: Part, segment: Segment) -> Plan:
        """The plan of ``segment``; equal segments at one position, as loops have them, share it."""
        content = segment.ops.content(MAX_CONTENT_BYTES)
        if content is None:
            return self.plan(part)
        key = (content, part.position, part.from_zero, part.restore_order)
        if key not in self.plans:
            self.plans[key] = self.plan(part)
        return self.plans[key]

    def _write_jump(self, entry: int, index: int, item: Jump | Dispatch, placement: Placement) -> None:
        if isinstance(item, Dispatch):
            bits, values = self._table(item.expression)
            targets = [item.table.get(int(value), item.default) for value in values]  # type: ignore[call-overload]
            back = [False] * len(targets)
        else:
            bits, values = ([], [False]) if item.condition is None else self._table(item.condition)
            targets = [index + 1 if value else item.target for value in values]
            back = [target <= index for target in targets]
        node = self._counted(self.program.add_choose(bits, back))
        for value, target in enumerate(targets):
            self.program.set_target(node, value, self._entry(target, placement))
        self.program.set_target(entry, 0, node)

    def _table(self, expression: Expression) -> tuple[list[int], list[object]]:
        """The classical bits that ``expression`` reads, and its value for each of their values."""
        bits = sorted(bits_in(expression))
        if len(bits) > MAX_TABLE_READS:
            raise _NotCompilableError
        variables = (None,) * self.code.program.num_variables  # a table that reads one is refused
        values: list[object] = []
        for index in range(1 << len(bits)):
            word = sum((index >> place & 1) << bit for place, bit in enumerate(bits))
            try:
                values.append(evaluate(expression, Memory(word, variables)))
            except ProgramError as error:
                raise _NotCompilableError from error
        return bits, values

    def _end(self, placement: Placement) -> int:
        shown, reads = places_shown(self.request, placement.position, self.code.reads)
        return self._counted(self.program.add_end(shown, reads))
