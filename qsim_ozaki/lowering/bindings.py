"""Converts users' bindings of parameters, in any allowed form, to rows.

In: circuits and bindings. Out: arrays ``(rows, parameters)`` in the order of ``circuit.parameters``, or a circuit bound
to one row. It may not lower a circuit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter, ParameterVector
from qiskit.exceptions import QiskitError

from qsim_ozaki.errors import LoweringError, OptionError

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
        OptionError: a parameter is missing, unknown or bound twice, the numbers of values differ, there are no rows, or
            a value is not a finite real number; the message has the names and numbers.
    """
    if not isinstance(binds, Mapping):
        values = np.atleast_2d(_real_values(binds, f"the parameters of circuit {circuit.name!r}"))
        if values.ndim != 2 or values.shape[1] != circuit.num_parameters:
            raise OptionError(
                f"parameters of shape {values.shape} do not suit circuit {circuit.name!r}, which has "
                f"{circuit.num_parameters}. Give (rows, {circuit.num_parameters}) values."
            )
        if not len(values):
            raise OptionError(f"circuit {circuit.name!r}: its parameters have no rows of values. Give at least one.")
        return finite_rows(values, circuit)
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
    return finite_rows(values, circuit)


def _real_values(values: Any, owner: str) -> NDArray[np.float64]:
    """Converts ``values`` to an array of real numbers; ``owner`` is for the message."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c" and not array.imag.any():  # NaN counts as a part that is not 0
            array = array.real
        if array.dtype.kind != "c":
            return np.asarray(array, float)
    except (TypeError, ValueError):
        pass
    raise OptionError(f"values {values!r} of {owner} are not real numbers. Give real ones.")


def bound_circuit(circuit: QuantumCircuit, row: Sequence[float]) -> QuantumCircuit:
    """Binds ``circuit`` to one row of values.

    Raises:
        LoweringError: an angle is not a finite real number; the message has the values of all parameters.
    """
    try:
        return circuit.assign_parameters(dict(zip(circuit.parameters, row, strict=True)))
    except (QiskitError, ArithmeticError, TypeError, ValueError, RuntimeError) as error:
        values = ", ".join(
            f"{parameter.name} = {value}" for parameter, value in zip(circuit.parameters, row, strict=True)
        )
        raise LoweringError(
            f"circuit {circuit.name!r} has an angle that is not a finite real number at {values}: {error}. "
            f"Give values at which it is finite."
        ) from None


def _columns(circuit: QuantumCircuit, binds: Mapping[Any, Any]) -> dict[Parameter, NDArray[np.float64]]:
    """Returns the values of each parameter; a `ParameterVector` as a key has values ``(rows, elements)``."""
    by_name = {parameter.name: parameter for parameter in circuit.parameters}
    columns: dict[Parameter, NDArray[np.float64]] = {}
    for key, entry in binds.items():
        name = key if isinstance(key, str) else getattr(key, "name", key)
        values = np.atleast_1d(_real_values(entry, f"parameter {name}"))
        if isinstance(key, ParameterVector):
            bound = _vector_columns(circuit, key, values)
        elif name in by_name:
            bound = {by_name[name]: values.reshape(-1)}
        else:
            raise _unknown(circuit, name)
        for parameter, column in bound.items():
            if parameter in columns:
                raise OptionError(
                    f"circuit {circuit.name!r}: parameter {parameter.name!r} is bound twice. Bind it once."
                )
            columns[parameter] = column
    return columns


def _vector_columns(
    circuit: QuantumCircuit, vector: ParameterVector, values: NDArray[np.float64]
) -> dict[Parameter, NDArray[np.float64]]:
    """Returns the values of the elements of ``vector``, of which ``circuit`` must have at least one."""
    if values.ndim > 2 or values.shape[-1] != len(vector):
        raise OptionError(
            f"values of shape {values.shape} do not suit vector {vector.name!r}, which has {len(vector)} elements. "
            f"Give ({len(vector)},) or (rows, {len(vector)}) values."
        )
    present = set(circuit.parameters)
    if len(vector) and present.isdisjoint(vector.params):
        raise _unknown(circuit, vector.name)
    return {element: np.atleast_1d(values[..., index]) for index, element in enumerate(vector.params)}


def _unknown(circuit: QuantumCircuit, name: object) -> OptionError:
    known = ", ".join(parameter.name for parameter in circuit.parameters) or "none"
    return OptionError(f"circuit {circuit.name!r} has no parameter {name!r}. It has: {known}.")


def finite_rows(values: Values, circuit: QuantumCircuit) -> Values:
    """Returns ``values``, ``(rows, parameters)``, if all are finite.

    Raises:
        OptionError: a value is not finite; the message names the parameter and the row.
    """
    wrong = ~np.isfinite(values)
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        raise OptionError(
            f"circuit {circuit.name!r}: parameter {circuit.parameters[column].name!r} is {values[row, column]} in row "
            f"{row}, which is not finite. Give finite angles."
        )
    return values
