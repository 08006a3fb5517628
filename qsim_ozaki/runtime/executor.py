"""Runs a program on an engine: plans its segments, runs their steps and follows the outcomes of measurements.

In: an `Executable`, an engine and a `Request`. Out: an `Execution` with counts, memory, saved results and a tally of
the steps. It may not import Qiskit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines import Engine, State
from qsim_ozaki.errors import CapacityError, EngineError, LoweringError, OptionError, ProgramError
from qsim_ozaki.ir import (
    Assign,
    DenseBlock,
    Forget,
    Initialize,
    Kind,
    Measure,
    Op,
    Path,
    Relabel,
    Reset,
    Save,
)
from qsim_ozaki.planner import PLANS, Plan
from qsim_ozaki.runtime import sampling
from qsim_ozaki.runtime.bytecode import CodeItem, Dispatch, Executable, Jump, Segment
from qsim_ozaki.runtime.classical import Memory, assign, evaluate, forget, with_bit
from qsim_ozaki.runtime.compiled import BRANCHES, NORM, ROUNDS, Compiled, Compiler, Failure, is_compilable
from qsim_ozaki.runtime.history import Cursor, Leaves
from qsim_ozaki.runtime.placement import Part, Placement
from qsim_ozaki.runtime.readout import NEGLIGIBLE, NORM_DRIFT, Request, exact_end, sampled_end, shown, too_many_outcomes
from qsim_ozaki.runtime.saved import WHOLE_STATES, Result, Savings, as_dict, read
from qsim_ozaki.runtime.tally import Tally
from qsim_ozaki.runtime.vectors import Vector, with_factor, with_idle_qubits

# Rounds of all while loops of one history: a loop without end stops within seconds where its rounds are short.
MAX_ROUNDS = 100_000
MAX_BRANCHES = 100_000  # histories with exact probabilities; small states take half a minute for so many
ENDLESS = "its while loops have run {} rounds without an end. Let a condition become false"
BIT_FLIP = (np.ones(2, complex), np.array([1, 0]))


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """The results of one run.

    Attributes:
        counts: the count of each hexadecimal value, or its probability without shots; a `Drawn` holds counts and memory
            that are not yet written out; None where the program measures nothing.
        memory: the hexadecimal value of each shot; None where the request has no memory or it is not yet written out.
        saved: the results by label.
        tally: the steps that were done.
        sampling: ``"none"``, ``"final state"`` (one state) or ``"branches"`` (one per distinct history); ``"exact"``
            without shots.
        measured_seconds: the wall time of the run.
        neglected: the probability of all outcomes that were too rare to be followed.
    """

    counts: dict[str, int] | dict[str, float] | sampling.Drawn | None
    memory: list[str] | None
    saved: dict[str, Result]
    tally: Tally
    sampling: str
    measured_seconds: float
    neglected: float = 0.0


def reset_flips(qubits: tuple[int, ...]) -> list[Op]:
    """X on ``qubits``, which turns them from |1> to |0>."""
    return [Op(Kind.PERMUTATION, (q,), BIT_FLIP[0], permutation=BIT_FLIP[1], name="reset") for q in qubits]


def execute(code: Executable, engine: Engine, request: Request, check: Callable[[], None]) -> Execution:
    """Runs ``code``.

    Args:
        code: the flattened program, whose saves have passed `check_saves`.
        engine: runs the steps.
        request: the shots, the seed and the limits.
        check: called before every step; an exception of it ends the run.
    """
    start = time.perf_counter()
    run = _Run(code, engine, request, check)
    leaves = run.all_histories()
    listed = any(save.form == "list" for save in run.savings.saves.values())
    order = leaves.order(request.seed, request.index) if request.memory or listed else None
    counts: dict[str, int] | dict[str, float] | None = None
    memory = None
    if code.measures:
        counts = leaves.exact if request.shots is None else sampling.total_counts(leaves.outcomes())
        memory = sampling.total_memory(leaves.outcomes(), order) if request.memory else None
    kind = "branches" if run.tally.histories > 1 else "final state"
    kind = "none" if not code.measures else "exact" if request.shots is None else kind
    saved = run.savings.results(lambda label: leaves.per_shot(label, order))
    return Execution(counts, memory, saved, run.tally, kind, time.perf_counter() - start, leaves.neglected)


class _Run:
    """The state of one execution."""

    def __init__(self, code: Executable, engine: Engine, request: Request, check: Callable[[], None]) -> None:
        self.code = code
        self.engine = engine
        self.request = request
        self.check = check
        self.tally = Tally()
        self.savings = Savings(code.program.name, request.plan_options.precision)
        self.plans: dict[tuple[object, ...], Plan] = {}
        self.leaves = Leaves()
        self.postponed: list[Cursor] = []
        self.live_states = 1
        self.forks = 0

    def all_histories(self) -> Leaves:
        """Follows every history and returns their ends, in an order that does not depend on the free memory."""
        compiled = None
        if is_compilable(self.code, self.request, self.engine.threads):
            compiled = Compiler(self.code, self.engine, self.request, self._plan).compile()
        return self._one_by_one() if compiled is None else self._run_compiled(compiled)

    def _run_compiled(self, compiled: Compiled) -> Leaves:
        """The ends of all histories, which the extension follows."""
        done = compiled.run(self.request, self.engine.threads, (MAX_ROUNDS, MAX_BRANCHES), self.check)
        if isinstance(done, Failure):
            raise self._error(done)
        self.tally.histories += done.histories
        for steps, times in done.steps:
            for step in steps:
                self.tally.add(step, times)
        for qubits, position, times in done.resets:
            placement = Placement(0)
            placement.position = position
            for step in self._plan(placement.flips(qubits, reset_flips(qubits))).steps:
                self.tally.add(step, times)
        return done.leaves

    def _error(self, failure: Failure) -> EngineError | OptionError | ProgramError:
        """The error of a run that the extension could not finish."""
        name = self.code.program.name
        if failure.reason == NORM:
            return self._norm_error(failure.norm, failure.qubits)
        if failure.reason == ROUNDS:
            return ProgramError(f"circuit {name!r}: {ENDLESS.format(MAX_ROUNDS)}.")
        return self._branches_error() if failure.reason == BRANCHES else too_many_outcomes(name)

    def _norm_error(self, norm: float, qubits: tuple[int, ...]) -> EngineError:
        return EngineError(
            f"{self.engine.name} engine: the state's norm is {norm} instead of 1 before "
            f"a measurement of qubits {qubits} of {self.code.program.name!r}. Please report this circuit."
        )

    def _branches_error(self) -> OptionError:
        return OptionError(
            f"circuit {self.code.program.name!r}, shots=None: exact probabilities would need more than "
            f"{MAX_BRANCHES} branches of outcomes. Give a number of shots."
        )

    def _one_by_one(self) -> Leaves:
        """The ends of all histories, each followed step by step on the engine."""
        key = (self.request.index,)
        placement = Placement(self.code.num_qubits)
        memory = Memory(0, (None,) * self.code.program.num_variables)
        weight = 1.0 if self.request.shots is None else self.request.shots
        self._follow(Cursor(weight, key, self.request.seed, placement, memory))
        while self.postponed:
            self._follow(self.postponed.pop())
        self.leaves.sort()
        return self.leaves

    def _follow(self, cursor: Cursor) -> None:
        items = self.code.items
        while cursor.at < len(items) and not cursor.abandoned:
            item = items[cursor.at]
            cursor.at += 1
            if isinstance(item, Segment):
                self._do(cursor, cursor.placement.segment(item))
            elif isinstance(item, Measure):
                self._measure(cursor, item)
            elif isinstance(item, Reset):
                self._reset(cursor, item.qubits)
            elif isinstance(item, Initialize):
                self._initialize(cursor, item, fresh=cursor.at - 1 in self.code.fresh)
            elif isinstance(item, Save):
                self._save(cursor, item)
            else:
                try:
                    self._classical(cursor, item)
                except ProgramError as error:
                    raise ProgramError(f"circuit {self.code.program.name!r}: {error}.") from error
        if not cursor.abandoned:
            self._finish(cursor)

    def _classical(self, cursor: Cursor, item: CodeItem) -> None:
        """Runs an assignment or a jump."""
        if isinstance(item, Assign):
            assign(item.target, evaluate(item.value, cursor.memory), cursor.memory)
        elif isinstance(item, Forget):
            forget(item.slots, cursor.memory)
        elif isinstance(item, Dispatch):
            cursor.at = item.table.get(int(evaluate(item.expression, cursor.memory)), item.default)  # type: ignore[arg-type]
        elif isinstance(item, Jump) and (item.condition is None or not evaluate(item.condition, cursor.memory)):
            if item.target < cursor.at:
                self.check()
                cursor.jumps += 1
                if cursor.jumps > MAX_ROUNDS:
                    raise ProgramError(ENDLESS.format(MAX_ROUNDS))
            cursor.at = item.target

    def _allocated(self, cursor: Cursor) -> State:
        return cursor.allocated(self.engine, self.request.plan_options.precision)

    def _plan(self, part: Part) -> Plan:
        """The plan of ``part``, made once per position that it starts from."""
        key = (part.key, part.position, part.from_zero)
        if key not in self.plans:
            self.check()
            options, device = part.options(self.request.plan_options), self.request.device
            self.plans[key] = PLANS.plan(part.ops, self.code.num_qubits, device, options, part.position)
        return self.plans[key]

    def _do(self, cursor: Cursor, part: Part) -> None:
        """Runs the steps of the plan of ``part``."""
        plan = self._plan(part)
        state = self._allocated(cursor)
        for step in plan.steps:
            self.check()
            if not isinstance(step, Relabel):
                self.engine.run_step(state, step)
            self.tally.add(step)
        if any(isinstance(step, DenseBlock) and step.path is Path.OZAKI for step in plan.steps):
            checks = self.engine.take_checks(state)
            self.tally.checks.add(checks.redone, checks.residual)
        cursor.placement.done(part, plan.final_position)

    def _measure(self, cursor: Cursor, measure: Measure) -> None:
        qubits = tuple(dict.fromkeys(measure.qubits))
        outcome = self._collapse(cursor, qubits)
        for qubit, bit in zip(measure.qubits, measure.clbits, strict=True):
            cursor.memory.clbits = with_bit(cursor.memory.clbits, bit, outcome >> qubits.index(qubit) & 1)

    def _reset(self, cursor: Cursor, qubits: tuple[int, ...]) -> None:
        outcome = self._collapse(cursor, qubits)
        ones = tuple(qubit for index, qubit in enumerate(qubits) if outcome >> index & 1)
        if ones:
            self._do(cursor, cursor.placement.flips(ones, reset_flips(ones)))

    def _collapse(self, cursor: Cursor, qubits: tuple[int, ...]) -> int:
        """Splits this history by the outcomes of ``qubits``, projects its state on one and returns that one.

        A history whose outcomes are all too rare to be followed is abandoned, and the method returns 0.
        """
        self.check()
        state = self._allocated(cursor)
        physical = [cursor.position[qubit] for qubit in qubits]
        probabilities = self.engine.probabilities(state, physical)
        if not abs(probabilities.sum() - 1) <= NORM_DRIFT[self.request.plan_options.precision]:
            raise self._norm_error(float(probabilities.sum()), qubits)
        if cursor.forced:
            outcome, cursor.forced = cursor.forced[0], cursor.forced[1:]
        else:
            split = self._split(cursor, probabilities)
            if not split:
                cursor.abandoned = True
                return 0
            *others, (outcome, cursor.weight) = split
            for other, share in others:
                self._fork(cursor, other, share)
        cursor.path += (outcome,)
        self.engine.collapse(state, physical, outcome, float(1 / np.sqrt(probabilities[outcome])))
        return outcome

    def _split(self, cursor: Cursor, probabilities: NDArray[np.float64]) -> Sequence[tuple[int, float]]:
        """Pairs (outcome, share) of the outcomes that a shot takes, or that are not negligible; the largest is last."""
        if self.request.shots is not None:
            return sampling.split_shots(cursor.generator(), int(cursor.weight), probabilities)
        least = NEGLIGIBLE[self.request.plan_options.precision]
        split, neglected = sampling.split_weight(cursor.weight, probabilities, least)
        self.leaves.neglected += neglected
        return split

    def _fork(self, cursor: Cursor, outcome: int, share: float) -> None:
        """Follows the history that takes ``outcome`` at this point: on a copy of the state, or later from the start.

        A fork has at most half of the weight, so at most log2(shots) copies live at one time, or 60 without shots.
        """
        self.forks += 1
        if self.request.shots is None and self.forks >= MAX_BRANCHES:
            raise self._branches_error()
        fork = cursor.fork(outcome, share)
        if self.live_states >= self.request.max_states:
            self.postponed.append(fork)
            return
        try:
            fork.join(cursor, self.engine.copy(cursor.in_place))
        except CapacityError:
            self.postponed.append(fork)
            return
        self.live_states += 1
        self._follow(fork)
        self.live_states -= 1

    def _initialize(self, cursor: Cursor, item: Initialize, fresh: bool) -> None:
        whole = cursor.placement.begin_initialize(item)
        if whole:
            cursor.state = None
        if not fresh:
            self._reset(cursor, item.qubits)
            if cursor.abandoned:
                return
        part = cursor.placement.initialize(item, cursor.at - 1)
        if part is not None:
            self._do(cursor, part)
            return
        self.check()
        precision = self.request.plan_options.precision
        if whole:
            cursor.placement.load(item)
            cursor.state = self.engine.load(item.vector, precision)
            return
        places = [cursor.position[qubit] for qubit in item.qubits]
        state = self._allocated(cursor)
        cursor.state = self.engine.load(with_factor(self.engine.vector(state), places, item.vector), precision)

    def _save(self, cursor: Cursor, save: Save) -> None:
        """Reads the saved value once for all shots of this history, also for shots whose histories fork off later."""
        if cursor.forced:
            return  # the history that this one left has read the value for these shots too
        self.check()
        state = self._allocated(cursor)
        if save.what in WHOLE_STATES:
            value: Any = self._whole_state(cursor, save)
            if save.what == "statevector_dict":
                value = {hex(index): amp for index, amp in as_dict(value).items()}
        else:
            value = read(save, self.engine, state, [cursor.position[q] if q >= 0 else -1 for q in save.qubits])
        fixed, _ = shown(self.request, cursor, ())
        record = self.savings.take(save, hex(fixed), value, cursor.weight)
        if record is not None:
            cursor.records += (record,)

    def _whole_state(self, cursor: Cursor, save: Save) -> Vector:
        """The state in the order of the save's qubits: the engine's own buffer where no later item changes it."""
        state = cursor.in_place
        part = cursor.placement.save(save)
        if part is not None:
            self._do(cursor, part)
        vector = self._leading(self.engine.vector(state), save, sum(qubit >= 0 for qubit in save.qubits))
        if -1 in save.qubits:
            return with_idle_qubits(vector, save.qubits)
        return vector.copy() if cursor.at < len(self.code.items) else vector

    def _leading(self, vector: Vector, save: Save, count: int) -> Vector:
        """The amplitudes where all but the lowest ``count`` qubits are 0.

        Raises:
            LoweringError: another qubit is not |0>.
        """
        if count == self.code.num_qubits:
            return vector
        part = vector[: 1 << count]
        norm = float(np.vdot(part, part).real)
        if not abs(norm - 1) <= NORM_DRIFT[self.request.plan_options.precision]:
            raise LoweringError(
                f"circuit {self.code.program.name!r}: state {save.label!r} is saved on {len(save.qubits)} qubits, but "
                f"another qubit is not |0> there (probability {1 - norm:.3g}). Save all qubits."
            )
        return part

    def _finish(self, cursor: Cursor) -> None:
        self.tally.histories += 1
        if self.request.shots is not None:
            self.leaves.sampled.append(sampled_end(self.code, self.engine, self.request, cursor, self.check))
        elif self.code.measures:
            exact_end(self.code, self.engine, self.request, cursor, self.leaves)
