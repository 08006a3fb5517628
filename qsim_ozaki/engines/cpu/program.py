"""A step's ops as a tile program of the C++ extension.

In: ops on physical qubits and the tile they run in. Out: a `_native.TileProgram`. It runs nothing.
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
    """``ops`` as a program of the extension that runs inside tiles over ``qubits``.

    Args:
        num_qubits: width of the state.
        qubits: of the tile, in any order.
        precision: of the state.
        ops: in order.
        fixed: qubits outside the tile that are |0>, and those that are |1>: what holds only zeros is left alone.
    """
    zeros, ones = fixed
    program = _native.TileProgram(num_qubits, list(qubits), list(zeros), list(ones), precision == "single")
    program.add(OpList.of(ops).native)
    return program
