"""Experiments: several ways to do the same linear map, timed in turn and compared with an exact result.

In: variants. Out: an `Experiment`. It knows no arithmetic, no circuit and no engine, and prints nothing.
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
ACCURACIES = ("single", "34 bits", "double")  # ascending: what is more accurate competes at less, too


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to do it.

    Attributes:
        name: as tables have it.
        accuracy: ``"double"``, ``"34 bits"`` or ``"single"``: what it competes with.
        step: does it once, on what it was made with; this is timed.
        columns: the columns with these numbers after the first step, ``(rows, len(numbers))``.
        bytes: moved between memory and the chip, as counted from the algorithm.
        note: what is not in the time.
        whole: whether the time is that of the whole map, so that it may win.
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
    """What one variant took at one size.

    Attributes:
        size: qubits of the map.
        variant: its name.
        accuracy: as `Variant` has it.
        seconds: one per counted step; empty: it was not run, and ``note`` says why.
        bytes: as `Variant` has them.
        error: largest error of the checked columns over a column's norm, against extended precision.
        note: what is not in the time, or why there is none.
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
        """Seconds of the step that others disturbed least: what variants are compared by."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One run.

    Attributes:
        title: what was done.
        date: when it began.
        hardware: the processor or card.
        command: that repeats it.
        num_qubits: of the state that the maps act on.
        threads: of a CPU engine.
        repeats: counted steps of each variant.
        lines: what was measured.
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
        """Per size and accuracy the fastest that is accurate enough, by how much, and what the next does more."""
        out = []
        timed = [line for line in self.lines if line.seconds and line.whole]
        for size, accuracy in dict.fromkeys((line.size, line.accuracy) for line in timed):
            enough = ACCURACIES[ACCURACIES.index(accuracy) :]
            lines = [line for line in timed if line.size == size and line.accuracy in enough]
            first, *others = sorted(lines, key=lambda line: line.least)
            if others:
                out.append(f"{size} qubits, {accuracy}: {first.variant} wins, {_why(first, others[0])}")
        return out

    def as_json(self) -> dict[str, Any]:
        """Every field, with the least and the median of each line, and conclusions."""
        out = {"schema": SCHEMA} | asdict(self)
        for line, record in zip(self.lines, out["lines"], strict=True):
            record["least_seconds"] = line.least if line.seconds else None
            record["median_seconds"] = line.median if line.seconds else None
        return out | {"conclusions": self.conclusions()}


def _why(first: Line, second: Line) -> str:
    """What sets the two fastest apart, as far as bytes tell."""
    ratio = second.least / first.least
    text = f"{ratio:.2f} times {second.variant}"
    moved = second.bytes / first.bytes
    rates = f"{first.bytes / first.least / 1e9:.3g} and {second.bytes / second.least / 1e9:.3g} GB/s"
    if moved >= 0.75 * ratio:
        return f"{text}: the other moves {moved:.1f} times its bytes, at {rates}"
    return f"{text}: by less arithmetic, for the other moves {moved:.1f} times its bytes, at {rates}"


Timer = Callable[[Callable[[], object]], float]


def wall_seconds(step: Callable[[], object]) -> float:
    """Seconds of one step that runs on this thread."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


@dataclass(slots=True)
class Trial:
    """What variants of one size are compared by.

    Attributes:
        size: qubits of the map.
        numbers: columns that are checked.
        exact: their images, ``(rows, len(numbers))``, in extended precision.
        norms: of the columns before.
    """

    size: int
    numbers: NDArray[np.int64]
    exact: NDArray[np.clongdouble]
    norms: NDArray[np.longdouble]
    timer: Timer = wall_seconds
    lines: list[Line] = field(default_factory=list)

    def run(self, variants: Sequence[Variant], repeats: int) -> list[Line]:
        """Every variant once for its error, then all of them in turn, ``repeats`` times."""
        errors = []
        for variant in variants:
            variant.step()
            found = variant.columns(self.numbers).astype(np.clongdouble)
            errors.append(float(np.max(np.abs(found - self.exact) / self.norms)))
        seconds: list[list[float]] = [[] for _ in variants]
        for _ in range(repeats):
            for times, variant in zip(seconds, variants, strict=True):
                times.append(self.timer(variant.step))
        return [
            Line(self.size, v.name, v.accuracy, tuple(times), v.bytes, error, v.note, v.whole)
            for v, times, error in zip(variants, seconds, errors, strict=True)
        ]


def now() -> str:
    """The time, with its zone."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def renamed(lines: Iterable[Mapping[str, Any]], suffix: str) -> list[Line]:
    """The lines of another process's JSON record, their variants marked by ``suffix``."""
    out = []
    for record in lines:
        fields = {name: record[name] for name in ("size", "accuracy", "bytes", "error", "note", "whole")}
        out.append(Line(variant=f"{record['variant']} {suffix}".strip(), seconds=tuple(record["seconds"]), **fields))
    return out


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with ``changes``."""
    return {**os.environ, **changes}
