"""A tile pass as straight-line CUDA kernels: when it can be one, how it is cut, the arguments of its launch.

In: a tile's qubits, ops, the state's width and precision. Out: `StraightProgram`s. It needs no GPU.
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

# Bytes of shared memory for each block: two blocks in 164 or 228 KiB, one in 100 KiB; the system takes 1 KiB a block.
ROOM = {80: 82944, 86: 101376, 89: 101376, 90: 115712, 100: 115712, 120: 101376}
STATIC_BYTES = 128  # of the frame's own variables, to the next line
KINDS = ("hadamard", "rotate", "flip", "matrix")  # on one or two qubits


def straight(
    tile: Tile, ops: Sequence[Op], num_qubits: int, precision: str, pairs: bool = False
) -> list[StraightProgram]:
    """A tile pass as straight-line kernels, one where it fits; a smaller tile is filled up with the lowest others.

    Args:
        tile: the step's.
        ops: in order, mixed qubits inside the tile.
        num_qubits: width of the state, at least a tile and its register qubits' lines.
        precision: ``"double"`` or ``"single"``.
        pairs: whether matrices on two qubits go to tensor cores, as `has_pairs` tells.

    Raises:
        NotStraightError: an operator needs the interpreter, or the arguments do not fit a launch.
    """
    shape = GENERATED[precision]
    tile = tile.filled(min(shape.tile_qubits, num_qubits), num_qubits)
    items = lower(ops, SHAPES[precision].register_qubits)
    for item in items:
        if item.kind != "terms" and (item.kind not in KINDS or len(item.qubits) > 2):
            raise NotStraightError(item.kind)
    programs = _written(items, tile, num_qubits, precision, pairs)
    if pairs and precision == "single" and any(program.table_bytes for program in programs):
        return _written(items, tile, num_qubits, precision, False)  # both at once would not fit a thread's registers
    return programs


def _written(items: Sequence[Item], tile: Tile, num_qubits: int, precision: str, pairs: bool) -> list[StraightProgram]:
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
    """About how many instructions a stage and the exchange after it take."""
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
            count += {"matrix": 4 << len(work.qubits), "flip": 2, "rotate": 2, "hadamard": 2}[work.kind] * amps
    return count


def has_pairs(architecture: int) -> bool:
    """Whether tensor cores do m16n8k8 products of FP64 at twice the rate of other arithmetic, of TF32 at far more."""
    return architecture == 90


def arguments(program: StraightProgram, precision: str) -> NDArray[Any]:
    """The kernel's ``Args`` struct, as an array of one record."""
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
    """Macros of a generated kernel on one architecture."""
    real = "double" if precision == "double" else "float"
    registers = str(GENERATED[precision].register_qubits)
    room = str(ROOM[architecture] - STATIC_BYTES)
    return {"REAL": real, "REGISTERS": registers, "ROOM": room, "BLOCKS": str(blocks(architecture))}


def blocks(architecture: int) -> int:
    """Blocks that share a processor's memory."""
    return 1 if ROOM[architecture] == ROOM[86] else 2


def shared_bytes(program: StraightProgram, room: int, precision: str) -> int:
    """Dynamic shared memory of a block: a tile, the early part of the next one, tile phases twice, tables."""
    shape = GENERATED[precision]
    column, amps = shape.column_bytes(len(program.tile)), 1 << shape.register_qubits
    needed = amps * column + 2 * program.tile_phases * shape.amp_bytes + program.table_bytes
    return needed + min((room - needed) // column, amps) * column
