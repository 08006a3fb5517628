"""Measures a GPU once, in a few seconds, and keeps the record in a file.

In: a CUDA engine. Out: a `Device`. The file is named by GPU, driver and kernel sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from qsim_ozaki import jit
from qsim_ozaki.cache import DeviceRecords
from qsim_ozaki.calibrate_ops import NOTHING, fill, fourier, mixing_layers, rotations
from qsim_ozaki.cost import Device, tile_work
from qsim_ozaki.cuda_layout import SHAPES
from qsim_ozaki.cuda_ozaki_pipeline import pipeline
from qsim_ozaki.cuda_ozaki_tables import ROW_BITS
from qsim_ozaki.cuda_tiles import INSTANCES, REPEAT_QUBITS
from qsim_ozaki.ops import DenseBlock, Kind, Op, Path, Prepare, Step, TilePass

LARGE_BYTES = 1 << 30  # several times any L2
ROTATION_LAYERS, SWEEPS_PER_LAYER = 8, 4  # on 12 tile qubits: three rotations to a sweep, as the cost model counts
# Share of a tile pass's memory time that its arithmetic hides: a card's power bounds their sum (H200, 2026-11).
OVERLAP = 0.3
BLOCK_OVERLAP = 0.8  # the same of a matrix product on tensor cores
REPEATS, QUICK_REPEATS = 5, 15  # the second of what takes less than a millisecond
BLOCK_QUBITS = 9  # of the matrix by which tensor cores are measured: beyond it their rate changes little
MIXING_LAYERS = 1  # about as many operators as passes of circuits have, compiled in a second
# Measured blocks: where either arithmetic may win; native, at 34 bits and at FP64 parity; on states from those of many
# chunks to those that take the host longer than the card.
MEASURED_QUBITS, MEASURED_MODULI, MEASURED_WIDTHS = (8, 9, 10, 11), (0, 9, 16), 4
# What passes of circuits do, one after another at the limit of a card's power, of the rate of one pass run alone
# (H200, 2026-11): in double precision Trotter 6.3, EfficientSU2 7.9, random circuits and quantum volume 8.2 of 10.0
# T/s, in single 8.0 of 8.75. The slowest counts: by too high a rate plans from |0...0> do too much late.
SUSTAINED = {"double": 0.65, "single": 0.91}
BATCH = 8  # steps between two events: the first launch waits for the host, which would count as device time
RECORDS = DeviceRecords("cuda-devices.json")
PASS_RATES = {  # names of the rates of each precision
    "double": ("fp64_flops_per_s", "mixes_per_s", "block_flops_per_s"),
    "single": ("fp32_flops_per_s", "mixes_fp32_per_s", "block_fp32_flops_per_s"),
}
FIELDS = {
    *PASS_RATES["double"],
    *PASS_RATES["single"],
    *("bandwidth_bytes_per_s", "cache_bandwidth_bytes_per_s", "int8_ops_per_s"),
    *("launch_seconds", "mix_seconds", "fill_bytes_per_s", "blocks"),
}


def cuda_device(engine: Any) -> Device:
    """The record of the engine's GPU: rates from the cache file, or measured now; free memory as it is."""
    return Device(
        name=engine.device_name,
        memory_bytes=engine.free_bytes(),
        tile_qubits=SHAPES["double"].tile_qubits,
        line_qubits=SHAPES["double"].line_qubits,
        overlap=OVERLAP,
        block_overlap=BLOCK_OVERLAP,
        interpreted_qubits=REPEAT_QUBITS,
        splits_pairs=True,
        moves_qubits=True,
        skips_zeros=True,
        **_rates(engine),
    )


def _rates(engine: Any) -> dict[str, Any]:
    """What is measured: from this process, the file, or now."""
    name = f"{engine.device_name} driver {engine.cupy.cuda.runtime.driverGetVersion()} {jit.sources_hash()[:16]}"
    return RECORDS.record(name, FIELDS, lambda: measure(engine))


def measure(engine: Any) -> dict[str, Any]:
    """Rates of the engine's GPU, each from the kernels that plans use, on states as full as a circuit's."""
    size = LARGE_BYTES
    while size > engine.free_bytes() // 4:
        size //= 2
    qubits = (size // 16).bit_length() - 1
    compile_blocks(engine)  # first: what the host bounds is measured when it has cooled down again
    rates = _pass_rates(engine, qubits)
    tiny, tile = engine.allocate(12, "double"), tuple(range(12))
    nothing, mixing = TilePass(tile, NOTHING), TilePass(tile, mixing_layers(tile, MIXING_LAYERS))
    of_mixes = step_seconds(engine, tiny, mixing) - step_seconds(engine, tiny, nothing)
    return rates | {
        "int8_ops_per_s": int8_rate(engine),
        "mix_seconds": max(of_mixes, 0.0) / tile_work(mixing.ops).mixes,
        "blocks": block_times(engine, qubits),
        "launch_seconds": seconds_in_turn(engine, [partial(engine.run_step, tiny, nothing)], QUICK_REPEATS)[0],
    }


def _pass_rates(engine: Any, qubits: int) -> dict[str, float]:
    """Rates of passes over states of so many qubits, in both precisions."""
    amps, line = 2.0**qubits, SHAPES["double"].line_qubits
    tile = (*range(line), *range(qubits - 12 + line, qubits))
    turns, mixing = rotations(tile, ROTATION_LAYERS), mixing_layers(tile, MIXING_LAYERS)
    block = DenseBlock(Op(Kind.UNITARY, tile[-BLOCK_QUBITS:], fourier(BLOCK_QUBITS)))
    found = {}
    for precision, (flops, mixes, block_flops) in PASS_RATES.items():
        state = filled(engine, qubits, precision)
        empty, turned, mixed = (step_seconds(engine, state, TilePass(tile, ops)) for ops in (NOTHING, turns, mixing))
        mixed = max(mixed - (1 - OVERLAP) * empty, 1e-9)
        multiplied = max(step_seconds(engine, state, block) - (1 - BLOCK_OVERLAP) * empty, 1e-9)
        found[flops] = tile_work(turns).flops * amps / turned
        found[mixes] = SUSTAINED[precision] * tile_work(mixing).mixes * amps / mixed
        found[block_flops] = (8 << BLOCK_QUBITS) * amps / multiplied
        if precision == "double":
            filling = step_seconds(engine, state, Prepare(np.full((qubits, 2), 0.5**0.5, complex)))
            found["fill_bytes_per_s"] = 16 * amps / filling
            found["bandwidth_bytes_per_s"] = 32 * amps / empty
            found["cache_bandwidth_bytes_per_s"] = ROTATION_LAYERS * SWEEPS_PER_LAYER * 32 * amps / turned
    return found


def filled(engine: Any, qubits: int, precision: str) -> Any:
    """A random state: multipliers that read zeros draw less of the power that bounds long runs."""
    state = engine.allocate(qubits, precision)
    fill(engine.cupy, state.amps)
    return state


def compile_blocks(engine: Any) -> None:
    """Kernels of the measured emulated blocks, on all cores."""
    wanted = [(k, moduli) for k in MEASURED_QUBITS for moduli in MEASURED_MODULI[1:]]
    kernels = [pipeline(k, moduli).kernels(1 << k - ROW_BITS, moduli, INSTANCES["double"]) for k, moduli in wanted]
    jit.cache_all([row for rows in kernels for row in rows], engine.architecture)


def block_times(engine: Any, most_qubits: int) -> list[tuple[int, int, int, float]]:
    """Seconds of blocks alone: (qubits of the matrix, moduli or 0, qubits of the state, seconds), ascending.

    Those of one size take turns: blocks of another would leave them colder caches than circuits of equal blocks have.
    Targets are spread, as most are: the highest of a state take up to a fifth longer.
    """
    widths = [most_qubits - 2 * number for number in range(MEASURED_WIDTHS)]
    spread = [int(q) for q in np.random.default_rng(8).permutation(widths[-1])]
    ops = [Op(Kind.UNITARY, tuple(spread[:k]), fourier(k)) for k in MEASURED_QUBITS]
    blocks = [[DenseBlock(op, Path.OZAKI, m) if m else DenseBlock(op) for m in MEASURED_MODULI] for op in ops]
    found = []
    for n in widths:
        state = filled(engine, n, "double")
        for k, alike in zip(MEASURED_QUBITS, blocks, strict=True):
            actions = [partial(engine.run_step, state, block) for block in alike]
            seconds = seconds_in_turn(engine, actions, REPEATS if n == most_qubits else QUICK_REPEATS)
            found += [(k, moduli, n, each) for moduli, each in zip(MEASURED_MODULI, seconds, strict=True)]
    engine.forget()
    return sorted(found)


def step_seconds(engine: Any, state: Any, step: Step) -> float:
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


def seconds_in_turn(engine: Any, actions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each action on an idle GPU by device events, in turn; the host's count where a GPU waits.

    Not the least: what the host bounds varies, and of two actions the one with more launches varies more.
    """
    for action in actions:
        action()
    clocks = [[clock(engine.cupy, action).seconds for action in actions] for _ in range(repeats)]
    return [float(np.median(column)) for column in zip(*clocks, strict=True)]


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
