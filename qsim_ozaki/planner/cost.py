"""The cost model: predicted bytes, operations and seconds of a step.

In: a `Device` and a step's ops. Out: a `Prediction`. It measures nothing and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from qsim_ozaki.ir import Device, Op, Prediction, amplitude_bytes, state_bytes, tile_work
from qsim_ozaki.planner.footprint import Extent


def predict_tile(ops: Iterable[Op], extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """The cost of one tile pass with ``ops``.

    Args:
        ops: in order.
        extent: how much of the state it works on.
        num_qubits: width of the state.
        precision: of the state.
        device: measured or made up.
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
    total_seconds = beside(memory, max(inside.values()), device.tile_overlap) + device.launch_seconds
    bound = max(seconds, key=lambda name: seconds[name])
    return Prediction(total_seconds, moved, flops, moved / (2 * size * 2.0**num_qubits), bound)


def beside(memory: float, inside: float, overlap: float) -> float:
    """Seconds of both where the share ``overlap`` of memory's time can hide behind the rest."""
    return max(memory, (1 - overlap) * memory + inside)


def predict_prepare(
    num_qubits: int, live_qubits: int, precision: str, device: Device, fresh_bytes: float
) -> Prediction:
    """The cost of writing a product state: half a pass where all qubits are live.

    Where some are not, the pages that are written in part are zeroed before; a device that hands out no zeros writes
    them all.
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
    """The cost of one state of a stack: each operator is a sweep over the cache, in double precision."""
    seconds = num_ops * 2 * state_bytes(num_qubits, "double") / device.memory.cache_bandwidth_bytes_per_s
    return Prediction(seconds + device.launch_seconds, bound_by="cache")


def touch_seconds(fresh_bytes: float, device: Device) -> float:
    """Seconds of the first touch of so much memory."""
    rate = device.memory.first_touch_bytes_per_s
    return fresh_bytes / rate if rate else 0.0


def total(predictions: Iterable[Prediction]) -> Prediction:
    """The sum of ``predictions``; the bound is that of the costliest."""
    items = list(predictions)
    return Prediction(
        sum(p.seconds for p in items),
        sum(p.bytes for p in items),
        sum(p.flops for p in items),
        sum(p.passes for p in items),
        max(items, key=lambda p: p.seconds).bound_by if items else "launch",
    )
