"""The end of a history: deferred measurements are sampled, or their exact probabilities are read.

In: a history, its engine, a `Request`. Out: a `Leaf`, or entries of exact probabilities. It may not collapse a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from qsim_ozaki.engines import Engine
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import Device
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime import sampling
from qsim_ozaki.runtime.bytecode import Executable
from qsim_ozaki.runtime.history import Cursor, Leaf, Leaves
from qsim_ozaki.runtime.placement import Position

MAX_EXACT_QUBITS = 24  # qubits measured at the end with exact probabilities: their table takes 128 MiB
MAX_EXACT_OUTCOMES = 1 << 20  # every outcome is an entry of a dict, about 200 bytes
NEGLIGIBLE = {"double": 2.0**-60, "single": 2.0**-36}  # less probable outcomes are rounding, or never seen
NORM_DRIFT = {"double": 1e-8, "single": 1e-3}  # a drift of the norm above this is a defect, not rounding


@dataclass(frozen=True, slots=True)
class Request:
    """How to run one program.

    Attributes:
        shots: at least 1, or None for exact probabilities.
        memory: whether to return the value of every shot, not only counts.
        seed: the seed of the whole job.
        index: the index of this program in the job; with ``seed`` it fixes every random number.
        device: the device to plan for.
        max_states: how many copies of the state, the first included, may live at one time.
        layout: the classical bit shown at each bit of a value; a bit may be shown twice.
        plan_options: passed to the planner.
        draws_counts: whether many shots may be counted by the probabilities of their outcomes: another stream of random
            numbers, and no memory.
    """

    shots: int | None
    memory: bool
    seed: int
    index: int
    device: Device
    max_states: int
    layout: tuple[int, ...]
    plan_options: PlanOptions
    draws_counts: bool = False


def shown(request: Request, cursor: Cursor, reads: Iterable[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """The value that the classical bits show, and (physical qubit, place in the value) of the bits still to be read.

    Args:
        request: its layout says which bit is shown at which place.
        cursor: the history.
        reads: pairs (program qubit, classical bit) of the bits that are still to be read.
    """
    known, unread = places_shown(request, cursor.position, reads)
    return sum((cursor.memory.clbits >> bit & 1) << place for bit, place in known), unread


def places_shown(
    request: Request, position: Position, reads: Iterable[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs (classical bit, place in the value) of the bits that are known, and (physical qubit, place) of the others.

    Args:
        request: its layout says which bit is shown at which place.
        position: the physical qubit of each program qubit.
        reads: pairs (program qubit, classical bit) of the bits that are still to be read.
    """
    qubit_of = {bit: qubit for qubit, bit in reads}
    known, unread = [], []
    for place, bit in enumerate(request.layout):
        if bit in qubit_of:
            unread.append((position[qubit_of[bit]], place))
        else:
            known.append((bit, place))
    return known, unread


def too_many_outcomes(name: str) -> OptionError:
    """The error of circuit ``name``, whose exact probabilities are too many."""
    return OptionError(
        f"circuit {name!r}, shots=None: more than {MAX_EXACT_OUTCOMES} outcomes have a probability. "
        f"Measure fewer qubits, or give a number of shots."
    )


def sampled_end(code: Executable, engine: Engine, request: Request, cursor: Cursor, check: Callable[[], None]) -> Leaf:
    """The outcomes of the shots of ``cursor``, in blocks."""
    shots, memory = int(cursor.weight), request.memory
    outcomes: list[sampling.Outcomes] = []
    fixed, reads = shown(request, cursor, code.reads)
    if not reads:
        outcomes.append(sampling.fixed_outcome(fixed, shots, memory))
    qubits = sorted({qubit for qubit, _ in reads})
    if reads and request.draws_counts and not memory and sampling.draws_counts(len(qubits), shots):
        check()
        number = {qubit: index for index, qubit in enumerate(qubits)}
        places = [(number[qubit], place) for qubit, place in reads]
        probabilities = engine.probabilities(cursor.allocated(engine, request.plan_options.precision), qubits)
        outcomes = sampling.drawn_outcomes(cursor.generator(), shots, probabilities, places, fixed)
        return Leaf(cursor.key, shots, outcomes, cursor.records)
    for start in range(0, shots if reads else 0, sampling.SHOTS_PER_BLOCK):
        check()
        uniforms = cursor.generator().random(min(sampling.SHOTS_PER_BLOCK, shots - start))
        samples = engine.sample(cursor.allocated(engine, request.plan_options.precision), uniforms)
        outcomes.append(sampling.read_outcomes(samples, reads, fixed, memory))
    return Leaf(cursor.key, shots, outcomes, cursor.records)


def exact_end(code: Executable, engine: Engine, request: Request, cursor: Cursor, leaves: Leaves) -> None:
    """Adds the probabilities of the outcomes of ``cursor`` to ``leaves``.

    Raises:
        OptionError: there are too many.
    """
    fixed, reads = shown(request, cursor, code.reads)
    qubits = sorted({qubit for qubit, _ in reads})
    if len(qubits) > MAX_EXACT_QUBITS:
        raise OptionError(
            f"circuit {code.program.name!r}, shots=None: {len(qubits)} measured qubits have 2^{len(qubits)} outcomes; "
            f"exact probabilities are for at most {MAX_EXACT_QUBITS}. Give a number of shots."
        )
    probabilities = np.ones(1)
    if qubits:
        probabilities = engine.probabilities(cursor.allocated(engine, request.plan_options.precision), qubits)
    probabilities = probabilities * (cursor.weight / probabilities.sum())
    rare = probabilities < NEGLIGIBLE[request.plan_options.precision]
    leaves.neglected += float(probabilities[rare].sum())
    probabilities[rare] = 0
    if np.count_nonzero(probabilities) + len(leaves.exact) > MAX_EXACT_OUTCOMES:
        raise too_many_outcomes(code.program.name)
    number = {qubit: index for index, qubit in enumerate(qubits)}
    places = [(number[qubit], place) for qubit, place in reads]
    leaves.add_exact(*sampling.exact_outcomes(probabilities, places, fixed))
