"""A step's ops as a tile program of the C++ extension.

In: ops on physical qubits and the tile they run in. Out: a `_cpu.TileProgram`. It runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import qsim_ozaki._cpu as _cpu
from qsim_ozaki.ops import Kind, Op

KINDS = {Kind.DIAGONAL: 0, Kind.PERMUTATION: 1, Kind.HADAMARD: 2, Kind.UNITARY: 3}


def tile_program(
    num_qubits: int, qubits: Iterable[int], precision: str, ops: Iterable[Op], zero_qubits: Iterable[int] = ()
) -> _cpu.TileProgram:
    """``ops`` as a program of the extension that runs inside tiles over ``qubits``."""
    program = _cpu.TileProgram(num_qubits, list(qubits), list(zero_qubits), precision == "single")
    for op in ops:
        data = np.ascontiguousarray(op.data).reshape(-1)
        program.add(KINDS[op.kind], op.targets, op.controls, op.ctrl_state, data, op.permutation)
    return program
