"""Turns a tile pass into straight-line CUDA kernels: checks it, cuts it, and packs the arguments of the launches.

In: a tile's qubits, ops, the state's width and precision. Out: `StraightProgram` objects. It may not use a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.codegen.program import NotStraightError, StraightProgram
from qsim_ozaki.engines.cuda.codegen.writer import SourceWriter
from qsim_ozaki.engines.cuda.device.records import RUNS, runs_record
from qsim_ozaki.engines.cuda.device.shapes import GENERATED, SHAPES
from qsim_ozaki.engines.cuda.tile.items import Item, lower
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock
from qsim_ozaki.engines.cuda.tile.schedule import Style, TileFrame, cut, schedule
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.engines.cuda.tuning import BRIEF_QUBITS, MAX_INSTRUCTIONS
from qsim_ozaki.ir import Op, mask_of

# Bytes of shared memory per block, by architecture: two blocks share 164 or 228 KiB, one block has 100 KiB; the system
# takes 1 KiB per block.
ROOM = {80: 82944, 86: 101376, 89: 101376, 90: 115712, 100: 115712, 120: 101376}
STATIC_BYTES = 128  # static variables of the kernel's frame, rounded up to a line
# item kinds that the writer has statements for, matrices and flips on one or two qubits
KINDS = ("hadamard", "rotate", "flip", "matrix", "parity")


def straight(
    tile: Tile, ops: Sequence[Op], num_qubits: int, precision: str, pairs: bool = False
) -> list[StraightProgram]:
    """Returns a tile pass as straight-line kernels: one kernel if the pass is short enough, else several.

    A tile smaller than the kernel's is filled up with the lowest other qubits.

    Args:
        tile: the tile of the step.
        ops: the operators, in order; the qubits that they mix are inside the tile.
        num_qubits: width of the state, at least a tile and its register qubits' lines.
        precision: ``"double"`` or ``"single"``.
        pairs: whether tensor cores multiply by matrices on two qubits; `has_pairs` gives the choice of an architecture.

    Raises:
        NotStraightError: an operator needs the interpreter, or the arguments do not fit a launch.
    """
    shape = GENERATED[precision]
    tile = tile.filled(min(shape.tile_qubits, num_qubits), num_qubits)
    items = lower(ops, SHAPES[precision].register_qubits)
    for item in items:
        if item.kind != "terms" and (item.kind not in KINDS or len(item.qubits) > 2):
            raise NotStraightError(item.kind)
    programs = _write_programs(items, tile, num_qubits, precision, pairs)
    if pairs and precision == "single" and any(program.table_bytes for program in programs):
        # Tables in shared memory and pairs together would not fit a thread's registers.
        return _write_programs(items, tile, num_qubits, precision, False)
    return programs


def _write_programs(
    items: Sequence[Item], tile: Tile, num_qubits: int, precision: str, pairs: bool
) -> list[StraightProgram]:
    """Schedules the items, cuts the stages into passes and writes each pass."""
    shape = GENERATED[precision]
    frame = TileFrame(tile.qubits, shape.register_qubits, shape.line_qubits, tile.swaps)
    brief = num_qubits - len(tile.zero_qubits) <= BRIEF_QUBITS
    stages = schedule(items, frame, Style(straight=True, pairs=pairs, brief=brief, precision=precision))
    sizes = [_instructions(stage, shape.register_qubits) for stage in stages]
    parts = cut(stages, sizes, MAX_INSTRUCTIONS[precision], frame)
    last = len(parts) - 1
    tiles = (
        replace(tile, swaps=tile.swaps if i == last else (), fresh_qubits=() if i else tile.fresh_qubits)
        for i in range(len(parts))
    )
    return [
        SourceWriter(part_tile, num_qubits, shape).write(part) for part_tile, part in zip(tiles, parts, strict=True)
    ]


def _instructions(stage: Stage, register_qubits: int) -> int:
    """Estimates the number of instructions of a stage and of the exchange after it."""
    amps = 1 << register_qubits
    count = 3 * amps
    for work in stage.work:
        if isinstance(work, PhaseTerms):
            inside = mask_of(stage.registers)
            parts = {key & inside for key in work.terms if key & ~inside}
            count += 5 * amps + sum(4 * amps >> part.bit_count() for part in parts)
        elif isinstance(work, PairBlock):
            count += amps + 4
        else:
            of_amp = {"matrix": 4 << len(work.qubits), "flip": 2, "rotate": 2, "hadamard": 2, "parity": 3}
            count += of_amp[work.kind] * amps
    return count


def has_pairs(architecture: int) -> bool:
    """Returns whether matrices on pairs should go to tensor cores on this architecture.

    On 9.0, tensor cores do m16n8k8 products of FP64 at twice the rate of other arithmetic, and of TF32 at far more.
    """
    return architecture == 90


def arguments(program: StraightProgram, precision: str) -> NDArray[Any]:
    """Returns the kernel's ``Args`` struct as an array of one record."""
    k = GENERATED[precision].register_qubits
    kind = np.dtype(
        [
            ("num_tiles", "u8"),
            ("stride_in", "u8", k),
            ("stride_out", "u8", k),
            ("mask", "u8", max(len(program.masks), 1)),
            ("scale", "f8"),
            ("runs", RUNS),
            ("value", "f8" if precision == "double" else "f4", max(len(program.values), 1)),
        ],
        align=True,
    )
    out = np.zeros(1, kind)
    out["num_tiles"], out["scale"] = program.num_tiles, program.scale
    out["stride_in"] = np.array(program.stride_in, np.uint64) * np.uint64(GENERATED[precision].amp_bytes)
    out["stride_out"] = np.array(program.stride_out, np.uint64) * np.uint64(GENERATED[precision].amp_bytes)
    out["mask"][0, : len(program.masks)] = program.masks
    out["value"][0, : len(program.values)] = program.values
    out["runs"] = runs_record([*program.tile, *program.zero_qubits])
    return out


def instance(architecture: int, precision: str) -> dict[str, str]:
    """Returns the macros of a generated kernel for one architecture."""
    real = "double" if precision == "double" else "float"
    registers = str(GENERATED[precision].register_qubits)
    room = str(ROOM[architecture] - STATIC_BYTES)
    return {"REAL": real, "REGISTERS": registers, "ROOM": room, "BLOCKS": str(blocks(architecture))}


def blocks(architecture: int) -> int:
    """Returns the number of blocks that share a processor's shared memory."""
    return 1 if ROOM[architecture] == ROOM[86] else 2


def shared_bytes(program: StraightProgram, room: int, precision: str) -> int:
    """Returns the bytes of dynamic shared memory of a block.

    A block holds a tile, the part of the next tile that is fetched early, two sets of tile phases, and tables.
    """
    shape = GENERATED[precision]
    column, amps = shape.column_bytes(len(program.tile)), 1 << shape.register_qubits
    needed = amps * column + 2 * program.tile_phases * shape.amp_bytes + program.table_bytes
    return needed + min((room - needed) // column, amps) * column
