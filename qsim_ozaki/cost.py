"""The device record and the cost model: predicted bytes, operations and seconds of a step.

In: a `Device` and a step's ops. Out: a `Prediction`. It measures nothing and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Op, Prediction


@dataclass(frozen=True, slots=True)
class Device:
    """Measured abilities of the hardware behind an engine; tests make one up.

    Attributes:
        name: the hardware, as its vendor calls it.
        memory_bytes: bytes a state may use.
        bandwidth_bytes_per_s: read plus write rate of an in-place pass over a large state.
        fp64_flops_per_s: multiply and add each counted, complex128 kernels.
        fp32_flops_per_s: the same for complex64 kernels.
        int8_ops_per_s: INT8 product operations, 0 where there is no such unit.
        cache_bandwidth_bytes_per_s: read plus write rate of a sweep over a cache-resident tile.
        launch_seconds: fixed cost of one step.
        tile_qubits: qubits of the largest tile that stays in the fast memory, complex128.
        line_qubits: lowest qubits that make one memory transaction, complex128; always in a tile.
        overlap: share of memory time that hides behind arithmetic: 0 where a core gathers, computes and scatters in
            turn, 1 where other blocks compute meanwhile.
        fill_bytes_per_s: rate at which a product state is written into memory never touched before, page faults
            included; 0: as ``bandwidth_bytes_per_s``.
    """

    name: str
    memory_bytes: int
    bandwidth_bytes_per_s: float
    fp64_flops_per_s: float
    fp32_flops_per_s: float
    int8_ops_per_s: float
    cache_bandwidth_bytes_per_s: float
    launch_seconds: float
    tile_qubits: int = 13
    line_qubits: int = 2
    overlap: float = 0.0
    fill_bytes_per_s: float = 0.0

    def tile_for(self, precision: str) -> int:
        """Qubits of a tile in ``precision``: the same bytes hold one more qubit in single."""
        return self.tile_qubits + (precision == "single")

    def line_for(self, precision: str) -> int:
        """Lowest qubits of one memory transaction in ``precision``."""
        return self.line_qubits + (precision == "single")


def amplitude_bytes(precision: str) -> int:
    """Bytes of one amplitude: 16 for ``"double"``, 8 for ``"single"``."""
    return 8 if precision == "single" else 16


def state_bytes(num_qubits: int, precision: str) -> int:
    """Bytes of a state."""
    return amplitude_bytes(precision) << num_qubits


@dataclass(frozen=True, slots=True)
class Work:
    """What ops cost per amplitude inside a tile: sweeps of all kinds, and those of them that are phases."""

    flops: float
    sweeps: float
    phase_layers: int


def tile_work(ops: Iterable[Op]) -> Work:
    """What ``ops`` cost per amplitude inside a tile.

    Rotations go three to a sweep, diagonals all to one sweep per layer, a matrix costs 8 flops per entry of a row.
    """
    return Work(*OpList.of(ops).native.work())


def predict_tile(ops: Iterable[Op], num_qubits: int, precision: str, device: Device) -> Prediction:
    """What one tile pass with ``ops`` costs."""
    amps = 2.0**num_qubits
    moved = 2 * amplitude_bytes(precision)
    work = tile_work(ops)
    rate = device.fp32_flops_per_s if precision == "single" else device.fp64_flops_per_s
    arithmetic, cache = work.flops * amps / rate, work.sweeps * amps * moved / device.cache_bandwidth_bytes_per_s
    return combine(moved * amps, work.flops * amps, arithmetic, cache, device, state_bytes(num_qubits, precision))


def predict_prepare(num_qubits: int, precision: str, device: Device) -> Prediction:
    """What writing a product state costs: half a pass, at the rate of memory's first touch."""
    size = state_bytes(num_qubits, precision)
    seconds = size / (device.fill_bytes_per_s or device.bandwidth_bytes_per_s) + device.launch_seconds
    return Prediction(seconds, size, 6 * 2.0**num_qubits, 0.5, "memory")


def combine(
    moved_bytes: float, flops: float, arithmetic: float, cache: float, device: Device, size: float
) -> Prediction:
    """A prediction from memory, arithmetic and cache seconds; the largest part names the bound."""
    memory = moved_bytes / device.bandwidth_bytes_per_s
    inside = max(arithmetic, cache)
    seconds = max(memory, inside) + (1 - device.overlap) * min(memory, inside) + device.launch_seconds
    parts = {"memory": memory, "arithmetic": arithmetic, "cache": cache, "launch": device.launch_seconds}
    return Prediction(seconds, moved_bytes, flops, moved_bytes / (2 * size), max(parts, key=lambda name: parts[name]))


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
