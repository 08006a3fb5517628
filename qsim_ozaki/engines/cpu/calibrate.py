"""The measurement of a CPU: it takes about a second, once, and its record stays in a file.

In: a number of threads, the memory for a state. Out: a `Device`. It may not plan. The key of a record names the
processor, the instruction set, the number of threads and the version of the package.
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
from qsim_ozaki.ir import PAGE_BYTES, Abilities, Device, Kind, MemoryRates, Op, Rates

STATE_QUBITS = 22  # 64 MiB: larger than a core's caches, and small enough to be quick
ARITHMETIC_QUBITS = 18  # 4 MiB: it stays in the caches and has enough tiles for every thread
# Segments of 256 bytes: in a strided pass at 24 qubits, segments of 128 bytes take 1.2 times as long, and segments of
# 64 bytes twice as long (EPYC 9004, 2 cores, 2026-11).
LINE_QUBITS = 4
TILE = (0, 1, 2, 3, *range(ARITHMETIC_QUBITS - 8, ARITHMETIC_QUBITS))  # qubits of the measured operators
SWEEPS_PER_LAYER = 4  # sweeps of one layer of rotations on TILE: one for the lanes, then one per three positions
REPEATS = 3
PREPARE_REPEATS = 5
FILL_QUBITS = 21  # a size between states that fit a last-level cache and states that do not
PAGE_QUBITS = (PAGE_BYTES // 16).bit_length() - 1  # a page holds 2**PAGE_QUBITS complex128 amplitudes
RECORDS = DeviceRecords("devices.json")


@cache
def _measured(threads: int) -> dict[str, float]:
    """Returns the rates of this machine, from the cache file or measured now."""
    return RECORDS.record(_record_name(threads), RATES.keys(), lambda: _measure(threads))


def _record_name(threads: int) -> str:
    return f"{processor()} {_native.isa()} {threads} threads {version('qsim-ozaki')}"


def _measure(threads: int) -> dict[str, float]:
    return {key: rate(threads) for key, rate in RATES.items()}


def calibrate(threads: int) -> None:
    """Measures this machine, about a second, and stores the record for this and later processes."""
    RECORDS.store(_record_name(threads), _measure(threads))
    _measured.cache_clear()
    _device_rates.cache_clear()


def cpu_device(threads: int, memory_bytes: int) -> Device:
    """Returns the record of this machine for ``threads`` threads; a state may take ``memory_bytes``."""
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
        abilities=Abilities(rotates_paulis=True),
    )


@cache
def _device_rates(threads: int) -> tuple[MemoryRates, dict[str, Rates]]:
    """Returns the measured rates in the form of a `Device`."""
    measured = _measured(threads)
    memory = MemoryRates(
        bandwidth_bytes_per_s=measured["bandwidth_bytes_per_s"],
        cache_bandwidth_bytes_per_s=measured["cache_bandwidth_bytes_per_s"],
        fill_bytes_per_s=measured["fill_bytes_per_s"],
        first_touch_bytes_per_s=measured["first_touch_bytes_per_s"],
    )
    return memory, {precision: Rates(measured[f"{precision}_flops_per_s"]) for precision in ("double", "single")}


def tile_qubits() -> int:
    """Returns the number of qubits of a complex128 tile that fills half of a core's second-level cache."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    size = size if size > 0 else 1 << 19  # unknown: common processors have at least 512 KiB
    return min(max((size // 32).bit_length() - 1, 12), 16)


@cache
def processor() -> str:
    """Returns the processor's name as the operating system states it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _best_seconds(num_qubits: int, ops: Sequence[Op], precision: str, threads: int) -> float:
    """Returns the least time of a few runs of ``ops`` on a product state.

    A run is one tile pass over the qubits of the line and the highest qubits.
    """
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
    """Returns the bytes of a new state over the time to write a product state to it.

    The qubits of the product state from ``first_live`` on are live. The state reuses the memory of the state before it,
    as every run of a process after the first one does.
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
    """Returns the seconds that ``ops`` add to a pass over a state that stays in the cache."""
    with_ops = _best_seconds(ARITHMETIC_QUBITS, ops, precision, threads)
    without = _best_seconds(ARITHMETIC_QUBITS, [], precision, threads)
    # On a busy machine the difference may vanish; the ops take most of the time.
    return max(with_ops - without, with_ops / 2)


def _dense(count: int) -> list[Op]:
    """Returns ``count`` random two-qubit unitaries on qubits of a tile above the SIMD lanes."""
    rng = np.random.default_rng(2)
    ops = []
    for number in range(count):
        ops.append(Op(Kind.UNITARY, (TILE[4 + number % 7], TILE[5 + number % 7]), random_unitary(rng, 4)))
    return ops


def _flops_per_s(precision: str, threads: int) -> float:
    """Returns the flops per second of dense two-qubit gates, 32 flops per gate and amplitude."""
    return float(20 * 32 * 2**ARITHMETIC_QUBITS / _extra_seconds(_dense(20), precision, threads))


# name in the file: its measurement. If a file of another version has other names, the machine is measured again.
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
