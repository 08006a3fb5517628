"""Our own circuit instructions: saving the state.

In: a Qiskit circuit. Out: the circuit with a `SaveStatevector` appended. It knows nothing of how a state is simulated.
"""

from __future__ import annotations

from qiskit.circuit import Instruction, QuantumCircuit

from qsim_ozaki.errors import LoweringError

RESERVED_LABELS = frozenset({"counts", "memory"})  # a result already holds these


class SaveStatevector(Instruction):  # type: ignore[misc]
    """Saves the state so far under a label of the result's data; index bit j is the circuit's qubit j.

    It is known by its name, ``save_statevector``: Aer's instruction of that name and one loaded from QPY mean the same.

    Args:
        num_qubits: all qubits of the circuit.
        label: key in ``result.data()``.
    """

    # Like a barrier: no pass may move gates across it or ask for its definition.
    _directive = True

    def __init__(self, num_qubits: int, label: str = "statevector") -> None:
        super().__init__("save_statevector", num_qubits, 0, [], label=label)


def save_statevector(circuit: QuantumCircuit, label: str = "statevector") -> QuantumCircuit:
    """Appends an instruction that saves the state of all qubits so far.

    In a circuit that a transpiler made, the order is that of the circuit before: its layout says where each qubit went.

    Args:
        circuit: changed in place.
        label: key in ``result.data()``; each save of a circuit has its own.

    Returns:
        The same circuit.

    Raises:
        LoweringError: the label is not a string, is taken, or is one that results use themselves.

    Example:
        >>> circuit = QuantumCircuit(1)
        >>> circuit.h(0)
        >>> save_statevector(circuit)
        >>> OzakiBackend().run(circuit).result().get_statevector()
    """
    taken = {item.operation.label for item in circuit.data if item.operation.name == "save_statevector"}
    if not isinstance(label, str) or not label or label in RESERVED_LABELS:
        reserved = ", ".join(sorted(RESERVED_LABELS))
        raise LoweringError(f"label {label!r} is not allowed for a saved state. Use a string other than {reserved}.")
    if label in taken:
        raise LoweringError(
            f"circuit {circuit.name!r} already saves a state under label {label!r}. Give each save its own label, "
            f"as save_statevector(circuit, {label + '_2'!r})."
        )
    qubits = circuit.qubits
    if circuit.layout is not None:
        qubits = [qubits[index] for index in circuit.layout.final_index_layout()]
    circuit.append(SaveStatevector(len(qubits), label), qubits)
    return circuit
