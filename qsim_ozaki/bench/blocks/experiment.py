"""Experiments: several variants of one linear map, timed in turn and compared with an exact result.

In: variants. Out: an `Experiment`. It may not depend on an arithmetic, a circuit or an engine, and may not print.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCHEMA = 1  # of the JSON file
ACCURACIES = ("single", "34 bits", "double")  # ascending: a variant competes at its own accuracy and at all lower ones


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to apply the map.

    Attributes:
        name: as in the tables.
        accuracy: ``"double"``, ``"34 bits"`` or ``"single"``: the variants that it competes with.
        step: applies the map once to the variant's data; this call is timed.
        columns: returns the columns with these numbers after the first step, ``(rows, len(numbers))``.
        bytes: moved between memory and the chip, as counted from the algorithm.
        note: names work that is not in the time.
        whole: whether the time is that of the whole map; only such a variant can win.
    """

    name: str
    accuracy: str
    step: Callable[[], object]
    columns: Callable[[NDArray[np.int64]], NDArray[np.complexfloating]]
    bytes: float
    note: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """The results of one variant at one size.

    Attributes:
        size: qubits of the map.
        variant: name of the variant.
        accuracy: as in `Variant`.
        seconds: one per counted step; empty if the variant was not run: ``note`` says why.
        bytes: as in `Variant`.
        error: largest error of the checked columns over a column's norm, against extended precision.
        note: names work that is not in the time, or the reason why there is no time.
        whole: whether the time is that of the whole map.
    """

    size: int
    variant: str
    accuracy: str
    seconds: tuple[float, ...] = ()
    bytes: float = 0.0
    error: float | None = None
    note: str = ""
    whole: bool = True

    @property
    def least(self) -> float:
        """The least seconds, of the step that other processes disturbed least; variants are compared by them."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The results of one run.

    Attributes:
        title: of the experiment.
        date: of the start, with the time zone.
        hardware: the processor or GPU.
        command: the command line that repeats the run.
        num_qubits: of the state that the maps act on.
        threads: of a CPU engine; 0 for a GPU.
        repeats: counted steps of each variant.
        lines: one per variant and size.
    """

    title: str
    date: str
    hardware: str
    command: str
    num_qubits: int
    threads: int
    repeats: int
    lines: tuple[Line, ...] = ()

    def conclusions(self) -> list[str]:
        """Returns a line per size and accuracy: the fastest variant that is accurate enough, by how much, and why."""
        conclusions = []
        timed = [line for line in self.lines if line.seconds and line.whole]
        for size, accuracy in dict.fromkeys((line.size, line.accuracy) for line in timed):
            enough = ACCURACIES[ACCURACIES.index(accuracy) :]
            lines = [line for line in timed if line.size == size and line.accuracy in enough]
            first, *others = sorted(lines, key=lambda line: line.least)
            if others:
                conclusions.append(f"{size} qubits, {accuracy}: {first.variant} wins, {_why(first, others[0])}")
        return conclusions

    def as_json(self) -> dict[str, Any]:
        """Returns every field, with the least and the median seconds of each line, and the conclusions."""
        out = {"schema": SCHEMA} | asdict(self)
        for line, record in zip(self.lines, out["lines"], strict=True):
            record["least_seconds"] = line.least if line.seconds else None
            record["median_seconds"] = line.median if line.seconds else None
        return out | {"conclusions": self.conclusions()}


def _why(first: Line, second: Line) -> str:
    """Explains why ``first`` is faster than ``second``, as far as the bytes moved explain it."""
    ratio = second.least / first.least
    text = f"{ratio:.2f} times {second.variant}"
    moved = second.bytes / first.bytes
    rates = f"{first.bytes / first.least / 1e9:.3g} and {second.bytes / second.least / 1e9:.3g} GB/s"
    if moved >= 0.75 * ratio:
        return f"{text}: the other moves {moved:.1f} times its bytes, at {rates}"
    return f"{text}: by less arithmetic, for the other moves {moved:.1f} times its bytes, at {rates}"


Timer = Callable[[Callable[[], object]], float]


def wall_seconds(step: Callable[[], object]) -> float:
    """Measures the seconds of one step that runs on this thread."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


@dataclass(slots=True)
class Trial:
    """The comparison of variants at one size.

    Attributes:
        size: qubits of the map.
        numbers: numbers of the columns that are checked.
        exact: images of these columns, ``(rows, len(numbers))``, in extended precision.
        norms: norms of these columns before the map.
        timer: measures the seconds of a step.
        lines: results.
    """

    size: int
    numbers: NDArray[np.int64]
    exact: NDArray[np.clongdouble]
    norms: NDArray[np.longdouble]
    timer: Timer = wall_seconds
    lines: list[Line] = field(default_factory=list)

    def run(self, variants: Sequence[Variant], repeats: int) -> list[Line]:
        """Runs every variant once for its error, then all of them in turn, ``repeats`` times."""
        errors = []
        for variant in variants:
            variant.step()
            columns = variant.columns(self.numbers).astype(np.clongdouble)
            errors.append(float(np.max(np.abs(columns - self.exact) / self.norms)))
        seconds: list[list[float]] = [[] for _ in variants]
        for _ in range(repeats):
            for times, variant in zip(seconds, variants, strict=True):
                times.append(self.timer(variant.step))
        return [
            Line(self.size, v.name, v.accuracy, tuple(times), v.bytes, error, v.note, v.whole)
            for v, times, error in zip(variants, seconds, errors, strict=True)
        ]


def now() -> str:
    """Returns the current time with its time zone, in ISO format."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def renamed(lines: Iterable[Mapping[str, Any]], suffix: str) -> list[Line]:
    """Returns the lines of another process's JSON record, with ``suffix`` added to the variants' names."""
    out = []
    for record in lines:
        fields = {name: record[name] for name in ("size", "accuracy", "bytes", "error", "note", "whole")}
        out.append(Line(variant=f"{record['variant']} {suffix}".strip(), seconds=tuple(record["seconds"]), **fields))
    return out


def environment(**changes: str) -> dict[str, str]:
    """Returns this process's environment with ``changes``."""
    return {**os.environ, **changes}
