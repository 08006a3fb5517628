"""Observables as Pauli strings on a program's qubits, and their exact values on states.

In: Qiskit's observables. Out: masks and weights; values. It runs no circuit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit.primitives.containers.observables_array import ObservablesArray

import qsim_ozaki._cpu as _cpu
from qsim_ozaki.errors import LoweringError

Masks = NDArray[np.uint64]
Real = NDArray[np.float64]

MAX_PROJECTORS = 16  # in one term: each doubles its Pauli strings
# letter: the Pauli strings that make it, with weights
LETTERS: dict[str, tuple[tuple[str, float], ...]] = {
    **{letter: ((letter, 1.0),) for letter in "IXYZ"},
    **{up: (("I", 0.5), (axis, 0.5)) for up, axis in zip("0+r", "ZXY", strict=True)},
    **{down: (("I", 0.5), (axis, -0.5)) for down, axis in zip("1-l", "ZXY", strict=True)},
}


@dataclass(frozen=True, slots=True, eq=False)
class Observable:
    """A sum of Pauli strings: qubit q holds X where only ``x`` has its bit, Z where only ``z`` has it, Y where both.

    Attributes:
        x: uint64 ``(terms,)``.
        z: uint64 ``(terms,)``.
        weights: float64 ``(terms,)``.
    """

    x: Masks
    z: Masks
    weights: Real


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """How the qubits of a circuit lie in its program.

    Attributes:
        place: program qubit of each circuit qubit, -1 for one that stays |0>.
        measured: program qubits that the circuit measures: of them only I and Z are left, X and Y average to 0.
    """

    place: tuple[int, ...]
    measured: frozenset[int]

    def observable(self, terms: Mapping[str, float]) -> Observable:
        """The observable of ``terms`` (label to weight, qubit 0 last) on the program's qubits.

        Raises:
            LoweringError: its width does not suit, or a term holds too many projectors.
        """
        sums: dict[tuple[int, int], float] = {}
        for label, weight in terms.items():
            if len(label) != len(self.place):
                raise LoweringError(
                    f"an observable is on {len(label)} qubits, its circuit on {len(self.place)}. Use one letter per "
                    f"qubit; after transpilation, observable.apply_layout(circuit.layout)."
                )
            if sum(len(LETTERS[letter]) > 1 for letter in label) > MAX_PROJECTORS:
                raise LoweringError(
                    f"term {label} holds more than {MAX_PROJECTORS} projectors. Write it as fewer, or as Pauli strings."
                )
            for part in product(*(LETTERS[letter] for letter in label)):
                string = self._masks("".join(letter for letter, _ in part))
                if string is not None:
                    factor = float(np.prod([each for _, each in part]))
                    sums[string] = sums.get(string, 0.0) + factor * float(weight)
        x, z = zip(*sums, strict=True) if sums else ((), ())
        return Observable(np.array(x, np.uint64), np.array(z, np.uint64), np.array(list(sums.values()), float))

    def _masks(self, string: str) -> tuple[int, int] | None:
        """(x, z) of one Pauli string, None where its value is 0 whatever the state of the other qubits."""
        x = z = 0
        for letter, place in zip(reversed(string), self.place, strict=True):
            flips = letter in "XY"
            if flips and (place < 0 or place in self.measured):
                return None
            if place >= 0:
                x |= flips << place
                z |= (letter in "YZ") << place
        return x, z


def labelled(observable: Any) -> list[Mapping[str, float]]:
    """The terms of each observable of Qiskit's ``ObservablesArray``, or of whatever it is made of, in C order."""
    array = observable if isinstance(observable, ObservablesArray) else ObservablesArray(observable)
    flat = array.ravel().tolist()
    return flat if isinstance(flat, list) else [flat]


def expectations(states: NDArray[np.complexfloating], observables: Sequence[Observable], threads: int) -> Real:
    """<state| observable |state> for each, ``(rows, observables)``; every Pauli string is evaluated once.

    Args:
        states: ``(rows, 2**num_qubits)``.
        observables: on the states' qubits.
        threads: the result is the same for any number.
    """
    number: dict[tuple[int, int], int] = {}
    places = [
        np.array([number.setdefault(key, len(number)) for key in zip(o.x.tolist(), o.z.tolist(), strict=True)], int)
        for o in observables
    ]
    x, z = (np.array([key[part] for key in number], np.uint64) for part in (0, 1))
    values = np.empty((len(states), len(number)))
    if number:
        _cpu.pauli_expectations(states, x, z, values, threads)
    out = np.empty((len(states), len(observables)))
    for index, (observable, place) in enumerate(zip(observables, places, strict=True)):
        out[:, index] = (values[:, place] * observable.weights).sum(axis=1)
    return out


def applied(states: NDArray[np.complex128], observable: Observable, threads: int) -> NDArray[np.complex128]:
    """Observable |state> for each state, ``(rows, 2**num_qubits)``."""
    out = np.empty_like(states)
    _cpu.pauli_sum(states, observable.x, observable.z, observable.weights, out, threads)
    return out


def commuting_groups(observables: Sequence[Observable]) -> list[tuple[int, int]]:
    """Measurement bases that serve every Pauli string: (x, z) masks of what is measured on each qubit.

    Strings share a basis where they hold the same letter on each qubit that both act on; first fit, in order.
    """
    groups: list[tuple[int, int]] = []
    strings = dict.fromkeys(key for o in observables for key in zip(o.x.tolist(), o.z.tolist(), strict=True))
    for x, z in strings:
        for index, (group_x, group_z) in enumerate(groups):
            if not ((x ^ group_x) | (z ^ group_z)) & (x | z) & (group_x | group_z):
                groups[index] = (group_x | x, group_z | z)
                break
        else:
            groups.append((x, z))
    return [group for group in groups if group != (0, 0)]


def measured_in(observable: Observable, basis: tuple[int, int]) -> NDArray[np.bool_]:
    """Which strings of ``observable`` the basis measures, the identity not included."""
    x, z = (np.uint64(mask) for mask in basis)
    support = observable.x | observable.z
    clash = ((observable.x ^ x) | (observable.z ^ z)) & support
    return np.asarray((clash == 0) & (support != 0), bool)
