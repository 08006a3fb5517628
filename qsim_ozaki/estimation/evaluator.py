"""Final states of parametrised circuits, row by row, for exact values and gradients.

In: a circuit, rows of parameters, an engine. Out: its operators, states on program qubits, and where its qubits lie. It
knows no observable's weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit

from qsim_ozaki.engines import Engine
from qsim_ozaki.errors import MixedStateError
from qsim_ozaki.estimation.observables import QubitMap
from qsim_ozaki.ir import (
    Device,
    Initialize,
    Masks,
    Measure,
    Observable,
    Op,
    OpList,
    Program,
    Save,
    expectations,
    weighted,
)
from qsim_ozaki.lowering import Template, Values, lower, make_template
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
    """A circuit whose final state is asked for at many rows of parameters.

    Attributes:
        code: its operators, then one saved state in program order; parametric gates are slots.
        template: what fills the slots.
        qubit_map: where the circuit's qubits lie.
    """

    code: Executable
    template: Template
    qubit_map: QubitMap

    @property
    def num_qubits(self) -> int:
        """Of the states."""
        return self.code.num_qubits

    @cached_property
    def stack(self) -> Any:
        """The program of the stack, where the circuit is small; else None."""
        if not is_stackable(self.code):
            return None
        return stack_program(self.num_qubits, (segment.ops for segment in self.code.segments))

    def states(
        self, values: Values, engine: Engine, options: PlanOptions, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.complexfloating]]]:
        """Rows, and their states ``(rows, 2**num_qubits)``: a few at a time, each valid until the next."""
        if self.stack is not None:
            for rows in pieces(len(values), self.num_qubits):
                yield rows, run_stack(self.stack, self.num_qubits, self.template.data(values[rows]), threads)
            return
        device = engine.device()
        for row in range(len(values)):
            code = self.code.filled(self.template.data(values[row : row + 1])[0])
            yield slice(row, row + 1), final_vector(code, engine, device, options)[None]

    @cached_property
    def _valued(self) -> Executable:
        """As `code`, but that values of Pauli strings are asked for, and the state may end in any order."""
        body = self.code.program.body[:-1]
        asked = Save("pauli_values", LABEL, tuple(range(self.code.program.num_qubits)))
        return flatten(replace(self.code.program, body=(*body, asked)))

    def expectations(
        self, values: Values, observables: Sequence[Observable], engine: Engine, options: PlanOptions, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Rows, and the values of the observables on their states ``(rows, observables)``, found where these are."""
        if self.stack is not None:
            for rows, states in self.states(values, engine, options, threads):
                yield rows, expectations(states, observables, threads)
            return
        device = engine.device()
        for row in range(len(values)):
            code = self._valued.filled(self.template.data(values[row : row + 1])[0])
            found = weighted(observables, partial(_string_values, code, engine, device, options))
            yield slice(row, row + 1), found

    def joined_ops(self) -> OpList:
        """The operators that the final state depends on, slots included, in order."""
        joined = OpList()
        for item in self.code.items:
            if isinstance(item, Segment):
                joined.extend(item.ops)
            elif isinstance(item, Initialize) and len(item.qubits) == self.num_qubits:
                joined = OpList()  # the whole state is written anew
        return joined


def make_evaluator(circuit: QuantumCircuit) -> Evaluator | None:
    """The evaluator of ``circuit``, None where its parameters stand where no slot can; then bind them first.

    Raises:
        MixedStateError: its final state is not one pure state: it resets, branches, or measures before its end.
    """
    made = make_template(circuit)
    if made is None:
        return None
    slotted, template = made
    program = lower(slotted)
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
    """The qubits that ``program`` measures, None where something changes one later, or there is more than operators."""
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


def _string_values(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, x: Masks, z: Masks
) -> NDArray[np.float64]:
    """The values that ``code`` ends with asking for, of these strings, ``(1, strings)``."""
    *items, asked = code.items
    assert isinstance(asked, Save), "a save comes last"
    strings = tuple(zip(x.tolist(), z.tolist(), strict=True))
    asking = replace(code, items=(*items, replace(asked, details=strings)))
    found: NDArray[np.float64] = _saved(asking, engine, device, options)
    return found[None]


def final_vector(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, check: Callable[[], None] = lambda: None
) -> NDArray[np.complexfloating]:
    """The state that ``code`` saves, ``(2**num_qubits,)``, in program order."""
    vector: NDArray[np.complexfloating] = _saved(code, engine, device, options, check)
    return vector


def _saved(
    code: Executable, engine: Engine, device: Device, options: PlanOptions, check: Callable[[], None] = lambda: None
) -> Any:
    request = Request(1, False, 0, 0, device, 1, (), options)
    return execute(code, engine, request, check).saved[LABEL].data
