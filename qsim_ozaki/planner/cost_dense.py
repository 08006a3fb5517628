"""The cost model of matrices on several qubits as steps of their own, native and emulated.

In: a matrix or the operators of a pass, a `Device`. Out: a `Prediction`. It may not measure or choose anything.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

from qsim_ozaki.ir import Device, Kind, Op, OpList, Prediction, amplitude_bytes, state_bytes, tile_work
from qsim_ozaki.planner.cost import overlapped_seconds, predict_tile, total, touch_seconds
from qsim_ozaki.planner.footprint import Extent

# One thread that writes to new memory is this much slower than all threads in place (EPYC 9004, 2 cores, 2026-11).
PACKING_SLOWDOWN = 8
# The residues and the CRT of one amplitude and modulus take the time of this many INT8 operations, beyond memory
# traffic.
CONVERSION_OPS = 600


def predict_pass(ops: OpList, extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """Returns the cost of one tile pass with ``ops``; a GPU runs matrices on more than two qubits as separate passes.

    Args:
        ops: operators in order.
        extent: how much of the state the pass works on.
        num_qubits: number of qubits of the state.
        precision: precision of the state.
        device: a measured device, or one that a test makes up.
    """
    if not device.rates[precision].gate_updates_per_s or not tile_work(ops).wide_matrices:
        return predict_tile(ops, extent, num_qubits, precision, device)
    parts, others = [], []
    for op in ops:
        if op.kind is Kind.UNITARY and len(op.targets) > 2:
            parts.append(predict_matrix(op, extent, num_qubits, precision, device))
        else:
            others.append(op)
    if others:
        parts.append(predict_tile(others, extent, num_qubits, precision, device))
    return total(parts)


def predict_matrix(op: Op, extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """Returns the cost of one matrix as a native step of its own.

    Args:
        op: the operator with the matrix, its targets and controls.
        extent: how much of the state the step works on.
        num_qubits: number of qubits of the state.
        precision: precision of the state.
        device: a measured device, or one that a test makes up.
    """
    rate = device.rates[precision].dense_flops_per_s
    if not rate:
        in_tile = predict_tile([op], extent, num_qubits, precision, device)
        return replace(in_tile, seconds=in_tile.seconds + packing_seconds(len(op.targets), device))
    share, size = 0.5 ** len(op.controls), amplitude_bytes(precision)
    moved = size * (extent.read + extent.worked) * share
    flops = 8 * extent.worked * share * (1 << len(op.targets))
    memory = moved / device.memory.bandwidth_bytes_per_s + touch_seconds(extent.fresh_bytes, device)
    seconds = overlapped_seconds(memory, flops / rate, device.dense_overlap) + device.launch_seconds
    if precision == "double" and _measured_size(len(op.targets), device) <= len(op.targets):
        seconds = _measured_seconds(len(op.targets), 0, extent.worked * share, device)
    bound = "arithmetic" if flops / rate > memory else "memory"
    return Prediction(seconds, moved, flops, moved / (2 * size * 2.0**num_qubits), bound)


def predict_emulated(
    op: Op, num_moduli: int, worked: float, num_qubits: int, precision: str, device: Device
) -> Prediction:
    """Returns the cost of one matrix by INT8 products: two real products per modulus, and residues of every amplitude.

    If the device has measured times of such blocks, the prediction follows them. Otherwise the model reads and writes
    the state once, and for every modulus it writes and reads two bytes of each operand. The times of memory and of the
    products add up, because they belong to different kernels. Columns too long to be held whole are read twice and pass
    through memory once more; the model leaves that out, because it takes a small share of the products' time. A device
    without a measured INT8 rate is assumed to do INT8 operations as fast as FP64 operations.

    Args:
        op: the operator with the matrix, its targets and controls.
        num_moduli: number of moduli of the product.
        worked: number of amplitudes in columns that hold more than zeros.
        num_qubits: number of qubits of the state.
        precision: precision of the state.
        device: a measured device, or one that a test makes up.
    """
    amps, size = worked * 0.5 ** len(op.controls), 1 << len(op.targets)
    arithmetic = (
        num_moduli * (4 * size + CONVERSION_OPS) * amps / (device.int8_ops_per_s or device.rates["double"].flops_per_s)
    )
    moved = (2 * amplitude_bytes(precision) + 8 * num_moduli) * amps
    memory = moved / device.memory.bandwidth_bytes_per_s
    passes = moved / (2 * state_bytes(num_qubits, precision))
    bound = "INT8" if arithmetic > memory else "memory"
    seconds = memory + arithmetic + device.launch_seconds
    if device.dense_times:
        seconds = _measured_seconds(len(op.targets), num_moduli, amps, device)
    return Prediction(seconds, moved, 8 * size * amps, passes, bound)


def _measured_size(num_targets: int, device: Device) -> float:
    """Returns the qubits of the largest measured matrix on at most ``num_targets`` qubits, else of the smallest one.

    Without measured matrices it returns infinity.
    """
    sizes = {row.matrix_qubits for row in device.dense_times}
    return max((size for size in sizes if size <= num_targets), default=min(sizes, default=math.inf))


def _measured_seconds(num_targets: int, num_moduli: int, amps: float, device: Device) -> float:
    """Returns the time of a dense block by the measured times of the matrix size that `_measured_size` chooses.

    A larger matrix needs more products: they are added at the full rate. The time is linear in the amplitudes and in
    the moduli between the measured points and beyond them. It never falls below the least measured time, because
    launches and the host bound it for few amplitudes.
    """
    size, seconds = int(_measured_size(num_targets, device)), {}
    rows = [row for row in device.dense_times if row.matrix_qubits == size and (row.num_moduli > 0) == (num_moduli > 0)]
    for moduli in sorted({row.num_moduli for row in rows}):
        points = [(2.0**row.state_qubits, row.seconds) for row in rows if row.num_moduli == moduli]
        seconds[moduli] = max(_line(points, amps), min(point[1] for point in points))
    measured = _line([*seconds.items()], num_moduli) if num_moduli else seconds[0]
    native_rate = device.rates["double"].dense_flops_per_s
    column_seconds = 4 * num_moduli / device.int8_ops_per_s if num_moduli else 8 / native_rate
    return max(measured, 0.0) + column_seconds * max((1 << num_targets) - (1 << size), 0) * amps


def _line(points: Sequence[tuple[float, float]], at: float) -> float:
    """Returns the value at ``at`` of the lines through at least two ascending ``points``."""
    number = min(max(bisect([x for x, _ in points], at), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[number - 1 : number + 1]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def packing_seconds(num_targets: int, device: Device) -> float:
    """Returns the seconds to pack a matrix in the order of the kernels: one thread writes it to new memory."""
    return PACKING_SLOWDOWN * amplitude_bytes("double") * 4.0**num_targets / device.memory.bandwidth_bytes_per_s
