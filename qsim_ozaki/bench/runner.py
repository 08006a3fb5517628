"""Times this package beside the other simulators (peers) that are installed, in turn in one run.

In: families, widths, precisions. Out: a `Report`. It may not print. Every simulator has a process of its own, so that
their OpenMP runtimes do not meet, and only one process works at a time. The timed work is the same for all simulators:
from the circuit in the simulator's own form to the final state as a NumPy array, with the allocation of memory and the
hand-over of the state.
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

from qsim_ozaki.bench.blocks.experiment import now
from qsim_ozaki.bench.options import PRECISIONS, SEVERAL, check_known, check_widths, command_line
from qsim_ozaki.bench.peers import PEERS
from qsim_ozaki.bench.process import Answer, Process, machine_busy_seconds
from qsim_ozaki.bench.record import OURS, UNSUPPORTED, Model, Report, Row, Timing
from qsim_ozaki.circuits import FAMILIES as KNOWN_FAMILIES
from qsim_ozaki.errors import EngineError

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
        "uccsd",
        "transpiled",
    ),
    *("dense5", "dense8", "dense10"),
)
SURVEY_QUBITS = 20  # the survey tries every peer and variant at this width: cheap, yet larger than most caches
VARIANT_NEAR = 1.3  # a variant slower than this times the peer's best in the survey does not run at full size
MOST_VARIANTS = 2  # of a peer at full size: the survey's order hardly changes with the width
PEER_NEAR = 3.0  # a peer slower than this times the best of the survey does not run at full size
REPEAT_NEAR = 1.25  # a peer slower than this times the best at full size is run once
SLOW_SECONDS = 1.0  # a survey run longer than this is not repeated, and a variant this slow has `EXTRA_RUNS` only
PAUSE_SECONDS = 0.1  # before a run: OpenMP threads spin this long after their work
EXTRA_RUNS = 2  # replace runs during which other processes used the machine
EXTRA_SHORT_RUNS = 10  # the same, for runs shorter than `SLOW_SECONDS`
WAIT_SECONDS = 2.0  # longest wait before one run for other processes to leave the machine
PATIENCE_SECONDS = 60.0  # longest sum of these waits
CLEAN_SHARE = 0.05  # a run is clean if other processes use at most this share of the machine
CLEAN_SECONDS = 0.015  # or at most this many CPU seconds: Linux counts in hundredths


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options of a CPU benchmark.

    Attributes:
        families: names of families in `qsim_ozaki.circuits`.
        qubits: widths.
        precisions: ``"double"``, ``"single"``.
        peers: keys of `PEERS`; a peer that is not installed is left out.
        repeats: counted runs of each simulator.
        threads: of every simulator, 0 for all cores.
        limit_seconds: longest run; a run that is expected to take longer is left out.
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
    """The measurements of one simulator for one row, while the row is measured."""

    process: Process
    variants: list[str] = field(default_factory=list)
    convert_seconds: dict[str, float] = field(default_factory=dict)
    first_seconds: dict[str, float] = field(default_factory=dict)  # first run at full size, whose state is compared
    runs: list[Answer] = field(default_factory=list)  # counted runs of the best variant
    plan: dict[str, Any] | None = None
    fidelity: float | None = None
    error: float | None = None
    note: str = ""

    @property
    def best(self) -> str:
        """The variant that was fastest in its first run."""
        return min(self.first_seconds, key=lambda variant: self.first_seconds[variant])

    def failed(self, answer: Answer) -> bool:
        """Whether ``answer`` is a failure; its reason becomes the note."""
        self.note = _reason(answer) or self.note
        return "unsupported" in answer or "failed" in answer


class Bench:
    """One benchmark run; use it as a context manager, which ends all processes."""

    def __init__(self, options: BenchOptions) -> None:
        self.options = options
        self.threads = options.threads or available_cores()
        self.folder = tempfile.TemporaryDirectory(prefix="qsim-ozaki-bench-")
        self.surveys: dict[tuple[str, int, str, str], dict[str, float] | str] = {}
        self.processes: list[Process] = []
        self.patience = PATIENCE_SECONDS

    def __enter__(self) -> Bench:
        """Starts every simulator once; ours is first and calibrates while no other works.

        Raises:
            EngineError: the process of this package does not start.
        """
        fresh = {"XDG_CACHE_HOME": self.folder.name}  # an empty cache: the ceilings are measured in this run
        simulators = [(OURS, precision, fresh) for precision in self.options.precisions]
        for name in self.options.peers:
            row = PEERS[name]
            if row.versions() is not None:
                precisions = [p for p in row.precisions if p in self.options.precisions]
                simulators += [(name, precision, dict(row.environment)) for precision in precisions]
        for name, precision, environment in simulators:
            process = Process(name, precision, self.threads, environment)
            self.processes.append(process)
            if not process.begin() and name == OURS:
                self.__exit__()
                raise EngineError(f"the benchmark's own process did not start: {process.failure}")
        return self

    def __exit__(self, *_: object) -> None:
        """Ends every process and removes the temporary files."""
        for process in self.processes:
            process.end()
        self.folder.cleanup()

    def row(self, family: str, num_qubits: int) -> Row:
        """Times every simulator on one circuit."""
        entries = [Entry(process) for process in self._order()]
        small = min(num_qubits, SURVEY_QUBITS)
        for entry in entries:
            self._choose_variants(entry, family, small)
        self._leave_out_slow(entries, family, num_qubits, small)
        num_gates = 0
        for entry in entries:
            if entry.variants:
                num_gates = self._convert(entry, family, num_qubits) or num_gates
        self._first_runs(entries)
        self._rounds(entries)
        return Row(family, num_qubits, num_gates, tuple(self._timing(entry) for entry in entries))

    def _pause(self) -> None:
        """Waits until the last simulator's threads sleep and other processes leave the machine."""
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
        """Returns the processes with double-precision peers first: the first one computes the reference state."""
        return sorted(self.processes, key=lambda p: (p.precision != "double", p.simulator == OURS))

    def _choose_variants(self, entry: Entry, family: str, num_qubits: int) -> None:
        """Chooses the variants that run at full size, by a survey at ``num_qubits``."""
        process = entry.process
        key = (family, num_qubits, process.simulator, process.precision)
        if not process.begin():
            entry.note = process.failure
        elif process.simulator == OURS:
            entry.variants = ["default"]
        else:
            if key not in self.surveys:
                self.surveys[key] = self._survey(process, family, num_qubits)
            survey = self.surveys[key]
            if isinstance(survey, str):
                entry.note = survey
                return
            ranked = sorted(survey, key=lambda variant: survey[variant])
            near = [variant for variant in ranked if survey[variant] <= VARIANT_NEAR * survey[ranked[0]]]
            entry.variants = near[:MOST_VARIANTS]

    def _survey(self, process: Process, family: str, num_qubits: int) -> dict[str, float] | str:
        """Measures each variant on a small circuit.

        Returns:
            Seconds of the fastest run of each variant, from two clean runs where possible; or the reason of a failure.
        """
        limit = self.options.limit_seconds
        circuit = process.ask("circuit", limit, family=family, num_qubits=num_qubits, seed=self.options.seed)
        least_seconds: dict[str, float] = {}
        last = circuit
        self._pause()
        for variant in circuit.get("variants", ()):
            last = process.ask("convert", limit, variant=variant)
            clean = 0
            for _ in range(2 + EXTRA_RUNS):
                enough = 1 if least_seconds.get(variant, 0) > SLOW_SECONDS else 2
                if "seconds" not in last or clean >= enough:
                    break
                last = process.ask("run", limit, variant=variant)
                if "seconds" in last:
                    least_seconds[variant] = min(least_seconds.get(variant, limit), last["seconds"])
                    clean += self._share(last) <= 0
        return least_seconds or _reason(last)

    def _leave_out_slow(self, entries: Iterable[Entry], family: str, num_qubits: int, small: int) -> None:
        """Leaves out the peers that the survey shows far behind the best, or too slow for the limit."""
        best: dict[str, float] = {}
        expected: list[tuple[Entry, float]] = []
        for entry in entries:
            survey = self.surveys.get((family, small, entry.process.simulator, entry.process.precision))
            if isinstance(survey, dict) and entry.variants:
                seconds = min(survey.values())
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
        """Makes the full-size circuit and its jobs; returns the circuit's number of instructions."""
        ask, limit = entry.process.ask, self.options.limit_seconds
        circuit = ask("circuit", limit, family=family, num_qubits=num_qubits, seed=self.options.seed)
        if entry.failed(circuit):
            entry.variants = []
            return 0
        for variant in list(entry.variants):
            answer = ask("convert", limit, variant=variant)
            if entry.failed(answer):
                entry.variants.remove(variant)
                continue
            entry.convert_seconds[variant] = answer["seconds"]
            entry.plan = answer.get("plan")
        return int(circuit["num_gates"])

    def _first_runs(self, entries: Iterable[Entry]) -> None:
        """Runs every variant once, to warm up, and compares its state with the first one."""
        file = Path(self.folder.name) / "reference.npy"
        reference = ""
        for entry in entries:
            for variant in entry.variants:
                file_argument = {"reference": reference} if reference else {"save": str(file)}
                self._pause()
                # The limit is doubled because the answer also waits for the state to be compared or saved.
                answer = entry.process.ask("run", 2 * self.options.limit_seconds, variant=variant, **file_argument)
                if entry.failed(answer):
                    continue
                reference = str(file)
                entry.first_seconds[variant] = answer["seconds"]
                if "error" in answer and answer["error"] >= (entry.error or 0):
                    entry.fidelity, entry.error = answer["fidelity"], answer["error"]
        file.unlink(missing_ok=True)

    def _rounds(self, entries: Iterable[Entry]) -> None:
        """Runs the entries near the best in turn, A B C A B C ..., until each has enough clean runs."""
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
        """Whether ``entry`` has too few clean runs and has not reached its limit of runs."""
        extra = EXTRA_RUNS if entry.first_seconds[entry.best] > SLOW_SECONDS else EXTRA_SHORT_RUNS
        clean = sum(self._share(run) <= 0 for run in entry.runs)
        return clean < self.options.repeats and len(entry.runs) < self.options.repeats + extra

    def _share(self, run: Answer) -> float:
        """The share of the machine that other processes used during ``run``; 0 for a clean run."""
        others = float(run["others_cpu_seconds"])
        share = others / (self.threads * run["seconds"])
        return 0.0 if others <= CLEAN_SECONDS or share <= CLEAN_SHARE else min(share, 1.0)

    def _timing(self, entry: Entry) -> Timing:
        """Returns the timing for the row, from the entry's cleanest runs."""
        blank = Timing(entry.process.simulator, entry.process.precision, note=entry.note)
        if not entry.first_seconds:
            return blank
        runs = sorted(entry.runs, key=self._share)[: self.options.repeats]  # stable: of clean runs the earlier ones
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
    """Returns the reason why ``answer`` has no time."""
    return f"{UNSUPPORTED}: {answer['unsupported']}" if "unsupported" in answer else str(answer.get("failed", ""))


def _model(plan: dict[str, Any], runs: list[Answer]) -> Model:
    """Returns the plan's predictions beside the median seconds of its steps."""
    columns = zip(*(run["step_seconds"] for run in runs), strict=True)
    steps = [
        {**step, "seconds": statistics.median(column)} for step, column in zip(plan["steps"], columns, strict=True)
    ]
    kernel = statistics.median(sum(run["step_seconds"]) for run in runs)
    return Model(plan["predicted_seconds"], kernel, plan["passes"], plan["bytes"], plan["flops"], tuple(steps))


def measure_circuits(options: BenchOptions, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Runs the CPU benchmark; Ctrl-C ends it with the rows so far.

    Args:
        options: of the benchmark.
        progress: called with the report so far after every row.

    Raises:
        OptionError: a family, precision or peer is not known, or a width is too small.
        EngineError: the process of this package does not start.
    """
    check_known("family", options.families, KNOWN_FAMILIES)
    check_known("precision", options.precisions, PRECISIONS)
    check_known("peer", options.peers, PEERS)
    check_widths(options.families, options.qubits)
    date = now()
    with Bench(options) as bench:
        device = bench.processes[0].device
        hardware = {"processor": device["name"], "cores": os.cpu_count(), "memory_bytes": device["memory_bytes"]}
        peers = sorted({process.simulator for process in bench.processes} - {OURS})
        versions = {OURS: version("qsim-ozaki")}
        for name in peers:
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
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
