"""Emulated FP64 on a GPU: the launches of one block, column by column of the state in chunks.

In: an `ozaki.Block`, targets, a `Launcher`. Out: the block applied in place, and the outcome of its checks.
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
from qsim_ozaki.engines.cuda.ozaki.pipeline import SETS, STAGE_BYTES, WGMMA_THREADS, Lanes, Pipeline, Wgmma, pipeline
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

WHOLE_BITS = 3  # columns of ozaki/encode.cu, kWhole
THREADS = 256
RECORD_BYTES = 56  # of ColumnRecord
RECONSTRUCT_THREADS = 128
SHARED_BYTES = {80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10}  # of a block
STATIC_BYTES = 3 << 10  # at most, beside what is asked for at a launch
REDO_ENTRIES = 1 << 24  # amplitudes of failed columns redone at a time
REPORTED_BYTES = 16  # of what the host reads after each run
STAGES = {80: 3, 86: 2, 89: 2, 90: 4, 100: 4, 120: 2}  # of ozaki_product.cu


def check_room(launcher: Launcher, num_targets: int, num_moduli: int) -> None:
    """Refuses a matrix whose residues, beside itself, do not fit the GPU's free memory."""
    needed, free, name = (16 + 2 * num_moduli) << 2 * num_targets, launcher.free_bytes(), launcher.device_name
    if needed > free:
        raise CapacityError(
            f"a matrix on {num_targets} qubits needs {needed / 2**30:.3g} GiB with its residues modulo {num_moduli} "
            f"moduli; {name} has {free / 2**30:.3g} GiB free. Use arithmetic='native', or less accuracy."
        )


def _finish_bytes(columns: int, size: int) -> int:
    """Shared memory of a block of ozaki_finish: kColumns * kStride entries."""
    return 16 * columns * size + 512


@dataclass(frozen=True, slots=True, eq=False)
class _ChunkColumns:
    """Where a chunk's columns are: the state, its columns' and rows' places, the `Columns` record, their number."""

    amps: Any
    offsets: Any
    row_offset: Any
    columns: NDArray[Any]
    num_columns: int


@dataclass(frozen=True, slots=True, eq=False)
class _Chunks:
    """How a block runs on states of one width.

    Attributes:
        records: `Columns` of each chunk, opaque.
        num_columns: of a chunk.
        offsets: of a chunk's columns in the state, from its base on.
        report: as in ``ozaki_commit.cu``.
        outcome: its first two words, in host memory that the GPU writes to.
        lanes: streams that the chunks' parts run on.
        replays: graphs of all launches, where there is one chunk and it is small.
    """

    records: list[NDArray[Any]]
    num_columns: int
    offsets: Any
    report: Any
    outcome: Any
    lanes: Lanes
    replays: Replays | None

    @property
    def row_stride(self) -> int:
        """Columns between two rows of a workspace."""
        return max(self.num_columns, PRODUCT_COLUMNS)

    def where(self, amps: Any, row_offset: Any, number: int) -> _ChunkColumns:
        """Where the columns of the chunk with this number are."""
        return _ChunkColumns(amps, self.offsets, row_offset, self.records[number], self.num_columns)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Workspace:
    """Scratch arrays of a chunk, that graphs of all blocks of their size share.

    Attributes:
        records: of the columns.
        operand: residues of the columns, later the result.
        residues: of the product.
    """

    records: Any
    operand: Any
    residues: Any


class EmulatedBlock:
    """One matrix on arbitrary qubits of a state, ready to run on states of any width and precision.

    Args:
        launcher: of the GPU.
        matrix: ``(2**k, 2**k)``, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: value of each qubit at which the block acts (controls, and qubits known to be |0>).
        num_moduli: of the scheme.
        how: chunks, kernels and streams; the fastest by default.

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
        self.width = len(fixed) + max(len(targets), ROW_BITS) + COLUMN_BITS  # least that tiles need
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
            (columns redone, largest residual of the other columns' checks over their scale).
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
        """Where tiles reach beyond the state: zeros there stay zero."""
        padded = self.launcher.cupy.zeros(1 << self.width, amps.dtype)
        padded[: amps.size] = amps
        outcome = self.run(padded, instance)
        amps[...] = padded[: amps.size]
        return outcome

    def _whole(self, amps: Any, instance: dict[str, str], chunks: _Chunks) -> tuple[Callable[[], None], Any]:
        """The launches of a state of one chunk, and its workspace."""
        workspace = self._workspace(chunks)
        return partial(self._launch_all, chunks, self.parts(amps, instance, chunks, [workspace])), workspace

    def _launch_all(self, chunks: _Chunks, parts: tuple[Callable[[int], None], ...]) -> None:
        """All chunks, on the current stream."""
        chunks.report.data.memset_async(0, REPORTED_BYTES)  # a count and a residual; columns follow
        chunks.lanes.run(len(chunks.records), parts)

    def parts(
        self, amps: Any, instance: dict[str, str], chunks: _Chunks, scratches: Sequence[_Workspace] = ()
    ) -> tuple[Callable[[int], None], ...]:
        """Residues, products and write-back of the chunk with a given number, on the current stream."""
        scratches = scratches or [self._scratch(chunks.row_stride) for _ in chunks.records[:SETS]]
        return (
            lambda i: self._encode(chunks.where(amps, self.row_offset, i), instance, scratches[i % SETS]),
            lambda i: self._multiply(chunks, scratches[i % SETS]),
            lambda i: self._write_back(amps, instance, chunks, i, scratches[i % SETS]),
        )

    def chunks(self, num_qubits: int) -> _Chunks:
        """How a state of ``num_qubits`` is done; made once."""
        if num_qubits not in self._chunked:
            self._chunked[num_qubits] = self._chunks(num_qubits)
        return self._chunked[num_qubits]

    def _column_offsets(self, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Basis states of row 0 of the columns with these numbers, without what is fixed."""
        return insert_bits(numbers, [*self.rows, *self.fixed]).astype(np.uint64)

    def _chunks(self, num_qubits: int) -> _Chunks:
        """How a state of ``num_qubits`` is done: in chunks that leave most of the free memory alone."""
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
        lanes = Lanes(cupy, self.how.streams if len(records) > 1 else 1)
        offsets = cupy.asarray(self._column_offsets(np.arange(chunk)))
        report, pinned = cupy.empty(2 + num_columns, np.uint64), cupy.cuda.alloc_pinned_memory(REPORTED_BYTES)
        replays = Replays(cupy) if len(records) == 1 and num_columns * self.size <= REPLAYED_AMPS else None
        return _Chunks(records, chunk, offsets, report, np.frombuffer(pinned, np.uint64, 2), lanes, replays)

    def _workspace(self, chunks: _Chunks) -> _Workspace:
        """The launcher's workspace of the size of a chunk: its blocks take turns, and each waits for its report."""
        key = (self.num_moduli, self.size, chunks.row_stride)
        workspace: _Workspace | None = self.launcher.workspaces.get(key)
        if workspace is None:
            workspace = self._scratch(chunks.row_stride)
            self.launcher.workspaces[key] = workspace
        return workspace

    def _scratch(self, row_stride: int) -> _Workspace:
        """New scratch arrays of one chunk."""
        cupy = self.launcher.cupy
        entries = self.size * row_stride
        planes = 2 * self.num_moduli
        records = cupy.empty(row_stride * RECORD_BYTES, np.uint8)
        operand = cupy.empty(max(planes, 16) * entries, np.int8)
        return _Workspace(records, operand, cupy.empty(planes * entries, np.int8))

    def _multiply(self, chunks: _Chunks, scratch: _Workspace) -> None:
        """The products of a chunk whose operand is ready."""
        form = self.how.wgmma if self.launcher.architecture == 90 else None
        self.multiply(scratch.operand, scratch.residues, chunks.row_stride, form)

    def _write_back(
        self, amps: Any, instance: dict[str, str], chunks: _Chunks, number: int, scratch: _Workspace
    ) -> None:
        """CRT, checks, and the columns that pass them into the state."""
        where = chunks.where(amps, self.row_offset, number)
        if self.how.columns:
            self._finish(where, instance, chunks.report, scratch)
        else:
            self._reconstruct(where, instance, chunks, scratch)

    def _encode(self, where: _ChunkColumns, instance: dict[str, str], scratch: _Workspace) -> None:
        """Scales and residues of a chunk's columns."""
        amps, offsets, row_offset, columns = where.amps, where.offsets, where.row_offset, where.columns
        records, operand = scratch.records, scratch.operand
        depth = self.size >> ROW_BITS
        kind = instance | {"MODULI": str(self.num_moduli)} | self.order
        args: tuple[Any, ...] = (amps, self.whole_places, offsets, row_offset, self.check_row, records, operand)
        if self.encodes_whole:
            args = (*args, columns, self.scheme)
            shared_bytes = 16 * (self.size + 1) << WHOLE_BITS  # 16 bytes an entry, one entry more a column
            threads = THREADS if depth <= 4 else 2 * THREADS  # kThreads
            blocks = where.num_columns >> WHOLE_BITS
            self.launcher.launch(
                "ozaki_encode",
                kind | {"DEPTH": str(depth)},
                blocks,
                threads,
                args,
                shared_bytes,
            )
            return
        parts = records.size // 16  # whole: a workspace's columns are a multiple of 256
        self._launch("ozaki_clear", {}, parts // THREADS, (records, np.uint64(parts)))
        args = (amps, offsets, row_offset, self.check_row, records, columns)
        self._launch("ozaki_scale", instance, max(where.num_columns * depth >> 5, depth), args)
        args = (amps, self.places, offsets, row_offset, records, operand, columns, self.scheme)
        self._launch("ozaki_residues", kind, where.num_columns * depth >> COLUMN_BITS, args)

    def _reconstruct(
        self, where: _ChunkColumns, instance: dict[str, str], chunks: _Chunks, scratch: _Workspace
    ) -> None:
        """CRT into memory, then the columns whose checks hold into the state."""
        records, result, residues, columns = scratch.records, scratch.operand, scratch.residues, where.columns
        args: tuple[Any, ...] = (residues, self.weights, result, records, columns, self.scheme)
        blocks = self.size * chunks.row_stride >> 11
        self.launcher.launch("ozaki_reconstruct", {"MODULI": str(self.num_moduli)}, blocks, RECONSTRUCT_THREADS, args)
        args = (where.amps, self.places, where.offsets, where.row_offset, records, result, chunks.report, columns)
        blocks = where.num_columns * self.size >> ROW_BITS + COLUMN_BITS
        self._launch("ozaki_commit", instance, blocks, (*args, self.scheme))

    def _finish(self, where: _ChunkColumns, instance: dict[str, str], report: Any, scratch: _Workspace) -> None:
        """CRT, check and write-back of whole columns in one kernel."""
        width, depth = self.how.columns, self.size >> ROW_BITS
        places = self.places if width == 1 << COLUMN_BITS else self.whole_places
        kind = instance | {"MODULI": str(self.num_moduli), "DEPTH": str(depth)} | self.order
        args = (
            *(scratch.residues, self.weights, where.amps, places, where.offsets, where.row_offset),
            *(scratch.records, report),
        )
        blocks = where.num_columns // width
        threads = 512 if self.size * width > 4096 else THREADS  # kThreads
        all_args = (*args, where.columns, self.scheme)
        self.launcher.launch("ozaki_finish", kind, blocks, threads, all_args, _finish_bytes(width, self.size))

    def multiply(self, operand: Any, residues: Any, stride: int, form: Wgmma | None) -> None:
        """All planes' products by ``ozaki_product`` or, on Hopper, by ``form``."""
        launcher, planes = self.launcher, 2 * self.num_moduli
        args = (self.operand, operand, residues, product_record(self.size, stride, planes), self.scheme)
        depth = self.size >> ROW_BITS
        tiles = planes * depth * stride // PRODUCT_COLUMNS
        if form:
            kind, blocks = form.instance(depth) | self.order, form.blocks(tiles, depth, launcher.num_processors)
            launcher.launch(form.value, kind, blocks, WGMMA_THREADS, args, form.shared_bytes(depth))
        else:
            blocks, shared_bytes = min(tiles, launcher.num_processors), STAGES[launcher.architecture] * STAGE_BYTES
            self._launch("ozaki_product", {"RAW": "0"} | self.order, blocks, args, shared_bytes)

    def bytes_per_amplitude(self, bytes_of_one: int) -> int:
        """Bytes between memory and the chip for one of ``bytes_of_one``, each array read and written once a kernel."""
        planes = 2 * self.num_moduli
        encode = bytes_of_one * (1 if self.encodes_whole else 2) + planes
        write_back = planes + bytes_of_one + (0 if self.how.columns else 32)
        return encode + 2 * planes + write_back

    def _launch(
        self, name: str, instance: dict[str, str], blocks: int, args: tuple[Any, ...], shared_bytes: int = 0
    ) -> None:
        self.launcher.launch(name, instance, blocks, THREADS, args, shared_bytes)

    def _redo(self, amps: Any, failed: NDArray[np.int64]) -> None:
        """The FP64 product of the columns that kept their input."""
        cupy = self.launcher.cupy
        matrix = cupy.asarray(self.block.matrix)
        base = self._column_offsets(failed).astype(np.int64) | self.base
        step = max(REDO_ENTRIES // self.size, 1)
        for start in range(0, len(base), step):
            index = self.row_offset.astype(np.int64)[:, None] | cupy.asarray(base[start : start + step])[None, :]
            amps[index] = (matrix @ amps[index].astype(np.complex128)).astype(amps.dtype)
