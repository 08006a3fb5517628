"""A straight-line tile kernel and the arguments of its launch, as `SourceWriter` makes them of a pass.

In: nothing. Out: the record `StraightProgram`. It knows no operator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


class NotStraightError(Exception):
    """The pass has an operator that only the interpreter knows, or more constants or phases than a launch takes."""


@dataclass(frozen=True, slots=True, eq=False)
class StraightProgram:
    """Source and arguments of one launch of a generated kernel.

    Attributes:
        source: CUDA source; equal for passes of equal structure, which tables are equal included.
        tables: uint64 words, uploaded once.
        stride_in: strides of the register qubits at the load.
        stride_out: the same at the store.
        masks: uint64 masks over the tile's own bits.
        values: real constants, in the order of their use.
        num_tiles: tiles of the state.
        tile: the tile's qubits, ascending.
        zero_qubits: qubits outside the tile that are |0>.
        scale: factor applied at the store.
        tile_phases: phases computed once a tile.
        table_bytes: of tables that lie in shared memory.
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
