"""The device record: measured rates and abilities of the hardware behind an engine, and sizes of states.

In: measured numbers, or numbers that a test makes up. Out: a `Device`. It may not measure or predict anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PAGE_BYTES = 1 << 21  # an operating system hands out the memory of a large state in pages of this size
MEASURED_HERE = "measured here"  # source of the rates of a `Device` that an engine measured on this machine


@dataclass(frozen=True, slots=True)
class MemoryRates:
    """Rates of memory.

    Attributes:
        bandwidth_bytes_per_s: bytes that an in-place pass over a large state reads plus writes in a second.
        cache_bandwidth_bytes_per_s: bytes that a sweep over a tile in the cache reads plus writes in a second.
        fill_bytes_per_s: bytes of a product state that are written in a second; 0 means ``bandwidth_bytes_per_s``.
        first_touch_bytes_per_s: bytes of new memory that are handed out or zeroed in a second; 0 means that this
            takes no time.
    """

    bandwidth_bytes_per_s: float
    cache_bandwidth_bytes_per_s: float
    fill_bytes_per_s: float = 0.0
    first_touch_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of arithmetic in one precision.

    Attributes:
        flops_per_s: additions and multiplications that gate kernels do in a second.
        gate_updates_per_s: one- and two-qubit gates, times the amplitudes they change, that tile passes apply in a
            second, phases and exchanges included; 0: the cost model times a tile pass by its flops and its sweeps
            over the cache.
        dense_flops_per_s: additions and multiplications that a `DenseBlock` does in a second; 0: the cost model times
            the block as a tile pass.
    """

    flops_per_s: float
    gate_updates_per_s: float = 0.0
    dense_flops_per_s: float = 0.0


class DenseTime(NamedTuple):
    """The measured time of one `DenseBlock` in double precision.

    Attributes:
        matrix_qubits: number of qubits of the matrix.
        num_moduli: number of moduli of the emulated product; 0 for a native product.
        state_qubits: number of qubits of the state.
        seconds: time of the whole block.
    """

    matrix_qubits: int
    num_moduli: int
    state_qubits: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of an engine's passes.

    Attributes:
        splits_two_qubit_gates: dense two-qubit gates run faster as rotations and a canonical gate.
        moves_qubits: a tile pass can store the qubits of its tile in another order.
        skips_zeros: a tile pass reads no amplitude that is known to be 0, so a new state need not be zeroed.
        rotates_paulis: a tile pass can apply `Kind.PAULI`.
    """

    splits_two_qubit_gates: bool = False
    moves_qubits: bool = False
    skips_zeros: bool = False
    rotates_paulis: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """The hardware behind an engine: a measured record, or one that a test makes up.

    Attributes:
        name: the vendor's name of the hardware.
        memory_bytes: bytes that a state may take.
        memory: rates of memory.
        rates: rates of arithmetic for ``"double"`` and for ``"single"``.
        int8_ops_per_s: INT8 operations that matrix products do in a second; 0: the hardware has no unit for them.
        launch_seconds: fixed time of one step.
        tile_qubits: number of qubits of the largest complex128 tile that stays in the fast memory.
        line_qubits: number of lowest qubits that belong to every tile, because their complex128 amplitudes form one
            memory transaction.
        tile_overlap: share of a tile pass's memory time that overlaps with its arithmetic; 0: none, 1: all of it.
        min_gate_seconds: least time of one gate on a state of fewer than ``min_compiled_qubits`` qubits.
        min_compiled_qubits: number of qubits of the narrowest state whose passes run kernels compiled for them.
        dense_overlap: share of a `DenseBlock`'s memory time that overlaps with its arithmetic.
        dense_times: measured times of dense blocks in ascending order, with at least two states for each matrix size
            and number of moduli, and at least two numbers of moduli other than 0; empty: the cost model times dense
            blocks by ``rates``.
        abilities: abilities of the engine's passes.
        source: where the rates come from, for people.
    """

    name: str
    memory_bytes: int
    memory: MemoryRates
    rates: Mapping[str, Rates] = field(hash=False)  # a dict has no hash; equal records still have equal hashes
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
    source: str = MEASURED_HERE

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Device:
        """Returns the device from which `dataclasses.asdict` made ``record``; JSON may have carried it since."""
        parts: dict[str, Any] = {
            "memory": MemoryRates(**record["memory"]),
            "rates": {precision: Rates(**rates) for precision, rates in record["rates"].items()},
            "dense_times": tuple(DenseTime(*row) for row in record.get("dense_times", ())),
            "abilities": Abilities(**record.get("abilities", {})),
        }
        return cls(**{**record, **parts})

    def tile_for(self, precision: str) -> int:
        """Returns the number of qubits of a tile in ``precision``: the same bytes hold one more qubit in single."""
        return self.tile_qubits + (precision == "single")

    def line_for(self, precision: str) -> int:
        """Returns the number of lowest qubits that one memory transaction covers in ``precision``."""
        return self.line_qubits + (precision == "single")


def amplitude_bytes(precision: str) -> int:
    """Returns the bytes of one amplitude: 16 for ``"double"``, 8 for ``"single"``."""
    return 8 if precision == "single" else 16


def state_bytes(num_qubits: int, precision: str) -> int:
    """Returns the bytes of a state of ``num_qubits`` qubits."""
    return amplitude_bytes(precision) << num_qubits


def max_qubits(memory_bytes: int, precision: str) -> int:
    """Returns the number of qubits of the widest state that fits in ``memory_bytes``."""
    return max(0, (memory_bytes // amplitude_bytes(precision)).bit_length() - 1)
