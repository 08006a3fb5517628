"""The operators of a step as a tile program of the C++ extension.

In: operators on physical qubits, and their tile. Out: a `_native.TileProgram`. It may not run the program.
"""

from __future__ import annotations

from collections.abc import Iterable

import qsim_ozaki._native as _native
from qsim_ozaki.ir import Op, OpList


def tile_program(
    num_qubits: int,
    qubits: Iterable[int],
    precision: str,
    ops: Iterable[Op],
    fixed: tuple[Iterable[int], Iterable[int]] = ((), ()),
) -> _native.TileProgram:
    """Returns ``ops`` as a program of the extension that runs inside tiles over ``qubits``.

    Args:
        num_qubits: number of qubits of the state.
        qubits: qubits of the tile, in any order.
        precision: precision of the state.
        ops: operators in order.
        fixed: qubits outside the tile that are |0>, and those that are |1>; tiles that hold only zeros are skipped.
    """
    zeros, ones = fixed
    program = _native.TileProgram(num_qubits, list(qubits), list(zeros), list(ones), precision == "single")
    program.add(OpList.of(ops).native)
    return program
