"""One row of the GPU benchmark: our plans and cuStateVec from the same state, compared, then timed in turn.

In: planned work, states. Out: a `Row`. It chooses no circuit and no order of rows, and prints nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from qsim_ozaki.bench_custatevec import CUSTATEVEC, FORMS, FUSIONS, ExState, Library, Updater, gates, matrix_step
from qsim_ozaki.bench_gpu import distance, run_steps, step_seconds
from qsim_ozaki.bench_record import OURS, WALL_QUBITS, Model, OnGpu, Row, Timing
from qsim_ozaki.bench_worker import describe_plan
from qsim_ozaki.calibrate_ops import fill
from qsim_ozaki.circuits import build
from qsim_ozaki.cuda_calibrate import Clocked, clock
from qsim_ozaki.fuse import relabel_swaps
from qsim_ozaki.lower import lower
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Op
from qsim_ozaki.plan import Plan

SURVEY_QUBITS = 28  # where every form and fusion of the peer is tried
VARIANT_NEAR = 1.2  # variants this near the best of the survey are run at full size,
MOST_VARIANTS = 2  # the best ones
SURVEY_RUNS = 3  # of which the fastest counts: the first may plan


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that share their states: circuits or blocks, of one width and precision."""

    blocks: bool
    num_qubits: int
    precision: str


@dataclass(slots=True, eq=False)
class Work:
    """What is about to be timed.

    Attributes:
        title: the row's name; of a circuit its family first.
        ops: on program qubits.
        plans: of these operators, by the arithmetic that was asked for.
        from_zero: it starts from |0...0>, otherwise from a random state.
        convert_seconds: lowering and planning.
        first_seconds: of each plan's first run.
    """

    title: str
    ops: OpList
    plans: dict[str, Plan]
    from_zero: bool = False
    convert_seconds: float = 0.0
    first_seconds: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Here:
    """What the rows of a group share.

    Attributes:
        group: whose they are.
        state: our engine's.
        peer: the other's: an `ExState` for circuits, a second state of our engine for blocks; None: ``note`` says why.
        pass_seconds: of one read and one write of ``state``.
        compile_seconds: waited for the kernels of all rows.
    """

    group: Group
    state: Any
    peer: Any
    note: str
    pass_seconds: float = 0.0
    compile_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Side:
    """One of those that take turns.

    Attributes:
        blank: its entry, without times.
        action: what is timed.
        before: what is done before each run, untimed; None where any state will do.
        plan: where it is ours.
        clocks: of the counted runs.
    """

    blank: Timing
    action: Callable[[], object]
    before: Callable[[], object] | None = None
    plan: Plan | None = None
    clocks: list[Clocked] = field(default_factory=list)


def lowered(family: str, num_qubits: int, seed: int) -> OpList:
    """The operators of a family's circuit, which measures nothing."""
    (ops,) = lower(build(family, num_qubits, seed)).body
    return OpList.of([ops] if isinstance(ops, Op) else ops)  # type: ignore[arg-type]


def seconds_of(run: Clocked, num_qubits: int) -> float:
    """What counts of ``run``."""
    return run.wall_seconds if num_qubits <= WALL_QUBITS else run.seconds


@dataclass(slots=True, eq=False)
class Contest:
    """Times rows.

    Attributes:
        engine: ours.
        library: the peer, where it is installed.
        repeats: counted runs of each side.
        seed: of circuits and states.
        surveys: the peer's best (form, fusion) by family, width and precision.
    """

    engine: Any
    library: Library | None
    repeats: int
    seed: int
    surveys: dict[tuple[str, int, str], list[tuple[str, int]]] = field(default_factory=dict)

    def circuit_row(self, work: Work, here: Here) -> Row:
        """A circuit by our plan, and by the peer's updater at its best."""
        n, (relabelled, final) = here.group.num_qubits, relabel_swaps(work.ops, range(here.group.num_qubits))
        ours = self._ours(work, here, "auto")
        best: Side | None = None
        note, error = here.note, None
        with ExitStack() as stack:
            self._start(ours, here, work)
            if here.peer is not None:
                try:
                    sides = self._updaters(work, relabelled, here, stack)
                    wire_place = dict(zip(final, ours.plan.final_position, strict=True))  # type: ignore[union-attr]
                    best, error = self._compare(sides, here, wire_place)
                except Exception as failure:  # the library's own errors: our time stands without its
                    note = f"{type(failure).__name__}: {failure}"[:200]
            self._turns([ours] if best is None else [ours, best])
        timings = [replace(self._timing(ours, work, here), error=error)]
        timings.append(
            Timing(CUSTATEVEC, here.group.precision, note=note) if best is None else self._timing(best, work, here)
        )
        return Row(work.title, n, len(relabelled), tuple(timings))

    def block_rows(self, work: Work, here: Here) -> list[Row]:
        """A matrix by each of our plans, and by the peer's apply_matrix: a row for each plan."""
        sides = [self._ours(work, here, arithmetic) for arithmetic in work.plans]
        precision, peer, errors = here.group.precision, None, [None] * len(sides)
        cupy = self.engine.cupy
        if here.peer is not None and self.library is not None:
            (op,) = work.ops
            amps = here.peer.amps
            step = matrix_step(self.library, cupy, amps, op.matrix(), op.targets)
            peer = Side(Timing(CUSTATEVEC, precision, "apply_matrix"), step)
            fill(cupy, amps, self.seed)
            step()
        for number, side in enumerate(sides):
            self._start(side, here, work)
            if peer is not None:
                place = list(side.plan.final_position)  # type: ignore[union-attr]
                errors[number] = distance(cupy, here.state.amps, here.peer.amps, place)  # type: ignore[call-overload]
        self._turns(sides if peer is None else [*sides, peer])
        other = Timing(CUSTATEVEC, precision, note=here.note) if peer is None else self._timing(peer, work, here)
        out = []
        for side, arithmetic, error in zip(sides, work.plans, errors, strict=True):
            title = work.title if arithmetic == "native" else f"{work.title} {arithmetic}"
            entry = replace(self._timing(side, work, here), error=error)
            out.append(Row(title, here.group.num_qubits, 1, (entry, other)))
        return out

    def _ours(self, work: Work, here: Here, arithmetic: str) -> Side:
        """One of our plans."""
        made = work.plans[arithmetic]
        blank = Timing(OURS, here.group.precision, arithmetic, convert_seconds=work.convert_seconds)
        return Side(blank, partial(run_steps, self.engine, here.state, made.steps), plan=made)

    def _start(self, side: Side, here: Here, work: Work) -> None:
        """Runs ours from the start once; a plan from |0...0> writes that itself."""
        if not work.from_zero:
            fill(self.engine.cupy, here.state.amps, self.seed)
        side.action()
        self.engine.cupy.cuda.Device().synchronize()

    def _updaters(self, work: Work, ops: OpList, here: Here, stack: ExitStack) -> list[Side]:
        """The peer's best variants, as the survey has them; SWAPs are names in ``ops``, as they are in our plan."""
        assert self.library is not None
        peer, precision, out = here.peer, here.group.precision, []
        for form, fusion in self._survey(work.title, here):
            start = time.perf_counter()
            updater = Updater(self.library, gates(ops, form), precision, fusion)
            stack.callback(updater.close)
            blank = Timing(CUSTATEVEC, precision, f"fusion {fusion or 'default'}, {form}")
            blank = replace(blank, convert_seconds=time.perf_counter() - start)
            out.append(Side(blank, partial(updater.apply, peer), peer.zero if work.from_zero else None))
        return out

    def _survey(self, title: str, here: Here) -> list[tuple[str, int]]:
        """The (form, fusion) that are fastest, best first, at a width where all can be tried."""
        assert self.library is not None
        width, precision = min(here.group.num_qubits, SURVEY_QUBITS), here.group.precision
        key = (title.partition(" ")[0], width, precision)
        if key in self.surveys:
            return self.surveys[key]
        ops, _ = relabel_swaps(lowered(key[0], width, self.seed), range(width))
        seconds: dict[tuple[str, int], float] = {}
        with ExitStack() as stack:
            state = here.peer
            if width < here.group.num_qubits:
                state = ExState(self.library, self.engine.cupy, width, precision)
                stack.callback(state.close)
            for form in FORMS:
                chosen = gates(ops, form)
                for fusion in FUSIONS:
                    updater = Updater(self.library, chosen, precision, fusion)
                    runs = [clock(self.engine.cupy, partial(updater.apply, state)) for _ in range(SURVEY_RUNS)]
                    updater.close()
                    seconds[form, fusion] = min(run.wall_seconds for run in runs)
        ranked = sorted(seconds, key=lambda variant: seconds[variant])
        near = [variant for variant in ranked if seconds[variant] <= VARIANT_NEAR * seconds[ranked[0]]]
        self.surveys[key] = near[:MOST_VARIANTS]
        return self.surveys[key]

    def _compare(self, sides: Sequence[Side], here: Here, wire_place: dict[int, int]) -> tuple[Side, float]:
        """Each of the peer's variants from the start once: the fastest, and the largest distance from our state.

        Args:
            sides: the peer's.
            here: our state is after our run.
            wire_place: our physical qubit of each of the peer's wires, at the end.
        """
        cupy, peer, n = self.engine.cupy, here.peer, here.group.num_qubits
        apart, seconds = 0.0, []
        for side in sides:
            peer.restore_order()
            if side.before is None:
                fill(cupy, peer.amps, self.seed)
            else:
                side.before()
            cupy.cuda.Device().synchronize()
            seconds.append(seconds_of(clock(cupy, side.action), n))
            place = [wire_place[int(wire)] for wire in peer.wires]
            apart = max(apart, distance(cupy, here.state.amps, peer.amps, place))
        return sides[seconds.index(min(seconds))], apart

    def _turns(self, sides: Sequence[Side]) -> None:
        """A B, A B, ..."""
        for _ in range(self.repeats):
            for side in sides:
                if side.before is not None:
                    side.before()
                self.engine.cupy.cuda.Device().synchronize()
                side.clocks.append(clock(self.engine.cupy, side.action))

    def _timing(self, side: Side, work: Work, here: Here) -> Timing:
        """The entry of ``side``; of ours with the plan's predictions beside its steps' times."""
        seconds = tuple(seconds_of(run, here.group.num_qubits) for run in side.clocks)
        gpu = OnGpu(here.pass_seconds)
        if side.plan is None:
            return replace(side.blank, seconds=seconds, gpu=gpu)
        told = describe_plan(side.plan)
        each = step_seconds(self.engine, here.state, side.plan.steps)
        steps = tuple({**step, "seconds": one} for step, one in zip(told["steps"], each, strict=True))
        whole = statistics.median(run.seconds for run in side.clocks)
        model = Model(told["predicted_seconds"], whole, told["passes"], told["bytes"], told["flops"], steps)
        host = statistics.median(run.host_seconds for run in side.clocks)
        gpu = OnGpu(here.pass_seconds, host, work.first_seconds[side.blank.variant], here.compile_seconds)
        redone = self.engine.take_checks(here.state).redone
        note = f"{redone} columns were redone natively" if redone else ""
        return replace(side.blank, seconds=seconds, gpu=gpu, model=model, note=note)
