"""The device record and the cost model: predicted bytes, operations and seconds of a step.

In: a `Device` and a step. Out: a `Prediction`. It measures nothing and chooses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


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
