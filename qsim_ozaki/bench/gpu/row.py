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

from qsim_ozaki.bench.gpu.custatevec import CUSTATEVEC, FORMS, FUSIONS, ExState, Library, Updater, gates, matrix_step
from qsim_ozaki.bench.gpu.state import distance, run_steps, step_seconds
from qsim_ozaki.bench.record import OURS, WALL_QUBITS, Model, OnGpu, Row, Timing
from qsim_ozaki.bench.worker import describe_plan
from qsim_ozaki.circuits import build
from qsim_ozaki.engines import fill
from qsim_ozaki.engines.cuda.calibrate import Clocked, clock
from qsim_ozaki.engines.cuda.device.state import CudaState
from qsim_ozaki.engines.cuda.engine import CudaEngine
from qsim_ozaki.ir import Op, OpList
from qsim_ozaki.lowering import lower
from qsim_ozaki.planner import Plan, relabel_swaps

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
class RowWork:
    """The work of one row.

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
class RowStates:
    """The states that the rows of a group share.

    Attributes:
        group: of the rows.
        state: our engine's.
        peer: cuStateVec's, for circuits; None: ``note`` says why.
        peer_block: a second state of our engine, to which cuStateVec applies blocks; None: ``note`` says why.
        note: why the peer has no state.
        pass_seconds: of one read and one write of ``state``.
        compile_seconds: waited for the kernels of all rows.
    """

    group: Group
    state: CudaState
    peer: ExState | None = None
    peer_block: CudaState | None = None
    note: str = ""
    pass_seconds: float = 0.0
    compile_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Contestant:
    """One of those that take turns: a plan of ours, or a variant of cuStateVec.

    Attributes:
        blank: its entry, without times.
        action: the run that is timed.
        before: done before each run, untimed; None where any state will do.
        plan: of our engine; None for cuStateVec.
        clocks: of the counted runs.
    """

    blank: Timing
    action: Callable[[], object]
    before: Callable[[], object] | None = None
    plan: Plan | None = None
    clocks: list[Clocked] = field(default_factory=list)


def lowered(family: str, num_qubits: int, seed: int) -> OpList:
    """The operators of a family's circuit, which measures nothing."""
    ops = OpList()
    for item in lower(build(family, num_qubits, seed)).body:
        ops.extend(OpList.of([item] if isinstance(item, Op) else item))  # type: ignore[arg-type]
    return ops


def seconds_of(run: Clocked, num_qubits: int) -> float:
    """The seconds of ``run`` that count: by the wall for narrow states, by device events for wide ones."""
    return run.wall_seconds if num_qubits <= WALL_QUBITS else run.seconds


@dataclass(slots=True, eq=False)
class RowTimer:
    """Times rows.

    Attributes:
        engine: ours.
        library: the peer, where it is installed.
        repeats: counted runs of each contestant.
        seed: of circuits and states.
        surveys: the peer's best (form, fusion) by family, width and precision.
    """

    engine: CudaEngine
    library: Library | None
    repeats: int
    seed: int
    surveys: dict[tuple[str, int, str], list[tuple[str, int]]] = field(default_factory=dict)

    def circuit_row(self, work: RowWork, states: RowStates) -> Row:
        """A circuit by our plan, and by the peer's updater at its best."""
        n, (relabelled, final) = states.group.num_qubits, relabel_swaps(work.ops, range(states.group.num_qubits))
        ours = self._ours(work, states, "auto")
        best: Contestant | None = None
        note, error = states.note, None
        with ExitStack() as stack:
            self._start(ours, states, work)
            if states.peer is not None:
                try:
                    contestants = self._updaters(work, relabelled, states, stack)
                    wire_place = dict(zip(final, work.plans["auto"].final_position, strict=True))
                    best, error = self._compare(contestants, states, wire_place)
                except Exception as failure:  # the library's own errors: our time stands without its
                    note = f"{type(failure).__name__}: {failure}"[:200]
            self._turns([ours] if best is None else [ours, best])
        timings = [replace(self._timing(ours, work, states), error=error)]
        timings.append(
            Timing(CUSTATEVEC, states.group.precision, note=note) if best is None else self._timing(best, work, states)
        )
        return Row(work.title, n, len(relabelled), tuple(timings))

    def block_rows(self, work: RowWork, states: RowStates) -> list[Row]:
        """A matrix by each of our plans, and by the peer's apply_matrix: a row for each plan."""
        contestants = [self._ours(work, states, arithmetic) for arithmetic in work.plans]
        precision, peer = states.group.precision, None
        errors: list[float | None] = [None] * len(contestants)
        cupy = self.engine.launcher.cupy
        if states.peer_block is not None and self.library is not None:
            (op,) = work.ops
            amps = states.peer_block.amps
            step = matrix_step(self.library, cupy, amps, op.matrix(), op.targets)
            peer = Contestant(Timing(CUSTATEVEC, precision, "apply_matrix"), step)
            fill(cupy, amps, self.seed)
            step()
        for number, contestant in enumerate(contestants):
            self._start(contestant, states, work)
            if states.peer_block is not None and peer is not None:
                place = list(work.plans[contestant.blank.variant].final_position)
                errors[number] = distance(cupy, states.state.amps, states.peer_block.amps, place)
        self._turns(contestants if peer is None else [*contestants, peer])
        other = Timing(CUSTATEVEC, precision, note=states.note) if peer is None else self._timing(peer, work, states)
        out = []
        for contestant, arithmetic, error in zip(contestants, work.plans, errors, strict=True):
            title = work.title if arithmetic == "native" else f"{work.title} {arithmetic}"
            entry = replace(self._timing(contestant, work, states), error=error)
            out.append(Row(title, states.group.num_qubits, 1, (entry, other)))
        return out

    def _ours(self, work: RowWork, states: RowStates, arithmetic: str) -> Contestant:
        """One of our plans."""
        chosen = work.plans[arithmetic]
        blank = Timing(OURS, states.group.precision, arithmetic, convert_seconds=work.convert_seconds)
        return Contestant(blank, partial(run_steps, self.engine, states.state, chosen.steps), plan=chosen)

    def _start(self, contestant: Contestant, states: RowStates, work: RowWork) -> None:
        """Runs ours from the start once; a plan from |0...0> writes that itself."""
        if not work.from_zero:
            fill(self.engine.launcher.cupy, states.state.amps, self.seed)
        contestant.action()
        self.engine.launcher.cupy.cuda.Device().synchronize()

    def _updaters(self, work: RowWork, ops: OpList, states: RowStates, stack: ExitStack) -> list[Contestant]:
        """The peer's best variants, as the survey has them; SWAPs are names in ``ops``, as they are in our plan."""
        assert self.library is not None
        assert states.peer is not None
        peer, precision, out = states.peer, states.group.precision, []
        for form, fusion in self._survey(work.title, states):
            start = time.perf_counter()
            updater = Updater(self.library, gates(ops, form), precision, fusion)
            stack.callback(updater.close)
            blank = Timing(CUSTATEVEC, precision, f"fusion {fusion or 'default'}, {form}")
            blank = replace(blank, convert_seconds=time.perf_counter() - start)
            out.append(Contestant(blank, partial(updater.apply, peer), peer.zero if work.from_zero else None))
        return out

    def _survey(self, title: str, states: RowStates) -> list[tuple[str, int]]:
        """The (form, fusion) that are fastest, best first, at a width where all can be tried."""
        assert self.library is not None
        assert states.peer is not None
        width, precision = min(states.group.num_qubits, SURVEY_QUBITS), states.group.precision
        key = (title.partition(" ")[0], width, precision)
        if key in self.surveys:
            return self.surveys[key]
        ops, _ = relabel_swaps(lowered(key[0], width, self.seed), range(width))
        seconds: dict[tuple[str, int], float] = {}
        with ExitStack() as stack:
            state = states.peer
            if width < states.group.num_qubits:
                state = ExState(self.library, self.engine.launcher.cupy, width, precision)
                stack.callback(state.close)
            for form in FORMS:
                chosen = gates(ops, form)
                for fusion in FUSIONS:
                    updater = Updater(self.library, chosen, precision, fusion)
                    runs = [clock(self.engine.launcher.cupy, partial(updater.apply, state)) for _ in range(SURVEY_RUNS)]
                    updater.close()
                    seconds[form, fusion] = min(run.wall_seconds for run in runs)
        ranked = sorted(seconds, key=lambda variant: seconds[variant])
        near = [variant for variant in ranked if seconds[variant] <= VARIANT_NEAR * seconds[ranked[0]]]
        self.surveys[key] = near[:MOST_VARIANTS]
        return self.surveys[key]

    def _compare(
        self, contestants: Sequence[Contestant], states: RowStates, wire_place: dict[int, int]
    ) -> tuple[Contestant, float]:
        """Each of the peer's variants from the start once: the fastest, and the largest distance from our state.

        Args:
            contestants: the peer's.
            states: our state is after our run.
            wire_place: our physical qubit of each of the peer's wires, at the end.
        """
        assert states.peer is not None
        cupy, peer, n = self.engine.launcher.cupy, states.peer, states.group.num_qubits
        apart, seconds = 0.0, []
        for contestant in contestants:
            peer.restore_order()
            if contestant.before is None:
                fill(cupy, peer.amps, self.seed)
            else:
                contestant.before()
            cupy.cuda.Device().synchronize()
            seconds.append(seconds_of(clock(cupy, contestant.action), n))
            place = [wire_place[int(wire)] for wire in peer.wires]
            apart = max(apart, distance(cupy, states.state.amps, peer.amps, place))
        return contestants[seconds.index(min(seconds))], apart

    def _turns(self, contestants: Sequence[Contestant]) -> None:
        """A B, A B, ..."""
        for _ in range(self.repeats):
            for contestant in contestants:
                if contestant.before is not None:
                    contestant.before()
                self.engine.launcher.cupy.cuda.Device().synchronize()
                contestant.clocks.append(clock(self.engine.launcher.cupy, contestant.action))

    def _timing(self, contestant: Contestant, work: RowWork, states: RowStates) -> Timing:
        """The entry of ``contestant``; of ours with the plan's predictions beside its steps' times."""
        seconds = tuple(seconds_of(run, states.group.num_qubits) for run in contestant.clocks)
        gpu = OnGpu(states.pass_seconds)
        if contestant.plan is None:
            return replace(contestant.blank, seconds=seconds, gpu=gpu)
        told = describe_plan(contestant.plan)
        step_times = step_seconds(self.engine, states.state, contestant.plan.steps)
        steps = tuple({**step, "seconds": one} for step, one in zip(told["steps"], step_times, strict=True))
        whole = statistics.median(run.seconds for run in contestant.clocks)
        model = Model(told["predicted_seconds"], whole, told["passes"], told["bytes"], told["flops"], steps)
        host = statistics.median(run.host_seconds for run in contestant.clocks)
        gpu = OnGpu(states.pass_seconds, host, work.first_seconds[contestant.blank.variant], states.compile_seconds)
        redone = self.engine.take_checks(states.state).redone
        note = f"{redone} columns were redone natively" if redone else ""
        return replace(contestant.blank, seconds=seconds, gpu=gpu, model=model, note=note)
