"""Compares our amplitudes with a reference simulator's: Aer if it is installed, else Qiskit's Statevector.

In: a circuit and a backend. Out: a `Comparison`. It may not choose the tolerance: the caller does.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

    from qsim_ozaki.provider import OzakiBackend

State = NDArray[np.complexfloating[Any, Any]]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first instruction after which the two states differ by more than the tolerance."""

    position: int
    gate: str
    qubits: tuple[int, ...]
    difference: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two simulations of one circuit.

    Attributes:
        reference: name and version of the reference simulator.
        num_qubits: width.
        largest_difference: max over i of abs(ours[i] - reference[i]).
        at: index i of the largest difference.
        fidelity: abs(<reference|ours>)^2 / (<reference|reference> <ours|ours>).
        amplitudes: (i, ours[i], reference[i]) of the amplitudes largest in the reference.
        divergence: the first instruction that causes it; None if the largest difference is within the tolerance.
        seconds: wall time of our run.
        reference_seconds: wall time of the reference's run.
    """

    reference: str
    num_qubits: int
    largest_difference: float
    at: int
    fidelity: float
    amplitudes: tuple[tuple[int, complex, complex], ...]
    divergence: Divergence | None
    seconds: float
    reference_seconds: float


def compare(circuit: QuantumCircuit, backend: OzakiBackend, tolerance: float, num_amplitudes: int = 8) -> Comparison:
    """Runs ``circuit`` on ``backend`` and on the reference, and searches the first gate after which they differ.

    Args:
        circuit: measurements at its end are left out.
        backend: ours, with its options.
        tolerance: largest difference of two amplitudes that counts as equal.
        num_amplitudes: number of the largest amplitudes to report.

    Raises:
        QsimError: the circuit measures, resets or branches before its end, so that it has no single final state.
    """
    unitary = _unitary_part(circuit)
    reference, run_reference = _reference(backend)
    start = time.perf_counter()
    ours = _run_ours(unitary, backend)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs = run_reference(unitary)
    reference_seconds = time.perf_counter() - start

    difference = np.abs(ours - theirs)
    at = int(difference.argmax())
    norms = np.vdot(theirs, theirs).real * np.vdot(ours, ours).real
    size = np.abs(theirs)
    count = min(num_amplitudes, size.size)
    largest = np.argpartition(-size, count - 1)[:count]
    largest = largest[np.lexsort((largest, -size[largest]))]
    within = bool(difference[at] <= tolerance)  # false for NaN too
    return Comparison(
        reference=reference,
        num_qubits=unitary.num_qubits,
        largest_difference=float(difference[at]),
        at=at,
        fidelity=float(abs(np.vdot(theirs, ours)) ** 2 / norms),
        amplitudes=tuple((int(i), complex(ours[i]), complex(theirs[i])) for i in largest),
        divergence=None if within else _first_divergence(unitary, backend, run_reference, tolerance),
        seconds=seconds,
        reference_seconds=reference_seconds,
    )


def _unitary_part(circuit: QuantumCircuit) -> QuantumCircuit:
    """Returns ``circuit`` without the measurements at its end."""
    remaining: list[Any] = []  # last instruction first
    touched: set[Any] = set()
    for instruction in reversed(circuit.data):
        operation = instruction.operation
        if operation.name == "measure" and not touched & set(instruction.qubits):
            continue
        if operation.name in ("measure", "reset", "initialize") or hasattr(operation, "blocks") or instruction.clbits:
            raise QsimError(
                f"{circuit.name}: {operation.name} before the end of the circuit leaves no one final state to compare. "
                f"Use `qsim-ozaki run` and compare counts."
            )
        if operation.name != "barrier":
            touched |= set(instruction.qubits)
        remaining.append(instruction)
    unitary = circuit.copy_empty_like()
    unitary.data = remaining[::-1]
    return unitary


def _run_ours(circuit: QuantumCircuit, backend: OzakiBackend) -> State:
    """Returns the final state from ``backend``, ``(2**num_qubits,)``."""
    from qsim_ozaki.lowering import save_statevector

    saving = circuit.copy()
    save_statevector(saving)
    return np.asarray(backend.run(saving, shots=1).result().data(0)["statevector"])


def _reference(backend: OzakiBackend) -> tuple[str, Callable[[QuantumCircuit], State]]:
    """Returns the reference's name, and a function from a circuit to its final state, always in double precision."""
    if importlib.util.find_spec("qiskit_aer") is None:
        import qiskit
        from qiskit.quantum_info import Statevector

        return f"qiskit {qiskit.__version__} Statevector", lambda circuit: np.asarray(Statevector(circuit))

    import qiskit_aer
    from qiskit import transpile

    simulator = qiskit_aer.AerSimulator(method="statevector", max_parallel_threads=backend.options.threads)

    def run(circuit: QuantumCircuit) -> State:
        saving = transpile(circuit, simulator, optimization_level=0)
        saving.save_statevector()
        result = simulator.run(saving, shots=1).result()
        if not result.success:
            raise QsimError(f"qiskit-aer could not run {circuit.name}: {result.status}")
        return np.asarray(result.data(0)["statevector"])

    return f"qiskit-aer {qiskit_aer.__version__}", run


def _first_divergence(
    circuit: QuantumCircuit,
    backend: OzakiBackend,
    run_reference: Callable[[QuantumCircuit], State],
    tolerance: float,
) -> Divergence | None:
    """Returns an instruction before which the states agree and after which they differ, by bisection over prefixes.

    Returns None if the circuit is empty or the states differ before its first instruction.
    """

    def difference(length: int) -> float:
        prefix = circuit.copy_empty_like()
        prefix.data = circuit.data[:length]
        return float(np.abs(_run_ours(prefix, backend) - run_reference(prefix)).max())

    equal, different = 0, len(circuit.data)
    if not circuit.data or not difference(0) <= tolerance:
        return None
    while different - equal > 1:
        middle = (equal + different) // 2
        if difference(middle) <= tolerance:
            equal = middle
        else:
            different = middle
    instruction = circuit.data[equal]
    qubits = tuple(circuit.find_bit(qubit).index for qubit in instruction.qubits)
    return Divergence(equal, instruction.operation.name, qubits, difference(different))
