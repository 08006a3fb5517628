"""Times this package's CUDA engine beside NVIDIA's cuStateVec, in turn in one process on one GPU.

In: options. Out: a `Report` of the same kind as a CPU's. It prints nothing. States stay on the GPU: what is timed is
from a state there to a state there, planned and compiled before.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version

import numpy as np

from qsim_ozaki.bench.blocks.experiment import now
from qsim_ozaki.bench.gpu import custatevec
from qsim_ozaki.bench.gpu.custatevec import CUSTATEVEC, ExState
from qsim_ozaki.bench.gpu.row import Group, RowStates, RowTimer, RowWork, lowered
from qsim_ozaki.bench.gpu.state import run_steps
from qsim_ozaki.bench.options import PRECISIONS, SEVERAL, check_known, check_widths, command_line
from qsim_ozaki.bench.record import FAILED, OURS, Report, Row, Timing
from qsim_ozaki.circuits import FAMILIES as CIRCUITS
from qsim_ozaki.engines import fill, haar
from qsim_ozaki.engines.cuda.calibrate import pass_seconds
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.engine import create
from qsim_ozaki.engines.cuda.tuning import ONCE_QUBITS, RUNS_BEFORE_COMPILING
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import MEASURED_HERE, ComplexArray, DenseBlock, Kind, Op, OpList, Path, amplitude_bytes
from qsim_ozaki.planner import PlanOptions, plan
from qsim_ozaki.provider import to_jsonable

BLOCKS = "blocks"  # the family that is no circuit: one matrix on some qubits
BLOCK_SIZES = (5, 6, 7, 8, 9, 10)
BLOCK_QUBITS = 28  # of the state, at most: passes are long enough to be timed
FROM_ZERO = ("hadamard",)  # families that are run from |0...0> too, at every width: a plan writes a product state
FROM_ZERO_QUBITS = 24  # width from which all are: passes over part of a state are shorter than passes over all of it
FAMILIES = (
    *("hadamard", "qft", "hadamard_layers", "random_u_cz", "trotter_ising", "efficient_su2", "quantum_volume"),
    BLOCKS,
)
RESERVED_BYTES = 3 << 29  # for random numbers and comparing, at most


@dataclass(frozen=True, slots=True)
class CudaBenchOptions:
    """Options of the benchmark on a GPU.

    Attributes:
        families: of `qsim_ozaki.circuits`, and `BLOCKS`.
        qubits: widths, the most important first.
        precisions: ``"double"``, ``"single"``.
        repeats: counted runs.
        seconds: after which no further row is begun, 0 for no limit.
        seed: of circuits and states.
    """

    families: tuple[str, ...] = FAMILIES
    qubits: tuple[int, ...] = (30, 10, 12, 16, 20, 28)
    precisions: tuple[str, ...] = PRECISIONS
    repeats: int = 5
    seconds: int = 0
    seed: int = 7


def groups(options: CudaBenchOptions) -> list[Group]:
    """The groups of rows in their order, the most important first.

    That is the first width and the blocks in the first precision, the first width in the others, the other widths in
    the first precision, and the rest.
    """
    (width, *widths), (first, *others) = options.qubits, options.precisions
    block_qubits = min(max(options.qubits), BLOCK_QUBITS)
    order = [Group(False, width, first), Group(True, block_qubits, first)]
    order += [Group(False, width, precision) for precision in others]
    order += [Group(False, n, first) for n in widths]
    for precision in others:
        order += [Group(True, block_qubits, precision), *(Group(False, n, precision) for n in widths)]
    kinds = {family == BLOCKS for family in options.families}
    return [group for group in order if group.blocks in kinds]


class CudaBench:
    """One run on the current GPU.

    Raises:
        EngineError: there is none, or no CuPy.
    """

    def __init__(self, options: CudaBenchOptions) -> None:
        self.options = options
        self.end = time.monotonic() + (options.seconds or float("inf"))
        self.engine = create()
        self.cupy = self.engine.launcher.cupy
        self.library, self.missing = custatevec.find()
        if self.engine.device().source != MEASURED_HERE:  # rates that ship with the package
            self.engine.calibrate()
        self.device = self.engine.device()
        self.matrices: dict[int, ComplexArray] = {}
        self.timer = RowTimer(self.engine, self.library, options.repeats, options.seed)

    def report(self) -> Report:
        """The report before the first row."""
        runtime, options = self.cupy.cuda.runtime, self.options
        versions = {OURS: version("qsim-ozaki"), "cupy": self.cupy.__version__, "numpy": np.__version__}
        versions |= {"driver": str(runtime.driverGetVersion()), "runtime": str(runtime.runtimeGetVersion())}
        if self.library:
            versions[CUSTATEVEC] = self.library.version
        hardware = {"processor": self.device.name, "memory_bytes": self.device.memory_bytes}
        flags = ("repeats", "seconds", "seed")
        command = command_line(options, CudaBenchOptions(), SEVERAL, flags, ("--engine", "cuda"))
        ceilings = to_jsonable(asdict(self.device))
        return Report(now(), hardware, 0, options.repeats, options.seed, ceilings, versions, command)

    def rows(self, group: Group) -> Iterator[Row]:
        """Every row of ``group``; what does not fit, is not reached in time, or fails is a row with the reason."""
        gc.collect()  # the states of the group before
        titles = self.titles(group)
        reason, with_peer, note = self.room(group)
        reason = self.late() or reason
        if reason:
            yield from (left_out(group, title, reason) for title in titles)
            return
        with ExitStack() as stack:
            stack.callback(self.cupy.get_default_memory_pool().free_all_blocks)
            states = self.states(group, with_peer, note, stack)
            make = self.block_work if group.blocks else self.circuit_work
            works = [make(group, title) for title in titles]
            failed = self.first_runs(works, states)
            for work in works:
                reason = failed.get(work.title) or self.late()
                try:
                    yield from [left_out(group, work.title, reason)] if reason else self.timed(work, states)
                except Exception as error:  # one row that fails must not lose the others
                    yield left_out(group, work.title, failure(error))
                self.cupy.get_default_memory_pool().free_all_blocks()

    def timed(self, work: RowWork, states: RowStates) -> list[Row]:
        """The rows of ``work``."""
        return self.timer.block_rows(work, states) if states.group.blocks else [self.timer.circuit_row(work, states)]

    def titles(self, group: Group) -> list[str]:
        """Names of the rows of ``group``."""
        if group.blocks:
            sizes = [size for size in BLOCK_SIZES if size <= group.num_qubits]
            return [f"block {size} {where}" for size in sizes for where in ("low", "high", "spread")]
        out = []
        for family in self.options.families:
            if family != BLOCKS:
                both = family in FROM_ZERO or group.num_qubits >= FROM_ZERO_QUBITS
                out += [family, f"{family} from zero"] if both else [family]
        return out

    def room(self, group: Group) -> tuple[str, bool, str]:
        """Why the group is left out, or nothing; whether the peer's state fits beside ours; why there is none."""
        needed = amplitude_bytes(group.precision) << group.num_qubits
        free = self.engine.launcher.free_bytes() - min(RESERVED_BYTES, needed)
        where = f"{self.device.name} has {max(free, 0) / 2**30:.3g} GiB for it"
        if needed > free:
            return f"left out: a state needs {needed / 2**30:.3g} GiB; {where}", False, ""
        if self.library is None:
            return "", False, self.missing
        if 2 * needed > free:
            return "", False, f"left out: its state and ours need {2 * needed / 2**30:.3g} GiB; {where}"
        return "", True, ""

    def late(self) -> str:
        """Why no further row begins; nothing while one may."""
        return f"left out: the {self.options.seconds} s were over" if time.monotonic() > self.end else ""

    def states(self, group: Group, with_peer: bool, note: str, stack: ExitStack) -> RowStates:
        """Both states of a group, freed with ``stack``."""
        states = RowStates(group, self.engine.allocate(group.num_qubits, group.precision))
        if with_peer and group.blocks:
            states.peer_block = self.engine.allocate(group.num_qubits, group.precision)
        elif with_peer and self.library:
            try:
                states.peer = ExState(self.library, self.cupy, group.num_qubits, group.precision)
                stack.callback(states.peer.close)
            except Exception as error:  # the library's own errors
                note = failure(error)
        fill(self.cupy, states.state.amps, self.options.seed)
        states.note, states.pass_seconds = note, pass_seconds(self.engine.launcher, states.state)
        return states

    def circuit_work(self, group: Group, title: str) -> RowWork:
        """A circuit, lowered and planned."""
        family, *words = title.split()
        start = time.perf_counter()
        ops = lowered(family, group.num_qubits, self.options.seed)
        options = PlanOptions(precision=group.precision, from_zero=bool(words))
        plans = {"auto": plan(ops, group.num_qubits, self.device, options)}
        return RowWork(title, ops, plans, bool(words), time.perf_counter() - start)

    def block_work(self, group: Group, title: str) -> RowWork:
        """A Haar-random matrix, planned natively, and as it is predicted to be fastest where that is by emulation."""
        size, where, n = int(title.split()[1]), title.split()[2], group.num_qubits
        places: dict[str, Sequence[int]] = {"low": range(size), "high": range(n - size, n)}
        places["spread"] = sorted(int(q) for q in np.random.default_rng(size).permutation(n)[:size])
        start = time.perf_counter()
        if size not in self.matrices:
            self.matrices[size] = haar(1 << size, self.options.seed)
        ops = OpList.of([Op(Kind.UNITARY, tuple(places[where]), self.matrices[size])])
        plans = {
            arithmetic: plan(ops, n, self.device, PlanOptions(group.precision, arithmetic))
            for arithmetic in ("native", "auto")
        }
        if not any(isinstance(step, DenseBlock) and step.path is Path.OZAKI for step in plans["auto"].steps):
            del plans["auto"]
        return RowWork(title, ops, plans, False, time.perf_counter() - start)

    def first_runs(self, works: Sequence[RowWork], states: RowStates) -> dict[str, str]:
        """Runs everything until all its kernels are asked for, and waits for them; returns what failed, and why."""
        times = 1 if states.group.num_qubits >= ONCE_QUBITS else RUNS_BEFORE_COMPILING + 1
        failed: dict[str, str] = {}
        for work in works:
            try:
                for arithmetic, chosen in work.plans.items():
                    start = time.perf_counter()
                    run_steps(self.engine, states.state, chosen.steps)
                    self.cupy.cuda.Device().synchronize()
                    work.first_seconds[arithmetic] = time.perf_counter() - start
                    for _ in range(1, times):
                        run_steps(self.engine, states.state, chosen.steps)
            except Exception as error:  # one row that fails must not lose the others
                failed[work.title] = failure(error)
            if self.late():
                break
        start = time.perf_counter()
        self.engine.compiler.finish()
        states.compile_seconds = time.perf_counter() - start
        return failed


def failure(error: Exception) -> str:
    """The error as a note."""
    return f"{FAILED}: {type(error).__name__}: {error}"[:300]


def left_out(group: Group, title: str, reason: str) -> Row:
    """A row without times."""
    return Row(title, group.num_qubits, 0, (Timing(OURS, group.precision, note=reason),))


def measure_gpu(options: CudaBenchOptions, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Runs the benchmark.

    Ctrl-C ends it with the rows so far.

    Args:
        options: what to time.
        progress: called with the report so far after every row.

    Raises:
        OptionError: a family or precision is not known, or a width too small.
        EngineError: there is no GPU, or no CuPy.
    """
    check_known("family", options.families, (*CIRCUITS, BLOCKS))
    check_known("precision", options.precisions, PRECISIONS)
    least = max(shape.register_qubits for shape in SHAPES.values())
    if min(options.qubits) < least:
        raise OptionError(f"{min(options.qubits)} qubits were asked for; a GPU's benchmark takes {least} and more.")
    check_widths((family for family in options.families if family != BLOCKS), options.qubits)
    bench = CudaBench(options)
    report = bench.report()
    try:
        for group in groups(options):
            for row in bench.rows(group):
                report = replace(report, rows=(*report.rows, row))
                progress(report)
    except KeyboardInterrupt:
        if not report.rows:
            raise
    return report
