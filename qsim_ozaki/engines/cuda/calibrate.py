"""The record of a GPU: rates that ship with the package, or that a measurement on request has stored in a file.

In: a CUDA engine, as a `StepRunner`. Out: a `Device`. It may not plan. A measurement is stored under the names of the
GPU and the driver and the hash of the kernel sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from qsim_ozaki.cache import DeviceRecords
from qsim_ozaki.engines.cuda.cards import Properties, shipped_rates
from qsim_ozaki.engines.cuda.codegen.compiler import Compiler
from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.kernels import INSTANCES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.device.state import CudaState
from qsim_ozaki.engines.cuda.ozaki.pipeline import pipeline
from qsim_ozaki.engines.cuda.ozaki.tables import ROW_BITS
from qsim_ozaki.engines.cuda.tuning import BLOCK_OVERLAP, OVERLAP, REPEAT_QUBITS, SUSTAINED
from qsim_ozaki.engines.probes import NOTHING, fill, fourier, mixing_layers, rotations
from qsim_ozaki.ir import (
    MEASURED_HERE,
    Abilities,
    DenseBlock,
    DenseTime,
    Device,
    Kind,
    MemoryRates,
    Op,
    Path,
    Prepare,
    Rates,
    Step,
    TilePass,
    tile_work,
)

LARGE_BYTES = 1 << 30  # several times any L2
ROTATION_LAYERS, SWEEPS_PER_LAYER = 8, 4  # on 12 tile qubits: three rotations per sweep, as the cost model counts
REPEATS, QUICK_REPEATS = 5, 15  # the second is for work that takes less than a millisecond
BLOCK_QUBITS = 9  # of the matrix that measures the tensor cores: on more qubits their rate changes little
MIXING_LAYERS = 1  # has about as many operators as passes of circuits have, and compiles in a second
# The measured blocks have sizes at which either arithmetic may be faster: native, emulated at 34 bits, and emulated at
# FP64 parity. Their states range from many chunks down to states that take the host longer than the GPU.
MEASURED_QUBITS, MEASURED_MODULI, MEASURED_WIDTHS = (8, 9, 10, 11), (0, 9, 16), 4
BATCH = 8  # steps between two events: the first launch waits for the host, which would count as device time
RECORDS = DeviceRecords("cuda-devices.json")
PASS_RATES = {  # names in the file of the rates of each precision
    "double": ("double_flops_per_s", "double_gate_updates_per_s", "double_dense_flops_per_s"),
    "single": ("single_flops_per_s", "single_gate_updates_per_s", "single_dense_flops_per_s"),
}
MEMORY_RATES = ("bandwidth_bytes_per_s", "cache_bandwidth_bytes_per_s", "fill_bytes_per_s")
FIELDS = {  # names in the file; a file with other names is of another version, and is not read
    *PASS_RATES["double"],
    *PASS_RATES["single"],
    *MEMORY_RATES,
    *("int8_ops_per_s", "launch_seconds", "min_gate_seconds", "dense_times"),
}


_shipped: dict[str, tuple[dict[str, Any], str]] = {}  # by the name of the record, where no measurement is stored


class StepRunner(Protocol):
    """The part of the CUDA engine that its measurement needs.

    Attributes:
        launcher: launches kernels on the GPU.
        compiler: compiles specialised kernels.
    """

    launcher: Launcher
    compiler: Compiler

    def allocate(self, num_qubits: int, precision: str) -> CudaState:
        """Returns a new state |0...0>."""

    def run_step(self, state: CudaState, step: Step) -> None:
        """Does ``step`` in place."""

    def forget(self) -> None:
        """Frees the memory that is only kept for speed."""


def cuda_device(engine: StepRunner) -> Device:
    """Returns the record of the engine's GPU with the free memory now."""
    measured, source = _rates(engine.launcher)
    return Device(
        name=engine.launcher.device_name,
        memory_bytes=engine.launcher.available_bytes(),
        tile_qubits=SHAPES["double"].tile_qubits,
        line_qubits=SHAPES["double"].line_qubits,
        tile_overlap=OVERLAP,
        dense_overlap=BLOCK_OVERLAP,
        min_compiled_qubits=REPEAT_QUBITS,
        abilities=Abilities(splits_two_qubit_gates=True, moves_qubits=True, skips_zeros=True),
        memory=MemoryRates(**{name: measured[name] for name in MEMORY_RATES}),
        rates={
            precision: Rates(
                flops_per_s=measured[flops], gate_updates_per_s=measured[gates], dense_flops_per_s=measured[dense]
            )
            for precision, (flops, gates, dense) in PASS_RATES.items()
        },
        int8_ops_per_s=measured["int8_ops_per_s"],
        launch_seconds=measured["launch_seconds"],
        min_gate_seconds=measured["min_gate_seconds"],
        dense_times=tuple(DenseTime(*row) for row in measured["dense_times"]),
        source=source,
    )


def _rates(launcher: Launcher) -> tuple[dict[str, Any], str]:
    """Returns the rates of the GPU, and where they come from; a measurement takes the place of shipped rates."""
    name = _record_name(launcher)
    if name not in _shipped:
        stored = RECORDS.stored(name, FIELDS)
        if stored is not None:
            return stored, MEASURED_HERE
        _shipped[name] = shipped_rates(_properties(launcher))
    return _shipped[name]


def _record_name(launcher: Launcher) -> str:
    driver = launcher.cupy.cuda.runtime.driverGetVersion()
    return f"{launcher.device_name} driver {driver} {nvrtc.sources_hash()[:16]}"


def _properties(launcher: Launcher) -> Properties:
    """Returns what the driver says of the GPU."""
    device = launcher.cupy.cuda.Device(launcher.device_id)
    attributes: dict[str, int] = device.attributes  # clocks in kHz, widths in bits
    transfers_per_s = 2e3 * attributes.get("MemoryClockRate", 0)  # two a clock
    return Properties(
        name=launcher.device_name,
        architecture=int(device.compute_capability),
        processors=launcher.num_processors,
        clock_hz=1e3 * attributes.get("ClockRate", 0),
        bandwidth_bytes_per_s=transfers_per_s * attributes.get("GlobalMemoryBusWidth", 0) / 8,
    )


def calibrate(engine: StepRunner) -> None:
    """Measures the engine's GPU, about 25 seconds, and stores the record for this and later processes."""
    name = _record_name(engine.launcher)
    RECORDS.store(name, measure(engine))
    _shipped.pop(name, None)


def measure(engine: StepRunner) -> dict[str, Any]:
    """Measures the rates of the engine's GPU with the kernels that plans use, on states without zeros."""
    size = LARGE_BYTES
    while size > engine.launcher.free_bytes() // 4:
        size //= 2
    qubits = (size // 16).bit_length() - 1
    # Compiling comes first: some times are bound by the host, which must cool down again before they are measured.
    compile_blocks(engine.launcher.architecture)
    rates = _pass_rates(engine, qubits)
    tiny, tile = engine.allocate(12, "double"), tuple(range(12))
    nothing, mixing = TilePass(tile, NOTHING), TilePass(tile, mixing_layers(tile, MIXING_LAYERS))
    mixing_seconds = step_seconds(engine, tiny, mixing) - step_seconds(engine, tiny, nothing)
    return rates | {
        "int8_ops_per_s": int8_rate(engine.launcher),
        "min_gate_seconds": max(mixing_seconds, 0.0) / tile_work(mixing.ops).gate_updates,
        "dense_times": block_times(engine, qubits),
        "launch_seconds": seconds_in_turn(
            engine.launcher.cupy, [partial(engine.run_step, tiny, nothing)], QUICK_REPEATS
        )[0],
    }


def _pass_rates(engine: StepRunner, qubits: int) -> dict[str, float]:
    """Measures the rates of passes over states of ``qubits`` qubits, in both precisions."""
    amps, line = 2.0**qubits, SHAPES["double"].line_qubits
    tile = (*range(line), *range(qubits - 12 + line, qubits))
    turns, mixing = rotations(tile, ROTATION_LAYERS), mixing_layers(tile, MIXING_LAYERS)
    block = DenseBlock(Op(Kind.UNITARY, tile[-BLOCK_QUBITS:], fourier(BLOCK_QUBITS)))
    rates = {}
    for precision, (flops, mixes, block_flops) in PASS_RATES.items():
        state = filled(engine, qubits, precision)
        empty, turned, mixed = (step_seconds(engine, state, TilePass(tile, ops)) for ops in (NOTHING, turns, mixing))
        mixed = max(mixed - (1 - OVERLAP) * empty, 1e-9)
        multiplied = max(step_seconds(engine, state, block) - (1 - BLOCK_OVERLAP) * empty, 1e-9)
        rates[flops] = tile_work(turns).flops * amps / turned
        rates[mixes] = SUSTAINED[precision] * tile_work(mixing).gate_updates * amps / mixed
        rates[block_flops] = (8 << BLOCK_QUBITS) * amps / multiplied
        if precision == "double":
            filling = step_seconds(engine, state, Prepare(np.full((qubits, 2), 0.5**0.5, complex)))
            rates["fill_bytes_per_s"] = 16 * amps / filling
            rates["bandwidth_bytes_per_s"] = 32 * amps / empty
            rates["cache_bandwidth_bytes_per_s"] = ROTATION_LAYERS * SWEEPS_PER_LAYER * 32 * amps / turned
    return rates


def filled(engine: StepRunner, qubits: int, precision: str) -> CudaState:
    """Returns a random state: multiplying zeros draws less power, and power bounds the rates of long runs."""
    state = engine.allocate(qubits, precision)
    fill(engine.launcher.cupy, state.amps)
    return state


def compile_blocks(architecture: int) -> None:
    """Compiles the kernels of the measured emulated blocks, on all cores."""
    pairs = [(k, moduli) for k in MEASURED_QUBITS for moduli in MEASURED_MODULI[1:]]
    kernels = [pipeline(k, moduli).kernels(1 << k - ROW_BITS, moduli, INSTANCES["double"]) for k, moduli in pairs]
    nvrtc.cache_all([row for rows in kernels for row in rows], architecture)


def block_times(engine: StepRunner, most_qubits: int) -> list[tuple[int, int, int, float]]:
    """Measures single blocks: (qubits of the matrix, moduli or 0, qubits of the state, seconds), ascending.

    Blocks of one size take turns: after blocks of another size, caches would be colder than in circuits of equal
    blocks. Targets are spread over the state, as most targets are: the highest qubits take up to a fifth longer.
    """
    widths = [most_qubits - 2 * number for number in range(MEASURED_WIDTHS)]
    spread = [int(q) for q in np.random.default_rng(8).permutation(widths[-1])]
    ops = [Op(Kind.UNITARY, tuple(spread[:k]), fourier(k)) for k in MEASURED_QUBITS]
    blocks = [[DenseBlock(op, Path.OZAKI, m) if m else DenseBlock(op) for m in MEASURED_MODULI] for op in ops]
    times = []
    for n in widths:
        state = filled(engine, n, "double")
        for k, blocks_of_size in zip(MEASURED_QUBITS, blocks, strict=True):
            actions = [partial(engine.run_step, state, block) for block in blocks_of_size]
            seconds = seconds_in_turn(engine.launcher.cupy, actions, REPEATS if n == most_qubits else QUICK_REPEATS)
            times += [(k, moduli, n, median) for moduli, median in zip(MEASURED_MODULI, seconds, strict=True)]
    engine.forget()
    return sorted(times)


def step_seconds(engine: StepRunner, state: CudaState, step: Step) -> float:
    """Returns the median seconds of ``step`` by device events, after its compilation and a warm-up."""

    def several() -> None:
        for _ in range(BATCH):
            engine.run_step(state, step)

    engine.run_step(state, step)
    engine.compiler.finish()
    return event_seconds(engine.launcher.cupy, several) / BATCH


@dataclass(frozen=True, slots=True)
class Clocked:
    """The times of one action on a GPU.

    Attributes:
        seconds: between the device events before and after the action.
        host_seconds: until the host had issued all launches.
        wall_seconds: until the GPU had finished.
    """

    seconds: float
    host_seconds: float
    wall_seconds: float


def clock(cupy: Any, action: Callable[[], object]) -> Clocked:
    """Runs ``action`` once on an idle GPU and returns its times; its launches go to the current stream."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin = time.perf_counter()
    start.record()
    action()
    end.record()
    issued = time.perf_counter()
    end.synchronize()
    done = time.perf_counter()
    return Clocked(float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3, issued - begin, done - begin)


def event_seconds(cupy: Any, action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Returns the median seconds of ``action`` on the current stream by device events, after a warm-up."""
    action()
    return float(np.median([clock(cupy, action).seconds for _ in range(repeats)]))


def seconds_in_turn(cupy: Any, actions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Returns the median seconds of every action on an idle GPU by device events; the actions take turns.

    The time of the host counts where the GPU waits for it. The median is used and not the minimum: times that the host
    bounds vary, and the time of an action with more launches varies more.
    """
    for action in actions:
        action()
    clocks = [[clock(cupy, action).seconds for action in actions] for _ in range(repeats)]
    return [float(np.median(column)) for column in zip(*clocks, strict=True)]


def pass_seconds(launcher: Launcher, state: CudaState) -> float:
    """Returns the seconds of one in-place read and write of ``state``: a collapse without a condition scales by 1."""
    size = int(state.amps.size)
    args = (state.amps, np.uint64(size), np.uint64(0), np.uint64(0), np.float64(1.0))
    blocks = min(size // 256, 1 << 20)
    instance = INSTANCES[state.precision]
    return event_seconds(launcher.cupy, lambda: launcher.launch("collapse", instance, blocks, 256, args))


def int8_rate(launcher: Launcher) -> float:
    """Measures INT8 operations per second of m16n8k32 products with register operands."""
    iterations, blocks = 2000, 2 * launcher.num_processors
    sink = launcher.cupy.empty(1, np.int32)
    args = (sink, np.int32(iterations), np.int32(5))
    seconds = event_seconds(launcher.cupy, lambda: launcher.launch("rate_int8", {}, blocks, 256, args))
    return float(blocks * 8 * iterations * 8 * 8192 / seconds)
