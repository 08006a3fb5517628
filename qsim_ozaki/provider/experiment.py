"""One circuit's part of a Qiskit `Result`: its data, header and metadata.

In: a prepared circuit and its execution. Out: a `RowResult`. It may not run anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from qiskit.quantum_info import DensityMatrix, Statevector

from qsim_ozaki.ir import state_bytes
from qsim_ozaki.provider.prepare import Prepared
from qsim_ozaki.provider.result import DrawnData, RowData, RowResult
from qsim_ozaki.runtime import Drawn, Execution, Request

STATE_CLASSES = {"statevector": Statevector, "density_matrix": DensityMatrix}


def experiment(prepared: Prepared, execution: Execution, request: Request, engine: str) -> RowResult:
    """Makes one circuit's part of a `Result`.

    Args:
        prepared: the circuit.
        execution: its outcomes and saved results.
        request: the shots, seed, device and plan options of the execution.
        engine: name of the engine that ran it.
    """
    tally, code = execution.tally, prepared.code
    metadata = {
        "engine": engine,
        "device": request.device.name,
        "precision": request.plan_options.precision,
        "steps": dict(tally.steps),
        "passes": tally.passes,
        "predicted_seconds": tally.predicted_seconds,
        "measured_seconds": execution.measured_seconds,
        "memory_bytes": state_bytes(code.num_qubits, request.plan_options.precision),
        "active_qubits": code.program.num_qubits,
        "idle_qubits": code.program.circuit_qubits - code.program.num_qubits,
        "sampling": execution.sampling,
        "histories": tally.histories,
        "neglected_probability": execution.neglected,
        "input_deviation": code.program.input_deviation,
    }
    if tally.emulated:
        metadata["emulated"] = {
            "blocks": len(tally.emulated),
            "num_moduli": max(step.num_moduli for step in tally.emulated),
            "error_bound": max(step.error_bound for step in tally.emulated),
            "largest_residual": tally.checks.residual,
            "columns_redone": tally.checks.redone,
        }
    return RowResult(
        prepared.header,
        shots=1 if request.shots is None else request.shots,  # exact probabilities add up to one shot
        success=True,
        data=_data(prepared, execution, request),
        status="DONE",
        seed=request.seed,
        metadata=metadata,
        time_taken=execution.measured_seconds,
    )


def _data(prepared: Prepared, execution: Execution, request: Request) -> RowData:
    """Returns counts, memory and saved results; a circuit that writes no classical bit has 0 in all of them."""
    saved = {label: _presented(result.what, result.data) for label, result in execution.saved.items()}
    counts, memory = execution.counts, execution.memory
    if isinstance(counts, Drawn):
        return DrawnData(counts, saved)
    if counts is None and prepared.layout:
        counts = {"0x0": 1.0 if request.shots is None else request.shots}
        memory = ["0x0"] * (request.shots or 0) if request.memory else None
    return RowData(counts=counts, memory=memory, **saved)


def _presented(what: str, data: Any) -> Any:
    """Wraps saved states in Qiskit's classes, which share their memory.

    A state in single precision stays an array, because Qiskit's classes would copy it in double precision.
    """
    if isinstance(data, dict):
        return {key: _presented(what, value) for key, value in data.items()}
    if isinstance(data, list):
        return [_presented(what, value) for value in data]
    if isinstance(data, np.ndarray) and data.dtype == np.complex128 and what in STATE_CLASSES:
        return STATE_CLASSES[what](data)
    return data
