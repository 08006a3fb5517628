"""Chooses how the chunks of an emulated block run on a GPU: the kernels, their streams and their order.

In: the block's size and its number of moduli. Out: a `Pipeline`, and the `ChunkStreams` that launch by it. It may not
depend on the arguments of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from qsim_ozaki.engines.cuda.tuning import CHUNK_AMPS, FINISHED, LONG_CHUNK_AMPS, LONG_MODULI

SETS = 2  # workspaces: a chunk's products run beside the next chunk's residues
MATRIX_BYTES, COLUMN_BYTES = 16 << 10, 32 << 10  # a step of K in ozaki/product.cu and ozaki/product_wgmma.cu
HALF_COLUMN_BYTES = 16 << 10  # a step of K in ozaki/product_held.cu, whose tiles are half as wide
WGMMA_THREADS = 288  # two warpgroups that multiply and a warp that copies
STAGE_BYTES = MATRIX_BYTES + COLUMN_BYTES
OUT_BYTES = 32 << 10  # of a tile
BARRIER_BYTES = 1024 + 256  # barriers, and the loss to alignment
BLOCK_BYTES = 227 << 10  # of shared memory, on Hopper
CLUSTER = 2  # blocks that share columns
FIRST = -1  # stream priority: products take free processors before other kernels do


class Wgmma(Enum):
    """The product kernel on Hopper.

    Attributes:
        STREAMED: a step of K reads its part of the matrix and of the columns; ozaki/product_wgmma.cu.
        HELD: a block keeps its rows of a plane's matrix, up to K = 1024, and reads only columns; ozaki/product_held.cu.
    """

    STREAMED = "ozaki_wgmma"
    HELD = "ozaki_held"

    def stages(self, depth: int) -> int:
        """Returns the number of buffers for ``depth`` steps of K: as many as fit beside a held matrix, at most 8."""
        if self is Wgmma.STREAMED:
            return 4
        return min((BLOCK_BYTES - BARRIER_BYTES) // HALF_COLUMN_BYTES - depth * MATRIX_BYTES // HALF_COLUMN_BYTES, 8)

    def instance(self, depth: int) -> dict[str, str]:
        """Returns the macros for ``depth`` steps of K."""
        held = {"DEPTH": str(depth)} if self is Wgmma.HELD else {}
        return held | {"STAGES": str(self.stages(depth)), "CLUSTER": str(min(CLUSTER, depth))}

    def shared_bytes(self, depth: int) -> int:
        """Returns the bytes of shared memory: stages, the held matrix or else the output tile, barriers, alignment."""
        if self is Wgmma.HELD:
            return BARRIER_BYTES + self.stages(depth) * HALF_COLUMN_BYTES + depth * MATRIX_BYTES
        return BARRIER_BYTES + self.stages(depth) * STAGE_BYTES + OUT_BYTES

    def blocks(self, tiles: int, depth: int, processors: int) -> int:
        """Returns the blocks of the grid: whole clusters; if the matrix is held, a multiple of the rows of tiles."""
        whole = depth if self is Wgmma.HELD else min(CLUSTER, depth)
        most = min(tiles, processors)
        return max(most - most % whole, whole)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The kernels, chunks and streams of an emulated block.

    Attributes:
        columns: number of whole columns that a thread block of ozaki_finish holds. With 0, ozaki_reconstruct and
            ozaki_commit run instead, with the product's entries in memory between them.
        encode_depth: most blocks of 128 rows that ozaki_encode holds; for more, ozaki_scale and ozaki_residues read
            the state twice.
        chunk_amps: amplitudes of a chunk.
        streams: number of streams. With 1, every kernel runs after the one before; with 3, residues, products and
            write-back have separate streams.
        wgmma: the product kernel on Hopper.
    """

    columns: int = 0
    encode_depth: int = 4
    chunk_amps: int = CHUNK_AMPS
    streams: int = 3
    wgmma: Wgmma = Wgmma.STREAMED

    def kernels(self, depth: int, num_moduli: int, real: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
        """Returns names and instances of all kernels for ``depth`` steps of K, including both products.

        Args:
            depth: number of steps of K.
            num_moduli: number of moduli of the scheme.
            real: `DOUBLE` or `SINGLE` of the kernel table.
        """
        whole = {"WHOLE": str(self.columns)}
        counted, deep = real | {"MODULI": str(num_moduli)} | whole, {"DEPTH": str(depth)}
        encode = [("ozaki_clear", {}), ("ozaki_scale", real), ("ozaki_residues", counted)]
        write_back = [("ozaki_reconstruct", {"MODULI": str(num_moduli)}), ("ozaki_commit", real)]
        return [
            ("ozaki_matrix", {"MODULI": str(num_moduli)}),
            *([("ozaki_encode", counted | deep)] if depth <= self.encode_depth else encode),
            ("ozaki_product", {"RAW": "0"} | whole),
            (self.wgmma.value, self.wgmma.instance(depth) | whole),
            *([("ozaki_finish", counted | deep)] if self.columns else write_back),
        ]


MOST_HELD = 10  # qubits of the largest matrix that is held: K = 1024


def pipeline(row_bits: int, num_moduli: int) -> Pipeline:
    """Returns the fastest pipeline for a matrix on ``row_bits`` qubits, at least 7.

    Source: times in docs/benchmarks/h200_blocks.md.
    """
    amps = LONG_CHUNK_AMPS if num_moduli <= LONG_MODULI else CHUNK_AMPS
    if row_bits == MOST_HELD and num_moduli > LONG_MODULI:
        return Pipeline(0, 2, amps, wgmma=Wgmma.HELD)
    if row_bits <= MOST_HELD:
        return Pipeline(FINISHED[row_bits], 8, amps, wgmma=Wgmma.HELD)
    return Pipeline()


class ChunkStreams:
    """Streams and events by which the parts of chunks wait for each other.

    The residues of chunk i wait for the write-back of chunk i - `SETS`, whose workspace they use. The products of a
    chunk wait for its residues, and its write-back waits for its products.

    Args:
        cupy: the CuPy module.
        streams: number of streams, as in `Pipeline`; a single stream is the current one, and nothing waits.
    """

    def __init__(self, cupy: Any, streams: int) -> None:
        self._cupy = cupy
        stream = cupy.cuda.Stream
        self.streams: tuple[Any, ...] = ()
        if streams > 1:
            self.streams = (stream(non_blocking=True), _first_stream(stream), stream(non_blocking=True))
        self._events = [[cupy.cuda.Event(disable_timing=True) for _ in self.streams] for _ in range(SETS)]

    def run(self, num_chunks: int, parts: tuple[Callable[[int], None], ...]) -> None:
        """Launches all parts of all chunks, after earlier work of the current stream and before its later work.

        Args:
            num_chunks: number of chunks.
            parts: functions that launch residues, products and write-back of the chunk with a given number on the
                current stream.
        """
        if not self.streams:
            for number in range(num_chunks):
                for part in parts:
                    part(number)
            return
        cupy = self._cupy
        caller, ready = cupy.cuda.get_current_stream(), cupy.cuda.Event(disable_timing=True)
        ready.record(caller)
        for stream in self.streams:
            stream.wait_event(ready)
        for number in range(num_chunks + 1):  # a chunk's write-back is launched after the next chunk's residues
            if number < num_chunks:
                if number >= SETS:
                    self._wait(0, number - SETS, 2)
                self._launch(0, number, parts[0])
                self._wait(1, number, 0)
                self._launch(1, number, parts[1])
            if number > 0:
                self._wait(2, number - 1, 1)
                self._launch(2, number - 1, parts[2])
        caller.wait_event(self._events[(num_chunks - 1) % SETS][2])

    def _wait(self, part: int, number: int, other: int) -> None:
        """Lets the stream of part ``part`` wait for part ``other`` of chunk ``number``."""
        self.streams[part].wait_event(self._events[number % SETS][other])

    def _launch(self, part: int, number: int, action: Callable[[int], None]) -> None:
        """Launches part ``part`` of chunk ``number`` in its stream, and records its event."""
        with self.streams[part]:
            action(number)
        self._events[number % SETS][part].record(self.streams[part])


def _first_stream(stream: Any) -> Any:
    """Returns a stream whose blocks are placed before those of other streams; before CuPy 14, a plain stream."""
    try:
        return stream(non_blocking=True, priority=FIRST)
    except TypeError:
        return stream(non_blocking=True)
