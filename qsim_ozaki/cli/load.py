"""Loads the circuit that a command-line argument names: an OpenQASM 2 or 3 file, a QPY file, or ``family:num_qubits``.

In: a text. Out: a `QuantumCircuit`. It may not run or change a circuit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

_FAMILY = re.compile(r"(?P<name>[A-Za-z_]\w*):(?P<num_qubits>\d+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION_3 = re.compile(r"\s*OPENQASM\s+3")


def load_circuit(text: str) -> QuantumCircuit:
    """Loads the circuit that ``text`` names.

    Args:
        text: path of an OpenQASM or QPY file, or a family of `qsim_ozaki.circuits` and a width, as in ``qft:28``.

    Raises:
        QsimError: there is no such file or family, or Qiskit cannot read the file.
    """
    path = Path(text)
    family = _FAMILY.fullmatch(text)
    if family and not path.exists():
        from qsim_ozaki.circuits import build

        try:
            circuit: QuantumCircuit = build(family["name"], int(family["num_qubits"]))
        except ValueError as error:
            raise QsimError(str(error)) from error
        return circuit
    if path.suffix == ".qpy" and path.exists():
        return _import_qpy(path)
    try:
        program = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise QsimError(
            f"{text}: {reason}. Give an OpenQASM 2 or 3 file, or a family and a width as qft:20."
        ) from error
    circuit = _import_qasm3(path, program) if _VERSION_3.match(_COMMENT.sub("", program)) else _import_qasm2(path)
    circuit.name = path.stem
    return circuit


def has_measurement(circuit: QuantumCircuit) -> bool:
    """Whether ``circuit`` has a measurement, inside control flow too."""
    for instruction in circuit.data:
        blocks = getattr(instruction.operation, "blocks", ())
        if instruction.operation.name == "measure" or any(has_measurement(block) for block in blocks):
            return True
    return False


def _import_qpy(path: Path) -> QuantumCircuit:
    """Loads the only circuit of a QPY file; it may have free parameters."""
    from qiskit import qpy
    from qiskit.exceptions import QiskitError

    try:
        with path.open("rb") as file:
            circuits = qpy.load(file)
    except (QiskitError, OSError, ValueError) as error:
        raise QsimError(f"{path}: not QPY as Qiskit reads it: {_one_line(error)}") from error
    if len(circuits) != 1:
        raise QsimError(f"{path} holds {len(circuits)} circuits. Give a QPY file of one.")
    return circuits[0]


def _import_qasm2(path: Path) -> QuantumCircuit:
    """Loads a file by Qiskit's OpenQASM 2 importer, with the gates that its qelib1.inc once had (u0, rxx, ...)."""
    from qiskit import qasm2

    try:
        return qasm2.load(path, include_path=(path.parent,), custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS)
    except qasm2.QASM2ParseError as error:
        raise QsimError(f"{path}: not OpenQASM 2 as Qiskit reads it: {_one_line(error)}") from error


def _import_qasm3(path: Path, program: str) -> QuantumCircuit:
    """Loads a program by Qiskit's OpenQASM 3 importer."""
    from qiskit import qasm3
    from qiskit.exceptions import QiskitError

    try:
        return qasm3.loads(program)
    except QiskitError as error:
        raise QsimError(f"{path}: not OpenQASM 3 as Qiskit reads it: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    """Returns the message of ``error`` without line ends and without the quotes that QiskitError adds."""
    return " ".join(str(error).split()).strip("\"'")
