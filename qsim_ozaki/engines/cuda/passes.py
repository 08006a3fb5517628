"""Launches tile passes: by the interpreter at once, and by specialised kernels once their sources are compiled.

In: a tile pass's qubits and ops. Out: a function that launches it on a state. It may only decide when a pass is worth
compiling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qsim_ozaki.cache import LruCache
from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.codegen.compiler import Compiler
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError, StraightProgram
from qsim_ozaki.engines.cuda.device.kernels import INSTANCES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import RUNS, opaque, runs_record
from qsim_ozaki.engines.cuda.device.shapes import GENERATED, SHAPES
from qsim_ozaki.engines.cuda.device.state import CudaState, StateLaunch
from qsim_ozaki.engines.cuda.interpreter import TileProgram, compile_tile
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.engines.cuda.tuning import (
    BLOCKS_PER_PROCESSOR,
    ONCE_QUBITS,
    REPEAT_QUBITS,
    ROW_QUBITS,
    RUNS_BEFORE_COMPILING,
)
from qsim_ozaki.ir import Op, OpList, mask_of

GEOMETRY = np.dtype(
    [
        ("num_tiles", "u8"),
        ("tile_mask", "u8"),
        ("fresh", "u8"),
        ("load_layout", "u4"),
        ("first_op", "u4"),
        ("scale", "f8"),
        ("runs", RUNS),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True, eq=False)
class PassWork:
    """A tile pass, for states of one width and precision.

    Attributes:
        tile: the tile of the step.
        ops: the operators, in order.
        num_qubits: width of the state with its padding.
        precision: ``"double"`` or ``"single"``.
        row: the field of `TilePass` with this name.
    """

    tile: Tile
    ops: Sequence[Op]
    num_qubits: int
    precision: str
    row: bool = False


def tile_launch(launcher: Launcher, compiler: Compiler, work: PassWork) -> StateLaunch:
    """Returns a function that runs one tile pass on a state of its width and precision.

    Args:
        launcher: launches kernels on the GPU.
        compiler: compiles specialised kernels.
        work: the pass; a tile that is larger than the kernels' is cut to the qubits that operators mix.
    """
    if len(work.tile.qubits) > SHAPES[work.precision].tile_qubits:
        tile = work.tile.with_qubits(tuple(sorted({q for op in work.ops for q in op.mixed_qubits})))
        work = PassWork(tile, work.ops, work.num_qubits, work.precision, work.row)
    return _Pass(launcher, compiler, work).run


# Generated sources of the last pass of each structure: a pass with other numbers needs almost the same sources.
LAST_SOURCES: LruCache[list[str]] = LruCache(8 << 20, 2048)  # a pass of a few hundred operators has about 10 KiB


def _last_sources(work: PassWork) -> list[str]:
    """Returns the sources of the last pass of this structure, in a list whose items the next pass replaces."""
    if not isinstance(work.ops, OpList):
        return []
    structure = work.ops.native.structure()
    key = (work.tile, structure, work.num_qubits, work.precision)
    known = LAST_SOURCES.get(key)
    return LAST_SOURCES.add(key, [], len(structure)) if known is None else known


class _Pass:
    """A tile pass on states of one width and precision; it is cached, so it keeps no reference to a state."""

    def __init__(self, launcher: Launcher, compiler: Compiler, work: PassWork) -> None:
        self.launcher, self.compiler, self.work = launcher, compiler, work
        self.specialised_after = _runs_before_compiling(work)
        self.last_sources = _last_sources(work)
        self.runs = 0
        self.parts: list[_Specialised] | None = None
        self.functions: list[Any] = []
        self.interpreted: StateLaunch | None = None

    def run(self, state: CudaState) -> None:
        """Runs the pass on ``state``."""
        if self.parts is None and self._is_worth_compiling():
            self.parts = self._specialised()
            self.last_sources[:] = [part.source for part in self.parts]
        self.runs += 1
        if self.parts and not self.functions:
            functions = [part.function() for part in self.parts]
            self.functions = functions if all(functions) else []
        if self.functions and self.parts:
            for part, function in zip(self.parts, self.functions, strict=True):
                part.launch(function, state)
            return
        if self.interpreted is None:
            self.interpreted = _interpreter(self.launcher, self._program(), self.work.precision)
        self.interpreted(state)

    def _is_worth_compiling(self) -> bool:
        """Returns whether to generate the source now.

        It waits while the sources of a pass of the same structure wait for the compiler: its own would wait as well.
        """
        if self.specialised_after is None or self.runs < self.specialised_after:
            return False
        return all(self.compiler.function(source, self.work.precision) for source in self.last_sources)

    def _program(self) -> TileProgram:
        """Returns the pass as the interpreter's program."""
        return compile_tile(self.work.tile, self.work.ops, self.work.num_qubits, self.work.precision)

    def _specialised(self) -> list[_Specialised]:
        """Returns the pass as specialised kernels, or an empty list if an operator needs the interpreter."""
        work, pairs = self.work, straight.has_pairs(self.launcher.architecture)
        try:
            programs = straight.straight(work.tile, work.ops, work.num_qubits, work.precision, pairs)
        except NotStraightError:
            return []
        return [_Specialised(self.launcher, self.compiler, program, work.precision) for program in programs]


def _runs_before_compiling(work: PassWork) -> int | None:
    """Returns the runs of a pass after which its source is generated; None if a launch costs as much as the pass."""
    if work.num_qubits >= (ROW_QUBITS if work.row else ONCE_QUBITS):
        return 0
    return RUNS_BEFORE_COMPILING if work.num_qubits >= REPEAT_QUBITS else None


class _Specialised:
    """A kernel generated for one pass; its tables are on the device from the first launch on."""

    def __init__(self, launcher: Launcher, compiler: Compiler, program: StraightProgram, precision: str) -> None:
        self.launcher, self.compiler = launcher, compiler
        self.program = program
        self.precision = precision
        self.record = opaque(straight.arguments(program, precision))
        self.tables: Any = None
        self.source = program.source
        self.threads = 1 << (len(program.tile) - GENERATED[precision].register_qubits)
        room = straight.ROOM[launcher.architecture] - straight.STATIC_BYTES
        self.shared_bytes = straight.shared_bytes(program, room, precision)
        self.blocks = min(program.num_tiles, launcher.num_processors * straight.blocks(launcher.architecture))

    def function(self) -> Any | None:
        """Returns the kernel if it is ready, else None."""
        return self.compiler.function(self.source, self.precision)

    def launch(self, function: Any, state: CudaState) -> None:
        """Runs the kernel on ``state``."""
        if self.tables is None:
            self.tables = self.launcher.cupy.asarray(self.program.tables)
        args = (state.amps, self.tables, state.new_tickets(), self.record)
        self.launcher.launch_function(function, self.blocks, self.threads, args, self.shared_bytes)


def _interpreter(launcher: Launcher, program: TileProgram, precision: str) -> StateLaunch:
    """Uploads ``program`` and returns a function by which the interpreter runs it."""
    shape = SHAPES[precision]
    words, tables = _upload(launcher.cupy, program)
    geometry = np.zeros(1, GEOMETRY)
    geometry["num_tiles"], geometry["tile_mask"] = program.num_tiles, mask_of(program.tile)
    geometry["fresh"] = mask_of(program.fresh_qubits)
    geometry["load_layout"], geometry["first_op"] = program.load_layout, program.first_op
    geometry["scale"] = program.scale
    geometry["runs"] = runs_record([*program.tile, *program.zero_qubits])
    size = len(program.tile)
    threads, shared = 1 << (size - shape.register_qubits), shape.amp_bytes << size
    blocks = min(program.num_tiles, launcher.num_processors * BLOCKS_PER_PROCESSOR)
    function, record = launcher.function("tile_exec", INSTANCES[precision]), opaque(geometry)

    def run(state: CudaState, _keep: Any = tables) -> None:
        launcher.launch_function(function, blocks, threads, (state.amps, words, record), shared)

    return run


def _upload(cupy: Any, program: TileProgram) -> tuple[Any, list[Any]]:
    """Returns the words on the device, with the addresses of the tables in them, and the tables.

    The caller must keep the tables for as long as the words.
    """
    words = program.words.copy()
    tables = []
    for index, array in program.tables:
        table = cupy.asarray(array)
        words[index] = table.data.ptr
        tables.append(table)
    return cupy.asarray(words), tables
