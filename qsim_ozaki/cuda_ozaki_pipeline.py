"""How the chunks of an emulated block run on a GPU: which kernels, in which streams, in what order.

In: the block's size, its number of moduli. Out: a `Pipeline`, and `Lanes` that launch by it. It knows no kernel's
arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SETS = 2  # of workspaces: a chunk's products beside the next one's residues
MATRIX_BYTES, COLUMN_BYTES = 16 << 10, 32 << 10  # of ozaki_product.cu and ozaki_wgmma.cu: a step of K
STAGE_BYTES = MATRIX_BYTES + COLUMN_BYTES
OUT_BYTES = 32 << 10  # of a tile
BARRIER_BYTES = 1024 + 128  # with what is lost to alignment
BLOCK_BYTES = 227 << 10  # of shared memory, on Hopper
CLUSTER = 2  # blocks that share columns
MOST_HELD = 8  # steps of K
FIRST = -1  # priority: products take what another kernel leaves before others do


@dataclass(frozen=True, slots=True)
class Wgmma:
    """How ``ozaki_wgmma`` is built.

    Attributes:
        stages: buffers of a step of K, at least 3: beside 3 a multiprocessor has room for a block of another kernel.
            Where the matrix is held, as many as fit.
        lead: steps by which one warpgroup is ahead, so that it reduces beside the other's products.
        copier: whether a warp of its own copies.
        held: whether a block keeps its rows of a plane's matrix where it has room for them, up to K = 1024.
    """

    stages: int = 4
    lead: int = 0
    copier: int = 1
    held: bool = False

    def built(self, depth: int) -> tuple[int, int, int]:
        """Stages, lead and held steps for ``depth`` steps of K."""
        lead = min(self.lead, depth) if depth > 1 else 0
        if not self.held or depth > MOST_HELD:
            return self.stages, lead, 0
        room = (BLOCK_BYTES - BARRIER_BYTES - depth * MATRIX_BYTES) // COLUMN_BYTES
        # a warpgroup ahead of the other is so by less than two tiles: more stages would let it be
        return min(room, 2 * depth + lead - 1) if lead else room, lead, depth

    def instance(self, depth: int) -> dict[str, str]:
        """Macros for ``depth`` steps of K."""
        stages, lead, held = self.built(depth)
        numbers = {"STAGES": stages, "LEAD": lead, "HELD": held, "CLUSTER": min(CLUSTER, depth), "COPIER": self.copier}
        return {name: str(number) for name, number in numbers.items()}

    @property
    def threads(self) -> int:
        """Of a block."""
        return 256 + 32 * self.copier

    def shared_bytes(self, depth: int) -> int:
        """Stages; the output on its way, or the matrix where it is held; barriers, and what aligns to the swizzle."""
        stages, _, held = self.built(depth)
        if held:
            return BARRIER_BYTES + stages * COLUMN_BYTES + held * MATRIX_BYTES
        return BARRIER_BYTES + stages * STAGE_BYTES + OUT_BYTES

    def blocks(self, tiles: int, depth: int, processors: int) -> int:
        """Of the grid: whole clusters; where the matrix is held, one block for each row of tiles or several."""
        whole = depth if self.built(depth)[2] else min(CLUSTER, depth)
        most = min(tiles, processors)
        return max(most - most % whole, whole)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a block runs.

    Attributes:
        columns: that a block of ozaki_finish holds whole; 0: ozaki_reconstruct and ozaki_commit, with the product's
            entries in memory between them.
        encode_depth: most blocks of 128 rows that ozaki_encode holds; else ozaki_scale and ozaki_residues read the
            state twice.
        chunk_amps: amplitudes of a chunk.
        streams: 1: every kernel after the one before; 2: products beside the others; 3: residues, products and
            write-back each in its own.
        wgmma: the product on Hopper.
    """

    columns: int = 0
    encode_depth: int = 4
    # with fewer, launches and their tails cost more than what stays in the L2 saves (H200, 2026-11)
    chunk_amps: int = 1 << 24
    streams: int = 3
    wgmma: Wgmma = Wgmma()

    def kernels(self, depth: int, num_moduli: int, real: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
        """Names and instances of all that ``depth`` steps of K take, with either product; ``real``: `jit.DOUBLE`."""
        whole = {"WHOLE": str(self.columns)}
        counted, deep = real | {"MODULI": str(num_moduli)} | whole, {"DEPTH": str(depth)}
        encode = [("ozaki_clear", {}), ("ozaki_scale", real), ("ozaki_residues", counted)]
        write_back = [("ozaki_reconstruct", {"MODULI": str(num_moduli)}), ("ozaki_commit", real)]
        return [
            ("ozaki_matrix", {}),
            *([("ozaki_encode", counted | deep)] if depth <= self.encode_depth else encode),
            ("ozaki_product", {"RAW": "0"} | whole),
            ("ozaki_wgmma", self.wgmma.instance(depth) | whole),
            *([("ozaki_finish", counted | deep)] if self.columns else write_back),
        ]


# By qubits of the matrix, the columns that ozaki_finish takes, and up to how many moduli it is the faster one
# (H200, 26 qubits, 2026-11: k = 8 4.04 for 4.41 ms, k = 9 5.30 for 5.45, k = 10 6.84 for 6.99 but 7.35 for 7.28).
FINISHED = {7: (16, 17), 8: (16, 17), 9: (8, 17), 10: (8, 15)}
# A product that leaves 5,632 registers of each quarter of a multiprocessor and 48 KiB of its shared memory: a block of
# ozaki_residues fits beside it, of ozaki_encode for 256 rows, and of ozaki_finish for 8 columns of 256 rows. By qubits
# of the matrix, from how many moduli on that is the faster way (k = 8 4.12 for 4.20 ms, k = 10 6.90 for 7.27).
BESIDE = Wgmma(stages=3, lead=1, copier=0)
BESIDE_FROM = {8: (16, Pipeline(8, 2, 1 << 23, wgmma=BESIDE)), 10: (16, Pipeline(0, 2, 1 << 23, wgmma=BESIDE))}


def pipeline(row_bits: int, num_moduli: int) -> Pipeline:
    """What is fastest for a matrix on ``row_bits`` qubits, at least 7, by measurement."""
    if row_bits in BESIDE_FROM and num_moduli >= BESIDE_FROM[row_bits][0]:
        return BESIDE_FROM[row_bits][1]
    columns, most = FINISHED.get(row_bits, (0, 0))
    return Pipeline(columns, encode_depth=8) if num_moduli <= most else Pipeline()


class Lanes:
    """Streams and events by which the parts of chunks wait for each other.

    Chunk i's residues wait for the write-back of chunk i - `SETS`, whose workspace they take; its products for its
    residues; its write-back for its products.

    Args:
        cupy: the module.
        streams: as in `Pipeline`.
    """

    def __init__(self, cupy: Any, streams: int) -> None:
        self._cupy = cupy
        make = cupy.cuda.Stream
        memory = make(non_blocking=True)
        products = memory if streams == 1 else _first_stream(make)
        self.streams = (memory, products, make(non_blocking=True) if streams == 3 else memory)
        self._events = [[cupy.cuda.Event(disable_timing=True) for _ in range(3)] for _ in range(SETS)]

    def run(self, num_chunks: int, parts: tuple[Callable[[int], None], ...]) -> None:
        """Launches each part of each chunk, after all that is on the current stream and before what comes on it.

        Args:
            num_chunks: how many.
            parts: residues, products and write-back of the chunk with a given number, on the current stream.
        """
        cupy = self._cupy
        caller, ready = cupy.cuda.get_current_stream(), cupy.cuda.Event(disable_timing=True)
        ready.record(caller)
        for stream in dict.fromkeys(self.streams):
            stream.wait_event(ready)
        for number in range(num_chunks + 1):  # a chunk's write-back after the next one's residues
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
        """Part ``part`` goes on after part ``other`` of chunk ``number``."""
        if self.streams[part] is not self.streams[other]:
            self.streams[part].wait_event(self._events[number % SETS][other])

    def _launch(self, part: int, number: int, action: Callable[[int], None]) -> None:
        with self.streams[part]:
            action(number)
        self._events[number % SETS][part].record(self.streams[part])


def _first_stream(make: Any) -> Any:
    """A stream whose blocks are placed before those of others; CuPy before 14 has none."""
    try:
        return make(non_blocking=True, priority=FIRST)
    except TypeError:
        return make(non_blocking=True)
