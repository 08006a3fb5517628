"""Work of operators per amplitude: floating-point operations, sweeps over a tile, gate updates.

In: the operators of a tile pass. Out: a `Work`. It knows no device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.ir.op_list import OpList
from qsim_ozaki.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Work:
    """Work of ops per amplitude, inside a tile.

    Attributes:
        flops: additions and multiplications of all ops.
        sweeps: sweeps over the tile of all ops.
        phase_layers: sweeps that multiply by phases alone.
        gate_updates: non-diagonal gates on one or two qubits, each by the share of the amplitudes that it changes; a
            dense matrix on two qubits counts twice.
        wide_matrices: matrices on three or more qubits.
        wide_flops: additions and multiplications of these matrices.
    """

    flops: float
    sweeps: float
    phase_layers: int
    gate_updates: float
    wide_matrices: int
    wide_flops: float


def tile_work(ops: Iterable[Op]) -> Work:
    """The work of ``ops`` per amplitude, inside a tile.

    Rotations go three to a sweep, diagonals all to one sweep per layer, a matrix costs 8 flops per entry of a row.
    """
    return Work(*OpList.of(ops).native.work())
