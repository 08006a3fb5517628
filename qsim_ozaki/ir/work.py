"""The work of operators per amplitude: floating-point operations, sweeps over a tile, gate updates.

In: the operators of a tile pass. Out: a `Work`. It may not know a device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.ir.op_list import OpList
from qsim_ozaki.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a list of operators per amplitude, inside a tile.

    Attributes:
        flops: number of additions and multiplications.
        sweeps: number of sweeps over the tile.
        phase_layers: number of sweeps that only multiply by phases.
        gate_updates: number of non-diagonal gates on one or two qubits, weighted by the share of the amplitudes that
            the gate changes; a dense matrix on two qubits counts twice, a parity of many qubits once.
        wide_matrices: number of matrices on three or more qubits.
        wide_flops: number of additions and multiplications of these matrices.
    """

    flops: float
    sweeps: float
    phase_layers: int
    gate_updates: float
    wide_matrices: int
    wide_flops: float


def tile_work(ops: Iterable[Op]) -> Work:
    """Returns the work of ``ops`` per amplitude, inside a tile.

    One sweep does three rotations or all diagonals of a layer; a matrix costs 8 flops per entry of a row.
    """
    return Work(*OpList.of(ops).native.work())
