"""Lowers a circuit that starts in a given state instead of |0...0>.

In: a `QuantumCircuit`, an initial state, values of input variables. Out: a `Program`. It may not run anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from qiskit import QuantumCircuit

from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import Initialize, Program, Reset
from qsim_ozaki.lowering.circuit import LABEL_GATES, lower


def lower_from(circuit: QuantumCircuit, initial_state: Any, inputs: Mapping[Any, Any] | None) -> Program:
    """Lowers ``circuit``, started in ``initial_state``.

    Args:
        circuit: as for `lower`.
        initial_state: None for |0...0>, a label, a basis state's index, or a vector, in the order of the circuit's own
            qubits; its form was checked.
        inputs: as for `lower`.

    Raises:
        LoweringError: an instruction cannot be simulated.
        OptionError: the initial state is for another number of qubits.
    """
    if initial_state is None:
        return lower(circuit, inputs)
    if isinstance(initial_state, (str, int)):
        return lower(_joined(_label_circuit(circuit, initial_state), circuit), inputs)
    num_qubits = circuit.num_qubits
    if len(initial_state) != 1 << num_qubits:
        raise OptionError(
            f"initial_state has {len(initial_state)} amplitudes, but circuit {circuit.name!r} has {num_qubits} "
            f"qubits. Pass {1 << num_qubits} amplitudes."
        )
    start = QuantumCircuit(circuit.qubits)
    start.reset(range(num_qubits))  # makes every qubit one that the program holds
    program = lower(_joined(start, circuit), inputs)
    rest, reset = list(program.body), 0
    while reset < num_qubits:
        item = rest.pop(0)
        assert isinstance(item, Reset)
        reset += len(item.qubits)
    vector = np.asarray(initial_state, complex)
    return replace(program, body=(Initialize(tuple(range(num_qubits)), vector), *rest))


def start_qubits(circuit: QuantumCircuit, initial_state: Any) -> frozenset[int]:
    """Returns the circuit's qubits that ``initial_state`` may put in another state than |0>."""
    if initial_state is None:
        return frozenset()
    if isinstance(initial_state, (str, int)):
        letters = reversed(_label(initial_state, circuit))
        return frozenset(qubit for qubit, letter in enumerate(letters) if letter != "0")
    return frozenset(range(circuit.num_qubits))


def _label_circuit(circuit: QuantumCircuit, initial_state: str | int) -> QuantumCircuit:
    """Returns a circuit that prepares the label on the qubits of ``circuit``."""
    start = QuantumCircuit(circuit.qubits)
    for qubit, letter in enumerate(reversed(_label(initial_state, circuit))):
        for gate in LABEL_GATES[letter]:
            getattr(start, gate)(qubit)
    return start


def _label(initial_state: str | int, circuit: QuantumCircuit) -> str:
    label = initial_state if isinstance(initial_state, str) else format(initial_state, f"0{circuit.num_qubits}b")
    if len(label) != circuit.num_qubits:
        raise OptionError(
            f"initial_state={initial_state!r} is for {len(label)} qubits, but circuit {circuit.name!r} has "
            f"{circuit.num_qubits}. Use one letter per qubit, or a basis state below 2**{circuit.num_qubits}."
        )
    return label


def without_instructions(circuit: QuantumCircuit) -> QuantumCircuit:
    """Makes an empty circuit with the bits, registers, variables and layout of ``circuit``.

    ``copy_empty_like`` would copy the metadata too, which may hold objects that cannot be copied.
    """
    empty = QuantumCircuit(name=circuit.name)
    empty.add_bits(circuit.qubits)
    empty.add_bits(circuit.clbits)
    empty.add_register(*circuit.qregs, *circuit.cregs)
    for variable in circuit.iter_input_vars():
        empty.add_input(variable)
    for variable in circuit.iter_declared_vars():
        empty.add_uninitialized_var(variable)
    for stretch in circuit.iter_declared_stretches():
        empty.add_stretch(stretch)
    empty._layout = circuit.layout
    return empty


def _joined(start: QuantumCircuit, circuit: QuantumCircuit) -> QuantumCircuit:
    """Returns the instructions of ``start``, then those of ``circuit``, with everything else of ``circuit``.

    ``circuit.copy()`` would copy slots, which cannot be copied, and circuits of Qiskit's library refuse new data.
    """
    joined = without_instructions(circuit)
    joined.global_phase = circuit.global_phase
    for instruction in (*start.data, *circuit.data):
        joined._append(instruction)
    return joined
