"""The cost of matrices on several qubits as steps of their own, natively and by emulation.

In: a matrix or a pass's ops, a `Device`. Out: a `Prediction`. It measures nothing and chooses nothing.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

from qsim_ozaki.ir import Device, Kind, Op, OpList, Prediction, amplitude_bytes, state_bytes, tile_work
from qsim_ozaki.planner.cost import beside, predict_tile, total, touch_seconds
from qsim_ozaki.planner.footprint import Extent

PACKING_SLOWDOWN = 8  # of one thread that writes to new memory, against all in place (EPYC 9004, 2 cores, 2026-11)
# INT8 operations in the time that residues and CRT of one amplitude and modulus take beyond memory's
CONVERSION_OPS = 600


def predict_pass(ops: OpList, extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """The cost of one tile pass with ``ops``; on a GPU matrices on more than two qubits are passes of their own.

    Args:
        ops: in order.
        extent: how much of the state it works on.
        num_qubits: width of the state.
        precision: of the state.
        device: measured or made up.
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
    """The cost of one matrix as a step of its own, natively.

    Args:
        op: the matrix, its targets and controls.
        extent: how much of the state the step works on.
        num_qubits: width of the state.
        precision: of the state.
        device: measured or made up.
    """
    rate = device.rates[precision].dense_flops_per_s
    if not rate:
        in_tile = predict_tile([op], extent, num_qubits, precision, device)
        return replace(in_tile, seconds=in_tile.seconds + packing_seconds(len(op.targets), device))
    share, size = 0.5 ** len(op.controls), amplitude_bytes(precision)
    moved = size * (extent.read + extent.worked) * share
    flops = 8 * extent.worked * share * (1 << len(op.targets))
    memory = moved / device.memory.bandwidth_bytes_per_s + touch_seconds(extent.fresh_bytes, device)
    seconds = beside(memory, flops / rate, device.dense_overlap) + device.launch_seconds
    if precision == "double" and _measured_size(len(op.targets), device) <= len(op.targets):
        seconds = _measured_seconds(len(op.targets), 0, extent.worked * share, device)
    bound = "arithmetic" if flops / rate > memory else "memory"
    return Prediction(seconds, moved, flops, moved / (2 * size * 2.0**num_qubits), bound)


def predict_emulated(
    op: Op, num_moduli: int, worked: float, num_qubits: int, precision: str, device: Device
) -> Prediction:
    """The cost of one matrix by INT8 products: two real products per modulus, and residues of every amplitude.

    Where the device has measured times of such blocks, from these. Elsewhere memory sees the state read and written
    once, and per modulus two bytes of each operand written and read. Its time and the products' add up: they are
    kernels of their own. Columns too long to be held whole are read twice and pass through memory once more, for a
    small share of their products' time: that is left out. A device without a measured INT8 rate is taken to do INT8
    operations as fast as FP64 ones.

    Args:
        op: the matrix, its targets and controls.
        num_moduli: of the scheme.
        worked: amplitudes of columns that hold more than zeros.
        num_qubits: width of the state.
        precision: of the state.
        device: measured or made up.
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
    """The largest measured matrix that is not larger, else the least that there is."""
    sizes = {row.matrix_qubits for row in device.dense_times}
    return max((size for size in sizes if size <= num_targets), default=min(sizes, default=math.inf))


def _measured_seconds(num_targets: int, num_moduli: int, amps: float, device: Device) -> float:
    """From the times of the largest measured matrix that is not larger, and products at the full rate for the rest.

    In amplitudes and in moduli linear between what was measured and beyond it; fewer amplitudes take no less time, for
    launches and the host bound it.
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
    """The value at ``at`` of lines through ascending ``points``, at least two."""
    number = min(max(bisect([x for x, _ in points], at), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[number - 1 : number + 1]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def packing_seconds(num_targets: int, device: Device) -> float:
    """Seconds of bringing a matrix into the kernels' order: one thread writes it to new memory."""
    return PACKING_SLOWDOWN * amplitude_bytes("double") * 4.0**num_targets / device.memory.bandwidth_bytes_per_s
