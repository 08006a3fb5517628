"""Measures a CPU once, in about a second, and keeps the record in a file.

In: thread count, memory. Out: a `Device`. The file is named by processor, instruction set, threads and version.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.cache import DeviceRecords
from qsim_ozaki.engines.cpu.program import tile_program
from qsim_ozaki.engines.probes import random_unitary, rotations
from qsim_ozaki.ir import PAGE_BYTES, Device, Kind, MemoryRates, Op, Rates

STATE_QUBITS = 22  # 64 MiB: beyond a core's caches, small enough to be quick
ARITHMETIC_QUBITS = 18  # 4 MiB: stays in the caches, enough tiles for every thread
# 256-byte segments: 128 bytes cost 1.2 x, 64 bytes 2 x in a strided pass at 24 qubits (EPYC 9004, 2 cores, 2026-11)
LINE_QUBITS = 4
TILE = (0, 1, 2, 3, *range(ARITHMETIC_QUBITS - 8, ARITHMETIC_QUBITS))  # qubits of the measured operators
SWEEPS_PER_LAYER = 4  # of rotations on TILE: the lanes, then three positions at a time
REPEATS = 3
PREPARE_REPEATS = 5
FILL_QUBITS = 21  # between states that fit a last-level cache and those that do not
PAGE_QUBITS = (PAGE_BYTES // 16).bit_length() - 1  # qubits inside a page, complex128
RECORDS = DeviceRecords("devices.json")


@cache
def _measured(threads: int) -> dict[str, float]:
    """Rates of this machine, from the cache file or measured now."""
    name = f"{processor()} {_native.isa()} {threads} threads {version('qsim-ozaki')}"
    return RECORDS.record(name, RATES.keys(), lambda: {key: rate(threads) for key, rate in RATES.items()})


def cpu_device(threads: int, memory_bytes: int) -> Device:
    """The record of this machine for ``threads`` threads; `memory_bytes` is what a state may take."""
    memory, rates = _device_rates(threads)
    return Device(
        name=processor(),
        memory_bytes=memory_bytes,
        memory=memory,
        rates=rates,
        int8_ops_per_s=0,
        launch_seconds=_measured(threads)["launch_seconds"],
        tile_qubits=tile_qubits(),
        line_qubits=LINE_QUBITS,
    )


@cache
def _device_rates(threads: int) -> tuple[MemoryRates, dict[str, Rates]]:
    """The measured rates as a `Device` holds them."""
    measured = _measured(threads)
    memory = MemoryRates(
        bandwidth_bytes_per_s=measured["bandwidth_bytes_per_s"],
        cache_bandwidth_bytes_per_s=measured["cache_bandwidth_bytes_per_s"],
        fill_bytes_per_s=measured["fill_bytes_per_s"],
        first_touch_bytes_per_s=measured["first_touch_bytes_per_s"],
    )
    return memory, {precision: Rates(measured[f"{precision}_flops_per_s"]) for precision in ("double", "single")}


def tile_qubits() -> int:
    """Qubits of a complex128 tile that fills half of a core's second-level cache."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    size = size if size > 0 else 1 << 19  # unknown: what common processors have at least
    return min(max((size // 32).bit_length() - 1, 12), 16)


@cache
def processor() -> str:
    """The processor's name as the operating system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _best_seconds(num_qubits: int, ops: Sequence[Op], precision: str, threads: int) -> float:
    """Least of a few runs of ``ops`` as one tile pass over the line's and the highest qubits, on a product state."""
    state = _native.State(num_qubits, precision == "single")
    angles = np.random.default_rng(1).uniform(0.3, 1.2, num_qubits)
    state.prepare(np.stack([np.cos(angles), 1j * np.sin(angles)], 1).reshape(-1), threads)
    width = min(num_qubits, tile_qubits())
    line = min(LINE_QUBITS, width)
    qubits = [*range(line), *range(num_qubits - width + line, num_qubits)]
    program = tile_program(num_qubits, qubits, precision, ops)
    program.run(state, threads)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        program.run(state, threads)
        times.append(time.perf_counter() - start)
    return min(times)


def _prepare_bytes_per_s(num_qubits: int, first_live: int, threads: int) -> float:
    """Bytes of a new state by the time that writing a product state takes, its qubits from ``first_live`` on live.

    The memory is that of the state before, as from the second run of a process on.
    """
    factors = np.zeros((num_qubits, 2), complex)
    factors[:, 0] = 1
    factors[first_live:] = np.sqrt(0.5)
    times = []
    for _ in range(1 + PREPARE_REPEATS):
        state = _native.State(num_qubits, False)
        start = time.perf_counter()
        state.prepare(factors.reshape(-1), threads)
        times.append(time.perf_counter() - start)
        del state
    return float(16 * 2**num_qubits / min(times))


def _extra_seconds(ops: Sequence[Op], precision: str, threads: int) -> float:
    """Seconds that ``ops`` add to a pass over a cache-resident state."""
    with_ops = _best_seconds(ARITHMETIC_QUBITS, ops, precision, threads)
    without = _best_seconds(ARITHMETIC_QUBITS, [], precision, threads)
    return max(with_ops - without, with_ops / 2)  # on a busy machine the difference may vanish; the ops are most of it


def _dense(count: int) -> list[Op]:
    """``count`` random two-qubit unitaries on vertical qubits of a tile."""
    rng = np.random.default_rng(2)
    ops = []
    for number in range(count):
        ops.append(Op(Kind.UNITARY, (TILE[4 + number % 7], TILE[5 + number % 7]), random_unitary(rng, 4)))
    return ops


def _flops_per_s(precision: str, threads: int) -> float:
    return float(20 * 32 * 2**ARITHMETIC_QUBITS / _extra_seconds(_dense(20), precision, threads))


# Name in the file: its measurement. A file of a version with other names is measured anew.
RATES: dict[str, Callable[[int], float]] = {
    "fill_bytes_per_s": lambda threads: _prepare_bytes_per_s(FILL_QUBITS, 0, threads),
    "first_touch_bytes_per_s": lambda threads: _prepare_bytes_per_s(STATE_QUBITS, PAGE_QUBITS, threads),
    "bandwidth_bytes_per_s": lambda threads: (
        32 * 2.0**STATE_QUBITS / _best_seconds(STATE_QUBITS, [], "double", threads)
    ),
    "double_flops_per_s": lambda threads: _flops_per_s("double", threads),
    "single_flops_per_s": lambda threads: _flops_per_s("single", threads),
    "cache_bandwidth_bytes_per_s": lambda threads: (
        4 * SWEEPS_PER_LAYER * 32 * 2.0**ARITHMETIC_QUBITS / _extra_seconds(rotations(TILE, 4), "double", threads)
    ),
    "launch_seconds": lambda threads: _best_seconds(5, [], "double", threads),
}
