"""Sums of Pauli strings as masks: their values in states, their images of states, and the bases that measure them.

In: labels, states as arrays. Out: `Observable`s, numbers, arrays. It may not know of Qiskit, circuits or engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native

Masks = NDArray[np.uint64]
RealArray = NDArray[np.float64]


class Term(NamedTuple):
    """A product of one-qubit matrices, as masks of qubits.

    X is on a qubit whose bit only ``x`` has, Z if only ``z`` has it, Y if both have it. On the qubits ``projected`` the
    product has instead of that Pauli matrix P the projector (1 + P) / 2, or (1 - P) / 2 on those in ``minus`` too.
    """

    x: int
    z: int
    projected: int = 0
    minus: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Observable:
    """A sum of products of Pauli matrices and projectors; masks as those of a `Term`.

    Attributes:
        x: uint64 ``(terms,)``.
        z: uint64 ``(terms,)``.
        projected: uint64 ``(terms,)``.
        minus: uint64 ``(terms,)``.
        weights: float64 ``(terms,)``.
    """

    x: Masks
    z: Masks
    projected: Masks
    minus: Masks
    weights: RealArray

    @classmethod
    def of(cls, terms: Iterable[tuple[Term, float]]) -> Observable:
        """Makes the sum of (term, weight); equal terms become one."""
        sums: dict[Term, float] = {}
        for term, weight in terms:
            sums[term] = sums.get(term, 0.0) + weight
        x, z, projected, minus = np.ascontiguousarray(np.array(list(sums), np.uint64).reshape(-1, 4).T)
        return cls(x, z, projected, minus, np.array(list(sums.values()), float))

    def terms(self) -> list[Term]:
        """Returns the terms, without their weights."""
        columns = (self.x.tolist(), self.z.tolist(), self.projected.tolist(), self.minus.tolist())
        return [Term(*masks) for masks in zip(*columns, strict=True)]


class Placed(NamedTuple):
    """``factor * i**turns`` times ``term``, beside qubits that are in |0>; the term flips those of them in ``idle``."""

    term: Term
    idle: int = 0
    turns: int = 0
    factor: float = 1.0


AXES = {"I": "I", "X": "X", "Y": "Y", "Z": "Z"} | dict(zip("01+-rl", "ZZXXYY", strict=True))  # letter: its Pauli matrix
PLAIN = frozenset("IXYZ")
MINUS = frozenset("1-l")
FACTOR_OF_ZERO = {"0": 1.0, "1": 0.0} | dict.fromkeys("+-rl", 0.5)  # mean of a projector in |0>


def placed(label: str, places: Sequence[int]) -> Placed:
    """Converts a string of ``IXYZ01+-rl`` to masks over qubits.

    Args:
        label: its last letter is for ``places[0]``.
        places: qubits, -1 for one that stays |0>: Z is 1 there, X flips it, Y flips it with a factor i, and a projector
            counts as its mean. Bit j of the mask of flipped qubits is for ``places[j]``.
    """
    x = z = projected = minus = idle = turns = 0
    factor = 1.0
    for bit, (letter, place) in enumerate(zip(reversed(label), places, strict=True)):
        axis, plain = AXES[letter], letter in PLAIN
        if place < 0:
            if not plain:
                factor *= FACTOR_OF_ZERO[letter]
                continue
            idle |= (axis in "XY") << bit
            turns += axis == "Y"
        else:
            x |= (axis in "XY") << place
            z |= (axis in "YZ") << place
            projected |= (not plain) << place
            minus |= (letter in MINUS) << place
    return Placed(Term(x, z, projected, minus), idle, turns, factor)


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


def term_values(states: NDArray[np.complexfloating], terms: Sequence[Term], threads: int) -> RealArray:
    """Returns ``<state| term |state>`` of each term, ``(rows, terms)``.

    Args:
        states: ``(rows, 2**num_qubits)``.
        terms: on the states' qubits.
        threads: the result is the same for any number.
    """
    values = np.empty((len(states), len(terms)))
    plain = [index for index, term in enumerate(terms) if not term.projected]
    x, z = (np.array([terms[index][part] for index in plain], np.uint64) for part in (0, 1))
    values[:, plain] = string_values(states, x, z, threads)
    for index, term in enumerate(terms):
        if term.projected:
            values[:, index] = [projected_value(project(state, term), term, threads) for state in states]
    return values


def expectations(states: NDArray[np.complexfloating], observables: Sequence[Observable], threads: int) -> RealArray:
    """Returns <state| observable |state>, ``(rows, observables)``; every distinct term is evaluated once.

    Args:
        states: ``(rows, 2**num_qubits)``.
        observables: on the states' qubits.
        threads: the result is the same for any number.
    """
    return weighted(observables, lambda terms: term_values(states, terms, threads))


def weighted(observables: Sequence[Observable], evaluate: Callable[[list[Term]], RealArray]) -> RealArray:
    """Returns the values of ``observables``, ``(rows, observables)``, from those of their terms.

    Args:
        observables: any observables.
        evaluate: returns the values ``(rows, terms)`` of terms; it is called once, with distinct terms.
    """
    number: dict[Term, int] = {}
    places = [np.array([number.setdefault(term, len(number)) for term in o.terms()], int) for o in observables]
    values = evaluate(list(number))
    out = np.empty((len(values), len(observables)))
    for index, (observable, place) in enumerate(zip(observables, places, strict=True)):
        out[:, index] = (values[:, place] * observable.weights).sum(axis=1)
    return out


def applied(states: NDArray[np.complex128], observable: Observable, threads: int) -> NDArray[np.complex128]:
    """Returns observable |state> for each state, ``(rows, 2**num_qubits)``."""
    out = np.empty_like(states)
    plain = observable.projected == 0
    masks = (observable.x[plain], observable.z[plain], observable.weights[plain])
    _native.pauli_sum(states, *masks, out, threads)
    if not plain.all():
        for term, weight in zip(observable.terms(), observable.weights.tolist(), strict=True):
            if term.projected:
                for state, image in zip(states, out, strict=True):
                    add_projected(state, term, weight, image, threads)
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
        for part, share in _without_idle_projectors(label, places):
            string = placed(part, places)
            by_idle.setdefault(string.idle, []).append((string, share * weight))
    mean = float(expectations(state[None], [still(by_idle[0])], threads)[0, 0])
    by_idle[0].append((Placed(Term(0, 0)), -mean))
    ket = np.asarray(state, complex)[None]
    images = (_image(ket, flipping, threads) for flipping in by_idle.values())
    return mean, sum(float(np.vdot(image, image).real) for image in images)


def still(terms: Iterable[tuple[Placed, float]]) -> Observable:
    """Sums the terms that flip no idle qubit: the value of any other is 0."""
    return Observable.of((s.term, s.factor * weight) for s, weight in terms if not s.idle and s.factor)


def _without_idle_projectors(label: str, places: Sequence[int]) -> Iterator[tuple[str, float]]:
    """Yields (label, factor) that add up to ``label``, without projectors on X or Y of idle qubits.

    Such a projector is half the identity and half a Pauli matrix, which flips the qubit.
    """
    choices: list[tuple[tuple[str, float], ...]] = []
    for letter, place in zip(label, reversed(places), strict=True):
        split = place < 0 and letter in "+-rl"
        sign = -0.5 if letter in MINUS else 0.5
        choices.append((("I", 0.5), (AXES[letter], sign)) if split else ((letter, 1.0),))
    for parts in product(*choices):
        yield "".join(letter for letter, _ in parts), prod(factor for _, factor in parts)


def _image(ket: NDArray[np.complex128], terms: Sequence[tuple[Placed, float]], threads: int) -> NDArray[np.complex128]:
    """Applies terms that flip the same idle qubits to the other qubits' state; their weights are real or imaginary."""
    parts = [
        Observable.of((s.term, (-1 if s.turns & 2 else 1) * s.factor * w) for s, w in terms if s.turns & 1 == odd)
        for odd in (0, 1)
    ]
    image = applied(ket, parts[0], threads)
    if parts[1].weights.size:
        image += 1j * applied(ket, parts[1], threads)
    return image


def project(state: NDArray[np.complexfloating], term: Term) -> NDArray[np.complexfloating]:
    """Contracts the projected qubits of ``term``: the vector of the other qubits, in their order.

    Each projector on X or Y leaves out the factor sqrt(1/2) of its bra; `projected_value` and `add_projected` have it.
    """
    num_qubits = state.size.bit_length() - 1
    vector = state.reshape((2,) * num_qubits)[_sharp_index(term, num_qubits)]
    for axis, factor in reversed(_turned_axes(term, num_qubits)):
        zero, one = (vector[(slice(None),) * axis + (bit,)] for bit in (0, 1))
        vector = zero + vector.dtype.type(factor) * one
    return np.ascontiguousarray(vector).reshape(-1)


def projected_value(vector: NDArray[np.complexfloating], term: Term, threads: int) -> float:
    """Returns ``<state| term |state>`` from ``vector``, which `project` made of the state."""
    x, z, share = _rest(term)
    return share * float(string_values(vector[None], x, z, threads)[0, 0])


def add_projected(
    state: NDArray[np.complex128], term: Term, weight: float, out: NDArray[np.complex128], threads: int
) -> None:
    """Adds ``weight * term |state>`` to ``out``, ``(2**num_qubits,)``."""
    num_qubits = state.size.bit_length() - 1
    vector = project(state, term)
    x, z, share = _rest(term)
    image = np.empty_like(vector)[None]
    _native.pauli_sum(vector[None], x, z, np.array([weight * share]), image, threads)
    index = _sharp_index(term, num_qubits)
    axes = _turned_axes(term, num_qubits)
    spread = image.reshape((2,) * (num_qubits - term.projected.bit_count()))
    for axis, factor in axes:
        spread = np.stack([spread, np.conj(factor) * spread], axis=axis)
    out.reshape((2,) * num_qubits)[index] += spread


def _sharp_index(term: Term, num_qubits: int) -> tuple[int | slice, ...]:
    """The index of the amplitudes that the projectors on Z leave, in a state with an axis for each qubit."""
    return tuple(
        term.minus >> qubit & 1 if (term.projected & ~term.x) >> qubit & 1 else slice(None)
        for qubit in reversed(range(num_qubits))
    )


def _turned_axes(term: Term, num_qubits: int) -> list[tuple[int, complex]]:
    """(axis, factor of its entry 1 in the bra) of each projector on X or Y, after indexing with `_sharp_index`."""
    axes: list[tuple[int, complex]] = []
    left = [qubit for qubit in reversed(range(num_qubits)) if not (term.projected & ~term.x) >> qubit & 1]
    for axis, qubit in enumerate(left):
        if term.projected >> qubit & 1:
            sign = -1 if term.minus >> qubit & 1 else 1
            axes.append((axis, sign * (-1j if term.z >> qubit & 1 else 1)))
    return axes


def _rest(term: Term) -> tuple[Masks, Masks, float]:
    """Masks x and z of the qubits that are not projected, numbered in their order, and the projectors' factor."""
    kept = [
        qubit for qubit in range((term.x | term.z | term.projected).bit_length()) if not term.projected >> qubit & 1
    ]
    x, z = (sum((mask >> qubit & 1) << place for place, qubit in enumerate(kept)) for mask in (term.x, term.z))
    return np.array([x], np.uint64), np.array([z], np.uint64), 0.5 ** (term.projected & term.x).bit_count()
