"""Times this package beside the peers that are installed, in turn in one run.

In: families, sizes, precisions. Out: a `Report`. It prints nothing. Every simulator has a process of its own, so that
their OpenMP runtimes do not meet, and only one works at a time. What is timed is the same for all: from a circuit in
the simulator's own terms to the final state as a NumPy array, memory and hand-over included.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qsim_ozaki.bench_options import PRECISIONS, SEVERAL, check_known, check_widths, command_line
from qsim_ozaki.bench_process import Answer, Process, machine_busy_seconds
from qsim_ozaki.bench_record import OURS, UNSUPPORTED, Model, Report, Row, Timing
from qsim_ozaki.circuits import FAMILIES as KNOWN_FAMILIES
from qsim_ozaki.errors import EngineError
from qsim_ozaki.experiment import now
from qsim_ozaki.peers import PEERS

FAMILIES = (
    *(
        "ghz",
        "hadamard_layers",
        "qft",
        "quantum_volume",
        "random_brickwork",
        "trotter_ising",
        "efficient_su2",
        "grover",
    ),
    *("dense5", "dense8", "dense10"),
)
SURVEY_QUBITS = 20  # where every peer and variant is tried; cheap, yet larger than most caches
VARIANT_NEAR = 1.3  # variants this near the best of the survey stay in the race,
MOST_VARIANTS = 2  # the best ones: the survey's order hardly changes with size
PEER_NEAR = 3.0  # peers slower than this times the best of the survey do not run at full size
REPEAT_NEAR = 1.25  # peers slower than this times the best at full size are not repeated
SLOW_SECONDS = 1.0  # a survey run longer than this needs no second one, others have fewer extra runs
PAUSE_SECONDS = 0.1  # OpenMP threads spin as long after their work
EXTRA_RUNS = 2  # in place of runs during which others used the machine,
EXTRA_SHORT_RUNS = 10  # more where a run is shorter than a second
WAIT_SECONDS = 2.0  # for others to leave the machine, before one run,
PATIENCE_SECONDS = 60.0  # and before all
CLEAN_SHARE = 0.05  # of the machine that others may use during a run that counts,
CLEAN_SECONDS = 0.015  # or this many CPU seconds: the kernel counts in hundredths


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to time.

    Attributes:
        families: of `qsim_ozaki.circuits`.
        qubits: widths.
        precisions: ``"double"``, ``"single"``.
        peers: keys of `PEERS`; those that are not installed are left out.
        repeats: counted runs.
        threads: of every simulator, 0 for all cores.
        limit_seconds: longest run; what is expected to take longer is left out.
        seed: of the circuits.
    """

    families: tuple[str, ...] = FAMILIES
    qubits: tuple[int, ...] = (20, 22)
    precisions: tuple[str, ...] = ("double", "single")
    peers: tuple[str, ...] = tuple(PEERS)
    repeats: int = 5
    threads: int = 0
    limit_seconds: float = 60.0
    seed: int = 7


@dataclass(slots=True)
class Entry:
    """A simulator's part in one row, while it is being filled."""

    process: Process
    variants: list[str] = field(default_factory=list)
    convert_seconds: dict[str, float] = field(default_factory=dict)
    first_seconds: dict[str, float] = field(default_factory=dict)  # at full size, the run that checks
    runs: list[Answer] = field(default_factory=list)  # of the best variant
    plan: dict[str, Any] | None = None
    fidelity: float | None = None
    error: float | None = None
    note: str = ""

    @property
    def best(self) -> str:
        """The variant that was fastest in its first run."""
        return min(self.first_seconds, key=lambda variant: self.first_seconds[variant])

    def failed(self, answer: Answer) -> bool:
        """Whether ``answer`` says so; the reason becomes the note."""
        self.note = _reason(answer) or self.note
        return "unsupported" in answer or "failed" in answer


class Bench:
    """One benchmark run; use it as a context, so that no process is left."""

    def __init__(self, options: BenchOptions) -> None:
        self.options = options
        self.threads = options.threads or available_cores()
        self.folder = tempfile.TemporaryDirectory(prefix="qsim-ozaki-bench-")
        self.surveys: dict[tuple[str, int, str, str], dict[str, float] | str] = {}
        self.processes: list[Process] = []
        self.patience = PATIENCE_SECONDS

    def __enter__(self) -> Bench:
        """Starts every simulator once, ours first: it calibrates while nobody else works.

        Raises:
            EngineError: ours does not start.
        """
        fresh = {"XDG_CACHE_HOME": self.folder.name}  # so that the ceilings are measured in this run
        wanted = [(OURS, precision, fresh) for precision in self.options.precisions]
        for name in self.options.peers:
            row = PEERS[name]
            if row.versions() is not None:
                both = [p for p in row.precisions if p in self.options.precisions]
                wanted += [(name, precision, dict(row.environment)) for precision in both]
        for name, precision, environment in wanted:
            process = Process(name, precision, self.threads, environment)
            self.processes.append(process)
            if not process.begin() and name == OURS:
                self.__exit__()
                raise EngineError(f"the benchmark's own process did not start: {process.failure}")
        return self

    def __exit__(self, *_: object) -> None:
        """Ends every process and removes the files."""
        for process in self.processes:
            process.end()
        self.folder.cleanup()

    def row(self, family: str, num_qubits: int) -> Row:
        """Times every simulator on one circuit."""
        entries = [Entry(process) for process in self._order()]
        small = min(num_qubits, SURVEY_QUBITS)
        for entry in entries:
            self._enter(entry, family, small)
        self._leave_out_slow(entries, family, num_qubits, small)
        num_gates = 0
        for entry in entries:
            if entry.variants:
                num_gates = self._convert(entry, family, num_qubits) or num_gates
        self._first_runs(entries)
        self._rounds(entries)
        return Row(family, num_qubits, num_gates, tuple(self._timing(entry) for entry in entries))

    def _pause(self) -> None:
        """Lets the last one's threads fall asleep, and others leave the machine."""
        time.sleep(PAUSE_SECONDS)
        most = min(WAIT_SECONDS, self.patience)
        waited = 0.0
        while waited < most:
            busy = machine_busy_seconds()
            time.sleep(PAUSE_SECONDS)
            if machine_busy_seconds() - busy <= CLEAN_SECONDS:
                break
            waited += PAUSE_SECONDS
        self.patience -= waited

    def _order(self) -> list[Process]:
        """Double-precision peers first, for the first of them gives the reference state."""
        return sorted(self.processes, key=lambda p: (p.precision != "double", p.simulator == OURS))

    def _enter(self, entry: Entry, family: str, num_qubits: int) -> None:
        """Finds the variants that are worth a full-size run."""
        process = entry.process
        key = (family, num_qubits, process.simulator, process.precision)
        if not process.begin():
            entry.note = process.failure
        elif process.simulator == OURS:
            entry.variants = ["default"]
        else:
            if key not in self.surveys:
                self.surveys[key] = self._survey(process, family, num_qubits)
            found = self.surveys[key]
            if isinstance(found, str):
                entry.note = found
                return
            ranked = sorted(found, key=lambda variant: found[variant])
            near = [variant for variant in ranked if found[variant] <= VARIANT_NEAR * found[ranked[0]]]
            entry.variants = near[:MOST_VARIANTS]

    def _survey(self, process: Process, family: str, num_qubits: int) -> dict[str, float] | str:
        """Seconds of each variant on a small circuit, the faster of two clean runs; or why there are none."""
        limit = self.options.limit_seconds
        taken = process.ask("circuit", limit, family=family, num_qubits=num_qubits, seed=self.options.seed)
        found: dict[str, float] = {}
        last = taken
        self._pause()
        for variant in taken.get("variants", ()):
            last = process.ask("convert", limit, variant=variant)
            clean = 0
            for _ in range(2 + EXTRA_RUNS):
                if "seconds" not in last or clean >= (1 if found.get(variant, 0) > SLOW_SECONDS else 2):
                    break
                last = process.ask("run", limit, variant=variant)
                if "seconds" in last:
                    found[variant] = min(found.get(variant, limit), last["seconds"])
                    clean += self._share(last) <= 0
        return found or _reason(last)

    def _leave_out_slow(self, entries: Iterable[Entry], family: str, num_qubits: int, small: int) -> None:
        """Drops peers that the survey shows to be far behind the best, or too slow for the limit."""
        best: dict[str, float] = {}
        expected: list[tuple[Entry, float]] = []
        for entry in entries:
            found = self.surveys.get((family, small, entry.process.simulator, entry.process.precision))
            if isinstance(found, dict) and entry.variants:
                seconds = min(found.values())
                expected.append((entry, seconds))
                best[entry.process.precision] = min(seconds, best.get(entry.process.precision, seconds))
        for entry, seconds in expected:
            times = seconds / best[entry.process.precision]
            full = seconds * 2.0 ** (num_qubits - small)
            if num_qubits > small and times > PEER_NEAR:
                entry.note = f"left out: {times:.1f} times the best peer at {small} qubits"
            elif full > self.options.limit_seconds:
                entry.note = f"left out: expected {full:.0f} s"
            if entry.note:
                entry.variants = []

    def _convert(self, entry: Entry, family: str, num_qubits: int) -> int:
        """Full-size circuit and jobs; returns the circuit's number of instructions."""
        ask, limit = entry.process.ask, self.options.limit_seconds
        taken = ask("circuit", limit, family=family, num_qubits=num_qubits, seed=self.options.seed)
        if entry.failed(taken):
            entry.variants = []
            return 0
        for variant in list(entry.variants):
            answer = ask("convert", limit, variant=variant)
            if entry.failed(answer):
                entry.variants.remove(variant)
                continue
            entry.convert_seconds[variant] = answer["seconds"]
            entry.plan = answer.get("plan")
        return int(taken["num_gates"])

    def _first_runs(self, entries: Iterable[Entry]) -> None:
        """Warms up every entry and compares its state with that of the first."""
        file = Path(self.folder.name) / "reference.npy"
        reference = ""
        for entry in entries:
            for variant in entry.variants:
                given = {"reference": reference} if reference else {"save": str(file)}
                self._pause()
                # comparing and saving take time too, and are not the simulator's
                answer = entry.process.ask("run", 2 * self.options.limit_seconds, variant=variant, **given)
                if entry.failed(answer):
                    continue
                reference = str(file)
                entry.first_seconds[variant] = answer["seconds"]
                if "error" in answer and answer["error"] >= (entry.error or 0):
                    entry.fidelity, entry.error = answer["fidelity"], answer["error"]
        file.unlink(missing_ok=True)

    def _rounds(self, entries: Iterable[Entry]) -> None:
        """A B C, A B C, ... over the entries near the best, until each has enough clean runs."""
        timed = [entry for entry in entries if entry.first_seconds]
        best: dict[str, float] = {}
        for entry in timed:
            if entry.process.simulator != OURS:
                seconds = entry.first_seconds[entry.best]
                best[entry.process.precision] = min(seconds, best.get(entry.process.precision, seconds))
        racing = []
        for entry in timed:
            limit = REPEAT_NEAR * best.get(entry.process.precision, 0)
            if entry.process.simulator == OURS or entry.first_seconds[entry.best] <= limit:
                racing.append(entry)
            else:
                entry.note = "run once"
        for _ in range(self.options.repeats + EXTRA_SHORT_RUNS):
            for entry in racing:
                if self._wants_more(entry):
                    self._pause()
                    answer = entry.process.ask("run", self.options.limit_seconds, variant=entry.best)
                    if not entry.failed(answer):
                        entry.runs.append(answer)

    def _wants_more(self, entry: Entry) -> bool:
        """Whether ``entry`` has too few clean runs, and may have more."""
        extra = EXTRA_RUNS if entry.first_seconds[entry.best] > SLOW_SECONDS else EXTRA_SHORT_RUNS
        clean = sum(self._share(run) <= 0 for run in entry.runs)
        return clean < self.options.repeats and len(entry.runs) < self.options.repeats + extra

    def _share(self, run: Answer) -> float:
        """Share of the machine that others used during ``run``; 0 where it is within what may be."""
        others = float(run["others_cpu_seconds"])
        share = others / (self.threads * run["seconds"])
        return 0.0 if others <= CLEAN_SECONDS or share <= CLEAN_SHARE else min(share, 1.0)

    def _timing(self, entry: Entry) -> Timing:
        """The row's entry, from its cleanest runs."""
        blank = Timing(entry.process.simulator, entry.process.precision, note=entry.note)
        if not entry.first_seconds:
            return blank
        runs = sorted(entry.runs, key=self._share)[: self.options.repeats]  # stable: the earlier of two clean ones
        seconds = [run["seconds"] for run in runs] or [entry.first_seconds[entry.best]]
        return replace(
            blank,
            variant=entry.best,
            seconds=tuple(seconds),
            convert_seconds=entry.convert_seconds[entry.best],
            others_share=max((self._share(run) for run in runs), default=0.0),
            fidelity=entry.fidelity,
            error=entry.error,
            model=_model(entry.plan, runs) if entry.plan and runs else None,
        )


def _reason(answer: Answer) -> str:
    """Why ``answer`` has no time in it."""
    return f"{UNSUPPORTED}: {answer['unsupported']}" if "unsupported" in answer else str(answer.get("failed", ""))


def _model(plan: dict[str, Any], runs: list[Answer]) -> Model:
    """The plan's predictions beside the medians of its steps."""
    columns = zip(*(run["step_seconds"] for run in runs), strict=True)
    steps = [
        {**step, "seconds": statistics.median(column)} for step, column in zip(plan["steps"], columns, strict=True)
    ]
    kernel = statistics.median(sum(run["step_seconds"]) for run in runs)
    return Model(plan["predicted_seconds"], kernel, plan["passes"], plan["bytes"], plan["flops"], tuple(steps))


def measure(options: BenchOptions, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Runs the benchmark.

    Ctrl-C ends it with the rows so far.

    Args:
        options: what to time.
        progress: called with the report so far after every row.

    Raises:
        OptionError: a family, precision or peer is not known, or a width too small.
        EngineError: this package's own process does not start.
    """
    check_known("family", options.families, KNOWN_FAMILIES)
    check_known("precision", options.precisions, PRECISIONS)
    check_known("peer", options.peers, PEERS)
    check_widths(options.families, options.qubits)
    date = now()
    with Bench(options) as bench:
        device = bench.processes[0].device
        hardware = {"processor": device["name"], "cores": os.cpu_count(), "memory_bytes": device["memory_bytes"]}
        found = sorted({process.simulator for process in bench.processes} - {OURS})
        versions = {OURS: version("qsim-ozaki")}
        for name in found:
            versions |= PEERS[name].versions() or {}
        words = command_line(options, BenchOptions(), SEVERAL | {"peer": "peers"}, ("repeats", "threads", "seed"))
        report = Report(date, hardware, bench.threads, options.repeats, options.seed, device, versions, words)
        try:
            for num_qubits in options.qubits:
                for family in options.families:
                    report = replace(report, rows=(*report.rows, bench.row(family, num_qubits)))
                    progress(report)
        except KeyboardInterrupt:
            if not report.rows:
                raise
    return report


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
