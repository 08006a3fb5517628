"""Converts Qiskit's observables to observables on the qubits of a program.

In: observables as Qiskit's estimators take them, the program qubit of each circuit qubit. Out: sums of Pauli strings.
It may not compute a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from qiskit.primitives.containers.observables_array import ObservablesArray

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import Observable, placed, still

MAX_PROJECTORS = 16  # in one term: each doubles its Pauli strings
# letter: the Pauli strings that make it, with weights
LETTERS: dict[str, tuple[tuple[str, float], ...]] = {
    **{letter: ((letter, 1.0),) for letter in "IXYZ"},
    **{up: (("I", 0.5), (axis, 0.5)) for up, axis in zip("0+r", "ZXY", strict=True)},
    **{down: (("I", 0.5), (axis, -0.5)) for down, axis in zip("1-l", "ZXY", strict=True)},
}


@dataclass(frozen=True, slots=True, eq=False)
class QubitMap:
    """The places of a circuit's qubits in its program.

    Attributes:
        place: program qubit of each circuit qubit, -1 for one that stays |0>.
        measured: program qubits that the circuit measures at its end: their X and Y average to 0.
    """

    place: tuple[int, ...]
    measured: frozenset[int]

    def observable(self, terms: Mapping[str, float]) -> Observable:
        """Converts ``terms`` (label to weight, qubit 0 last) to an observable on the program's qubits.

        Raises:
            LoweringError: a label has another width than the circuit, or a term holds too many projectors.
        """
        for label in terms:
            if len(label) != len(self.place):
                raise LoweringError(
                    f"an observable is on {len(label)} qubits, its circuit on {len(self.place)}. Use one letter per "
                    f"qubit; after transpilation, observable.apply_layout(circuit.layout)."
                )
        measured = sum(1 << qubit for qubit in self.measured)
        strings = ((placed(string, self.place), weight) for string, weight in pauli_strings(terms))
        return still((string, weight) for string, weight in strings if not string.string[0] & measured)


def pauli_strings(terms: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Rewrites ``terms`` in the letters ``IXYZ`` alone: a projector is half the identity and half a Pauli matrix.

    Raises:
        LoweringError: a term holds too many projectors.
    """
    for label, weight in terms.items():
        if sum(len(LETTERS[letter]) > 1 for letter in label) > MAX_PROJECTORS:
            raise LoweringError(
                f"term {label} holds more than {MAX_PROJECTORS} projectors. Write it as fewer, or as Pauli strings."
            )
        for part in product(*(LETTERS[letter] for letter in label)):
            yield "".join(letter for letter, _ in part), float(np.prod([share for _, share in part])) * float(weight)


def labelled(observable: Any) -> list[Mapping[str, float]]:
    """Returns the terms of each observable, in C order; takes all that Qiskit's ``ObservablesArray`` takes."""
    array = observable if isinstance(observable, ObservablesArray) else ObservablesArray(observable)
    flat = array.ravel().tolist()
    return flat if isinstance(flat, list) else [flat]
