"""Runs random cases until the time is over, in two processes; reports every failure with its seed, and all counts.

usage: python -P -m fuzz.run SECONDS [SEED [NUMBER]], with the folder of tests on the path. NUMBER runs one case alone.
It fails too where a gate of the target, a kind of step or a kind of check was never reached.
"""

import multiprocessing
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fuzz import estimate_cases, history_cases, pure_cases
from fuzz.draws import MORE
from fuzz.setting import Case, shared_backend
from support.random_circuits import FAMILIES, STANDARD

NUM_WORKERS = 2
PATIENCE_SECONDS = 120  # a case takes at most a few
MAX_FAILURES = 10
KINDS = (
    pure_cases.amplitudes,
    pure_cases.saves,
    pure_cases.samples,
    pure_cases.emulated,
    pure_cases.lists,
    pure_cases.wide,
    history_cases.histories,
    history_cases.control_flow,
    history_cases.mixed_estimates,
    estimate_cases.rows,
    estimate_cases.estimates,
    estimate_cases.gradients,
)
STEPS = ("prepare", "tile", "hadamard", "dense_native", "dense_ozaki", "relabel", "stack")
MEANS = [
    f"mean {form} of {kind} over histories" for form in history_cases.SAVED_FORMS for kind in history_cases.SAVED_KINDS
]
CHECKS = [
    *("amplitudes in double precision", "amplitudes in single precision", "amplitudes from a start"),
    *("amplitudes from zero", "wide amplitudes", "emulated amplitudes", "amplitudes of a row"),
    *("samples", "exact probabilities", "samples of a sampler", "samples of a list", "samples of a routed circuit"),
    *("samples of a row", "samples of histories", "samples of control flow", "exact control flow", "exact histories"),
    *("saved means of shots", "save pershot", "save conditional", "save unnormalized", *MEANS),
    *("exact estimates", "sampled estimates", "sampled terms", "exact estimates of histories"),
    *("sampled estimates of histories", "derivatives", *(f"save of {kind}" for kind in pure_cases.SAVED_KINDS)),
]


@dataclass
class Report:
    """Everything that one worker did.

    Attributes:
        tally: counts of gates, steps and checks.
        failures: (number, message) of each case that failed.
    """

    tally: Counter = field(default_factory=Counter)
    failures: list = field(default_factory=list)


def expected():
    """Everything that a whole run must reach."""
    names = [name for name in shared_backend().target.operation_names if not name.startswith("save_")]
    gates = {f"gate {name}" for name in (*names, *STANDARD, *FAMILIES, *MORE, "nested", "composite")}
    return sorted(gates | {f"step {name}" for name in STEPS} | {f"check {name}" for name in CHECKS})


def run_case(seed, number, kinds=KINDS):
    """Runs one case; returns it and the message of its failure, or None."""
    case = Case(seed, number, number // len(kinds))
    kind = kinds[number % len(kinds)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", module=r"qiskit\.|scipy\.")  # Qiskit's matrix of an evolution, and others
            kind(case)
    except Exception:
        told = f"{kind.__name__}: {'; '.join(case.story)}\n{traceback.format_exc(limit=-3)}"
        return case, told
    case.tally[f"case {kind.__name__}"] += 1
    return case, None


def work(seed, first, end, current, reports):
    """Runs every ``NUM_WORKERS``-th case from ``first`` until the time ``end``; ``current`` holds its number."""
    report, number = Report(), first
    while time.monotonic() < end and len(report.failures) < MAX_FAILURES:
        current.value = number
        case, failure = run_case(seed, number)
        report.tally += case.tally
        report.tally["cases"] += 1
        if failure is not None:
            report.failures.append((number, failure))
        number += NUM_WORKERS
    reports.put(report)


def run_all(seed, seconds):
    """Runs the workers; returns their reports as one. A worker that ends early or hangs is a failure of its case."""
    context, total = multiprocessing.get_context("spawn"), Report()
    reports, end = context.Queue(), time.monotonic() + seconds
    workers = []
    for first in range(NUM_WORKERS):
        current = context.Value("q", -1)
        workers.append((context.Process(target=work, args=(seed, first, end, current, reports)), current))
        workers[-1][0].start()
    waiting = NUM_WORKERS
    while waiting and time.monotonic() < end + PATIENCE_SECONDS:
        if not reports.empty():
            report = reports.get()
            total.tally += report.tally
            total.failures += report.failures
            waiting -= 1
        elif all(not process.is_alive() for process, _ in workers) and reports.empty():
            break
        time.sleep(0.1)
    for process, current in workers:
        if waiting and (process.is_alive() or process.exitcode):
            reason = "hangs" if process.is_alive() else f"ended its process with code {process.exitcode}"
            total.failures.append((current.value, f"the case {reason}"))
        if process.is_alive() and waiting:
            process.kill()
        process.join()
    return total


def told(seed, report):
    """The report as lines of text, and whether all is well."""
    lines = []
    for number, failure in report.failures:
        lines += [f"FAILED case {number} of seed {seed}: {failure}", f"again: .ci/fuzz PYTHON 0 {seed} {number}", ""]
    missing = [name for name in expected() if not report.tally[name]]
    if missing:
        lines.append(f"FAILED: never reached: {', '.join(missing)}")
    groups = {group: {} for group in ("case", "check", "step", "gate")}
    for name, count in sorted(report.tally.items()):
        group, _, rest = name.partition(" ")
        if group in groups:
            groups[group][rest] = count
    for group in ("case", "check", "step"):
        lines.append(f"{group}s: " + ", ".join(f"{count} {name}" for name, count in groups[group].items()))
    lines.append(f"gates: {sum(groups['gate'].values())} of {len(groups['gate'])} kinds")
    checks = sum(groups["check"].values())
    lines.append(f"fuzz: seed {seed}, {report.tally['cases']} cases, {checks} checks, {len(report.failures)} failures")
    return lines, not (report.failures or missing)


def main(arguments):
    """Runs the command line; returns its exit status."""
    seconds = float(arguments[0])
    seed = int(arguments[1]) if len(arguments) > 1 else int(datetime.now(UTC).strftime("%Y%m%d"))
    print(f"fuzz: seed {seed}, {seconds:.0f} s", flush=True)
    if len(arguments) > 2:
        case, failure = run_case(seed, int(arguments[2]))
        if failure is not None and case.circuit is not None:
            print(case.circuit)
        print(failure or f"case {arguments[2]} passes: {dict(case.tally)}")
        return int(failure is not None)
    lines, well = told(seed, run_all(seed, seconds))
    print("\n".join(lines))
    return int(not well)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
