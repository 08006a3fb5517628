"""Histories: the position of a running one, the end of a finished one, and the totals of all of them.

A history is one sequence of measurement outcomes. In: shots or probabilities, and outcomes. Out: counts, memory and
entries per shot. It may not change a state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qsim_ozaki.engines import Engine, State
from qsim_ozaki.runtime import sampling
from qsim_ozaki.runtime.classical import Memory
from qsim_ozaki.runtime.placement import Placement, Position
from qsim_ozaki.runtime.sampling import Outcomes

MEMORY_ORDER_KEY = 2**32 - 1  # the stream that shuffles shots; forks use smaller words


@dataclass(frozen=True, slots=True)
class Record:
    """An entry that one history saved for each of its shots: ``value`` under ``label``, while the bits read ``key``."""

    label: str
    key: str
    value: Any


@dataclass(slots=True)
class Cursor:
    """One running history: its position in the program, its state and its share of the shots.

    Attributes:
        weight: the number of shots, or the history's probability where probabilities are exact.
        key: the key of its random stream: the program's index, then (depth, outcome) of every fork before it.
        seed: the seed of the whole job.
        placement: the places of the program's qubits in the state.
        state: None stands for |0...0>, which is not allocated yet.
        at: the index of the next code item.
        path: the outcomes so far.
        forced: the outcomes still to come of a history that is run again from the start.
        jumps: the rounds of loops so far.
        records: the entries per shot so far.
        abandoned: whether its outcomes are too rare to be followed.
    """

    weight: float
    key: tuple[int, ...]
    seed: int
    placement: Placement
    memory: Memory
    state: State | None = None
    at: int = 0
    path: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    jumps: int = 0
    records: tuple[Record, ...] = ()
    abandoned: bool = False
    random: np.random.Generator | None = None  # built at its first use: that takes as long as a step of a small state

    @property
    def position(self) -> Position:
        """Physical qubit of each program qubit."""
        return self.placement.position

    def allocated(self, engine: Engine, precision: str) -> State:
        """The state, for a caller that reads or changes it: |0...0> where no item has touched it yet."""
        if self.state is None:
            self.state = engine.allocate(len(self.position), precision)
        self.placement.touch()
        return self.state

    @property
    def in_place(self) -> State:
        """The state, which must be allocated."""
        assert self.state is not None
        return self.state

    def generator(self) -> np.random.Generator:
        """The history's own random stream."""
        if self.random is None:
            self.random = sampling.stream(self.seed, self.key)
        return self.random

    def fork(self, outcome: int, weight: float) -> Cursor:
        """The history that leaves this one at this point with ``outcome``; it has to be run from the start."""
        key = (*self.key, len(self.path), outcome)
        memory = Memory(0, (None,) * len(self.memory.variables))
        return Cursor(
            weight,
            key,
            self.seed,
            Placement(len(self.position)),
            memory,
            forced=(*self.path, outcome),
            records=self.records,
        )

    def join(self, other: Cursor, state: State) -> None:
        """Goes on from the place of ``other``, which it left, with a copy of its state; only one outcome is forced."""
        self.state, self.placement, self.path = state, other.placement.copy(), other.path
        self.memory = replace(other.memory)
        self.at, self.jumps, self.forced = other.at - 1, other.jumps, self.forced[-1:]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """The end of one history: its key, its shots, their outcomes in blocks, and its entries per shot.

    A leaf may also stand for several histories whose shots lie in the order of their keys.
    """

    key: tuple[int, ...]
    shots: int
    outcomes: list[Outcomes]
    records: tuple[Record, ...]
    histories: int = 1


@dataclass(slots=True)
class Leaves:
    """The ends of all histories.

    Attributes:
        sampled: one leaf per history.
        exact: the probability of each hexadecimal value.
        neglected: the probability of all outcomes that were too rare to be followed.
    """

    sampled: list[Leaf] = field(default_factory=list)
    exact: dict[str, float] = field(default_factory=dict)
    neglected: float = 0.0

    def add_exact(self, labels: Iterable[str], weights: Iterable[float]) -> None:
        """Adds the outcomes of one history."""
        for label, weight in zip(labels, weights, strict=True):
            self.exact[label] = self.exact.get(label, 0.0) + weight

    def sort(self) -> None:
        """Sorts histories by key, so that their order does not depend on the free memory."""
        self.sampled.sort(key=lambda leaf: leaf.key)

    def outcomes(self) -> list[Outcomes]:
        """The blocks of outcomes of all histories, one history after the other."""
        return [part for leaf in self.sampled for part in leaf.outcomes]

    def order(self, seed: int, index: int) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """The order of the shots in memory and in entries per shot."""
        generator = sampling.stream(seed, (index, MEMORY_ORDER_KEY))
        histories = sum(leaf.histories for leaf in self.sampled)
        return sampling.shot_order(histories, sum(leaf.shots for leaf in self.sampled), generator)

    def per_shot(self, label: str, order: np.ndarray[Any, np.dtype[np.int64]] | None) -> list[Record]:
        """The entry of each shot under ``label``, in ``order``; shots of one history share it."""
        entries: list[Record] = []
        for leaf in self.sampled:
            entries += [record for record in leaf.records if record.label == label] * leaf.shots
        return entries if order is None else [entries[place] for place in order]
