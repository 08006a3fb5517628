"""Computes gradients of expectation values by the adjoint method: one sweep forward, one back, for all parameters.

In: a parametrised circuit, an observable, rows of parameters. Out: values and gradients. It may only use double
precision on the CPU.

Source: Jones and Gacon, arXiv:2009.02823.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from qiskit import QuantumCircuit

from qsim_ozaki.engines import select
from qsim_ozaki.errors import CapacityError, LoweringError
from qsim_ozaki.estimation.evaluator import Evaluator, make_evaluator
from qsim_ozaki.estimation.observables import labelled
from qsim_ozaki.ir import Observable, applied, expectations, format_bytes, state_bytes
from qsim_ozaki.lowering import parameter_rows
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime import num_threads, stack_program

TILE_QUBITS = 12  # of a wide state: both tiles, real and imaginary parts apart, take 128 KiB
LINE = 0b111  # mask of the qubits that every tile holds: 128 bytes of amplitudes side by side
LIVE_STATES = 3  # that are in memory together: the engine's state, ket and bra


def expectation_gradient(
    circuit: QuantumCircuit, observable: Any, parameter_values: ArrayLike | dict[Any, Any], *, threads: int = 0
) -> tuple[Any, NDArray[np.float64]]:
    """Returns the expectation value of ``observable`` in the circuit's final state, and its gradient.

    Args:
        circuit: unitary; if it measures at its end, X and Y of a measured qubit average to 0.
        observable: Hermitian, as Qiskit's estimators take it, on as many qubits as the circuit.
        parameter_values: ``(parameters,)`` or ``(rows, parameters)``, columns as ``circuit.parameters``; or a mapping.
        threads: 0 for all cores.

    Returns:
        The value and the gradient ``(parameters,)``; for rows, ``(rows,)`` and ``(rows, parameters)``.

    Raises:
        LoweringError: the circuit has no one final state, or a parameter stands where no derivative is known.
        CapacityError: three states do not fit.

    Example:
        >>> value, gradient = expectation_gradient(ansatz, SparsePauliOp("ZZ"), angles)
    """
    single = not isinstance(parameter_values, dict) and np.ndim(parameter_values) == 1
    values = parameter_rows(circuit, parameter_values)
    evaluator = make_evaluator(circuit)
    if evaluator is None:
        raise LoweringError(
            f"circuit {circuit.name!r} has a parameter inside control flow, or in a gate whose derivative is not "
            f"known. Use gates of Qiskit's library, or gates defined by them."
        )
    (terms,) = labelled(observable)
    threads = num_threads(threads)
    evs, gradient = _gradients(evaluator, evaluator.qubit_map.observable(terms), values, threads)
    return (float(evs[0]), gradient[0]) if single else (evs, gradient)


def _gradients(
    evaluator: Evaluator, observable: Observable, values: NDArray[np.float64], threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    engine = select("cpu", threads=threads)
    if evaluator.stack is None:
        _check_capacity(evaluator, engine.device().memory_bytes)
    evs, gradient = np.empty(len(values)), np.empty(values.shape)
    for rows, states in evaluator.states(values, engine, PlanOptions(), threads):
        kets = np.asarray(states, complex)
        evs[rows] = expectations(kets, [observable], threads)[:, 0]
        data = evaluator.template.data(values[rows])
        overlaps = _overlaps(evaluator, data, kets, applied(kets, observable, threads), threads)
        gradient[rows] = evaluator.template.chain(values[rows], overlaps)
    return evs, gradient


def _overlaps(
    evaluator: Evaluator,
    data: NDArray[np.complex128],
    kets: NDArray[np.complex128],
    bras: NDArray[np.complex128],
    threads: int,
) -> NDArray[np.complex128]:
    """Returns the factors of the slots' derivatives, ``(rows, width)``; undoes the circuit on ``kets`` and ``bras``."""
    out = np.zeros(data.shape, complex)
    if evaluator.stack is not None:
        evaluator.stack.overlaps(data, kets, bras, out, threads)
        return out
    num_qubits = evaluator.num_qubits
    passes = evaluator.joined_ops().native.search_tiles(num_qubits, TILE_QUBITS, LINE)
    for mask, _, members in reversed(passes):
        program = stack_program(num_qubits, [members], [q for q in range(num_qubits) if mask >> q & 1])
        program.overlaps(data, kets, bras, out, threads)
    return out


def _check_capacity(evaluator: Evaluator, available: int) -> None:
    needed = LIVE_STATES * state_bytes(evaluator.num_qubits, "double")
    if needed > available:
        most = max(0, (available // (LIVE_STATES * 16)).bit_length() - 1)
        raise CapacityError(
            f"a gradient on {evaluator.num_qubits} qubits needs {format_bytes(needed)} for {LIVE_STATES} states; "
            f"{format_bytes(available)} are available. Use at most {most} qubits."
        )
