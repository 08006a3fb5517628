"""The device record: measured rates and abilities of the hardware behind an engine, and sizes of states.

In: measurements, or numbers that a test makes up. Out: a `Device`. It measures nothing and predicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PAGE_BYTES = 1 << 21  # in which an operating system hands out the memory of a large state


@dataclass(frozen=True, slots=True)
class MemoryRates:
    """Rates of memory.

    Attributes:
        bandwidth_bytes_per_s: bytes read plus written in a second by an in-place pass over a large state.
        cache_bandwidth_bytes_per_s: bytes read plus written in a second by a sweep over a tile in the cache.
        fill_bytes_per_s: bytes of a product state written in a second; 0: as ``bandwidth_bytes_per_s``.
        first_touch_bytes_per_s: bytes of new memory handed out or zeroed in a second; 0: that takes no time.
    """

    bandwidth_bytes_per_s: float
    cache_bandwidth_bytes_per_s: float
    fill_bytes_per_s: float = 0.0
    first_touch_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of arithmetic in one precision.

    Attributes:
        flops_per_s: additions and multiplications of gate kernels in a second.
        gate_updates_per_s: amplitudes times one- and two-qubit gates that tile passes do in a second, phases and
            exchanges included; 0: a tile pass is timed by its flops and its sweeps over the cache.
        dense_flops_per_s: additions and multiplications of a `DenseBlock` in a second; 0: it is timed as a tile pass.
    """

    flops_per_s: float
    gate_updates_per_s: float = 0.0
    dense_flops_per_s: float = 0.0


class DenseTime(NamedTuple):
    """Measured time of one `DenseBlock` in double precision.

    Attributes:
        matrix_qubits: qubits of the matrix.
        num_moduli: moduli of the emulated product; 0: a native product.
        state_qubits: width of the state.
        seconds: of the whole block.
    """

    matrix_qubits: int
    num_moduli: int
    state_qubits: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities of an engine's passes.

    Attributes:
        splits_two_qubit_gates: dense two-qubit gates run faster as rotations and a canonical gate.
        moves_qubits: a tile pass can store the qubits of its tile in another order.
        skips_zeros: a tile pass reads no amplitude that is known to be 0, so that a new state needs no zeros.
    """

    splits_two_qubit_gates: bool = False
    moves_qubits: bool = False
    skips_zeros: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """The hardware behind an engine, as measured, or made up by a test.

    Attributes:
        name: the hardware, as its vendor calls it.
        memory_bytes: bytes that a state may take.
        memory: rates of memory.
        rates: rates of arithmetic for ``"double"`` and for ``"single"``.
        int8_ops_per_s: INT8 operations of matrix products in a second; 0: the hardware has no unit for them.
        launch_seconds: fixed time of one step.
        tile_qubits: width of the largest tile of complex128 that stays in the fast memory.
        line_qubits: the lowest qubits, in every tile, whose complex128 amplitudes make one memory transaction.
        tile_overlap: share of a tile pass's memory time that passes during its arithmetic; 0: none, 1: all of it.
        min_gate_seconds: least time of one gate on a state of fewer than ``min_compiled_qubits``.
        min_compiled_qubits: width of the narrowest state whose passes run kernels compiled for them.
        dense_overlap: share of a `DenseBlock`'s memory time that passes during its arithmetic.
        dense_times: measured times of dense blocks, ascending: at least two states for each matrix and number of
            moduli, and at least two numbers other than 0; empty: dense blocks are timed by ``rates``.
        abilities: of the engine's passes.
    """

    name: str
    memory_bytes: int
    memory: MemoryRates
    rates: Mapping[str, Rates] = field(hash=False)  # equal records have equal hashes without it
    int8_ops_per_s: float
    launch_seconds: float
    tile_qubits: int = 13
    line_qubits: int = 2
    tile_overlap: float = 0.0
    min_gate_seconds: float = 0.0
    min_compiled_qubits: int = 0
    dense_overlap: float = 0.0
    dense_times: tuple[DenseTime, ...] = ()
    abilities: Abilities = Abilities()

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Device:
        """The device of which `dataclasses.asdict` made ``record``, which may have been JSON since."""
        parts: dict[str, Any] = {
            "memory": MemoryRates(**record["memory"]),
            "rates": {precision: Rates(**rates) for precision, rates in record["rates"].items()},
            "dense_times": tuple(DenseTime(*row) for row in record.get("dense_times", ())),
            "abilities": Abilities(**record.get("abilities", {})),
        }
        return cls(**{**record, **parts})

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


def max_qubits(memory_bytes: int, precision: str) -> int:
    """Qubits of the widest state that fits."""
    return max(0, (memory_bytes // amplitude_bytes(precision)).bit_length() - 1)
