"""Reads where a transpiler moved a circuit's qubits.

In: a circuit, transpiled or not. Out: indices of its qubits. It may not move a qubit.
"""

from __future__ import annotations

from qiskit import QuantumCircuit


def final_order(circuit: QuantumCircuit) -> list[int]:
    """Returns, for each qubit of the user, the circuit's qubit that holds it at the end.

    Qiskit's own method fails on a layout without the number of the user's qubits, as its OpenQASM 3 importer makes one
    for physical qubits; there, every qubit is the user's.
    """
    layout = circuit.layout
    if layout is None:
        return list(range(circuit.num_qubits))
    if layout._input_qubit_count is not None and layout._output_qubit_list is not None:
        order: list[int] = layout.final_index_layout()
        return order
    place = {position: layout.initial_layout[qubit] for qubit, position in layout.input_qubit_mapping.items()}
    order = [place[position] for position in sorted(place)]
    if layout.final_layout is None:
        return order
    moved = layout.final_layout.get_virtual_bits()
    return [moved[circuit.qubits[qubit]] for qubit in order]
