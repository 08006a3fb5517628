"""Computes final states of parametrised circuits, row by row, for exact values and gradients.

In: a circuit, rows of parameters, an engine. Out: the circuit's operators, its states on program qubits, and the place
of each of its qubits. It may not choose an observable's weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit

from qsim_ozaki.engines import Engine
from qsim_ozaki.errors import CapacityError, MixedStateError
from qsim_ozaki.estimation.observables import QubitMap
from qsim_ozaki.ir import (
    Device,
    Initialize,
    Measure,
    Observable,
    Op,
    OpList,
    Program,
    Save,
    Term,
    expectations,
    state_bytes,
    too_wide,
    weighted,
)
from qsim_ozaki.lowering import Template, Values, lower_from, make_template
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime import (
    Executable,
    Request,
    Segment,
    execute,
    flatten,
    is_stackable,
    pieces,
    run_stack,
    stack_program,
)

LABEL = "statevector"


@dataclass(frozen=True)
class Evaluator:
    """A circuit that is evaluated in its final state, at many rows of parameters.

    Attributes:
        code: the circuit's operators, then one saved state in program order; parametric gates are slots.
        template: computes the numbers that fill the slots.
        qubit_map: the program qubit of each of the circuit's qubits.
    """

    code: Executable
    template: Template
    qubit_map: QubitMap

    @property
    def num_qubits(self) -> int:
        """Number of qubits of the states."""
        return self.code.num_qubits

    @cached_property
    def stack(self) -> Any:
        """The program that runs rows side by side if the circuit is small; else None."""
        if not is_stackable(self.code):
            return None
        return stack_program(self.num_qubits, (segment.ops for segment in self.code.segments))

    def _runs_stacked(self, engine: Engine, options: PlanOptions) -> bool:
        """Whether rows run side by side.

        Raises:
            CapacityError: a state does not fit; other states are checked when they are allocated.
        """
        if self.stack is None or options.arithmetic == "emulated":
            return False
        device = engine.device()
        if state_bytes(self.num_qubits, options.precision) > device.memory_bytes:
            raise CapacityError(too_wide(self.num_qubits, options.precision, device.name, device.memory_bytes))
        return True

    def states(
        self, values: Values, engine: Engine, options: PlanOptions, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.complexfloating]]]:
        """Yields rows and their states ``(rows, 2**num_qubits)``, a few at a time; they are valid until the next."""
        if self._runs_stacked(engine, options):
            for rows in pieces(len(values), self.num_qubits):
                yield rows, run_stack(self.stack, self.num_qubits, self.template.data(values[rows]), threads)
            return
        device = engine.device()
        for row in range(len(values)):
            code = self.code.filled(self.template.data(values[row : row + 1])[0])
            yield slice(row, row + 1), final_vector(code, engine, device, options)[None]

    @cached_property
    def _value_code(self) -> Executable:
        """The same as `code`, but it saves values of terms, so the state's qubits may end in any order."""
        body = self.code.program.body[:-1]
        save = Save("pauli_values", LABEL, tuple(range(self.code.program.num_qubits)))
        return flatten(replace(self.code.program, body=(*body, save)))

    def expectations(
        self, values: Values, observables: Sequence[Observable], engine: Engine, options: PlanOptions, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yields rows and the observables' values ``(rows, observables)``; the engine computes them."""
        if self._runs_stacked(engine, options):
            for rows, states in self.states(values, engine, options, threads):
                yield rows, expectations(states, observables, threads)
            return
        device = engine.device()
        for row in range(len(values)):
            code = self._value_code.filled(self.template.data(values[row : row + 1])[0])
            row_values = weighted(observables, partial(_term_values, code, engine, device, options))
            yield slice(row, row + 1), row_values

    def joined_ops(self) -> OpList:
        """Returns the operators that the final state depends on, slots included, in order."""
        joined = OpList()
        for item in self.code.items:
            if isinstance(item, Segment):
                joined.extend(item.ops)
            elif isinstance(item, Initialize) and len(item.qubits) == self.num_qubits:
                joined = OpList()  # the whole state is written anew
        return joined


def make_evaluator(
    circuit: QuantumCircuit, initial_state: Any = None, inputs: Mapping[Any, Any] | None = None
) -> Evaluator | None:
    """Makes the evaluator of ``circuit``; None if a parameter is in a place that takes no slot.

    Parameters then have to be bound first.

    Args:
        circuit: any circuit.
        initial_state: as for `lower_from`.
        inputs: as for `lower_from`.

    Raises:
        MixedStateError: the final state is mixed: the circuit resets, branches, or measures before its end.
    """
    slots = make_template(circuit)
    if slots is None:
        return None
    slotted, template = slots
    program = lower_from(slotted, initial_state, inputs)
    measured = _measured_at_the_end(program)
    final = Save("statevector", LABEL, tuple(range(program.num_qubits)))
    body = (*(item for item in program.body if not isinstance(item, (Measure, Save))), final)
    code = flatten(replace(program, body=body))
    if measured is None or any(code.collapses_at(index) for index in range(len(code.items))):
        raise MixedStateError(
            f"circuit {program.name!r} measures, resets or branches before its end, so it has no one final state. "
            f"For values, use EstimatorV2; for gradients, a circuit that is unitary up to its last measurements."
        )
    place = [-1] * circuit.num_qubits
    for qubit, index in enumerate(program.active):
        place[index] = qubit
    return Evaluator(code, template, QubitMap(tuple(place), measured))


def _measured_at_the_end(program: Program) -> frozenset[int] | None:
    """Returns the qubits that ``program`` measures; None if one changes later or an item is no operator."""
    measured: set[int] = set()
    changed: set[int] = set()
    for item in reversed(program.body):
        if isinstance(item, Measure):
            if changed & set(item.qubits):
                return None
            measured |= set(item.qubits)
        elif isinstance(item, (Op, Sequence)):
            changed |= OpList.of([item] if isinstance(item, Op) else item).changed_qubits()
        elif isinstance(item, Initialize):
            changed |= set(item.qubits)
        elif not isinstance(item, Save):
            return None
    return frozenset(measured)


def _term_values(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, terms: Sequence[Term]
) -> NDArray[np.float64]:
    """Returns the values of ``terms``, ``(1, terms)``, in the state before the save at the end of ``code``."""
    *items, save = code.items
    assert isinstance(save, Save), "a save comes last"
    filled = replace(code, items=(*items, replace(save, details=tuple(terms))))
    values: NDArray[np.float64] = _saved(filled, engine, device, options)
    return values[None]


def final_vector(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, check: Callable[[], None] = lambda: None
) -> NDArray[np.complexfloating]:
    """Runs ``code`` and returns the state that it saves, ``(2**num_qubits,)``, in program order."""
    vector: NDArray[np.complexfloating] = _saved(code, engine, device, options, check)
    return vector


def _saved(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, check: Callable[[], None] = lambda: None
) -> Any:
    request = Request(1, False, 0, 0, device, 1, (), options)
    return execute(code, engine, request, check).saved[LABEL].data
