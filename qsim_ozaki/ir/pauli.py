"""Sums of Pauli strings as masks: their values in states, their images of states, and the bases that measure them.

In: labels, states as arrays. Out: `Observable`s, numbers, arrays. It may not know of Qiskit, circuits or engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native

Masks = NDArray[np.uint64]
RealArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Observable:
    """A sum of Pauli strings: X is on a qubit whose bit only ``x`` has, Z if only ``z`` has it, Y if both have it.

    Attributes:
        x: uint64 ``(terms,)``.
        z: uint64 ``(terms,)``.
        weights: float64 ``(terms,)``.
    """

    x: Masks
    z: Masks
    weights: RealArray

    @classmethod
    def of(cls, terms: Iterable[tuple[tuple[int, int], float]]) -> Observable:
        """Makes the sum of ((x, z), weight); equal strings become one."""
        sums: dict[tuple[int, int], float] = {}
        for string, weight in terms:
            sums[string] = sums.get(string, 0.0) + weight
        x, z = zip(*sums, strict=True) if sums else ((), ())
        return cls(np.array(x, np.uint64), np.array(z, np.uint64), np.array(list(sums.values()), float))


class Placed(NamedTuple):
    """A Pauli string that flips the qubits ``idle``, which are |0>: ``(x, z)`` on the others, times ``i**turns``."""

    string: tuple[int, int]
    idle: int = 0
    turns: int = 0


def placed(label: str, places: Sequence[int]) -> Placed:
    """Converts a string of ``IXYZ`` to masks over qubits.

    Args:
        label: its last letter is for ``places[0]``.
        places: qubits, -1 for one that stays |0>: Z is 1 there, X flips it, Y flips it with a factor i. Bit j of the
            mask of flipped qubits is for ``places[j]``.
    """
    x = z = idle = turns = 0
    for bit, (letter, place) in enumerate(zip(reversed(label), places, strict=True)):
        flips = letter in "XY"
        if place < 0:
            idle |= flips << bit
            turns += letter == "Y"
        else:
            x |= flips << place
            z |= (letter in "YZ") << place
    return Placed((x, z), idle, turns)


def string_values(states: NDArray[np.complexfloating], x: Masks, z: Masks, threads: int) -> RealArray:
    """Returns ``<state| P |state>`` of each Pauli string, ``(rows, strings)``.

    Args:
        states: ``(rows, 2**num_qubits)``.
        x: masks of the strings, as in an `Observable`.
        z: as ``x``.
        threads: the result is the same for any number.
    """
    values = np.empty((len(states), len(x)))
    if len(x):
        _native.pauli_expectations(states, x, z, values, threads)
    return values


def expectations(states: NDArray[np.complexfloating], observables: Sequence[Observable], threads: int) -> RealArray:
    """Returns <state| observable |state>, ``(rows, observables)``; every distinct Pauli string is evaluated once.

    Args:
        states: ``(rows, 2**num_qubits)``.
        observables: on the states' qubits.
        threads: the result is the same for any number.
    """
    return weighted(observables, lambda x, z: string_values(states, x, z, threads))


def weighted(observables: Sequence[Observable], evaluate: Callable[[Masks, Masks], RealArray]) -> RealArray:
    """Returns the values of ``observables``, ``(rows, observables)``, from those of their Pauli strings.

    Args:
        observables: any observables.
        evaluate: returns the values ``(rows, strings)`` of the strings with masks x and z; it is called once, with
            distinct strings.
    """
    number: dict[tuple[int, int], int] = {}
    places = [
        np.array([number.setdefault(key, len(number)) for key in zip(o.x.tolist(), o.z.tolist(), strict=True)], int)
        for o in observables
    ]
    x, z = (np.array([key[part] for key in number], np.uint64) for part in (0, 1))
    values = evaluate(x, z)
    out = np.empty((len(values), len(observables)))
    for index, (observable, place) in enumerate(zip(observables, places, strict=True)):
        out[:, index] = (values[:, place] * observable.weights).sum(axis=1)
    return out


def applied(states: NDArray[np.complex128], observable: Observable, threads: int) -> NDArray[np.complex128]:
    """Returns observable |state> for each state, ``(rows, 2**num_qubits)``."""
    out = np.empty_like(states)
    _native.pauli_sum(states, observable.x, observable.z, observable.weights, out, threads)
    return out


def mean_and_variance(
    state: NDArray[np.complexfloating], terms: Sequence[tuple[str, float]], places: Sequence[int], threads: int
) -> tuple[float, float]:
    """Returns ``<H>`` and ``<H^2> - <H>^2``, as the squared norm of ``(H - <H>) |state>``, so that nothing cancels.

    Args:
        state: ``(2**n,)``.
        terms: (label, weight) of H.
        places: as for `placed`; images that flip different idle qubits are orthogonal.
        threads: the result is the same for any number.
    """
    by_idle: dict[int, list[tuple[Placed, float]]] = {0: []}
    for label, weight in terms:
        string = placed(label, places)
        by_idle.setdefault(string.idle, []).append((string, weight))
    mean = float(expectations(state[None], [still(by_idle[0])], threads)[0, 0])
    by_idle[0].append((Placed((0, 0)), -mean))
    ket = np.asarray(state, complex)[None]
    images = (_image(ket, flipping, threads) for flipping in by_idle.values())
    return mean, sum(float(np.vdot(image, image).real) for image in images)


def still(terms: Iterable[tuple[Placed, float]]) -> Observable:
    """Sums the terms that flip no idle qubit: the value of any other is 0."""
    return Observable.of((string.string, weight) for string, weight in terms if not string.idle)


def _image(ket: NDArray[np.complex128], terms: Sequence[tuple[Placed, float]], threads: int) -> NDArray[np.complex128]:
    """Applies terms that flip the same idle qubits to the other qubits' state; their weights are real or imaginary."""
    parts = [
        Observable.of((s.string, -weight if s.turns & 2 else weight) for s, weight in terms if s.turns & 1 == odd)
        for odd in (0, 1)
    ]
    image = applied(ket, parts[0], threads)
    if parts[1].weights.size:
        image += 1j * applied(ket, parts[1], threads)
    return image


# gates that turn the axis of a qubit's measurement to Z, in order
TURNS_TO_Z: dict[str, tuple[str, ...]] = {"I": (), "X": ("h",), "Y": ("sdg", "h"), "Z": ()}
LETTER_OF_BITS = ("I", "X", "Z", "Y")  # by the bit of x and, twice its value, that of z


@dataclass(frozen=True, slots=True)
class Basis:
    """The axis along which each qubit is measured, as masks: X has its bit in ``x``, Z in ``z``, Y in both.

    Attributes:
        x: mask of the qubits measured along X or Y.
        z: mask of the qubits measured along Z or Y.
    """

    x: int
    z: int

    def letter(self, qubit: int) -> str:
        """Returns ``"X"``, ``"Y"`` or ``"Z"``, or ``"I"`` if ``qubit`` is not measured."""
        return LETTER_OF_BITS[(self.x >> qubit & 1) + 2 * (self.z >> qubit & 1)]


class SampledMeans:
    """Means of observables from measurements in several bases, and their standard errors.

    Args:
        observables: the observables.
        shots: number of shots of each basis.
    """

    def __init__(self, observables: Sequence[Observable], shots: int) -> None:
        self.observables = observables
        self.shots = shots
        self.means = np.array([o.weights[(o.x | o.z) == 0].sum() for o in observables])
        self.variances = np.zeros(len(observables))
        # a string counts in the first basis that measures it
        self.left = [np.ones(len(o.weights), bool) for o in observables]

    def add(self, basis: Basis, samples: NDArray[np.integer], counts: NDArray[np.integer]) -> None:
        """Adds the outcomes of one basis: distinct ``samples``, whose bit q is that of qubit q, and their counts."""
        for index, observable in enumerate(self.observables):
            taken = measured_in(observable, basis) & self.left[index]
            self.left[index] &= ~taken
            if not taken.any():
                continue
            support = (observable.x | observable.z)[taken]
            odd = np.bitwise_count(samples.astype(np.uint64)[:, None] & support) & 1
            totals = np.where(odd, -1.0, 1.0) @ observable.weights[taken]
            mean = float(counts @ totals) / self.shots
            self.means[index] += mean
            self.variances[index] += float(counts @ (totals - mean) ** 2) / max(1, self.shots - 1) / self.shots

    def values_and_errors(self) -> tuple[RealArray, RealArray]:
        """Returns the mean and the standard error of every observable, after all bases were added."""
        return self.means, np.sqrt(self.variances)


def commuting_groups(observables: Sequence[Observable]) -> list[Basis]:
    """Chooses measurement bases for all Pauli strings.

    Strings share a basis if they have the same letter on each qubit that both act on; first fit, in order.
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
    return [Basis(x, z) for x, z in groups if x | z]


def measured_in(observable: Observable, basis: Basis) -> NDArray[np.bool_]:
    """Returns the mask of the strings of ``observable`` that the basis measures, without the identity."""
    x, z = np.uint64(basis.x), np.uint64(basis.z)
    support = observable.x | observable.z
    clash = ((observable.x ^ x) | (observable.z ^ z)) & support
    return np.asarray((clash == 0) & (support != 0), bool)
