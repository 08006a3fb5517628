"""The cost model: predicted bytes, operations and seconds of a step.

In: a `Device` and a step's operators. Out: a `Prediction`. It may not measure or choose anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from qsim_ozaki.ir import Device, Op, Prediction, amplitude_bytes, state_bytes, tile_work
from qsim_ozaki.planner.footprint import Extent


def predict_tile(ops: Iterable[Op], extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """Returns the cost of one tile pass with ``ops``.

    Args:
        ops: operators in order.
        extent: how much of the state the pass works on.
        num_qubits: number of qubits of the state.
        precision: precision of the state.
        device: a measured device, or one that a test makes up.
    """
    work, size = tile_work(ops), amplitude_bytes(precision)
    rates = device.rates[precision]
    moved, flops = size * (extent.read + extent.worked), work.flops * extent.worked
    memory = moved / device.memory.bandwidth_bytes_per_s + touch_seconds(extent.fresh_bytes, device)
    if rates.gate_updates_per_s:
        least = device.min_gate_seconds if num_qubits < device.min_compiled_qubits else 0.0
        inside = {"arithmetic": work.gate_updates * max(extent.worked / rates.gate_updates_per_s, least)}
    else:
        swept = work.sweeps * 2 * size * extent.worked
        inside = {"arithmetic": flops / rates.flops_per_s, "cache": swept / device.memory.cache_bandwidth_bytes_per_s}
    seconds = {"memory": memory, **inside, "launch": device.launch_seconds}
    total_seconds = overlapped_seconds(memory, max(inside.values()), device.tile_overlap) + device.launch_seconds
    bound = max(seconds, key=lambda name: seconds[name])
    return Prediction(total_seconds, moved, flops, moved / (2 * size * 2.0**num_qubits), bound)


def overlapped_seconds(memory: float, inside: float, overlap: float) -> float:
    """Returns the time of memory and of the work inside the tiles together.

    Args:
        memory: seconds of memory traffic.
        inside: seconds of the work inside the tiles.
        overlap: share of the memory's time that can overlap with the work.
    """
    return max(memory, (1 - overlap) * memory + inside)


def predict_prepare(
    num_qubits: int, live_qubits: int, precision: str, device: Device, fresh_bytes: float
) -> Prediction:
    """Returns the cost of writing a product state: half a pass if all qubits are live.

    If some qubits are not live, pages that are written only in part are zeroed before. A device that skips zeros writes
    the whole state.
    """
    if device.abilities.skips_zeros:
        live_qubits = num_qubits
    size = float(state_bytes(live_qubits, precision))
    memory = size / (device.memory.fill_bytes_per_s or device.memory.bandwidth_bytes_per_s) + device.launch_seconds
    if live_qubits < num_qubits:
        memory += touch_seconds(fresh_bytes, device)
    share = 2.0 ** (live_qubits - num_qubits)
    return Prediction(memory, size, 6 * 2.0**live_qubits, share / 2, "memory")


def predict_stack(num_ops: int, num_qubits: int, device: Device) -> Prediction:
    """Returns the cost of one state of a stack, where every operator sweeps over the cache in double precision."""
    seconds = num_ops * 2 * state_bytes(num_qubits, "double") / device.memory.cache_bandwidth_bytes_per_s
    return Prediction(seconds + device.launch_seconds, bound_by="cache")


def touch_seconds(fresh_bytes: float, device: Device) -> float:
    """Returns the seconds of the first touch of ``fresh_bytes`` bytes of memory."""
    rate = device.memory.first_touch_bytes_per_s
    return fresh_bytes / rate if rate else 0.0


def total(predictions: Iterable[Prediction]) -> Prediction:
    """Returns the sum of ``predictions``; its bound is that of the costliest."""
    items = list(predictions)
    return Prediction(
        sum(p.seconds for p in items),
        sum(p.bytes for p in items),
        sum(p.flops for p in items),
        sum(p.passes for p in items),
        max(items, key=lambda p: p.seconds).bound_by if items else "launch",
    )
