"""Runs a program on an engine: plans its segments, does their steps, follows the outcomes of measurements.

In: `Code`, an engine, options. Out: outcomes, saved states and what was done. It knows nothing of Qiskit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from qsim_ozaki import sampling
from qsim_ozaki.cost import Device
from qsim_ozaki.engine import Engine, State
from qsim_ozaki.errors import CapacityError, EngineError, LoweringError
from qsim_ozaki.link import Code, Jump, Segment
from qsim_ozaki.ops import (
    Condition,
    DenseBlock,
    HadamardPass,
    Initialize,
    Kind,
    Measure,
    Op,
    Prepare,
    Relabel,
    Reset,
    Save,
    Step,
    TilePass,
)
from qsim_ozaki.plan import Plan, PlanOptions, plan
from qsim_ozaki.sampling import Outcomes
from qsim_ozaki.vectors import Vector, unitary_with_first_column, with_factor, with_idle_qubits

MAX_PREPARED_QUBITS = 5  # a 32 x 32 unitary is still one pass; wider vectors are written by the host
MEMORY_ORDER_KEY = 2**32 - 1  # the stream that shuffles memory; forks use smaller words
NORM_TOLERANCE = {"double": 1e-8, "single": 1e-3}  # a drift above this is a defect, not rounding
FLIP = (np.ones(2, complex), np.array([1, 0]))


@dataclass(frozen=True, slots=True)
class Request:
    """How one program is to run.

    Attributes:
        shots: at least 1.
        memory: whether each shot's value is wanted, not only counts.
        seed: of the whole job.
        index: of this program in the job; with ``seed`` it fixes every random number.
        device: what to plan for.
        max_states: copies of the state, the first included, that may live at one time.
        layout: classical bit shown at each bit of a value; a bit may be shown twice.
        plan_options: passed to the planner.
    """

    shots: int
    memory: bool
    seed: int
    index: int
    device: Device
    max_states: int
    layout: tuple[int, ...]
    plan_options: PlanOptions


@dataclass(slots=True)
class Tally:
    """What was done: steps per path, and what they were predicted to cost."""

    steps: Counter[str] = field(default_factory=Counter)
    passes: float = 0.0
    predicted_seconds: float = 0.0
    histories: int = 0

    def add(self, step: Step) -> None:
        """Counts ``step``."""
        self.steps[path_name(step)] += 1
        self.passes += step.prediction.passes
        self.predicted_seconds += step.prediction.seconds


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """What a run gave.

    Attributes:
        counts: hexadecimal value to count; None where the program measures nothing.
        memory: hexadecimal value of each shot; None where not asked for.
        states: saved vectors by label.
        tally: what was done.
        sampling: ``"none"``, ``"final state"`` (one state) or ``"branches"`` (one per distinct history).
        measured_seconds: wall time.
    """

    counts: dict[str, int] | None
    memory: list[str] | None
    states: dict[str, Vector]
    tally: Tally
    sampling: str
    measured_seconds: float


def path_name(step: Step) -> str:
    """The word by which metadata counts ``step``."""
    if isinstance(step, DenseBlock):
        return f"dense_{step.path.value}"
    names = {TilePass: "tile", HadamardPass: "hadamard", Prepare: "prepare", Relabel: "relabel"}
    return names[type(step)]


def execute(code: Code, engine: Engine, request: Request, check: Callable[[], None]) -> Execution:
    """Runs ``code``.

    Args:
        code: linked, its saves checked.
        engine: does the steps.
        request: shots, seed, limits.
        check: called before every step; what it raises ends the run.
    """
    start = time.perf_counter()
    run = _Run(code, engine, request, check)
    leaves = run.all_histories()
    counts = memory = None
    if code.measures:
        counts = sampling.total_counts(leaves)
        if request.memory:
            generator = sampling.stream(request.seed, (request.index, MEMORY_ORDER_KEY))
            memory = sampling.total_memory(leaves, generator)
    kind = "none" if not code.measures else "branches" if run.tally.histories > 1 else "final state"
    return Execution(counts, memory, run.states, run.tally, kind, time.perf_counter() - start)


@dataclass(slots=True)
class _Cursor:
    """One history: where it is, its state and its share of the shots."""

    shots: int
    key: tuple[int, ...]  # of its random stream: the program's index, then each fork that led here
    generator: np.random.Generator
    position: tuple[int, ...]
    state: State | None = None  # None: |0...0>, not allocated yet
    at: int = 0
    clbits: int = 0
    path: tuple[int, ...] = ()  # outcomes so far
    forced: tuple[int, ...] = ()  # outcomes of a history that is run again from the start

    @property
    def in_place(self) -> State:
        assert self.state is not None
        return self.state


class _Run:
    """The state of one execution."""

    def __init__(self, code: Code, engine: Engine, request: Request, check: Callable[[], None]) -> None:
        self.code = code
        self.engine = engine
        self.request = request
        self.check = check
        self.tally = Tally()
        self.states: dict[str, Vector] = {}
        self.plans: dict[tuple[object, ...], Plan] = {}
        self.leaves: list[tuple[tuple[int, ...], Outcomes]] = []
        self.postponed: list[_Cursor] = []
        self.live_states = 1

    def all_histories(self) -> list[Outcomes]:
        """Follows every history; their outcomes in an order that does not depend on the memory there was."""
        self._follow(self._cursor(self.request.shots, (self.request.index,), ()))
        while self.postponed:
            self._follow(self.postponed.pop())
        return [outcomes for _, outcomes in sorted(self.leaves, key=lambda leaf: leaf[0])]

    def _cursor(self, shots: int, key: tuple[int, ...], forced: tuple[int, ...]) -> _Cursor:
        position = tuple(range(self.code.num_qubits))
        return _Cursor(shots, key, sampling.stream(self.request.seed, key), position, forced=forced)

    def _follow(self, cursor: _Cursor) -> None:
        items = self.code.items
        while cursor.at < len(items):
            item = items[cursor.at]
            cursor.at += 1
            if isinstance(item, Segment):
                self._segment(cursor, item)
            elif isinstance(item, Jump):
                if item.condition is None or not _holds(item.condition, cursor.clbits):
                    cursor.at = item.target
            elif isinstance(item, Measure):
                self._measure(cursor, item)
            elif isinstance(item, Reset):
                self._reset(cursor, item.qubits)
            elif isinstance(item, Initialize):
                self._initialize(cursor, item, fresh=cursor.at - 1 in self.code.fresh)
            else:
                self._save(cursor, item)
        self._finish(cursor)

    def _allocated(self, cursor: _Cursor) -> State:
        if cursor.state is None:
            cursor.state = self.engine.allocate(self.code.num_qubits, self.request.plan_options.precision)
        return cursor.state

    def _segment(self, cursor: _Cursor, segment: Segment) -> None:
        options = replace(
            self.request.plan_options, from_zero=cursor.state is None, restore_order=segment.restore_order
        )
        self._do(cursor, segment.ops, options, segment.index)

    def _do(self, cursor: _Cursor, ops: Sequence[Op], options: PlanOptions, name: object) -> None:
        """Plans ``ops`` (once per ``name`` and position) and does the steps."""
        key = (name, cursor.position, options.from_zero)
        if key not in self.plans:
            self.plans[key] = plan(ops, self.code.num_qubits, self.request.device, options, cursor.position)
        todo = self.plans[key]
        state = self._allocated(cursor)
        for step in todo.steps:
            self.check()
            if not isinstance(step, Relabel):
                self.engine.run_step(state, step)
            self.tally.add(step)
        cursor.position = todo.final_position

    def _measure(self, cursor: _Cursor, measure: Measure) -> None:
        qubits = tuple(dict.fromkeys(measure.qubits))
        outcome = self._collapse(cursor, qubits, measure)
        for qubit, bit in zip(measure.qubits, measure.clbits, strict=True):
            cursor.clbits = _with_bit(cursor.clbits, bit, outcome >> qubits.index(qubit) & 1)

    def _reset(self, cursor: _Cursor, qubits: tuple[int, ...]) -> None:
        outcome = self._collapse(cursor, qubits, None)
        ones = tuple(qubit for index, qubit in enumerate(qubits) if outcome >> index & 1)
        if ones:
            flips = [Op(Kind.PERMUTATION, (qubit,), FLIP[0], permutation=FLIP[1], name="reset") for qubit in ones]
            self._do(cursor, flips, replace(self.request.plan_options, from_zero=False), ("flip", ones))

    def _collapse(self, cursor: _Cursor, qubits: tuple[int, ...], measure: Measure | None) -> int:
        """Draws the outcome of ``qubits`` for every shot; forks this history where they differ; projects the state."""
        self.check()
        state = self._allocated(cursor)
        physical = [cursor.position[qubit] for qubit in qubits]
        probabilities = self.engine.probabilities(state, physical)
        if not abs(probabilities.sum() - 1) <= NORM_TOLERANCE[self.request.plan_options.precision]:
            raise EngineError(
                f"{self.engine.name} engine: the state's norm is {probabilities.sum()} instead of 1 before "
                f"a measurement of qubits {qubits} of {self.code.program.name!r}. Please report this circuit."
            )
        if cursor.forced:
            outcome, cursor.forced = cursor.forced[0], cursor.forced[1:]
        else:
            *others, (outcome, shots) = sampling.split_shots(cursor.generator, cursor.shots, probabilities)
            for other, share in others:
                self._fork(cursor, other, share)
            cursor.shots = shots
        cursor.path += (outcome,)
        scale = float(1 / np.sqrt(probabilities[outcome]))
        for index, qubit in enumerate(physical):
            last = index == len(physical) - 1
            self.engine.collapse(state, qubit, outcome >> index & 1, scale if last else 1.0)
        return outcome

    def _fork(self, cursor: _Cursor, outcome: int, shots: int) -> None:
        """Follows the history that takes ``outcome`` here: on a copy of the state, or later from the start.

        A fork has at most half of the shots, so no more than log2(shots) copies live at one time.
        """
        key = (*cursor.key, len(cursor.path), outcome)
        fork = self._cursor(shots, key, (*cursor.path, outcome))
        if self.live_states >= self.request.max_states:
            self.postponed.append(fork)
            return
        try:
            fork.state = self.engine.copy(cursor.in_place)
        except CapacityError:
            self.postponed.append(fork)
            return
        fork.position, fork.clbits, fork.path = cursor.position, cursor.clbits, cursor.path
        fork.at, fork.forced = cursor.at - 1, (outcome,)
        self.live_states += 1
        self._follow(fork)
        self.live_states -= 1

    def _initialize(self, cursor: _Cursor, item: Initialize, fresh: bool) -> None:
        if not fresh:
            self._reset(cursor, item.qubits)
        if len(item.qubits) <= MAX_PREPARED_QUBITS:
            op = Op(Kind.UNITARY, item.qubits, unitary_with_first_column(item.vector), name="initialize")
            options = replace(self.request.plan_options, from_zero=cursor.state is None)
            self._do(cursor, [op], options, ("initialize", cursor.at))
            return
        self.check()
        precision = self.request.plan_options.precision
        untouched = cursor.state is None
        whole = untouched and sorted(item.qubits) == list(range(self.code.num_qubits))
        if whole:  # any numbering of the qubits will do for a state not yet written
            position = [0] * self.code.num_qubits
            for index, qubit in enumerate(item.qubits):
                position[qubit] = index
            cursor.position = tuple(position)
            cursor.state = self.engine.load(item.vector, precision)
            return
        places = [cursor.position[qubit] for qubit in item.qubits]
        state = self._allocated(cursor)
        cursor.state = self.engine.load(with_factor(self.engine.vector(state), places, item.vector), precision)

    def _save(self, cursor: _Cursor, save: Save) -> None:
        """Keeps the state in the order the save asks for: the engine's own buffer where nothing changes it any more."""
        if save.label in self.states and self.request.shots > 1:
            return  # a history that is run again passes here again, with the same state
        state = self._allocated(cursor)
        wanted = [qubit for qubit in save.qubits if qubit >= 0]
        named = (*wanted, *(qubit for qubit in range(self.code.num_qubits) if qubit not in set(wanted)))
        order = tuple(cursor.position[qubit] for qubit in named)
        if order != tuple(range(len(order))):
            renamed = replace(cursor, position=order)
            options = replace(self.request.plan_options, from_zero=False, restore_order=True)
            self._do(renamed, [], options, ("restore", order))
            assert renamed.position == tuple(range(len(order))), "the planner did not restore the order"
            cursor.position = tuple(int(place) for place in np.argsort(named))
        vector = self._leading(self.engine.vector(state), save, len(wanted))
        if -1 in save.qubits:
            vector = with_idle_qubits(vector, save.qubits)
        elif cursor.at < len(self.code.items):
            vector = vector.copy()
        self.states[save.label] = vector

    def _leading(self, vector: Vector, save: Save, count: int) -> Vector:
        """The amplitudes where all but the lowest ``count`` qubits are 0, if that is all there is."""
        if count == self.code.num_qubits:
            return vector
        part = vector[: 1 << count]
        norm = float(np.vdot(part, part).real)
        if not abs(norm - 1) <= NORM_TOLERANCE[self.request.plan_options.precision]:
            raise LoweringError(
                f"circuit {self.code.program.name!r}: state {save.label!r} is saved on {len(save.qubits)} qubits, but "
                f"another qubit is not |0> there (probability {1 - norm:.3g}). Save all qubits."
            )
        return part

    def _finish(self, cursor: _Cursor) -> None:
        """Samples the measurements that waited."""
        self.tally.histories += 1
        if not self.code.measures:
            return
        bit_of = {bit: qubit for qubit, bit in self.code.reads}
        fixed, reads = 0, []
        for place, bit in enumerate(self.request.layout):
            if bit in bit_of:
                reads.append((cursor.position[bit_of[bit]], place))
            elif cursor.clbits >> bit & 1:
                fixed |= 1 << place
        memory = self.request.memory
        if not reads:
            self.leaves.append((cursor.key, sampling.fixed_outcome(fixed, cursor.shots, memory)))
            return
        state = self._allocated(cursor)
        for start in range(0, cursor.shots, sampling.SHOTS_PER_BLOCK):
            self.check()
            uniforms = cursor.generator.random(min(sampling.SHOTS_PER_BLOCK, cursor.shots - start))
            samples = self.engine.sample(state, uniforms)
            self.leaves.append((cursor.key, sampling.read_outcomes(samples, reads, fixed, memory)))


def _holds(condition: Condition, clbits: int) -> bool:
    return all(clbits >> bit & 1 == condition.value >> index & 1 for index, bit in enumerate(condition.clbits))


def _with_bit(clbits: int, bit: int, value: int) -> int:
    return clbits | 1 << bit if value else clbits & ~(1 << bit)
