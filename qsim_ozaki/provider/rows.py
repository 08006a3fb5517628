"""The rows of a job: its circuits with their rows of parameters; every circuit is lowered once.

In: circuits, parameter bindings and checked options. Out: one `ExperimentResult` for every row, in order. Row i draws
from a random stream that depends only on the seed and i. It may not choose a step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.result.models import ExperimentResult

from qsim_ozaki.engines import Engine, StackWork
from qsim_ozaki.ir import Device
from qsim_ozaki.lowering import Template, Values, bound_circuit, make_template, one_per_circuit, parameter_rows
from qsim_ozaki.planner import predict_stack
from qsim_ozaki.provider.experiment import experiment
from qsim_ozaki.provider.prepare import Prepared, prepare_circuit, request
from qsim_ozaki.runtime import (
    SHOTS_PER_BLOCK,
    STACK_NUMBERS,
    Execution,
    Reads,
    StackRows,
    Tally,
    execute,
    is_stackable,
    is_unplanned,
    num_threads,
    reordered,
    sample_stacks,
    stack_program,
    updates,
)
from qsim_ozaki.runtime import Result as Saved

UPDATES_PER_NUMBER = 64  # so many amplitude updates take as long as one number of a stack, see STACK_NUMBERS
STACK_STEP = Counter(stack=1)
NO_NUMBERS = np.empty((1, 0), complex)  # slot values of a circuit without slots: one row, no values


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A circuit and its rows.

    Attributes:
        prepared: the circuit, with slots in place of its parametric gates.
        template: computes the numbers of the slots; None for a circuit without parameters.
        values: values of the parameters, ``(rows, parameters)``.
        first: index of its first row in the job.
    """

    prepared: Prepared
    template: Template | None
    values: Values
    first: int

    @property
    def num_rows(self) -> int:
        """Number of the unit's rows."""
        return len(self.values)

    def part(self, rows: slice) -> Unit:
        """Returns a unit of some of the rows, which keep their indices in the job."""
        start = rows.indices(self.num_rows)[0]
        return replace(self, values=self.values[rows], first=self.first + start)

    def parts(self, size: int) -> Iterator[Unit]:
        """Yields units of at most ``size`` rows, in order, that have all rows together."""
        if self.num_rows <= size:
            yield self
            return
        for start in range(0, self.num_rows, size):
            yield self.part(slice(start, start + size))


def make_units(circuits: Sequence[QuantumCircuit], parameter_binds: object, options: dict[str, Any]) -> list[Unit]:
    """Makes the units of a job, in order.

    Args:
        circuits: at least one.
        parameter_binds: None, or a list with one entry for every circuit; an entry for a single circuit needs no list.
            An entry is a mapping from parameters, or their names, to values or lists of values; or an array
            ``(rows, parameters)`` with columns in the order of ``circuit.parameters``.
        options: checked options.

    Raises:
        OptionError: bindings do not suit their circuit.
        LoweringError: a circuit cannot be translated.
    """
    units: list[Unit] = []
    first = 0
    for circuit, binds in zip(circuits, one_per_circuit(circuits, parameter_binds), strict=True):
        for unit in _units_of(circuit, binds, options, first):
            units.append(unit)
            first += unit.num_rows
    return units


def _units_of(circuit: QuantumCircuit, binds: object, options: dict[str, Any], first: int) -> Iterator[Unit]:
    if binds is None:
        yield Unit(prepare_circuit(circuit, options), None, np.empty((1, 0)), first)
        return
    values = parameter_rows(circuit, binds)
    slotted_and_template = make_template(circuit) if circuit.parameters else None
    if slotted_and_template is not None:
        slotted, template = slotted_and_template
        prepared = prepare_circuit(slotted, options)
        prepared.header["metadata"] = dict(circuit.metadata or {})
        yield Unit(prepared, template, values, first)
        return
    for number, row in enumerate(values):
        bound = bound_circuit(circuit, row.tolist())
        yield Unit(prepare_circuit(bound, options), None, np.empty((1, 0)), first + number)


@dataclass(frozen=True, slots=True, eq=False)
class JobContext:
    """The engine, options and callbacks that all rows of a job share.

    Attributes:
        engine: runs the rows.
        device: the device to plan for.
        options: checked options.
        seed: the seed of the job.
        check: called before every step; an error that it raises ends the job.
        executor: its workers run parts of the rows; None if this process runs all of them.
        progress: called with the number of finished rows and the number of all rows.
    """

    engine: Engine
    device: Device
    options: dict[str, Any]
    seed: int
    check: Callable[[], None]
    executor: Executor | None = None
    progress: Callable[[int, int], None] | None = None

    @property
    def threads(self) -> int:
        """Number of threads that run a stack."""
        return num_threads(self.options["threads"])


def run_units(units: Iterable[Unit], context: JobContext) -> Iterator[ExperimentResult]:
    """Runs the rows and yields their results in order.

    Small circuits that measure only at their end run together in stacks; every other row runs alone.
    """
    waiting: list[Unit] = []
    numbers = 0  # numbers that the stack of the waiting rows will hold
    for unit in units:
        prepared, options = unit.prepared, context.options
        if not is_stacked(prepared, options, context.engine, unit.template is not None):
            yield from _stacked(waiting, context)
            waiting, numbers = [], 0
            yield from _one_by_one(unit, context)
            continue
        work = updates(prepared.code) // UPDATES_PER_NUMBER
        size = max(1 << prepared.code.num_qubits, work, _shots(prepared, options))
        for part in unit.parts(max(1, STACK_NUMBERS // size)):
            waiting.append(part)
            numbers += part.num_rows * size
            if numbers >= STACK_NUMBERS:
                yield from _stacked(waiting, context)
                waiting, numbers = [], 0
    yield from _stacked(waiting, context)


def is_stacked(prepared: Prepared, options: dict[str, Any], engine: Engine, has_slots: bool) -> bool:
    """Whether a circuit's rows run in stacks.

    The answer depends on the circuit alone, so that no row's result depends on the other rows of the job.

    Args:
        prepared: the circuit.
        options: checked options.
        engine: the engine of the job.
        has_slots: whether the circuit has slots in place of parametric gates.
    """
    code = prepared.code
    if code.num_qubits > engine.stack_qubits or options["arithmetic"] == "emulated":
        return False
    if (code.measures and options["shots"] is None) or _shots(prepared, options) > SHOTS_PER_BLOCK:
        return False
    return is_stackable(code) if has_slots else is_unplanned(code)


def _shots(prepared: Prepared, options: dict[str, Any]) -> int:
    """Returns the number of shots to draw from the final state of each row."""
    if not prepared.code.reads:
        return 0
    return options["shots"] or 0


def _one_by_one(unit: Unit, context: JobContext) -> Iterator[ExperimentResult]:
    for number, values in enumerate(unit.values):
        context.check()
        prepared = unit.prepared
        if unit.template is not None:
            prepared = replace(prepared, code=prepared.code.filled(unit.template.data(values[None])[0]))
        row_request = request(prepared, context.options, context.seed, unit.first + number, context.device)
        execution = execute(prepared.code, context.engine, row_request, context.check)
        yield _with_parameters(experiment(prepared, execution, row_request, context.engine.name), unit, values)


def _stacked(units: list[Unit], context: JobContext) -> Iterator[ExperimentResult]:
    """Runs the rows of ``units`` as stacks; they take so little time that ``check`` is called only once before them."""
    if not units:
        return
    context.check()
    start = time.perf_counter()
    stacks, saved = _stacks(units, context)
    options = context.options
    measured = [stack for stack in stacks if stack.reads]
    drawn = iter(sample_stacks(measured, context.seed, options["shots"] or 0, options["memory"], context.threads))
    seconds = (time.perf_counter() - start) / sum(unit.num_rows for unit in units)
    shared = request(units[0].prepared, options, context.seed, units[0].first, context.device)  # alike for all rows
    for unit, stack, states in zip(units, stacks, saved, strict=True):
        code = unit.prepared.code
        predicted = predict_stack(code.num_ops, code.num_qubits, context.device)
        tally = Tally(STACK_STEP, 0.0, predicted.seconds, 1)
        kind = "final state" if stack.reads else "none"
        for values, results in zip(unit.values, states, strict=True):
            execution = Execution(next(drawn) if stack.reads else None, None, results, tally, kind, seconds)
            yield _with_parameters(experiment(unit.prepared, execution, shared, context.engine.name), unit, values)


def _stacks(units: list[Unit], context: JobContext) -> tuple[list[StackRows], list[list[dict[str, Saved]]]]:
    """Returns the stacks to sample, and the saved vectors of each row by label.

    If the engine samples stacks, it computes a state that is not saved while it samples it. Otherwise all states are
    computed before.
    """
    stacks: list[StackRows] = []
    works: list[StackWork | None] = []
    for unit in units:
        code = unit.prepared.code
        numbers = NO_NUMBERS if unit.template is None else unit.template.data(unit.values)
        reads = _shown(code.reads, unit.prepared.layout)
        program = None
        if context.engine.samples_stacks and reads:
            program = stack_program(code.num_qubits, [segment.ops for segment in code.segments])
        stacks.append(StackRows(program, numbers, reads, unit.first))
        needs_states = code.saves or not context.engine.samples_stacks
        works.append(StackWork(code.num_qubits, code.joined_ops(), numbers) if needs_states else None)
    needed = [work for work in works if work is not None]
    computed = iter(context.engine.run_stacks(needed, context.options["precision"]))
    saved: list[list[dict[str, Saved]]] = []
    for index, (unit, work) in enumerate(zip(units, works, strict=True)):
        states = None if work is None else next(computed)
        if states is not None and stacks[index].program is None:
            stacks[index] = replace(stacks[index], numbers=states.astype(np.complex128, copy=False))
        saved.append(_by_label(unit, states))
    return stacks, saved


def _by_label(unit: Unit, states: NDArray[np.complexfloating] | None) -> list[dict[str, Saved]]:
    code = unit.prepared.code
    if not code.saves or states is None:
        return [{}] * unit.num_rows
    (save,) = code.saves
    return [{save.label: Saved("statevector", reordered(state, save.qubits))} for state in states]


@lru_cache(maxsize=32)
def _shown(reads: Reads, layout: tuple[int, ...]) -> Reads:
    """Converts pairs (qubit, bit) to pairs (qubit, place in a shown value); ``layout`` has the bit of every place."""
    qubit_of = {bit: qubit for qubit, bit in reads}
    return tuple([(qubit_of[bit], place) for place, bit in enumerate(layout) if bit in qubit_of])


def _with_parameters(result: ExperimentResult, unit: Unit, values: NDArray[np.float64]) -> ExperimentResult:
    if unit.template is not None:
        result.metadata["parameters"] = dict(zip(unit.template.names, values.tolist(), strict=True))
    return result
