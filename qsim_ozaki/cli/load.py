"""Loads the circuit that a command-line argument names: an OpenQASM 2 or 3 file, a QPY file, or ``family:num_qubits``.

In: a text. Out: a `QuantumCircuit`. It may not run or change a circuit.
"""

from __future__ import annotations

import bisect
import codecs
import contextlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

_FAMILY = re.compile(r"(?P<name>[A-Za-z_]\w*):(?P<num_qubits>\d+)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A program without a version is OpenQASM 3 if it has what only OpenQASM 3 has.
_VERSION_3 = re.compile(r'\s*OPENQASM\s+3|(?!\s*OPENQASM\b).*("stdgates\.inc"|\bqubit\b)', re.DOTALL)
_PLACE = re.compile(r"(?:L|line )?(?P<line>\d+)(?:,|:C?)(?P<column>\d+):? ")  # as Qiskit's importers and ANTLR write it
_BYTE_ORDER_MARKS = (  # the UTF-32 mark begins with the UTF-16 mark
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


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
        program = _read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise QsimError(
            f"{text}: {reason}. Give an OpenQASM 2 or 3 file, or a family and a width as qft:20."
        ) from error
    read = _import_qasm3 if _VERSION_3.match(_COMMENT.sub("", program)) else _import_qasm2
    circuit = read(path, program)
    circuit.name = path.stem
    return circuit


def with_measurements(circuit: QuantumCircuit) -> tuple[QuantumCircuit, str]:
    """Returns ``circuit`` if it measures or has no qubits, else a copy that measures every qubit at its end.

    Also returns a sentence that says so to the user; it is empty if the circuit measures.
    """
    if has_measurement(circuit):
        return circuit, ""
    if circuit.num_qubits:
        measuring = circuit.measure_all(inplace=False)
        return measuring, "The circuit measures nothing: every qubit was measured at its end."
    if circuit.num_clbits:
        return circuit, "The circuit has no qubits, so every classical bit is 0."
    return circuit, "The program is empty: it has neither qubits nor classical bits."


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


def _read_text(path: Path) -> str:
    """Reads a text file by its byte order mark, else as UTF-8, else as Latin-1; every line ends with a line feed.

    Raises:
        UnicodeDecodeError: the file is not text.
    """
    content = path.read_bytes()
    marked = [encoding for mark, encoding in _BYTE_ORDER_MARKS if content.startswith(mark)]
    try:
        text = content.decode(marked[0] if marked else "utf-8")
    except UnicodeDecodeError:
        if marked:
            raise
        text = content.decode("latin-1")  # it has a letter for each byte
    if "\0" in text:
        raise UnicodeDecodeError("text", content, text.index("\0"), text.index("\0") + 1, "a zero")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _import_qasm2(path: Path, program: str) -> QuantumCircuit:
    """Loads a program by Qiskit's OpenQASM 2 importer, with the gates that its qelib1.inc once had (u0, rxx, ...)."""
    from qiskit import qasm2

    try:
        return qasm2.loads(program, include_path=(path.parent,), custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS)
    except qasm2.QASM2ParseError as error:
        raise _refusal(path, program, 2, _one_line(error).replace("<input>:", "", 1)) from error


def _import_qasm3(path: Path, program: str) -> QuantumCircuit:
    """Loads a program by Qiskit's OpenQASM 3 importer."""
    from qiskit import qasm3

    printed = io.StringIO()  # the parser prints some syntax errors beside the exception that it raises
    try:
        with contextlib.redirect_stderr(printed):
            return qasm3.loads(program)
    except Exception as error:  # the importer lets through the errors of the parser, of Python and of Qiskit
        problem = printed.getvalue().partition("\n")[0] or _one_line(error)
        if not _PLACE.match(problem):
            problem = _placed(program, error)
        raise _refusal(path, program, 3, problem) from error


def _refusal(path: Path, program: str, version: int, problem: str) -> QsimError:
    """Returns the error for a program that Qiskit refuses; a place at the start of ``problem`` is written out."""
    place = _PLACE.match(problem)
    where = ""
    if place:
        line, column = int(place["line"]), int(place["column"])
        lines = program.split("\n")
        if 0 < line <= len(lines) and column > len(lines[line - 1]):
            column -= sum(len(before) + 1 for before in lines[: line - 1])  # some columns count from the file's start
        where, problem = f"line {line}, column {max(column, 0) + 1}: ", problem[place.end() :]
    return QsimError(f"{path}: not OpenQASM {version} as Qiskit reads it: {where}{problem}")


def _placed(program: str, error: Exception) -> str:
    """Returns a message of the OpenQASM 3 importer with the place that it lacks, as ``line,column: message``."""
    import openqasm3
    import qiskit_qasm3_import

    token = getattr(next(iter(getattr(error.__cause__, "args", ())), None), "offendingToken", None)
    if token is not None:
        text = "end of file" if token.text == "<EOF>" else repr(token.text)
        return f"{token.line},{token.column}: unexpected {text}"
    problem = _one_line(error)
    try:
        tree = openqasm3.parse(program)
    except Exception:
        return problem

    def fails_at(index: int) -> bool:
        try:
            qiskit_qasm3_import.convert(openqasm3.ast.Program(tree.statements[: index + 1], version=tree.version))
        except Exception:
            return True
        return False

    statements = range(len(tree.statements))
    index = bisect.bisect_left(statements, True, key=fails_at)  # a program fails from its first wrong statement on
    place = tree.statements[index].span if index in statements else None
    if place is None:
        return problem
    return f"{place.start_line},{place.start_column}: {problem}"


def _one_line(error: Exception) -> str:
    """Returns the message of ``error`` without line ends and without the quotes that QiskitError adds."""
    return " ".join(str(error).split()).strip("\"'") or type(error).__name__
