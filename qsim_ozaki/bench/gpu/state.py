"""States of a benchmark on a GPU: whole plans run on them, the distance of two.

In: a CUDA engine, states. Out: seconds, distances. No state is copied to the host. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from qsim_ozaki.bench.blocks.maps import deposit
from qsim_ozaki.engines import PART_QUBITS, Engine, State
from qsim_ozaki.engines.cuda.calibrate import StepRunner, clock
from qsim_ozaki.engines.cuda.device.state import CudaState
from qsim_ozaki.ir import Relabel, Step


def run_steps(engine: Engine, state: State, steps: Sequence[Step]) -> None:
    """Every step that moves data, in order."""
    for step in steps:
        if not isinstance(step, Relabel):
            engine.run_step(state, step)


def step_seconds(engine: StepRunner, state: CudaState, steps: Sequence[Step]) -> list[float]:
    """Seconds of each step that moves data, by device events."""
    moving = [step for step in steps if not isinstance(step, Relabel)]
    return [clock(engine.launcher.cupy, partial(engine.run_step, state, step)).seconds for step in moving]


def distance(cupy: Any, ours: Any, theirs: Any, place: Sequence[int]) -> float:
    """2-norm of ``theirs`` minus ``ours`` over that of ``ours``, global phase included.

    Args:
        cupy: the module of both.
        ours: ``(2**n,)`` on the device.
        theirs: the same.
        place: index bit b of ``theirs`` is index bit ``place[b]`` of ``ours``.
    """
    low = min(len(place), PART_QUBITS)
    inside = deposit(cupy.arange(1 << low), place[:low])
    sums = cupy.zeros(2, np.float64)
    for number in range(1 << (len(place) - low)):
        mine = ours[inside | int(deposit(np.array([number]), place[low:])[0])]
        delta = theirs[number << low : (number + 1) << low] - mine
        for which, values in enumerate((delta, mine)):
            sums[which] += (values.real.astype(np.float64) ** 2 + values.imag.astype(np.float64) ** 2).sum()
    apart, norm = (float(value) for value in sums)
    return float(np.sqrt(apart / norm))
