"""Saved results: reads values off a state, and combines the readings of several histories into one result.

In: a `Save`, an engine and its state. Out: arrays, numbers and dicts. It may not change a state or import Qiskit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines import Engine, State
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import (
    PLAIN,
    Save,
    Term,
    amplitude_bytes,
    mean_and_variance,
    placed,
    project,
    projected_value,
    still,
    weighted,
)
from qsim_ozaki.runtime.history import Record
from qsim_ozaki.runtime.vectors import Vector, reduced_density_matrix, with_idle_qubits

ZERO = 1e-15  # entries of a dict below this are the rounding of a zero
DOUBLE_BYTES = 16  # bytes of a complex128
MAX_GATHERED_QUBITS = 16  # that projectors leave: few amplitudes are gathered by index, not cut from the whole state
SAME_STATE = {"double": 1e-12, "single": 1e-5}  # at most 1 minus the overlap of equal states


@dataclass(slots=True)
class Result:
    """The final result under one label.

    Attributes:
        what: a key of `SAVED_KINDS`, or one of `WHOLE_STATES`.
        data: one value, or a list with a value per shot; or a dict of these by hexadecimal classical value.
    """

    what: str
    data: Any


@dataclass(slots=True)
class _Mean:
    """A weighted mean; the mean of a single value is that value, bit for bit."""

    value: Any = None
    weight: float = 0.0

    def add(self, value: Any, weight: float) -> None:
        self.weight += weight
        if self.value is None:
            self.value = value
        elif isinstance(value, dict):
            share = weight / self.weight
            self.value = {
                key: (1 - share) * self.value.get(key, 0.0) + share * value.get(key, 0.0)
                for key in sorted({**self.value, **value})
            }
        else:
            self.value = self.value + (value - self.value) * (weight / self.weight)

    def total(self) -> Any:
        if isinstance(self.value, dict):
            return {key: value * self.weight for key, value in self.value.items()}
        return self.value * self.weight


@dataclass(slots=True)
class Savings:
    """The readings of all histories so far."""

    circuit: str
    precision: str
    means: dict[str, dict[str, _Mean]] = field(default_factory=dict)
    singles: dict[str, dict[str, Any]] = field(default_factory=dict)
    saves: dict[str, Save] = field(default_factory=dict)

    def take(self, save: Save, key: str, value: Any, weight: float) -> Record | None:
        """Adds a reading of ``weight`` while the bits read ``key``; returns the record of a per-shot save.

        Raises:
            OptionError: two different states have one label and one classical value.
        """
        self.saves[save.label] = save
        key = key if save.conditional else ""
        if save.form == "list":
            return Record(save.label, key, value)
        if save.form == "single":
            states = self.singles.setdefault(save.label, {})
            if save.conditional and key in states and _distance(states[key], value) > SAME_STATE[self.precision]:
                raise OptionError(
                    f"circuit {self.circuit!r}: several states are saved as {save.label!r} for one classical value "
                    f"{key}. Save with pershot=True, or measure all that tells them apart."
                )
            states.setdefault(key, value)
        else:
            self.means.setdefault(save.label, {}).setdefault(key, _Mean()).add(value, weight)
        return None

    def results(self, per_shot: Callable[[str], list[Record]]) -> dict[str, Result]:
        """The result of every label.

        Args:
            per_shot: returns the entry of every shot under a label.
        """
        return {label: Result(save.what, self._data(save, per_shot)) for label, save in self.saves.items()}

    def _data(self, save: Save, per_shot: Callable[[str], list[Record]]) -> Any:
        by_key: dict[str, Any] = {}
        if save.form == "list":
            by_key = {}
            for record in per_shot(save.label):
                by_key.setdefault(record.key, []).append(record.value)
        elif save.form == "single":
            by_key = self.singles[save.label]
        else:
            means = self.means[save.label]
            by_key = {key: mean.total() if save.form == "accum" else mean.value for key, mean in means.items()}
        return by_key if save.conditional else by_key[""]


def _distance(first: Any, second: Any) -> float:
    """The product of the norms of two readings minus their overlap: 0 where they differ by a global phase alone."""
    if isinstance(first, dict):
        keys = sorted({**first, **second})
        first, second = (np.array([reading.get(key, 0) for key in keys]) for reading in (first, second))
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(abs(abs(np.vdot(first, second)) - lengths))


def read(save: Save, engine: Engine, state: State, places: Sequence[int]) -> Any:
    """The value that ``save`` reads off ``state``; whole states are read by the executor.

    Args:
        save: the kind of value, its qubits and details.
        engine: owns ``state``.
        state: any.
        places: the physical qubit of each of the save's qubits, -1 for an idle one.
    """
    return SAVED_KINDS[save.what](save, engine, state, places)


def saved_bytes(save: Save, num_qubits: int, precision: str) -> int:
    """Bytes of one reading of ``save``, with the vectors that the reading needs meanwhile."""
    amp = amplitude_bytes(precision)
    if save.what == "density_matrix":
        return DOUBLE_BYTES << 2 * len(save.qubits)
    if save.what == "expectation_value":  # projectors take part of the state out
        projects = any(not PLAIN.issuperset(label) for label, _ in save.details)
        return DOUBLE_BYTES + (amp << num_qubits if projects else 0)
    if save.what == "pauli_values":
        return DOUBLE_BYTES * len(save.details)
    if save.what == "expectation_value_variance":  # the state in double precision, and its image
        return ((1 + (precision == "single")) * DOUBLE_BYTES) << num_qubits
    if save.what in ("amplitudes", "amplitudes_squared"):
        return amp * len(save.details)
    return amp << max(len(save.qubits), num_qubits if save.what in WHOLE_STATES else 0)


def as_dict(values: NDArray[Any]) -> dict[int, Any]:
    """The values by index, without zeros."""
    return {index: values[index].item() for index in np.flatnonzero(np.abs(values) > ZERO).tolist()}


def _probabilities(save: Save, engine: Engine, state: State, places: Sequence[int]) -> NDArray[np.float64]:
    real = [place for place in places if place >= 0]
    table = engine.probabilities(state, real) if real else np.ones(1)
    return with_idle_qubits(table, places) if len(real) < len(places) else table  # type: ignore[return-value, arg-type]


def _probabilities_dict(save: Save, engine: Engine, state: State, places: Sequence[int]) -> dict[int, float]:
    return as_dict(_probabilities(save, engine, state, places))


def _amplitudes(save: Save, engine: Engine, state: State, places: Sequence[int]) -> Vector:
    ones = [[place for bit, place in enumerate(places) if index >> bit & 1] for index in save.details]
    indices = [sum(1 << place for place in row if place >= 0) for row in ones]
    amps = engine.amplitudes(state, np.array(indices, np.int64))
    idle_is_one = [-1 in row for row in ones]
    return np.where(idle_is_one, amps.dtype.type(0), amps)


def _amplitudes_squared(save: Save, engine: Engine, state: State, places: Sequence[int]) -> NDArray[np.float64]:
    return np.asarray(np.abs(_amplitudes(save, engine, state, places).astype(complex)) ** 2)


def _density_matrix(save: Save, engine: Engine, state: State, places: Sequence[int]) -> NDArray[np.complex128]:
    return reduced_density_matrix(engine.vector(state), places)


def _expectation(save: Save, engine: Engine, state: State, places: Sequence[int]) -> float:
    observable = still((placed(label, places), weight) for label, weight in save.details)
    return float(weighted([observable], lambda terms: term_values(terms, engine, state)[None])[0, 0])


def _pauli_values(save: Save, engine: Engine, state: State, places: Sequence[int]) -> NDArray[np.float64]:
    """Of the terms ``save.details``, masks over the save's qubits, none of them idle."""

    def moved(mask: int) -> int:
        return sum(1 << place for bit, place in enumerate(places) if mask >> bit & 1)

    return term_values([Term(*map(moved, term)) for term in save.details], engine, state)


def term_values(terms: Sequence[Term], engine: Engine, state: State) -> NDArray[np.float64]:
    """Returns ``<state| term |state>`` of each term on the state's physical qubits, ``(terms,)``."""
    values = np.empty(len(terms))
    plain = [index for index, term in enumerate(terms) if not term.projected]
    x, z = (np.array([terms[index][part] for index in plain], np.uint64) for part in (0, 1))
    values[plain] = engine.pauli_values(state, x, z)
    whole: Vector | None = None
    for index, term in enumerate(terms):
        if not term.projected:
            continue
        others = [qubit for qubit in range(state.num_qubits) if not term.projected >> qubit & 1]
        if not term.projected & term.x and len(others) <= MAX_GATHERED_QUBITS:
            places = sum(((np.arange(1 << len(others)) >> j & 1) << qubit for j, qubit in enumerate(others)))
            vector = engine.amplitudes(state, np.atleast_1d(np.asarray(places, np.int64)) + term.minus)
        else:
            whole = engine.vector(state) if whole is None else whole
            vector = project(whole, term)
        values[index] = projected_value(vector, term, engine.threads)
    return values


def _variance(save: Save, engine: Engine, state: State, places: Sequence[int]) -> NDArray[np.float64]:
    """The expectation value, then the variance."""
    return np.array(mean_and_variance(engine.vector(state), save.details, places, engine.threads))


# The readers by kind of save; the executor reads whole states, because it first brings their qubits in order.
SAVED_KINDS: dict[str, Callable[[Save, Engine, State, Sequence[int]], Any]] = {
    "probabilities": _probabilities,
    "probabilities_dict": _probabilities_dict,
    "amplitudes": _amplitudes,
    "amplitudes_squared": _amplitudes_squared,
    "density_matrix": _density_matrix,
    "expectation_value": _expectation,
    "expectation_value_variance": _variance,
    "pauli_values": _pauli_values,
}
WHOLE_STATES = ("statevector", "statevector_dict")
