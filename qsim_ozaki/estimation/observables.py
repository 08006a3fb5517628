"""Converts Qiskit's observables to observables on the qubits of a program.

In: observables as Qiskit's estimators take them, the program qubit of each circuit qubit. Out: sums of Pauli strings.
It may not compute a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Complex
from typing import Any

import numpy as np
from qiskit.primitives.containers.observables_array import ObservablesArray

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import Observable, Placed, Term, placed, still
from qsim_ozaki.lowering import split_projectors


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
            LoweringError: a label has another width than the circuit.
        """
        for label in terms:
            if len(label) != len(self.place):
                raise LoweringError(
                    f"an observable is on {len(label)} qubits, its circuit on {len(self.place)}. Use one letter per "
                    f"qubit; after transpilation, observable.apply_layout(circuit.layout)."
                )
        measured = sum(1 << qubit for qubit in self.measured)
        parts = ((placed(label, self.place), weight) for label, weight in split_projectors(terms).items())
        return still(part for part in (_after_measurement(*pair, measured) for pair in parts) if part is not None)


def _after_measurement(part: Placed, weight: float, measured: int) -> tuple[Placed, float] | None:
    """Returns the term as it is after the qubits ``measured`` were measured; None if its value is 0.

    The mean of X and Y of a measured qubit is 0, that of a projector on them 1/2.
    """
    term = part.term
    turned = term.x & measured
    if turned & ~term.projected:
        return None
    rest = Term(*(mask & ~turned for mask in term))
    return part._replace(term=rest), weight * 0.5 ** turned.bit_count()


def labelled(observable: Any) -> list[Mapping[str, float]]:
    """Returns the terms of each observable, in C order; takes all that Qiskit's ``ObservablesArray`` takes.

    Raises:
        LoweringError: a factor is not finite.
    """
    check_factors(observable)
    array = observable if isinstance(observable, ObservablesArray) else ObservablesArray(observable)
    flat = array.ravel().tolist()
    observables = flat if isinstance(flat, list) else [flat]
    for terms in observables:
        for label, weight in terms.items():
            if not np.isfinite(weight):
                raise LoweringError(f"term {label} of an observable has factor {weight}. Give finite factors.")
    return observables


def check_factors(observables: Any) -> None:
    """Refuses factors that are not finite, of which Qiskit would say that they are not real.

    Args:
        observables: an observable, or nested lists or an array of them, as Qiskit's estimators take them.

    Raises:
        LoweringError: a factor is NaN or infinite.
    """
    if isinstance(observables, (list, tuple, np.ndarray)):
        for part in observables:
            check_factors(part)
        return
    if isinstance(observables, Mapping):
        factors = list(observables.values())
    else:
        factors = np.asarray(getattr(observables, "coeffs", ())).tolist()
    for number, factor in enumerate(factors):
        if isinstance(factor, Complex) and not np.isfinite(complex(factor)):
            raise LoweringError(f"term {number} of an observable has factor {factor}. Give finite factors.")
