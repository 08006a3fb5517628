"""H on 7 qubits at a time by TF32 tensor cores, for an experiment: tables and launches of `hadamard_tf32`.

In: complex64 amplitudes on a GPU, groups of targets. Out: the same, transformed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import RUNS, runs_record, sums
from qsim_ozaki.ir import mask_of

ROWS, COLUMN_BITS, STRIDE = 7, 5, 72  # kRows and kColumns as bits; kStride
THREADS = 256
SHARED_BYTES = 4 * STRIDE << ROWS
BLOCKS_PER_PROCESSOR = 2
TILES = np.dtype([("num_tiles", "u8"), ("mask", "i4"), ("scale", "f4"), ("runs", RUNS)], align=True)


def tables(targets: Sequence[int], num_qubits: int) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Places and the `HadamardTiles` of H on at most 7 ``targets`` of ``num_qubits`` qubits, at least 12."""
    assert len(targets) <= ROWS, f"{len(targets)} targets were given; the kernel has {ROWS}"
    spare = [q for q in range(num_qubits) if q not in targets]
    rows = sorted([*targets, *spare[: ROWS - len(targets)]])
    columns = [q for q in range(num_qubits) if q not in rows][:COLUMN_BITS]
    steps = [
        (1 << q, (1 << rows.index(q)) * STRIDE if q in rows else 2 << columns.index(q)) for q in sorted(rows + columns)
    ]
    record = np.zeros(1, TILES)
    record["num_tiles"], record["runs"] = 1 << (num_qubits - ROWS - COLUMN_BITS), runs_record([*rows, *columns])
    record["mask"], record["scale"] = mask_of(rows.index(q) for q in targets), 2.0 ** (-len(targets) / 2)
    return np.concatenate([sums(steps[:8]).reshape(-1), sums(steps[8:]).reshape(-1)]), record


def apply(launcher: Launcher, amps: Any, parts: Sequence[Sequence[int]]) -> None:
    """H on every qubit of ``parts``.

    Args:
        launcher: of the GPU.
        amps: complex64 ``(2**n,)``, n at least 12.
        parts: groups of at most 7 targets.
    """
    num_qubits = int(amps.size).bit_length() - 1
    for targets in parts:
        places, record = tables(targets, num_qubits)
        args = (amps, launcher.cupy.asarray(places), record)
        blocks = min(int(record["num_tiles"][0]), BLOCKS_PER_PROCESSOR * launcher.num_processors)
        launcher.launch("hadamard_tf32", {}, blocks, THREADS, args, SHARED_BYTES)
