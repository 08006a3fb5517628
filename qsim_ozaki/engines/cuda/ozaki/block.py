"""Applies one block in emulated FP64 on a GPU: its launches, for one chunk of the state's columns after another.

In: an `ozaki.Block`, targets, a `Launcher`. Out: the block applied in place, and the outcome of its checks. It may not
choose the number of moduli.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import opaque, sorted_matrix, sums, widened
from qsim_ozaki.engines.cuda.ozaki.graph import Replays
from qsim_ozaki.engines.cuda.ozaki.pipeline import (
    SETS,
    STAGE_BYTES,
    WGMMA_THREADS,
    ChunkStreams,
    Pipeline,
    Wgmma,
    pipeline,
)
from qsim_ozaki.engines.cuda.ozaki.tables import (
    COLUMN_BITS,
    COLUMNS,
    PRODUCT_COLUMNS,
    ROW_BITS,
    insert_bits,
    product_record,
    scheme_record,
    tile_places,
)
from qsim_ozaki.engines.cuda.tuning import REPLAYED_AMPS
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import ComplexArray
from qsim_ozaki.ozaki import block

WHOLE_BITS = 3  # log2 of the columns of a block of ozaki/encode.cu, kWhole
THREADS = 256
RECORD_BYTES = 56  # of ColumnRecord
RECONSTRUCT_THREADS = 128
SHARED_BYTES = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10}  # of a block
STATIC_BYTES = 3 << 10  # most static shared memory, beside the dynamic shared memory of a launch
REDO_ENTRIES = 1 << 24  # amplitudes of failed columns that are redone at a time
REPORTED_BYTES = 16  # the part of the report that the host reads after every run
STAGES = {80: 3, 86: 2, 89: 2, 90: 4, 100: 4, 120: 2}  # of ozaki_product.cu


def check_room(launcher: Launcher, num_targets: int, num_moduli: int) -> None:
    """Raises CapacityError if the matrix and its residues do not fit the GPU's free memory."""
    needed, free, name = (16 + 2 * num_moduli) << 2 * num_targets, launcher.free_bytes(), launcher.device_name
    if needed > free:
        raise CapacityError(
            f"a matrix on {num_targets} qubits needs {needed / 2**30:.3g} GiB with its residues modulo {num_moduli} "
            f"moduli; {name} has {free / 2**30:.3g} GiB free. Use arithmetic='native', or less accuracy."
        )


def _finish_bytes(columns: int, size: int) -> int:
    """Returns the shared memory of a block of ozaki_finish: kColumns * kStride entries."""
    return 16 * columns * size + 512


@dataclass(frozen=True, slots=True, eq=False)
class _ChunkColumns:
    """The columns of one chunk.

    Attributes:
        amps: the state.
        offsets: positions of the columns in the state, relative to the chunk's base.
        row_offset: positions of the rows in the state, relative to the column.
        columns: the `Columns` record, opaque.
        num_columns: number of columns.
    """

    amps: Any
    offsets: Any
    row_offset: Any
    columns: NDArray[Any]
    num_columns: int


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """The chunks in which a block runs on states of one width.

    Attributes:
        records: the `Columns` record of every chunk, opaque.
        num_columns: number of columns of a chunk.
        offsets: positions of a chunk's columns in the state, relative to the chunk's base.
        report: the report of ``ozaki/commit.cu``: a count, a residual, the numbers of failed columns.
        outcome: the first two words of the report, in host memory that the GPU writes.
        streams: the streams that the parts of the chunks run on.
        replays: graphs of all launches if there is one small chunk, else None.
    """

    records: list[NDArray[Any]]
    num_columns: int
    offsets: Any
    report: Any
    outcome: Any
    streams: ChunkStreams
    replays: Replays | None

    @property
    def row_stride(self) -> int:
        """Number of columns between two rows of a workspace."""
        return max(self.num_columns, PRODUCT_COLUMNS)

    def columns_of(self, amps: Any, row_offset: Any, number: int) -> _ChunkColumns:
        """Returns the columns of the chunk with this number."""
        return _ChunkColumns(amps, self.offsets, row_offset, self.records[number], self.num_columns)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Workspace:
    """Scratch arrays of a chunk; the graphs of all blocks of one size share them.

    Attributes:
        records: records of the columns.
        operand: residues of the columns, later the result.
        residues: residues of the product.
    """

    records: Any
    operand: Any
    residues: Any


class EmulatedBlock:
    """One matrix on arbitrary qubits of a state, ready to run on states of any width and precision.

    Args:
        launcher: launches kernels on the GPU.
        matrix: ``(2**k, 2**k)``, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: qubits with the value at which the block acts (controls, and qubits known to be |0>).
        num_moduli: number of moduli of the scheme.
        how: the pipeline (chunks, kernels and streams); the fastest one by default.

    Raises:
        CapacityError: the matrix's residues do not fit the GPU's free memory.
    """

    def __init__(
        self,
        launcher: Launcher,
        matrix: ComplexArray,
        targets: Sequence[int],
        fixed: dict[int, int],
        num_moduli: int,
        how: Pipeline | None = None,
    ) -> None:
        check_room(launcher, max(len(targets), ROW_BITS), num_moduli)
        cupy = launcher.cupy
        self.launcher, self.fixed, self.num_moduli = launcher, fixed, num_moduli
        self.base = sum(value << q for q, value in fixed.items())
        self.width = len(fixed) + max(len(targets), ROW_BITS) + COLUMN_BITS  # the least width that tiles need
        free = [q for q in range(max(self.width, 64)) if q not in fixed and q not in targets]
        wide, all_targets = widened(matrix, targets, free[: max(ROW_BITS - len(targets), 0)])
        self.rows = sorted(all_targets)
        self.block = block(sorted_matrix(wide, all_targets), num_moduli)
        self.scheme = opaque(scheme_record(self.block))
        self.size = 1 << len(self.rows)
        how = how or pipeline(len(self.rows), num_moduli)
        fits = _finish_bytes(how.columns, self.size) + STATIC_BYTES <= SHARED_BYTES[launcher.architecture]
        self.how = how if fits else replace(how, columns=0, encode_depth=4)
        self.order = {"WHOLE": str(self.how.columns)}
        self.encodes_whole = self.size >> ROW_BITS <= self.how.encode_depth
        columns = [q for q in free if q not in self.rows]
        self.places = cupy.asarray(tile_places(self.rows, columns[:COLUMN_BITS]))
        self.whole_places = cupy.asarray(tile_places(self.rows, columns[:WHOLE_BITS]))
        self.row_offset = cupy.asarray(sums([(1 << q, 0) for q in self.rows])[:, 0])
        self.check_row, self.weights = cupy.asarray(self.block.check_row), cupy.asarray(self.block.weights)
        self._chunked: dict[int, _Chunks] = {}
        self.operand = cupy.empty(2 * num_moduli * self.size**2, np.int8)
        self._launch("ozaki_matrix", {"MODULI": str(num_moduli)}, self.size**2 // 1024, (
            cupy.asarray(self.block.matrix), self.operand, np.int32(self.size), self.scheme
        ))  # fmt: skip

    def run(self, amps: Any, instance: dict[str, str]) -> tuple[int, float]:
        """Applies the block to ``amps`` (a CuPy array of a power of two of amplitudes), in place.

        Returns:
            (number of columns redone, largest residual of the other columns' checks over their scale).
        """
        cupy = self.launcher.cupy
        num_qubits = int(amps.size).bit_length() - 1
        if num_qubits < self.width:
            return self._run_padded(amps, instance)
        chunks = self.chunks(num_qubits)
        if chunks.replays:
            key = (amps.data.ptr, instance["REAL"])
            chunks.replays.launch(key, lambda: self._whole(amps, instance, chunks))
        else:
            self._launch_all(chunks, self.parts(amps, instance, chunks))
        chunks.report.data.copy_to_host_async(chunks.outcome.ctypes.data, REPORTED_BYTES)
        cupy.cuda.get_current_stream().synchronize()
        count, residual = int(chunks.outcome[0]), float(chunks.outcome.view(np.float64)[1])
        if count:
            self._redo(amps, chunks.report[2 : 2 + count].get().astype(np.int64))
        return count, math.sqrt(residual)

    def _run_padded(self, amps: Any, instance: dict[str, str]) -> tuple[int, float]:
        """Runs on a zero-padded copy of a state that is smaller than the tiles; the padding stays zero."""
        padded = self.launcher.cupy.zeros(1 << self.width, amps.dtype)
        padded[: amps.size] = amps
        outcome = self.run(padded, instance)
        amps[...] = padded[: amps.size]
        return outcome

    def _whole(self, amps: Any, instance: dict[str, str], chunks: _Chunks) -> tuple[Callable[[], None], Any]:
        """Returns the launches on a state of one chunk, and their workspace."""
        workspace = self._workspace(chunks)
        return partial(self._launch_all, chunks, self.parts(amps, instance, chunks, [workspace])), workspace

    def _launch_all(self, chunks: _Chunks, parts: tuple[Callable[[int], None], ...]) -> None:
        """Launches all chunks, after the work on the current stream and before its later work."""
        chunks.report.data.memset_async(0, REPORTED_BYTES)  # the count and the residual; column numbers follow
        chunks.streams.run(len(chunks.records), parts)

    def parts(
        self, amps: Any, instance: dict[str, str], chunks: _Chunks, scratches: Sequence[_Workspace] = ()
    ) -> tuple[Callable[[int], None], ...]:
        """Returns three functions: they launch residues, products and write-back of the chunk with a given number."""
        scratches = scratches or [self._scratch(chunks.row_stride) for _ in chunks.records[:SETS]]
        return (
            lambda i: self._encode(chunks.columns_of(amps, self.row_offset, i), instance, scratches[i % SETS]),
            lambda i: self._multiply(chunks, scratches[i % SETS]),
            lambda i: self._write_back(amps, instance, chunks, i, scratches[i % SETS]),
        )

    def chunks(self, num_qubits: int) -> _Chunks:
        """Returns the chunks of a state of ``num_qubits``; they are computed once."""
        if num_qubits not in self._chunked:
            self._chunked[num_qubits] = self._chunks(num_qubits)
        return self._chunked[num_qubits]

    def _column_offsets(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Returns the basis states of row 0 of the columns with these numbers, with the fixed qubits 0."""
        return insert_bits(numbers, [*self.rows, *self.fixed]).astype(np.uint64)

    def _chunks(self, num_qubits: int) -> _Chunks:
        """Divides a state of ``num_qubits`` into chunks whose workspaces leave most of the free memory unused."""
        cupy = self.launcher.cupy
        num_columns = 1 << (num_qubits - len(self.rows) - len(self.fixed))
        room = self.launcher.free_bytes() // (4 * SETS * self.num_moduli * 4)
        amps = max(min(self.how.chunk_amps, 1 << max(room, 1).bit_length() - 1), PRODUCT_COLUMNS * self.size)
        chunk = min(num_columns, max(amps // self.size, 1 << COLUMN_BITS))
        record = np.zeros(1, COLUMNS)
        record["num_columns"], record["row_stride"] = chunk, max(chunk, PRODUCT_COLUMNS)
        record["plane_bytes"] = self.size * max(chunk, PRODUCT_COLUMNS)
        record["depth_blocks"] = self.size >> ROW_BITS
        records = []
        for first in range(0, num_columns, chunk):
            record["first"] = first
            record["base"] = self.base | int(self._column_offsets(np.array([first]))[0])
            records.append(opaque(record.copy()))
        streams = ChunkStreams(cupy, self.how.streams if len(records) > 1 else 1)
        offsets = cupy.asarray(self._column_offsets(np.arange(chunk)))
        report, pinned = cupy.empty(2 + num_columns, np.uint64), cupy.cuda.alloc_pinned_memory(REPORTED_BYTES)
        replays = Replays(cupy) if len(records) == 1 and num_columns * self.size <= REPLAYED_AMPS else None
        return _Chunks(records, chunk, offsets, report, np.frombuffer(pinned, np.uint64, 2), streams, replays)

    def _workspace(self, chunks: _Chunks) -> _Workspace:
        """Returns the launcher's workspace of the size of a chunk.

        Blocks can share it: they run one after another, and a run waits for its report.
        """
        key = (self.num_moduli, self.size, chunks.row_stride)
        workspace: _Workspace | None = self.launcher.workspaces.get(key)
        if workspace is None:
            workspace = self._scratch(chunks.row_stride)
            self.launcher.workspaces[key] = workspace
        return workspace

    def _scratch(self, row_stride: int) -> _Workspace:
        """Returns new scratch arrays of one chunk."""
        cupy = self.launcher.cupy
        entries = self.size * row_stride
        planes = 2 * self.num_moduli
        records = cupy.empty(row_stride * RECORD_BYTES, np.uint8)
        operand = cupy.empty(max(planes, 16) * entries, np.int8)
        return _Workspace(records, operand, cupy.empty(planes * entries, np.int8))

    def _multiply(self, chunks: _Chunks, scratch: _Workspace) -> None:
        """Launches the products of a chunk whose operand is ready."""
        wgmma = self.how.wgmma if self.launcher.architecture == 90 else None
        self.multiply(scratch.operand, scratch.residues, chunks.row_stride, wgmma)

    def _write_back(
        self, amps: Any, instance: dict[str, str], chunks: _Chunks, number: int, scratch: _Workspace
    ) -> None:
        """Launches the CRT and the checks, and writes the columns that pass them into the state."""
        chunk = chunks.columns_of(amps, self.row_offset, number)
        if self.how.columns:
            self._finish(chunk, instance, chunks.report, scratch)
        else:
            self._reconstruct(chunk, instance, chunks, scratch)

    def _encode(self, chunk: _ChunkColumns, instance: dict[str, str], scratch: _Workspace) -> None:
        """Launches the scaling and the residues of a chunk's columns."""
        amps, offsets, row_offset, columns = chunk.amps, chunk.offsets, chunk.row_offset, chunk.columns
        records, operand = scratch.records, scratch.operand
        depth = self.size >> ROW_BITS
        kind = instance | {"MODULI": str(self.num_moduli)} | self.order
        args: tuple[Any, ...] = (amps, self.whole_places, offsets, row_offset, self.check_row, records, operand)
        if self.encodes_whole:
            args = (*args, columns, self.scheme)
            shared_bytes = (16 * (self.size + 1)) << WHOLE_BITS  # 16 bytes per entry, one more entry per column
            threads = THREADS if depth <= 4 else 2 * THREADS  # kThreads
            blocks = chunk.num_columns >> WHOLE_BITS
            self.launcher.launch(
                "ozaki_encode",
                kind | {"DEPTH": str(depth)},
                blocks,
                threads,
                args,
                shared_bytes,
            )
            return
        parts = records.size // 16  # exact: a workspace's columns are a multiple of 256
        self._launch("ozaki_clear", {}, parts // THREADS, (records, np.uint64(parts)))
        args = (amps, offsets, row_offset, self.check_row, records, columns)
        self._launch("ozaki_scale", instance, max(chunk.num_columns * depth >> 5, depth), args)
        args = (amps, self.places, offsets, row_offset, records, operand, columns, self.scheme)
        self._launch("ozaki_residues", kind, chunk.num_columns * depth >> COLUMN_BITS, args)

    def _reconstruct(
        self, chunk: _ChunkColumns, instance: dict[str, str], chunks: _Chunks, scratch: _Workspace
    ) -> None:
        """Launches the CRT into memory, then the write-back of the columns that pass their checks."""
        records, result, residues, columns = scratch.records, scratch.operand, scratch.residues, chunk.columns
        args: tuple[Any, ...] = (residues, self.weights, result, records, columns, self.scheme)
        blocks = self.size * chunks.row_stride >> 11
        self.launcher.launch("ozaki_reconstruct", {"MODULI": str(self.num_moduli)}, blocks, RECONSTRUCT_THREADS, args)
        args = (chunk.amps, self.places, chunk.offsets, chunk.row_offset, records, result, chunks.report, columns)
        blocks = chunk.num_columns * self.size >> ROW_BITS + COLUMN_BITS
        self._launch("ozaki_commit", instance, blocks, (*args, self.scheme))

    def _finish(self, chunk: _ChunkColumns, instance: dict[str, str], report: Any, scratch: _Workspace) -> None:
        """Launches the CRT, the check and the write-back of whole columns in one kernel."""
        width, depth = self.how.columns, self.size >> ROW_BITS
        places = self.places if width == 1 << COLUMN_BITS else self.whole_places
        kind = instance | {"MODULI": str(self.num_moduli), "DEPTH": str(depth)} | self.order
        args = (
            *(scratch.residues, self.weights, chunk.amps, places, chunk.offsets, chunk.row_offset),
            *(scratch.records, report),
        )
        blocks = chunk.num_columns // width
        threads = 512 if self.size * width > 4096 else THREADS  # kThreads
        all_args = (*args, chunk.columns, self.scheme)
        self.launcher.launch("ozaki_finish", kind, blocks, threads, all_args, _finish_bytes(width, self.size))

    def multiply(self, operand: Any, residues: Any, stride: int, wgmma: Wgmma | None) -> None:
        """Launches the products of all planes by ``ozaki_product`` or, on Hopper, by ``wgmma``."""
        launcher, planes = self.launcher, 2 * self.num_moduli
        args = (self.operand, operand, residues, product_record(self.size, stride, planes), self.scheme)
        depth = self.size >> ROW_BITS
        tiles = planes * depth * stride // PRODUCT_COLUMNS
        if wgmma:
            kind, blocks = wgmma.instance(depth) | self.order, wgmma.blocks(tiles, depth, launcher.num_processors)
            launcher.launch(wgmma.value, kind, blocks, WGMMA_THREADS, args, wgmma.shared_bytes(depth))
        else:
            blocks, shared_bytes = min(tiles, launcher.num_processors), STAGES[launcher.architecture] * STAGE_BYTES
            self._launch("ozaki_product", {"RAW": "0"} | self.order, blocks, args, shared_bytes)

    def bytes_per_amplitude(self, bytes_of_one: int) -> int:
        """Returns the memory traffic per amplitude of ``bytes_of_one`` bytes: every kernel moves its arrays once."""
        planes = 2 * self.num_moduli
        encode = bytes_of_one * (1 if self.encodes_whole else 2) + planes
        write_back = planes + bytes_of_one + (0 if self.how.columns else 32)
        return encode + 2 * planes + write_back

    def _launch(
        self, name: str, instance: dict[str, str], blocks: int, args: tuple[Any, ...], shared_bytes: int = 0
    ) -> None:
        self.launcher.launch(name, instance, blocks, THREADS, args, shared_bytes)

    def _redo(self, amps: Any, failed: NDArray[np.int64]) -> None:
        """Does the FP64 product of the columns that failed their checks and kept their input."""
        cupy = self.launcher.cupy
        matrix = cupy.asarray(self.block.matrix)
        base = self._column_offsets(failed).astype(np.int64) | self.base
        step = max(REDO_ENTRIES // self.size, 1)
        for start in range(0, len(base), step):
            index = self.row_offset.astype(np.int64)[:, None] | cupy.asarray(base[start : start + step])[None, :]
            amps[index] = (matrix @ amps[index].astype(np.complex128)).astype(amps.dtype)
