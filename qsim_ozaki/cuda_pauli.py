"""Expectation values of Pauli strings on a state in GPU memory.

In: an engine, a state, strings as masks. Out: a value each. It never copies the state, and knows no weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki import jit

CHUNK_QUBITS = 12
BATCHES = 1 << 12  # enough to fill any GPU; fixed, so that sums have the same bits on all of them
THREADS = 256
PARTIAL_BYTES = 1 << 28  # of sums by batch and string, at a time
GROUP = np.dtype(
    [("flips", "u8"), ("first", "u8"), ("count", "u8"), ("highest", "i4"), ("imaginary", "i4")], align=True
)


def values(engine: Any, state: Any, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
    """``<state| P |state>`` of each string, as `Engine.pauli_values` has it; of at least 12 qubits."""
    num_y = np.bitwise_count(x & z)
    imaginary = num_y & 1
    order = np.lexsort((imaginary, x))
    chunks = state.amps.size >> CHUNK_QUBITS
    batches = min(chunks, BATCHES)
    found = np.empty(x.size)
    most = max(PARTIAL_BYTES // (8 * batches), 1)
    for begin in range(0, x.size, most):
        part = order[begin : begin + most]
        found[part] = _sums(engine, state, (x[part], z[part], imaginary[part]), (chunks, batches))
    return np.where((num_y & 3 == 1) | (num_y & 3 == 2), -found, found)  # Re(i^y w): w', -w'', -w', w''


def _sums(
    engine: Any, state: Any, strings: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], sizes: tuple[int, int]
) -> NDArray[np.float64]:
    """The sums of strings in the order of their groups."""
    flips, signs, imaginary = strings
    chunks, batches = sizes
    changes = (flips[1:] != flips[:-1]) | (imaginary[1:] != imaginary[:-1])
    first = np.concatenate([[0], np.flatnonzero(changes) + 1])
    groups = np.zeros(first.size, GROUP)
    groups["flips"], groups["first"], groups["imaginary"] = flips[first], first, imaginary[first]
    groups["count"] = np.diff(np.append(first, flips.size))
    groups["highest"] = [int(mask).bit_length() - 1 for mask in flips[first]]
    cupy = engine.cupy
    partial = cupy.zeros((batches, flips.size), np.float64)
    args = (
        state.amps,
        cupy.asarray(groups.view(np.uint8)),
        cupy.asarray(signs),
        partial,
        np.uint64(chunks),
        np.uint64(batches),
        np.uint64(flips.size),
    )
    instance = jit.DOUBLE if state.precision == "double" else jit.SINGLE
    engine.launch("pauli_values", instance, batches * first.size, THREADS, args)
    return np.asarray(cupy.asnumpy(partial).sum(axis=0))
