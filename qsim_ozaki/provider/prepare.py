"""Prepares circuits: lowers them, starts them in the initial state, and checks that they fit into memory.

In: circuits and checked options. Out: `Prepared` circuits. It may not run a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qiskit import QuantumCircuit

from qsim_ozaki.errors import CapacityError, LoweringError, OptionError
from qsim_ozaki.ir import Assign, Device, Save, format_bytes, short_bytes, state_bytes, too_wide, walk
from qsim_ozaki.lowering import SAVES, final_order, lower_from
from qsim_ozaki.planner import plan_options
from qsim_ozaki.runtime import Executable, Jump, Request, Segment, check_saves, flatten, saved_bytes

ENDINGS = {*SAVES, "measure", "barrier"}  # instructions that may follow a save of the final state
MAX_MEMORY_SHOTS = 1 << 30
MEMORY_BYTES = 24  # bytes of a shot: its sample, its position and its value, 8 bytes for each


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A circuit that is ready to run.

    Attributes:
        code: the program to execute.
        header: the header of the result, in the form that Qiskit's tools read.
        layout: index of the classical bit that every bit of a shown value stands for.
        needed_bytes: memory of the state and of the saved vectors that do not share the state's buffer.
    """

    code: Executable
    header: dict[str, Any]
    layout: tuple[int, ...]
    needed_bytes: int

    @property
    def is_unmeasured(self) -> bool:
        """Whether the circuit has classical bits but never measures, stores a classical value or saves a result."""
        if not self.layout or self.code.measures:
            return False
        return not any(isinstance(item, (Assign, Save)) for item in walk(self.code.program.body))


def prepare_circuit(circuit: QuantumCircuit, options: dict[str, Any]) -> Prepared:
    """Lowers and flattens ``circuit``; `check_capacity` then says whether it fits.

    Raises:
        LoweringError: the circuit cannot be translated.
        OptionError: an option does not suit the circuit.
    """
    if not isinstance(circuit, QuantumCircuit):
        raise LoweringError(
            f"run() takes QuantumCircuits, not {type(circuit).__name__}. Pass a circuit or a list of them."
        )
    if options["shots"] is None and options["memory"]:
        raise OptionError(
            "memory=True needs shots, but shots=None asks for exact probabilities. Leave one of them out."
        )
    if options["memory"] and options["shots"] > MAX_MEMORY_SHOTS:
        needed = format_bytes(options["shots"] * MEMORY_BYTES)
        raise OptionError(
            f"memory=True keeps {options['shots']} values, about {needed}; it is for at most 2**30 shots. Ask for "
            f"counts alone, or run fewer shots at a time."
        )
    code = flatten(lower_from(_in_logical_order(circuit), options["initial_state"], options["inputs"]))
    check_saves(code, options["shots"])
    header, layout = _header(circuit)
    return Prepared(code, header, layout, needed_bytes(code, options))


def needed_bytes(code: Executable, options: dict[str, Any]) -> int:
    """Returns the bytes of the state and of the results saved beside it.

    A state that is saved at the very end needs no bytes of its own: it is the buffer of the state.
    """
    precision, shots = options["precision"], options["shots"] or 1
    needed = state_bytes(code.num_qubits, precision)
    collapsed = False
    for index, item in enumerate(code.items):
        collapsed = collapsed or code.collapses_at(index)
        if isinstance(item, Save) and not _is_the_states_own(item, code):
            readings = shots if collapsed and item.form == "list" else 1
            needed += readings * saved_bytes(item, code.num_qubits, precision)
    return needed


def amplitude_updates(prepared: Prepared) -> float:
    """Returns the number of amplitudes times operators, before fusion; infinity if the circuit branches or loops."""
    code, work = prepared.code, 0
    for index, item in enumerate(code.items):
        if code.collapses_at(index) or (isinstance(item, Jump) and item.target <= index):
            return math.inf
        work += len(item.ops) if isinstance(item, Segment) else 1
    return work << code.num_qubits


def _is_the_states_own(save: Save, code: Executable) -> bool:
    """Whether ``save`` returns the buffer of the state instead of a copy."""
    return save is code.items[-1] and save.what == "statevector" and -1 not in save.qubits


def check_capacity(prepared: Prepared, device: Device, precision: str) -> None:
    """Refuses a circuit that does not fit, before anything runs.

    Raises:
        CapacityError: the message has the needed and the available bytes, and says what would fit.
    """
    if prepared.needed_bytes <= device.memory_bytes:
        return
    code, device_bytes = prepared.code, device.memory_bytes
    state, saves = state_bytes(code.num_qubits, precision), code.saves
    name = f"circuit {code.program.name!r}: "
    if state > device_bytes:
        raise CapacityError(name + too_wide(code.num_qubits, precision, device.name, device_bytes))
    idle = sum(qubit < 0 for qubit in saves[0].qubits)
    way_out = f"measure, or save fewer than {len(saves)} states" + (
        f" and leave out the {idle} idle qubits" if idle else ""
    )
    raise CapacityError(
        f"{name}{code.num_qubits} qubits and {len(saves)} saved states of {len(saves[0].qubits)} qubits need "
        f"{short_bytes(prepared.needed_bytes)} in {precision} precision; {device.name} has {short_bytes(device_bytes)} "
        f"available. The state alone fits ({short_bytes(state)}): {way_out}."
    )


def request(prepared: Prepared, options: dict[str, Any], seed: int, index: int, device: Device) -> Request:
    """Makes the request to run ``prepared``, circuit ``index`` of its job, on ``device``."""
    precision = options["precision"]
    state = state_bytes(prepared.code.num_qubits, precision)
    return Request(
        shots=options["shots"],
        memory=options["memory"],
        seed=seed,
        index=index,
        device=device,
        max_states=max(1, 1 + (device.memory_bytes - prepared.needed_bytes) // state),
        layout=prepared.layout,
        plan_options=plan_options(options),
        draws_counts=options.get("draws_counts", False),
    )


def _in_logical_order(circuit: QuantumCircuit) -> QuantumCircuit:
    """Returns ``circuit`` with Aer's saves at its end on the qubits in the order before transpilation.

    Our ``save_statevector`` reads the layout when it is appended; Aer's method does not. A save that names all qubits
    in order, with no gate after it, counts as appended after transpilation: a transpiler pass that moves qubits before
    a save also permutes the qubits of the save.
    """
    if circuit.layout is None:
        return circuit
    order = final_order(circuit)
    order += [qubit for qubit in range(circuit.num_qubits) if qubit not in set(order)]  # ancillas highest
    if order == list(range(circuit.num_qubits)):
        return circuit
    data = list(circuit.data)
    for index in range(len(data) - 1, -1, -1):
        operation = data[index].operation
        if operation.name not in ENDINGS:
            break
        aers = operation.name in SAVES and hasattr(operation, "_subtype")
        if aers and list(data[index].qubits) == circuit.qubits and not operation.name.startswith("save_expval"):
            data[index] = data[index].replace(qubits=[circuit.qubits[qubit] for qubit in order])
    ordered = circuit.copy_empty_like()
    ordered.data = data
    ordered._layout = circuit.layout  # copy_empty_like drops it
    return ordered


def register_sizes(circuit: QuantumCircuit) -> list[tuple[str, int]]:
    """Returns name and number of bits of each register that results of ``circuit`` show, loose bits included."""
    header, _ = _header(circuit)
    return [(name, size) for name, size in header["creg_sizes"]]


def _header(circuit: QuantumCircuit) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Returns the header of the result, and the classical bit that each bit of a shown value stands for."""
    registers = circuit.cregs
    pieces: list[tuple[str, Sequence[int]]]
    if [bit for register in registers for bit in register] == circuit.clbits:
        pieces = [(register.name, range(register.size)) for register in registers]
        layout = tuple(range(circuit.num_clbits))
    else:
        pieces, layout = _shown_pieces(circuit)
    header = {
        "name": circuit.name,
        "n_qubits": circuit.num_qubits,
        "qreg_sizes": [[register.name, register.size] for register in circuit.qregs],
        "creg_sizes": [[name, len(bits)] for name, bits in pieces],
        "qubit_labels": [[register.name, index] for register in circuit.qregs for index in range(register.size)],
        "clbit_labels": [[name, index] for name, bits in pieces for index in range(len(bits))],
        "memory_slots": len(layout),
        "global_phase": circuit.global_phase,
        "metadata": dict(circuit.metadata or {}),
    }
    return header, layout


def _shown_pieces(circuit: QuantumCircuit) -> tuple[list[tuple[str, Sequence[int]]], tuple[int, ...]]:
    """Returns registers and loose bits in the order in which a value shows them, and the bits of all of them.

    Qiskit cuts a value into registers by their sizes alone, so the bits of one register must be neighbours. If the
    registers and loose bits lie in order, every bit keeps its place, and a loose bit is shown as a register of one bit.
    Otherwise the loose bits come lowest, then the registers as listed; a bit in two registers is shown in both.
    """
    registers = [(register.name, [circuit.find_bit(bit).index for bit in register]) for register in circuit.cregs]
    held = {bit for _, bits in registers for bit in bits}
    loose = [(f"clbit{bit}", [bit]) for bit in range(circuit.num_clbits) if bit not in held]
    pieces = loose + registers
    in_order = sorted((piece for piece in pieces if piece[1]), key=lambda piece: piece[1][0])
    if [bit for _, bits in in_order for bit in bits] == list(range(circuit.num_clbits)) and _keeps_order(
        in_order, registers
    ):
        pieces = in_order if loose else registers
    return list(pieces), tuple(bit for _, bits in pieces for bit in bits)


def _keeps_order(pieces: list[tuple[str, list[int]]], registers: list[tuple[str, list[int]]]) -> bool:
    names = {name for name, _ in registers}
    return [name for name, _ in pieces if name in names] == [name for name, bits in registers if bits]
