"""The record of a straight-line tile kernel and of the arguments of its launch; `SourceWriter` fills it.

In: nothing. Out: the record `StraightProgram`. It may not depend on an operator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


class NotStraightError(Exception):
    """The pass has an operator that only the interpreter can do, or more constants or phases than a launch allows."""


@dataclass(frozen=True, slots=True, eq=False)
class StraightProgram:
    """Source and arguments of one launch of a generated kernel.

    Attributes:
        source: CUDA source; equal for passes of equal structure. The structure includes which tables are equal.
        tables: uint64 words, uploaded once.
        stride_in: strides of the register qubits at the load, in amplitudes.
        stride_out: strides of the register qubits at the store, in amplitudes.
        masks: uint64 masks over the bits of the tile's number.
        values: real constants, in the order of their use.
        num_tiles: number of tiles of the state.
        tile: the tile's qubits, ascending.
        zero_qubits: qubits outside the tile that are |0>.
        scale: factor applied at the store.
        tile_phases: number of phases that are computed once per tile.
        table_bytes: bytes of the tables in shared memory.
    """

    source: str
    tables: NDArray[np.uint64]
    stride_in: tuple[int, ...]
    stride_out: tuple[int, ...]
    masks: tuple[int, ...]
    values: tuple[float, ...]
    num_tiles: int
    tile: tuple[int, ...]
    zero_qubits: tuple[int, ...]
    scale: float
    tile_phases: int
    table_bytes: int
