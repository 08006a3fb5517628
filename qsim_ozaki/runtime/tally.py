"""Counts the steps that a run does.

In: steps of plans. Out: a `Tally` for the result's metadata. It may not run anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from qsim_ozaki.engines import ColumnChecks
from qsim_ozaki.ir import DenseBlock, HadamardPass, Path, Prepare, Relabel, Stack, Step, TilePass


@dataclass(slots=True)
class Tally:
    """Counts the steps that a run did, per path, and adds up their predicted costs."""

    steps: Counter[str] = field(default_factory=Counter)
    passes: float = 0.0
    predicted_seconds: float = 0.0
    histories: int = 0
    emulated: list[DenseBlock] = field(default_factory=list)
    checks: ColumnChecks = field(default_factory=ColumnChecks)

    def add(self, step: Step, times: int = 1) -> None:
        """Counts ``step``, which was done ``times`` times."""
        if isinstance(step, DenseBlock) and step.path is Path.OZAKI:
            self.emulated += [step] * times
        self.steps[path_name(step)] += times
        self.passes += times * step.prediction.passes
        self.predicted_seconds += times * step.prediction.seconds


def path_name(step: Step) -> str:
    """The name under which the metadata counts ``step``."""
    if isinstance(step, DenseBlock):
        return f"dense_{step.path.value}"
    names = {TilePass: "tile", HadamardPass: "hadamard", Prepare: "prepare", Relabel: "relabel", Stack: "stack"}
    return names[type(step)]
