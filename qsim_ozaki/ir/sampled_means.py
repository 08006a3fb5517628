"""Chooses bases that measure sums of Pauli strings, and turns measured bits into means and standard errors.

In: `Observable`s, distinct samples and their counts. Out: bases, means, standard errors. It may not draw a sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir.pauli import Observable, RealArray

BLOCK_NUMBERS = 1 << 18  # of samples times terms in memory at one time: 2 MiB

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


@dataclass(slots=True)
class Moments:
    """Mean and sum of squared deviations of values that come in blocks.

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
    """

    count: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, values: RealArray, counts: NDArray[np.integer]) -> None:
        """Adds a block of ``values`` that came ``counts`` times each."""
        count = float(counts.sum())
        mean = float(counts @ values) / count
        squares = float(counts @ (values - mean) ** 2)
        total = self.count + count
        step = mean - self.mean
        self.squares += squares + step * step * self.count * count / total
        self.mean = mean if self.count == 0 else self.mean + step * count / total
        self.count = total


def _totals(observable: Observable, terms: NDArray[np.intp], samples: NDArray[np.integer]) -> RealArray:
    """Returns the sum of the weighted ``terms`` of ``observable`` in each sample, ``(samples,)``."""
    projected, minus = observable.projected[terms], observable.minus[terms]
    signed = (observable.x | observable.z)[terms] & ~projected
    weights = observable.weights[terms]
    totals = np.empty(len(samples))
    block = max(1, BLOCK_NUMBERS // len(terms))
    for start in range(0, len(samples), block):
        bits = samples[start : start + block].astype(np.uint64)[:, None]
        values = np.where(np.bitwise_count(bits & signed) & 1, -1.0, 1.0)
        if projected.any():
            values[((bits ^ minus) & projected) != 0] = 0
        totals[start : start + block] = values @ weights
    return totals


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

    def add(self, basis: Basis, blocks: Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]]) -> None:
        """Adds the outcomes of one basis.

        Args:
            basis: of the measurements.
            blocks: distinct samples, whose bit q is that of qubit q, and their counts; all counts add up to ``shots``.
        """
        taken = []
        for index, observable in enumerate(self.observables):
            measured = measured_in(observable, basis) & self.left[index]
            self.left[index] &= ~measured
            taken.append(np.flatnonzero(measured))
        moments = [Moments() for _ in self.observables]
        for samples, counts in blocks:
            for observable, terms, moment in zip(self.observables, taken, moments, strict=True):
                if terms.size:
                    moment.add(_totals(observable, terms, samples), counts)
        for index, moment in enumerate(moments):
            self.means[index] += moment.mean
            self.variances[index] += moment.squares / max(1, self.shots - 1) / self.shots

    def values_and_errors(self) -> tuple[RealArray, RealArray]:
        """Returns the mean and the standard error of every observable, after all bases were added."""
        return self.means, np.sqrt(self.variances)


def commuting_groups(observables: Sequence[Observable]) -> list[Basis]:
    """Chooses measurement bases for all Pauli strings.

    Strings share a basis if they have the same letter on each qubit that both act on; first fit, in order.
    """
    groups: list[tuple[int, int]] = []
    axes = dict.fromkeys((term.x, term.z) for o in observables for term in o.terms())
    for x, z in axes:
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
