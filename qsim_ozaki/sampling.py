"""All randomness: seeds, streams, and sampled basis states turned into counts and memory.

In: seeds, sampled basis states, which qubit each bit reads. Out: hexadecimal counts and memory as `Result` holds them.
It touches no state and never the global random generators.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.errors import OptionError

SHOTS_PER_BLOCK = 1 << 22  # 32 MiB of samples at a time, so that a billion shots need no more memory than this
WORD_BITS = 64


def check_seed(seed: object) -> int | None:
    """``seed`` as an int, or None for a fresh one.

    Raises:
        OptionError: it is not an integer of at least 0.
    """
    if seed is None or (type(seed) is int and seed >= 0):
        return seed
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, SupportsIndex) or seed.__index__() < 0:
        raise OptionError(
            f"seed_simulator={seed!r} is not allowed. Use an integer of at least 0, or None for a fresh seed."
        )
    return seed.__index__()


def fresh_seed() -> int:
    """63 bits from the operating system; results carry it, so that a run without a seed can be repeated."""
    return secrets.randbits(63)


def stream(seed: int, key: Sequence[int]) -> np.random.Generator:
    """The generator of one circuit or history: a function of ``seed`` and ``key`` alone.

    Args:
        seed: the job's seed.
        key: the circuit's index in the job, then the forks that led to this history.

    Source: NumPy, "Parallel random number generation", SeedSequence spawning.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(key))))


def split_shots(
    generator: np.random.Generator, shots: int, probabilities: NDArray[np.float64]
) -> list[tuple[int, int]]:
    """Draws how many of ``shots`` take each outcome; pairs (outcome, shots) with shots > 0, fewest shots first."""
    counts = generator.multinomial(shots, probabilities / probabilities.sum())
    taken = np.flatnonzero(counts)
    order = taken[np.argsort(counts[taken], kind="stable")]
    return [(int(outcome), int(counts[outcome])) for outcome in order]


def split_weight(
    weight: float, probabilities: NDArray[np.float64], least: float
) -> tuple[list[tuple[int, float]], float]:
    """How much of ``weight`` takes each outcome, exactly: pairs (outcome, weight), least first; and what is neglected.

    Args:
        weight: probability of the history so far.
        probabilities: of the outcomes, given that history.
        least: outcomes with less weight than this are neglected: they are rounding, or too rare to be seen.
    """
    weights = probabilities * (weight / probabilities.sum())
    taken, rest = np.flatnonzero(weights >= least), weights < least
    order = taken[np.argsort(weights[taken], kind="stable")]
    split = [(int(outcome), float(weights[outcome])) for outcome in order]
    return split, float(weights[rest].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Distinct outcomes of one history and how often, or in which order, they came.

    Attributes:
        labels: hexadecimal values, distinct.
        counts: int64 ``(len(labels),)``.
        order: int64 ``(shots,)``, the label's index of each shot; None where no memory was asked for.
    """

    labels: list[str]
    counts: NDArray[np.int64]
    order: NDArray[np.int64] | None


def fixed_outcome(value: int, shots: int, memory: bool) -> Outcomes:
    """``shots`` times the same ``value``."""
    return Outcomes([hex(value)], np.array([shots]), np.zeros(shots, np.int64) if memory else None)


def read_outcomes(samples: NDArray[np.int64], reads: Sequence[tuple[int, int]], base: int, memory: bool) -> Outcomes:
    """Classical values of sampled basis states.

    Args:
        samples: basis states, ``(shots,)``.
        reads: pairs (qubit, bit): bit of the value = that bit of the basis state. A bit occurs once.
        base: the value's other bits, which no sample decides.
        memory: whether the order of the shots is wanted.
    """
    qubits = sorted({qubit for qubit, _ in reads})
    place = {qubit: index for index, qubit in enumerate(qubits)}
    keys = _move_bits(samples, [(qubit, place[qubit]) for qubit in qubits])
    distinct, order, counts = _distinct(keys, len(qubits), memory)
    return Outcomes(_hexadecimal(distinct, [(place[qubit], bit) for qubit, bit in reads], base), counts, order)


def exact_outcomes(
    probabilities: NDArray[np.float64], reads: Sequence[tuple[int, int]], base: int
) -> tuple[list[str], list[float]]:
    """Classical values and their probabilities, those of 0 left out.

    Args:
        probabilities: ``(2**k,)``.
        reads: pairs (index bit, value bit).
        base: the value's other bits.
    """
    indices = np.flatnonzero(probabilities)
    if not reads:
        return [hex(base)] * indices.size, probabilities[indices].tolist()
    return _hexadecimal(indices, reads, base), probabilities[indices].tolist()


def total_counts(parts: Iterable[Outcomes]) -> dict[str, int]:
    """The counts of all histories together."""
    total: dict[str, int] = {}
    for part in parts:
        own = zip(part.labels, part.counts.tolist(), strict=True)
        if not total:  # the labels of one part are distinct
            total = dict(own)
            continue
        for label, count in own:
            total[label] = total.get(label, 0) + count
    return total


def shot_order(histories: int, shots: int, generator: np.random.Generator) -> NDArray[np.int64] | None:
    """The order of the shots of several histories: shuffled, for shots come in no order; None for a single history."""
    return generator.permutation(shots) if histories > 1 else None


def total_memory(parts: Sequence[Outcomes], order: NDArray[np.int64] | None) -> list[str]:
    """Every shot's value, in ``order``."""
    pieces = [np.array(part.labels, dtype=object)[part.order] for part in parts]
    memory = np.concatenate(pieces)
    shots: list[str] = (memory if order is None else memory[order]).tolist()
    return shots


def _move_bits(values: NDArray[np.int64], moves: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """New values whose bit ``to`` is bit ``source`` of ``values``, for each (source, to); a pass per distance."""
    moved = np.zeros_like(values)
    for distance, group in groupby(sorted(moves, key=_distance), key=_distance):
        mask = np.int64(sum(1 << source for source, _ in group))
        part = values & mask
        moved |= part >> -distance if distance < 0 else part << distance
    return moved


def _distance(move: tuple[int, int]) -> int:
    source, to = move
    return to - source


def _distinct(
    keys: NDArray[np.int64], num_bits: int, memory: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64]]:
    """Distinct keys ascending, each key's place among them (if ``memory``), and how often each occurs."""
    if 1 << num_bits <= 8 * keys.size:  # a table of all keys is smaller than a sort
        table = np.bincount(keys, minlength=1 << num_bits)
        distinct = np.flatnonzero(table)
        counts = table[distinct]
        table[distinct] = np.arange(distinct.size)
        return distinct, table[keys] if memory else None, counts
    if memory:
        distinct, order, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return distinct, order, counts
    distinct, counts = np.unique(keys, return_counts=True)
    return distinct, None, counts


def _hexadecimal(keys: NDArray[np.int64], reads: Sequence[tuple[int, int]], base: int) -> list[str]:
    """Hexadecimal value of each key: bit ``bit`` of the value is bit ``place`` of the key, over any number of bits."""
    by_word: dict[int, list[tuple[int, int]]] = {}
    for place, bit in reads:
        by_word.setdefault(bit // WORD_BITS, []).append((place, bit % WORD_BITS))
    values: list[int] = []
    for word, moves in by_word.items():
        part: list[int] = _move_bits(keys, moves).view(np.uint64).tolist()
        if word:
            part = [value << WORD_BITS * word for value in part]
        values = [old | new for old, new in zip(values, part, strict=True)] if values else part
    if base:
        values = [value | base for value in values]
    return list(map(hex, values))
