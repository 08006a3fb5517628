"""All randomness: seeds and streams, and the conversion of sampled basis states into counts and memory.

In: seeds, sampled basis states, and the qubit that every bit reads. Out: hexadecimal counts and memory as Qiskit's
`Result` holds them. It may not touch a state or the global random generators.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.errors import OptionError

SHOTS_PER_BLOCK = 1 << 22  # 32 MiB of samples at a time, also for a billion shots
MAX_DRAWN_QUBITS = 24  # whose outcomes are counted by their probabilities: a table of 128 MiB
OUTCOMES_PER_BLOCK = 1 << 18  # counts of 2 MiB
MAX_TABLE_BITS = 12  # a table of all values is 250 KiB


def check_seed(seed: object, name: str = "seed_simulator") -> int | None:
    """``seed`` as an int, or None for a fresh one.

    Args:
        seed: of a user.
        name: of the user's argument, for the message.

    Raises:
        OptionError: it is not an integer of at least 0.
    """
    if seed is None or (type(seed) is int and seed >= 0):
        return seed
    if isinstance(seed, (bool, np.bool_)) or not isinstance(seed, SupportsIndex) or seed.__index__() < 0:
        raise OptionError(f"{name}={seed!r} is not allowed. Use an integer of at least 0, or None for a fresh seed.")
    return seed.__index__()


def fresh_seed() -> int:
    """63 random bits of the operating system; results carry the seed, so that a run without one can be repeated."""
    return secrets.randbits(63)


def stream(seed: int, key: Sequence[int]) -> np.random.Generator:
    """The random generator of one circuit or history: a function of ``seed`` and ``key`` alone.

    Args:
        seed: the job's seed.
        key: the circuit's index in the job, then (depth, outcome) of every fork that led to this history.

    Source: NumPy, "Parallel random number generation", SeedSequence spawning.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(key))))


def draws_counts(num_qubits: int, shots: int) -> bool:
    """Whether `draw_counts` takes less time than ``shots`` samples of ``num_qubits`` qubits."""
    return num_qubits <= MAX_DRAWN_QUBITS and 1 << num_qubits <= shots


def draw_counts(
    generator: np.random.Generator, shots: int, probabilities: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Draws how many of ``shots`` take each outcome; yields (outcomes, counts) with counts > 0, in blocks of outcomes.

    Time and memory depend on the number of outcomes alone. Blocks share the shots first, then the outcomes of each.
    """
    blocks = [
        probabilities[start : start + OUTCOMES_PER_BLOCK] for start in range(0, len(probabilities), OUTCOMES_PER_BLOCK)
    ]
    totals = np.array([block.sum() for block in blocks])
    for number, part in enumerate(generator.multinomial(shots, totals / totals.sum()).tolist()):
        if part:
            counts = generator.multinomial(part, blocks[number] / totals[number])
            outcomes = np.flatnonzero(counts)
            yield outcomes + number * OUTCOMES_PER_BLOCK, counts[outcomes]


def split_shots(
    generator: np.random.Generator, shots: int, probabilities: NDArray[np.float64]
) -> list[tuple[int, int]]:
    """Draws how many of ``shots`` take each outcome; returns pairs (outcome, shots > 0), fewest shots first."""
    counts = generator.multinomial(shots, probabilities / probabilities.sum())
    taken = np.flatnonzero(counts)
    order = taken[np.argsort(counts[taken], kind="stable")]
    return [(int(outcome), int(counts[outcome])) for outcome in order]


def split_weight(
    weight: float, probabilities: NDArray[np.float64], least: float
) -> tuple[list[tuple[int, float]], float]:
    """The exact share of ``weight`` of each outcome: pairs (outcome, share), smallest first; and the neglected weight.

    Args:
        weight: the probability of the history so far.
        probabilities: the probabilities of the outcomes, given that history.
        least: outcomes with a smaller share are neglected: they are rounding, or too rare to be seen.
    """
    weights = probabilities * (weight / probabilities.sum())
    taken, rest = np.flatnonzero(weights >= least), weights < least
    order = taken[np.argsort(weights[taken], kind="stable")]
    split = [(int(outcome), float(weights[outcome])) for outcome in order]
    return split, float(weights[rest].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """The distinct outcomes of one history, their counts and, with memory, their order.

    Attributes:
        labels: distinct hexadecimal values.
        counts: int64 ``(len(labels),)``.
        order: int64 ``(shots,)``, the label's index of each shot; None without memory.
    """

    labels: list[str]
    counts: NDArray[np.int64]
    order: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The outcomes of one small state's shots as numbers; labels are written only when a caller reads them.

    Attributes:
        keys: int64, distinct, ascending; bit j is the outcome of the j-th measured qubit.
        counts: int64, the number of shots per key.
        reads: pairs (bit of a key, bit of a value).
        order: uint16 ``(shots,)``, the key of each shot; None without memory.
    """

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]
    reads: tuple[tuple[int, int], ...]
    order: NDArray[np.uint16] | None

    def hexadecimal(self) -> dict[str, int]:
        """The counts by hexadecimal value, as Qiskit's `Result` holds them."""
        return dict(zip(_native.value_labels(self.keys, self.reads, []), self.counts.tolist(), strict=True))

    def integers(self) -> dict[int, int]:
        """The counts by integer value."""
        return {int(label, 16): count for label, count in self.hexadecimal().items()}

    def memory(self) -> list[str]:
        """The hexadecimal value of every shot."""
        assert self.order is not None, "no memory was asked for"
        label = dict(zip(self.keys.tolist(), _native.value_labels(self.keys, self.reads, []), strict=True))
        return list(map(label.__getitem__, self.order.tolist()))

    def bits(self, width: int) -> NDArray[np.uint8]:
        """The bits of the shots' values, ``(shots, width)``; column j holds bit j."""
        assert self.order is not None, "no memory was asked for"
        return _bit_columns(self.reads, width)[self.order]

    def count_bits(self, counts: dict[str, int], sizes: tuple[int, ...]) -> None:
        """Writes the count of every bit string into ``counts``; blanks part registers of ``sizes``, first last."""
        width = len({bit for bit, _ in self.reads})
        if width > MAX_TABLE_BITS:
            counts.update(zip(_native.bit_labels(self.keys, self.reads, sizes), self.counts.tolist(), strict=True))
        else:
            _native.count_labels(counts, _bit_table(width, self.reads, sizes), self.keys, self.counts)


@lru_cache(maxsize=32)
def _bit_columns(reads: tuple[tuple[int, int], ...], width: int) -> NDArray[np.uint8]:
    """The bits of the value of every key, ``(keys, width)``."""
    keys = np.arange(1 << len({key_bit for key_bit, _ in reads}))
    table = np.zeros((keys.size, width), np.uint8)
    for key_bit, bit in reads:
        table[:, bit] = keys >> key_bit & 1
    return table


@lru_cache(maxsize=32)
def _bit_table(width: int, reads: tuple[tuple[int, int], ...], sizes: tuple[int, ...]) -> list[str]:
    """The bit string of every key; cached, because the circuits of a job share few forms."""
    strings: list[str] = _native.bit_labels(np.arange(1 << width), reads, sizes)
    return strings


def seed_words(seed: int) -> list[int]:
    """``seed`` in words of 32 bits, lowest first, at least one: the form that a stream in C++ takes."""
    return _words(seed, 32) or [0]


def fixed_outcome(value: int, shots: int, memory: bool) -> Outcomes:
    """The outcomes of ``shots`` shots that all give ``value``."""
    return Outcomes([hex(value)], np.array([shots]), np.zeros(shots, np.int64) if memory else None)


def read_outcomes(samples: NDArray[np.int64], reads: Sequence[tuple[int, int]], base: int, memory: bool) -> Outcomes:
    """The classical values of sampled basis states.

    Args:
        samples: basis states, ``(shots,)``.
        reads: pairs (qubit, bit): bit of the value = that bit of the basis state. A bit occurs once.
        base: the value's other bits, which no sample decides.
        memory: whether to return the order of the shots.
    """
    return Outcomes(*_native.read_outcomes(samples, reads, _words(base), memory))


def drawn_outcomes(
    generator: np.random.Generator,
    shots: int,
    probabilities: NDArray[np.float64],
    reads: Sequence[tuple[int, int]],
    base: int,
) -> list[Outcomes]:
    """Classical values of ``shots`` outcomes, whose order is not known.

    Args:
        generator: draws the counts.
        shots: any number.
        probabilities: ``(2**k,)``.
        reads: pairs (index bit, value bit).
        base: the value's other bits.
    """
    words = _words(base)
    return [
        Outcomes(_native.value_labels(indices, reads, words), counts, None)
        for indices, counts in draw_counts(generator, shots, probabilities)
    ]


def exact_outcomes(
    probabilities: NDArray[np.float64], reads: Sequence[tuple[int, int]], base: int
) -> tuple[list[str], list[float]]:
    """The classical values with a probability above 0, and their probabilities.

    Args:
        probabilities: ``(2**k,)``.
        reads: pairs (index bit, value bit).
        base: the value's other bits.
    """
    indices = np.flatnonzero(probabilities)
    return _native.value_labels(indices, reads, _words(base)), probabilities[indices].tolist()


def total_counts(parts: Iterable[Outcomes]) -> dict[str, int]:
    """The total counts of all histories."""
    total: dict[str, int] = {}
    for part in parts:
        pairs = zip(part.labels, part.counts.tolist(), strict=True)
        if not total:  # the labels of one part are distinct
            total = dict(pairs)
            continue
        for label, count in pairs:
            total[label] = total.get(label, 0) + count
    return total


def shot_order(histories: int, shots: int, generator: np.random.Generator) -> NDArray[np.int64] | None:
    """A random order of the shots of several histories, which are independent; None for a single history."""
    return generator.permutation(shots) if histories > 1 else None


def total_memory(parts: Sequence[Outcomes], order: NDArray[np.int64] | None) -> list[str]:
    """The value of every shot, in ``order``."""
    pieces = [np.array(part.labels, dtype=object)[part.order] for part in parts]
    memory = np.concatenate(pieces)
    shots: list[str] = (memory if order is None else memory[order]).tolist()
    return shots


def _words(value: int, bits: int = 64) -> list[int]:
    """``value`` in words of ``bits`` bits, lowest first; none for 0."""
    return [value >> shift & (1 << bits) - 1 for shift in range(0, value.bit_length(), bits)]
