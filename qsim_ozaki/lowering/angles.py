"""Computes gate data, and its derivatives, at many angles at once.

In: a gate's name and angles. Out: complex arrays, one row per set of angles. It may depend on the gate table only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.lowering.gates import GATES, gate_data

Angles: TypeAlias = NDArray[np.float64]  # (rows, number of angles)
Data: TypeAlias = NDArray[np.complex128]  # (rows, entries)

HARMONICS = 2  # of half the angle: entries of Qiskit's gates are sums of exp(i k angle / 2) with |k| <= 2
FIT_ANGLES = 4 * np.pi * np.arange(2 * HARMONICS + 1) / (2 * HARMONICS + 1)
CHECK_ANGLES = (0.3, -1.7, 5.1, 8.8)
FIT_TOLERANCE = 2.0**-49  # largest error of a fit at `CHECK_ANGLES`; the gates' entries are at most 1
# Step of a numerical derivative: its error STEP**8 / 630 is below the rounding 2**-53 / STEP for frequencies <= 1.
STEP = 0.03
DIFFERENCE = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))  # (steps, weight), central, of eighth order


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The Fourier series of a gate's data: constant + sum_k cosines[k-1] cos(k angle/2) + sines[k-1] sin(k angle/2).

    A coefficient that is zero is None.
    """

    constant: Data | None
    cosines: tuple[Data | None, ...]
    sines: tuple[Data | None, ...]


def gate_rows(name: str, angles: Angles) -> Data:
    """Returns the flat data of gate ``name`` at each row of ``angles``; a row does not depend on the others."""
    fitted = series(name)
    if fitted is not None:
        return _sum(fitted, angles[:, 0])
    return np.array([_flat(name, row) for row in angles.tolist()])


def gate_derivatives(name: str, angles: Angles, index: int) -> Data:
    """Returns the derivative of the flat data by angle ``index`` at each row of ``angles``."""
    fitted = series(name)
    if fitted is not None:
        return _sum(_derivative(fitted), angles[:, 0])
    total = np.zeros((len(angles), _flat(name, angles[0].tolist()).size), complex)
    for count, weight in DIFFERENCE:
        step = np.zeros(angles.shape[1])
        step[index] = count * STEP
        total += weight / STEP * (gate_rows(name, angles + step) - gate_rows(name, angles - step))
    return total


@cache
def series(name: str) -> Series | None:
    """Returns the Fourier series of a gate of one angle, None for any other gate or if no series fits."""
    if GATES[name].num_params != 1:
        return None
    samples = np.array([_flat(name, (angle,)) for angle in FIT_ANGLES])
    halves = FIT_ANGLES / 2
    count = len(halves)
    harmonics = range(1, HARMONICS + 1)
    fitted = Series(
        _clean(samples.mean(axis=0)),
        tuple(_clean(2 / count * np.cos(k * halves) @ samples) for k in harmonics),
        tuple(_clean(2 / count * np.sin(k * halves) @ samples) for k in harmonics),
    )
    expected = np.array([_flat(name, (angle,)) for angle in CHECK_ANGLES])
    if np.abs(_sum(fitted, np.array(CHECK_ANGLES)) - expected).max() > FIT_TOLERANCE:
        return None
    return fitted


def _flat(name: str, angles: tuple[float, ...] | list[float]) -> Data:
    return gate_data(name, *angles)[0].reshape(-1)


def _clean(values: Data) -> Data | None:
    """Rounds coefficients to the multiples of 1/4 that those of Qiskit's gates are; returns None if all are zero."""
    near = np.round(4 * values) / 4
    values = np.where(np.abs(values - near) < FIT_TOLERANCE, near, values)
    return values if values.any() else None


def _sum(fitted: Series, angles: NDArray[np.float64]) -> Data:
    parts = [] if fitted.constant is None else [np.broadcast_to(fitted.constant, (len(angles), fitted.constant.size))]
    for k, (cosine, sine) in enumerate(zip(fitted.cosines, fitted.sines, strict=True), 1):
        if cosine is not None:
            parts.append(np.cos(0.5 * k * angles)[:, None] * cosine)
        if sine is not None:
            parts.append(np.sin(0.5 * k * angles)[:, None] * sine)
    return np.asarray(sum(parts[1:], parts[0]), complex)


def _derivative(fitted: Series) -> Series:
    """Differentiates term by term: cos(k x / 2) gives -k/2 sin(k x / 2), sin(k x / 2) gives k/2 cos(k x / 2)."""
    pairs = list(enumerate(zip(fitted.cosines, fitted.sines, strict=True), 1))
    return Series(
        None,
        tuple(None if sine is None else 0.5 * k * sine for k, (_, sine) in pairs),
        tuple(None if cosine is None else -0.5 * k * cosine for k, (cosine, _) in pairs),
    )
