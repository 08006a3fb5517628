"""Batches: circuits and rows of parameters as the rows of one job, lowered once per circuit.

In: circuits, parameter bindings, checked options. Out: one `ExperimentResult` per row, in order. Row i draws from a
stream that depends on the seed and i alone. It chooses no step.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.result.models import ExperimentResult

from qsim_ozaki import sampling
from qsim_ozaki.bindings import Values, one_per_circuit, parameter_rows
from qsim_ozaki.cost import Device
from qsim_ozaki.engine import Engine
from qsim_ozaki.execute import Execution, Tally, execute
from qsim_ozaki.ops import Save
from qsim_ozaki.prepare import Prepared, experiment, prepare, request
from qsim_ozaki.readout import Request
from qsim_ozaki.saving import Result as Saved
from qsim_ozaki.stack import is_stackable, pieces, run_stack, sample_stack, stack_program
from qsim_ozaki.template import Template, make_template
from qsim_ozaki.vectors import Vector, reordered


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One circuit and its rows.

    Attributes:
        prepared: the circuit, its parametric gates as slots.
        template: what fills them; None for a circuit without parameters.
        values: ``(rows, parameters)``.
        first: the job's index of its first row.
    """

    prepared: Prepared
    template: Template | None
    values: Values
    first: int

    @property
    def num_rows(self) -> int:
        """Rows of the job that this unit makes."""
        return len(self.values)

    def part(self, rows: slice) -> Unit:
        """Some of the rows, under the same indices."""
        start = rows.indices(self.num_rows)[0]
        return replace(self, values=self.values[rows], first=self.first + start)


def make_units(circuits: Sequence[QuantumCircuit], parameter_binds: object, options: dict[str, Any]) -> list[Unit]:
    """The units of a job, in order.

    Args:
        circuits: at least one.
        parameter_binds: None, or one entry per circuit (a single one may stand alone): a mapping from parameters, or
            their names, to values or lists of values; or an array ``(rows, parameters)``, columns as
            ``circuit.parameters``.
        options: checked.

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
        yield Unit(prepare(circuit, options), None, np.empty((1, 0)), first)
        return
    values = parameter_rows(circuit, binds)
    made = make_template(circuit) if circuit.parameters else None
    if made is not None:
        slotted, template = made
        prepared = prepare(slotted, options)
        prepared.header["metadata"] = circuit.metadata if circuit.metadata is not None else {}
        yield Unit(prepared, template, values, first)
        return
    for number, row in enumerate(values):
        bound = circuit.assign_parameters(dict(zip(circuit.parameters, row.tolist(), strict=True)))
        yield Unit(prepare(bound, options), None, np.empty((1, 0)), first + number)


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What the rows of a job have in common.

    Attributes:
        options: checked.
        seed: of the job.
        engine: runs what is not stacked.
        device: what to plan for.
        threads: of stacks.
        check: called now and then; what it raises ends the job.
    """

    options: dict[str, Any]
    seed: int
    engine: Engine
    device: Device
    threads: int
    check: Callable[[], None]


def run_units(units: Iterable[Unit], setting: Setting) -> Iterator[ExperimentResult]:
    """Runs the rows: stacked, where a parametrised circuit of few qubits only ends in measurements, else one by one."""
    for unit in units:
        setting.check()
        sampled = setting.options["shots"] is not None or not unit.prepared.code.measures
        if unit.template is not None and sampled and setting.engine.name == "cpu" and is_stackable(unit.prepared.code):
            yield from _stacked(unit, unit.template, setting)
        else:
            yield from _one_by_one(unit, setting)


def _one_by_one(unit: Unit, setting: Setting) -> Iterator[ExperimentResult]:
    for number, values in enumerate(unit.values):
        setting.check()
        prepared = unit.prepared
        if unit.template is not None:
            prepared = replace(prepared, code=unit.template.bound(prepared.code, unit.template.data(values[None])[0]))
        asked = request(prepared, setting.options, setting.seed, unit.first + number, setting.device)
        done = execute(prepared.code, setting.engine, asked, setting.check)
        yield _with_parameters(experiment(prepared, done, asked, setting.engine.name), unit, values)


def _stacked(unit: Unit, template: Template, setting: Setting) -> Iterator[ExperimentResult]:
    code = unit.prepared.code
    program = stack_program(code.num_qubits, (segment.ops for segment in code.segments))
    asked = request(unit.prepared, setting.options, setting.seed, unit.first, setting.device)
    shots = asked.shots or 0 if code.reads else 0
    for rows in pieces(unit.num_rows, code.num_qubits, shots):
        setting.check()
        start = time.perf_counter()
        states = run_stack(program, code.num_qubits, template.data(unit.values[rows]), setting.threads)
        requests = [replace(asked, index=unit.first + number) for number in range(rows.start, rows.stop)]
        samples: Iterable[Any] = [None] * len(states)
        if shots:
            uniforms = np.stack([sampling.stream(each.seed, (each.index,)).random(shots) for each in requests])
            samples = sample_stack(states, uniforms, setting.threads)
        outcomes = [
            _outcome(unit.prepared, each, state, own)
            for each, state, own in zip(requests, states, samples, strict=True)
        ]
        seconds = (time.perf_counter() - start) / len(states)
        for each, values, (counts, memory, saved) in zip(requests, unit.values[rows], outcomes, strict=True):
            tally = Tally(Counter(stack=1), histories=1)
            done = Execution(counts, memory, saved, tally, "final state" if shots else "none", seconds)
            yield _with_parameters(experiment(unit.prepared, done, each, setting.engine.name), unit, values)


def _outcome(
    prepared: Prepared, asked: Request, state: Vector, samples: NDArray[np.int64] | None
) -> tuple[dict[str, int] | None, list[str] | None, dict[str, Saved]]:
    """Counts, memory and saved vectors of one state of a stack."""
    code = prepared.code
    saved = {}
    if code.items and isinstance(code.items[-1], Save):
        vector = reordered(state, code.items[-1].qubits)
        vector = vector if asked.plan_options.precision == "double" else vector.astype(np.complex64)
        saved[code.items[-1].label] = Saved("statevector", vector)
    if samples is None:
        return None, None, saved
    qubit_of = {bit: qubit for qubit, bit in code.reads}
    reads = [(qubit_of[bit], place) for place, bit in enumerate(asked.layout) if bit in qubit_of]
    outcomes = sampling.read_outcomes(samples, reads, 0, asked.memory)
    memory = None if not asked.memory else sampling.total_memory([outcomes], None)
    return sampling.total_counts([outcomes]), memory, saved


def _with_parameters(result: ExperimentResult, unit: Unit, values: NDArray[np.float64]) -> ExperimentResult:
    if unit.template is not None:
        result.metadata["parameters"] = dict(zip(unit.template.names, values.tolist(), strict=True))
    return result
