"""Computes probabilities and samples of a state in GPU memory, with bounded scratch memory.

In: a launcher and a state. Out: host arrays of probabilities and basis states. It may not copy the whole state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.kernels import INSTANCES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import RUNS, opaque, runs_record
from qsim_ozaki.engines.cuda.device.state import CudaState
from qsim_ozaki.ir import mask_of

LANE_QUBITS = 5
WARPS = 1 << 16  # enough to fill any GPU; the same on all GPUs, so that sums have the same bits
SLAB = 1 << 26  # outcomes that are on the GPU at once: 512 MiB
CHUNK_BITS = 10  # log2 of the amplitudes that a warp scans for one sample: 16 KiB
SAMPLES = 1 << 24  # per launch
MARGINAL = np.dtype(
    [
        ("first_high", "u8"),
        ("num_high", "u8"),
        ("num_chunks", "u8"),
        ("chunk_size", "u8"),
        ("lane_mask", "u4"),
        ("lane_count", "u4"),
        ("runs", RUNS),
    ],
    align=True,
)


def probabilities(launcher: Launcher, state: CudaState, qubits: Sequence[int]) -> NDArray[np.float64]:
    """Returns marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``."""
    ascending = sorted(qubits)
    if state.num_qubits < LANE_QUBITS:
        result = _host_marginal(state.vector(), ascending)
    else:
        result = np.empty(1 << len(ascending))
        start = 0
        for partial in _marginals(launcher, state, ascending):
            sums = launcher.cupy.asnumpy(partial).sum(axis=0)
            result[start : start + sums.size] = sums
            start += sums.size
    k = len(ascending)
    axes = [k - 1 - ascending.index(q) for q in reversed(qubits)]
    return np.ascontiguousarray(result.reshape((2,) * k).transpose(axes)).reshape(-1)


def _host_marginal(vector: NDArray[np.complexfloating], ascending: Sequence[int]) -> NDArray[np.float64]:
    """Returns the marginal probabilities of a small state, computed on the host."""
    index = np.arange(vector.size)
    outcome = np.zeros_like(index)
    for j, q in enumerate(ascending):
        outcome |= (index >> q & 1) << j
    weights = np.abs(vector.astype(complex)) ** 2
    return np.asarray(np.bincount(outcome, weights, minlength=1 << len(ascending)), float)


def _marginals(launcher: Launcher, state: CudaState, ascending: Sequence[int]) -> Iterator[Any]:
    """Yields arrays (chunks, outcomes) on the GPU, one for each slab of values of the high measured qubits."""
    lanes = [q for q in ascending if q < LANE_QUBITS]
    high = [q for q in ascending if q >= LANE_QUBITS]
    rest = state.num_qubits - LANE_QUBITS - len(high)
    chunk_bits = max(0, min(rest, (WARPS.bit_length() - 1) - len(high)))
    num_high = min(1 << len(high), SLAB >> len(lanes))
    record = np.zeros(1, MARGINAL)
    record["num_high"], record["num_chunks"] = num_high, 1 << chunk_bits
    record["chunk_size"] = 1 << (rest - chunk_bits)
    record["lane_mask"], record["lane_count"] = mask_of(lanes), len(lanes)
    record["runs"] = runs_record(high)
    argument = opaque(record)  # shares the memory of ``record``
    instance = INSTANCES[state.precision]
    for first in range(0, 1 << len(high), num_high):
        record["first_high"] = first
        partial = launcher.cupy.empty((1 << chunk_bits, num_high << len(lanes)), np.float64)
        warps = num_high << chunk_bits
        launcher.launch("marginal", instance, min(-(-warps // 8), 1 << 20), 256, (state.amps, partial, argument))
        yield partial


def sample(launcher: Launcher, state: CudaState, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the basis states at which the cumulative probability passes ``uniforms`` times the squared norm."""
    if state.num_qubits < LANE_QUBITS:
        return _host_sample(state.vector(), uniforms)
    cupy = launcher.cupy
    chunk_bits = min(CHUNK_BITS, state.num_qubits)
    chunks = [partial.sum(axis=0) for partial in _marginals(launcher, state, range(chunk_bits, state.num_qubits))]
    cumulative = cupy.cumsum(cupy.concatenate(chunks))
    instance = INSTANCES[state.precision]
    out = np.empty(uniforms.size, np.int64)
    for first in range(0, uniforms.size, SAMPLES):
        part = cupy.asarray(np.ascontiguousarray(uniforms[first : first + SAMPLES], np.float64))
        drawn = cupy.empty(part.size, np.int64)
        args = (
            state.amps,
            cumulative,
            part,
            drawn,
            np.uint64(part.size),
            np.uint64(cumulative.size),
            np.int32(chunk_bits),
        )
        launcher.launch("find_sample", instance, min(-(-part.size // 8), 1 << 20), 256, args)
        out[first : first + SAMPLES] = drawn.get()
    return out


def _host_sample(vector: NDArray[np.complexfloating], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the samples of a small state, computed on the host."""
    probability = np.abs(vector.astype(complex)) ** 2
    cumulative = np.cumsum(probability)
    drawn = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    return np.asarray(np.minimum(drawn, np.flatnonzero(probability)[-1]), np.int64)
