"""Measures a GPU once, in about a second, and keeps the record in a file.

In: a CUDA engine. Out: a `Device`. The file is named by GPU, driver and kernel sources.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qsim_ozaki import jit
from qsim_ozaki.cost import Device
from qsim_ozaki.cuda_layout import SHAPES
from qsim_ozaki.cuda_tiles import INSTANCES
from qsim_ozaki.ops import DenseBlock, Kind, Op, TilePass

LARGE_BYTES = 1 << 30  # several times any L2
SWEEPS_PER_LAYER = 4  # of rotations on 12 tile qubits: three to a sweep, as the cost model counts
OVERLAP = 0.8  # share of memory time hidden behind arithmetic with two blocks a processor
REPEATS = 5
BLOCK_QUBITS = 9  # of the measured matrix: beyond it the rate of FP64 tensor cores changes little
BATCH = 8  # steps between two events: the first launch waits for the host, which would count as device time
MEASURED: dict[str, dict[str, float]] = {}  # by this process: a home that cannot be written costs it one measurement
NOTHING = (Op(Kind.DIAGONAL, (), np.ones(1, complex)),)  # a pass that only reads and writes


def cuda_device(engine: Any) -> Device:
    """The record of the engine's GPU: rates from the cache file, or measured now; free memory as it is."""
    rates = _rates(engine)
    return Device(
        name=engine.device_name,
        memory_bytes=engine.free_bytes(),
        bandwidth_bytes_per_s=rates["bandwidth_bytes_per_s"],
        fp64_flops_per_s=rates["fp64_flops_per_s"],
        fp32_flops_per_s=rates["fp32_flops_per_s"],
        int8_ops_per_s=rates["int8_ops_per_s"],
        cache_bandwidth_bytes_per_s=rates["cache_bandwidth_bytes_per_s"],
        launch_seconds=rates["launch_seconds"],
        tile_qubits=SHAPES["double"].tile_qubits,
        line_qubits=SHAPES["double"].line_qubits,
        overlap=OVERLAP,
        block_flops_per_s=rates["block_flops_per_s"],
        block_fp32_flops_per_s=rates["block_fp32_flops_per_s"],
        splits_pairs=True,
        moves_qubits=True,
        skips_zeros=True,
    )


def _rates(engine: Any) -> dict[str, float]:
    from platformdirs import user_cache_path

    file = user_cache_path("qsim-ozaki") / "cuda-devices.json"
    name = f"{engine.device_name} driver {engine.cupy.cuda.runtime.driverGetVersion()} {jit.sources_hash()[:16]}"
    if name in MEASURED:
        return MEASURED[name]
    try:
        known: dict[str, dict[str, float]] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    if name not in known:
        known[name] = MEASURED[name] = measure(engine)
        jit.write_atomically(file, json.dumps(known, indent=1).encode())
    return known[name]


def measure(engine: Any) -> dict[str, float]:
    """Rates of the engine's GPU, each from the kernels that plans use."""
    size = LARGE_BYTES
    while size > engine.free_bytes() // 4:
        size //= 2
    qubits = (size // 16).bit_length() - 1
    amps = 2.0**qubits
    line = SHAPES["double"].line_qubits
    tile = (*range(line), *range(qubits - 12 + line, qubits))
    state, single = engine.allocate(qubits, "double"), engine.allocate(qubits, "single")
    empty = step_seconds(engine, state, TilePass(tile, NOTHING))
    dense = step_seconds(engine, state, TilePass(tile, dense_ops(tile[line:], 40))) - empty
    empty_single = step_seconds(engine, single, TilePass(tile, NOTHING))
    dense_single = step_seconds(engine, single, TilePass(tile, dense_ops(tile[line:], 40))) - empty_single
    layers = step_seconds(engine, state, TilePass(tile, rotations(tile, 8))) - empty
    tiny, block_flops = engine.allocate(12, "double"), 8 * 2**BLOCK_QUBITS * amps
    return {
        "bandwidth_bytes_per_s": 32 * amps / empty,
        "fp64_flops_per_s": 40 * 32 * amps / max(dense, 1e-9),
        "fp32_flops_per_s": 40 * 32 * amps / max(dense_single, 1e-9),
        "int8_ops_per_s": int8_rate(engine),
        "block_flops_per_s": block_flops / step_seconds(engine, state, dense_block(tile)),
        "block_fp32_flops_per_s": block_flops / step_seconds(engine, single, dense_block(tile)),
        "cache_bandwidth_bytes_per_s": 8 * SWEEPS_PER_LAYER * 32 * amps / max(layers, 1e-9),
        "launch_seconds": step_seconds(engine, tiny, TilePass(tuple(range(12)), NOTHING)),
    }


def dense_block(tile: Sequence[int]) -> DenseBlock:
    """A random matrix on the highest qubits of ``tile``, as a step of its own."""
    rng = np.random.default_rng(3)
    shape = (1 << BLOCK_QUBITS, 1 << BLOCK_QUBITS)
    matrix = np.linalg.qr(rng.normal(size=shape) + 1j * rng.normal(size=shape))[0]
    return DenseBlock(Op(Kind.UNITARY, tuple(tile[-BLOCK_QUBITS:]), matrix))


def dense_ops(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """``count`` random two-qubit unitaries on neighbours among ``qubits``."""
    rng = np.random.default_rng(2)
    ops = []
    for number in range(count):
        matrix = np.linalg.qr(rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4)))[0]
        pair = (qubits[number % (len(qubits) - 1)], qubits[number % (len(qubits) - 1) + 1])
        ops.append(Op(Kind.UNITARY, pair, matrix))
    return tuple(ops)


def rotations(qubits: Sequence[int], count: int) -> tuple[Op, ...]:
    """``count`` layers of real rotations."""
    matrix = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]], complex)
    return tuple(Op(Kind.UNITARY, (q,), matrix) for _ in range(count) for q in qubits)


def step_seconds(engine: Any, state: Any, step: TilePass | DenseBlock) -> float:
    """Median seconds of ``step`` by device events, compiled and warm."""

    def several() -> None:
        for _ in range(BATCH):
            engine.run_step(state, step)

    engine.run_step(state, step)
    engine.compiler.finish()
    return event_seconds(engine, several) / BATCH


@dataclass(frozen=True, slots=True)
class Clocked:
    """One run of something on a GPU.

    Attributes:
        seconds: between device events before and after it.
        host_seconds: until the host had issued all of it.
        wall_seconds: until it was done.
    """

    seconds: float
    host_seconds: float
    wall_seconds: float


def clock(cupy: Any, action: Callable[[], object]) -> Clocked:
    """Runs ``action``, whose launches go to the current stream, on an idle GPU."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin = time.perf_counter()
    start.record()
    action()
    end.record()
    issued = time.perf_counter()
    end.synchronize()
    done = time.perf_counter()
    return Clocked(float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3, issued - begin, done - begin)


def event_seconds(engine: Any, action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median seconds of ``action`` on the current stream by device events, after a warm-up."""
    action()
    return float(np.median([clock(engine.cupy, action).seconds for _ in range(repeats)]))


def pass_seconds(engine: Any, state: Any) -> float:
    """Seconds of one in-place read and write of ``state``: the collapse kernel with an empty condition scales by 1."""
    size = int(state.amps.size)
    args = (state.amps, np.uint64(size), np.uint64(0), np.uint64(0), np.float64(1.0))
    blocks = min(size // 256, 1 << 20)
    return event_seconds(engine, lambda: engine.launch("collapse", INSTANCES[state.precision], blocks, 256, args))


def int8_rate(engine: Any) -> float:
    """INT8 operations per second of m16n8k32 products with register operands."""
    iterations, blocks = 2000, 2 * engine.num_processors
    sink = engine.cupy.empty(1, np.int32)
    args = (sink, np.int32(iterations), np.int32(5))
    seconds = event_seconds(engine, lambda: engine.launch("rate_int8", {}, blocks, 256, args))
    return float(blocks * 8 * iterations * 8 * 8192 / seconds)
