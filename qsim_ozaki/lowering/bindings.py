"""Converts users' bindings of parameters, in any allowed form, to rows.

In: circuits and bindings. Out: arrays ``(rows, parameters)`` in the order of ``circuit.parameters``. It may not bind a
circuit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter

from qsim_ozaki.errors import OptionError

Values: TypeAlias = NDArray[np.float64]  # (rows, parameters), in the order of circuit.parameters


def one_per_circuit(circuits: Sequence[QuantumCircuit], binds: object) -> list[Any]:
    """Returns the bindings of each circuit, None for a circuit without.

    Raises:
        OptionError: the number of bindings is not the number of circuits.
    """
    if binds is None or (isinstance(binds, (list, tuple)) and not binds):
        return [None] * len(circuits)
    if isinstance(binds, Mapping) or (isinstance(binds, np.ndarray) and binds.ndim <= 2 and binds.dtype != object):
        binds = [binds]
    if not isinstance(binds, Iterable):
        raise OptionError(
            f"parameter_binds of type {type(binds).__name__} is not allowed. Give one mapping per circuit."
        )
    listed = list(binds)
    if len(listed) != len(circuits):
        raise OptionError(
            f"parameter_binds has {len(listed)} entries for {len(circuits)} circuits. Give one per circuit: "
            f"a mapping from each parameter to its values, or an array (rows, parameters)."
        )
    return listed


def parameter_rows(circuit: QuantumCircuit, binds: object) -> Values:
    """Converts the bindings of one circuit to an array ``(rows, parameters)``.

    Raises:
        OptionError: a parameter is missing or unknown, or the numbers of values differ; the message has the names and
            numbers.
    """
    if not isinstance(binds, Mapping):
        values = np.atleast_2d(np.asarray(binds, float))
        if values.ndim != 2 or values.shape[1] != circuit.num_parameters:
            raise OptionError(
                f"parameters of shape {values.shape} do not suit circuit {circuit.name!r}, which has "
                f"{circuit.num_parameters}. Give (rows, {circuit.num_parameters}) values."
            )
        return _finite(values, circuit)
    columns = _columns(circuit, binds)
    missing = [parameter.name for parameter in circuit.parameters if parameter not in columns]
    if missing:
        raise OptionError(f"circuit {circuit.name!r} has unbound parameters: {', '.join(missing)}. Bind all of them.")
    lengths = {len(column) for column in columns.values()} - {1}
    if len(lengths) > 1:
        raise OptionError(
            f"circuit {circuit.name!r}: parameters have {', '.join(map(str, sorted(lengths)))} values. "
            f"Give each as many, or one."
        )
    rows = max(lengths, default=1)
    if rows == 0:
        raise OptionError(f"circuit {circuit.name!r}: a parameter has no values. Give at least one.")
    values = np.empty((rows, circuit.num_parameters))
    for index, parameter in enumerate(circuit.parameters):
        values[:, index] = columns[parameter]
    return _finite(values, circuit)


def _columns(circuit: QuantumCircuit, binds: Mapping[Any, Any]) -> dict[Parameter, NDArray[np.float64]]:
    """Returns the values of each parameter; a `ParameterVector` as a key has values ``(rows, elements)``."""
    by_name = {parameter.name: parameter for parameter in circuit.parameters}
    columns: dict[Parameter, NDArray[np.float64]] = {}
    for key, entry in binds.items():
        try:
            values = np.atleast_1d(np.asarray(entry, float))
        except (TypeError, ValueError):
            raise OptionError(f"values {entry!r} of parameter {key} are not real numbers. Give real ones.") from None
        if hasattr(key, "params"):
            for index, element in enumerate(key.params):
                columns[element] = np.atleast_1d(values[..., index])
            continue
        name = key if isinstance(key, str) else getattr(key, "name", key)
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise OptionError(f"circuit {circuit.name!r} has no parameter {name!r}. It has: {known}.")
        columns[by_name[name]] = values.reshape(-1)
    return columns


def _finite(values: Values, circuit: QuantumCircuit) -> Values:
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
        raise OptionError(f"row {row} of the parameters of circuit {circuit.name!r} is not finite. Give finite angles.")
    return values
