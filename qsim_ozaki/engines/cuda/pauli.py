"""Computes expectation values of Pauli strings on a state in GPU memory.

In: a launcher, a state, strings as masks. Out: one value per string. It may not copy the state or use weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.kernels import INSTANCES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.state import CudaState

CHUNK_QUBITS = 12
BATCHES = 1 << 12  # enough to fill any GPU; the same on all GPUs, so that sums have the same bits
THREADS = 256
PARTIAL_BYTES = 1 << 28  # most bytes of the sums by batch and string of one launch
GROUP = np.dtype(
    [("flips", "u8"), ("first", "u8"), ("count", "u8"), ("highest", "i4"), ("imaginary", "i4")], align=True
)


@dataclass(frozen=True, slots=True)
class _Strings:
    """Pauli strings ordered by group; strings of one group flip the same qubits and are all real or all imaginary.

    Attributes:
        flips: masks of the qubits at which a string has X or Y, ``(strings,)``.
        signs: masks of the qubits at which a string has Y or Z, ``(strings,)``.
        imaginary: whether a string has an odd number of Y, ``(strings,)``.
    """

    flips: NDArray[np.uint64]
    signs: NDArray[np.uint64]
    imaginary: NDArray[np.uint8]


def values(launcher: Launcher, state: CudaState, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Returns ``<state| P |state>`` of every string, as `Engine.pauli_values` does; the state has 12 qubits or more."""
    num_y = np.bitwise_count(x & z)
    imaginary = num_y & 1
    order = np.lexsort((imaginary, x))
    batches = min(state.amps.size >> CHUNK_QUBITS, BATCHES)
    sums = np.empty(x.size)
    most = max(PARTIAL_BYTES // (8 * batches), 1)
    for begin in range(0, x.size, most):
        part = order[begin : begin + most]
        sums[part] = _sums(launcher, state, _Strings(x[part], z[part], imaginary[part]), batches)
    return np.where((num_y & 3 == 1) | (num_y & 3 == 2), -sums, sums)  # Re(i^y w): w', -w'', -w', w''


def _sums(launcher: Launcher, state: CudaState, strings: _Strings, batches: int) -> NDArray[np.float64]:
    """Returns the kernel's sum of every string; the strings are in the order of their groups."""
    flips, imaginary = strings.flips, strings.imaginary
    changes = (flips[1:] != flips[:-1]) | (imaginary[1:] != imaginary[:-1])
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    groups = np.zeros(first.size, GROUP)
    groups["flips"], groups["first"], groups["imaginary"] = flips[first], first, imaginary[first]
    groups["count"] = np.diff(np.append(first, flips.size))
    groups["highest"] = [int(mask).bit_length() - 1 for mask in flips[first]]
    cupy = launcher.cupy
    partial = cupy.zeros((batches, flips.size), np.float64)
    args = (
        state.amps,
        cupy.asarray(groups.view(np.uint8)),
        cupy.asarray(strings.signs),
        partial,
        np.uint64(state.amps.size >> CHUNK_QUBITS),
        np.uint64(batches),
        np.uint64(flips.size),
    )
    launcher.launch("pauli_values", INSTANCES[state.precision], batches * first.size, THREADS, args)
    return np.asarray(cupy.asnumpy(partial).sum(axis=0))
