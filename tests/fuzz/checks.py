"""Comparisons of the fuzz: vectors, exact probabilities, and samples with a proved rate of false alarms."""

import numpy as np
from scipy.special import bdtr, bdtrc
from support.reference import tolerance

FALSE_ALARMS = 1e-9  # of one check of samples
TRANSPILED = 1e-9  # 2-norm that Qiskit's own synthesis and simplification may change
PARITIES = 8


def limit(num_ops, precision="double", is_transpiled=False):
    """Largest 2-norm of an error; a gate with a definition stands for about 16 operators."""
    return tolerance(16 * (num_ops + 4), precision) + TRANSPILED * is_transpiled


def close(got, want, atol, what):
    """Asserts that the 2-norm of the difference is at most ``atol``."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, not {want.shape}"
    distance = float(np.linalg.norm((got - want).reshape(-1)))
    assert distance <= atol, f"{what}: off by {distance:.3g}, more than {atol:.3g}"


def close_dicts(got, want, atol, what):
    """Asserts the same numbers under the same keys; a missing key stands for 0."""
    for key in got.keys() | want.keys():
        error = abs(got.get(key, 0) - want.get(key, 0))
        assert error <= atol, f"{what}: at {key} {got.get(key, 0)}, not {want.get(key, 0)}"


def may_count(count, shots, probability, false_alarms, amplitude_error):
    """Whether ``count`` of ``shots`` may have ``probability``: an exact two-sided binomial test.

    Args:
        count: how often it was seen.
        shots: how often it was tried.
        probability: by the reference.
        false_alarms: the test fails more rarely than this where all is right.
        amplitude_error: by which the amplitude behind the probability may be off.
    """
    room = 2 * np.sqrt(probability) * amplitude_error + amplitude_error**2
    low, high = max(probability - room, 0.0), min(probability + room, 1.0)
    at_least = bdtrc(count - 1, shots, high) if count > 0 else 1.0
    at_most = bdtr(count, shots, low)
    return min(at_least, at_most) > false_alarms / 2


def follow(counts, probabilities, width, rng, amplitude_error=1e-12):
    """Asserts that samples follow ``probabilities``: each outcome, and parities of random sets of bits.

    Args:
        counts: shots by value.
        probabilities: by value of ``width`` bits.
        width: number of bits.
        rng: draws the sets of bits.
        amplitude_error: as of `may_count`.
    """
    shots = sum(counts.values())
    keys = counts.keys() | probabilities.keys()
    level = FALSE_ALARMS / (len(keys) + PARITIES)
    for key in keys:
        seen, due = counts.get(key, 0), probabilities.get(key, 0.0)
        assert may_count(seen, shots, due, level, amplitude_error), (
            f"outcome {key:b}: {seen} of {shots}, {shots * due:.4g} due"
        )
    for _ in range(PARITIES):
        mask = int(rng.integers(1, 1 << width))
        seen = sum(count for key, count in counts.items() if (key & mask).bit_count() & 1)
        due = sum(weight for key, weight in probabilities.items() if (key & mask).bit_count() & 1)
        assert may_count(seen, shots, min(due, 1.0), level, amplitude_error), (
            f"odd parity of {mask:b}: {seen} of {shots}, {shots * due:.4g} due"
        )


def near_mean(got, want, size, shots, what, error=1e-4):
    """Asserts that a mean of ``shots`` values within ``size`` of 0 may have the expectation ``want`` (Hoeffding).

    It holds too for a sum of independent such means whose sizes add up to ``size``.
    """
    most = size * np.sqrt(2 * np.log(2 / FALSE_ALARMS) / shots)
    assert abs(got - want) <= most + error, f"{what}: {got}, {want} due, more than {most:.3g} away in {shots} shots"
