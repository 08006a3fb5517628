"""Launches of tile passes: the interpreter at once, straight-line kernels once they are spelled and compiled.

In: a tile pass's qubits and ops. Out: functions that launch it on a state. It decides only when compiling pays.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qsim_ozaki import cuda_dense, cuda_straight, cuda_straight_program, jit
from qsim_ozaki.cache import LruCache
from qsim_ozaki.cuda_layout import GENERATED, SHAPES, Tile
from qsim_ozaki.cuda_lower import mask_of
from qsim_ozaki.cuda_program import TileProgram, compile_tile
from qsim_ozaki.errors import EngineError
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Op

GEOMETRY = np.dtype(
    [
        ("num_tiles", "u8"),
        ("tile_mask", "u8"),
        ("fresh", "u8"),
        ("load_layout", "u4"),
        ("first_op", "u4"),
        ("scale", "f8"),
        ("runs", cuda_dense.RUNS),
    ],
    align=True,
)
INSTANCES = {"double": jit.DOUBLE, "single": jit.SINGLE}
BLOCKS_PER_PROCESSOR = 2  # what registers allow; each block then fetches its next tile behind its arithmetic
ONCE_QUBITS = 26  # a pass takes half a millisecond and more (H200, 2026-11): compile as soon as it is seen
# Of a row of parameters: below, spelling its passes takes the host longer than that saves the GPU (H200, 28 qubits, a
# row of Trotter spelled 36 ms, interpreted 31; of EfficientSU2 26 and 21).
ROW_QUBITS = 29
REPEAT_QUBITS = 18  # below, a launch costs as much as the pass
# Runs of a pass on a smaller state before it is spelled: that takes the host tens of milliseconds, and saves each run
# less than one (H200, 2026-11).
REPEATS = 4
MAX_WAITING = 256  # structures that wait for the compiler


class Compiler:
    """Compiles generated sources on a few threads of their own.

    A program that ends waits for what is being compiled at that moment, no more: NVRTC would crash under it.
    """

    def __init__(self, architecture: int) -> None:
        self.architecture = architecture
        self.code: dict[tuple[str, str], bytes | None] = {}  # None: compiling, or refused by the compiler
        self._functions: dict[tuple[str, str], Any] = {}
        self._queue: queue.Queue[tuple[str, str] | None] = queue.Queue()  # None: end
        self._threads: list[threading.Thread] = []
        self._ended = False
        COMPILERS.add(self)

    def function(self, source: str, precision: str) -> Any | None:
        """The kernel if it is ready; if not, it is read from the disk now, or compiled."""
        key = (source, precision)
        if key in self._functions:
            return self._functions[key]
        if key not in self.code:
            if jit.is_cached("tile_straight", source, self._options(precision)):
                self.code[key] = jit.cubin("tile_straight", source, self._options(precision))
            elif self._queue.qsize() < MAX_WAITING:
                self._submit(key)
        code = self.code.get(key)
        if code is None:
            return None
        self._functions[key] = jit.function(code, jit.STRAIGHT.function)
        return self._functions[key]

    def finish(self) -> None:
        """Returns when everything submitted is compiled."""
        self._queue.join()

    def end(self) -> None:
        """Compiles no more, and returns when what is being compiled is done."""
        self._ended = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _options(self, precision: str) -> tuple[str, ...]:
        return jit.options(jit.STRAIGHT, cuda_straight.instance(self.architecture, precision), self.architecture)

    def _submit(self, key: tuple[str, str]) -> None:
        self.code[key] = None
        self._queue.put(key)
        if len(self._threads) < max((os.cpu_count() or 2) // 2, 1) and not self._ended:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def _work(self) -> None:
        while True:
            key = self._queue.get()
            try:
                if key is None:
                    return
                if not self._ended:
                    self.code[key] = jit.cubin("tile_straight", key[0], self._options(key[1]))
            except EngineError:
                continue  # the interpreter stays; tests compile what the writer can write
            finally:
                self._queue.task_done()


COMPILERS: weakref.WeakSet[Compiler] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for compiler in list(COMPILERS):
        compiler.end()


def tile_launch(engine: Any, state: Any, tile: Tile, ops: Sequence[Op], row: bool = False) -> Callable[[Any], None]:
    """A function that runs one tile pass on a state of the same width and precision.

    Args:
        engine: whose launch it is.
        state: such a state.
        tile: the step's.
        ops: in order.
        row: as `TilePass` has it.
    """
    if len(tile.qubits) > SHAPES[state.precision].tile_qubits:
        tile = tile.with_qubits(tuple(sorted({q for op in ops for q in op.mixed_qubits})))
    return _Pass(engine, (tile, ops, state.kernel_qubits, state.precision), row).run


# The kernels of the pass of each structure that was spelled last: others, of other numbers, have the same but for few.
SPELLED: LruCache[list[str]] = LruCache(8 << 20, 2048)  # passes of a few hundred operators have about 10 KiB each


def _spelled_alike(tile: Tile, ops: Sequence[Op], num_qubits: int, precision: str) -> list[str]:
    """Sources of the last pass like this one, to be replaced."""
    if not isinstance(ops, OpList):
        return []
    structure = ops.native.structure()
    key = (tile, structure, num_qubits, precision)
    known = SPELLED.get(key)
    return SPELLED.add(key, [], len(structure)) if known is None else known


class _Pass:
    """A tile pass on states of one width and precision; it is cached, and holds none of them."""

    def __init__(self, engine: Any, arguments: tuple[Tile, Sequence[Op], int, str], row: bool) -> None:
        num_qubits, once = arguments[2], ROW_QUBITS if row else ONCE_QUBITS
        self.engine, self.arguments = engine, arguments
        self.spelled_after = 0 if num_qubits >= once else REPEATS if num_qubits >= REPEAT_QUBITS else None
        self.alike = _spelled_alike(*arguments)
        self.runs = 0
        self.parts: list[_Straight] | None = None
        self.functions: list[Any] = []
        self.interpreted: Callable[[Any], None] | None = None

    def run(self, target: Any) -> None:
        """Runs it on ``target``."""
        if self.parts is None and self._pays():
            self.parts = self._spelled()
            self.alike[:] = [part.source for part in self.parts]
        self.runs += 1
        if self.parts and not self.functions:
            functions = [part.function() for part in self.parts]
            self.functions = functions if all(functions) else []
        if self.functions and self.parts:
            for part, function in zip(self.parts, self.functions, strict=True):
                part.launch(function, target)
            return
        if self.interpreted is None:
            self.interpreted = _interpreter(self.engine, compile_tile(*self.arguments), self.arguments[3])
        self.interpreted(target)

    def _pays(self) -> bool:
        """Whether to spell it now: not while a pass like it waits for the compiler, as this one would wait with it."""
        if self.spelled_after is None or self.runs < self.spelled_after:
            return False
        return all(self.engine.compiler.function(source, self.arguments[3]) for source in self.alike)

    def _spelled(self) -> list[_Straight]:
        """The pass in straight-line form, where every operator has one: the interpreter knows all."""
        precision = self.arguments[3]
        pairs = cuda_straight.has_pairs(self.engine.architecture)
        try:
            programs = cuda_straight.straight(*self.arguments, pairs)
        except cuda_straight_program.NotStraightError:
            return []
        return [_Straight(self.engine, program, precision) for program in programs]


class _Straight:
    """A pass in straight-line form, with its tables on the device from the first launch on."""

    def __init__(self, engine: Any, program: cuda_straight_program.StraightProgram, precision: str) -> None:
        self.engine = engine
        self.program = program
        self.precision = precision
        self.record = cuda_dense.opaque(cuda_straight.arguments(program, precision))
        self.tables: Any = None
        self.source = program.source
        self.threads = 1 << (len(program.tile) - GENERATED[precision].register_qubits)
        room = cuda_straight.ROOM[engine.architecture] - cuda_straight.STATIC_BYTES
        self.shared_bytes = cuda_straight.shared_bytes(program, room, precision)
        self.blocks = min(program.num_tiles, engine.num_processors * cuda_straight.blocks(engine.architecture))

    def function(self) -> Any | None:
        """The kernel if it is ready."""
        return self.engine.compiler.function(self.source, self.precision)

    def launch(self, function: Any, target: Any) -> None:
        """Runs it on ``target``."""
        if self.tables is None:
            self.tables = self.engine.cupy.asarray(self.program.tables)
        args = (target.amps, self.tables, target.new_tickets(), self.record)
        self.engine.launch_function(function, self.blocks, self.threads, args, self.shared_bytes)


def _interpreter(engine: Any, program: TileProgram, precision: str) -> Callable[[Any], None]:
    shape = SHAPES[precision]
    words, tables = _upload(engine.cupy, program)
    geometry = np.zeros(1, GEOMETRY)
    geometry["num_tiles"], geometry["tile_mask"] = program.num_tiles, mask_of(program.tile)
    geometry["fresh"] = mask_of(program.fresh_qubits)
    geometry["load_layout"], geometry["first_op"] = program.load_layout, program.first_op
    geometry["scale"] = program.scale
    geometry["runs"] = cuda_dense.runs_record([*program.tile, *program.zero_qubits])
    size = len(program.tile)
    threads, shared = 1 << (size - shape.register_qubits), shape.amp_bytes << size
    blocks = min(program.num_tiles, engine.num_processors * BLOCKS_PER_PROCESSOR)
    function, record = engine.function("tile_exec", INSTANCES[precision]), cuda_dense.opaque(geometry)

    def run(target: Any, _keep: Any = tables) -> None:
        engine.launch_function(function, blocks, threads, (target.amps, words, record), shared)

    return run


def _upload(cupy: Any, program: TileProgram) -> tuple[Any, list[Any]]:
    """Words on the device with the tables' addresses in place, and the tables, which must live as long."""
    words = program.words.copy()
    tables = []
    for at, array in program.tables:
        table = cupy.asarray(array)
        words[at] = table.data.ptr
        tables.append(table)
    return cupy.asarray(words), tables
