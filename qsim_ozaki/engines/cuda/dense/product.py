"""Applies matrices on many qubits of a GPU's state by a library product: gather, product, scatter, part by part.

In: a matrix, its targets, a launcher. Out: a launch that applies it in place. It may not choose path or arithmetic.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.kernels import INSTANCES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import opaque, sums
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.device.state import DTYPES, CudaState
from qsim_ozaki.engines.cuda.tuning import LARGEST_PART, LEAST_QUBITS_OF_THREE, MEMORY_SHARE
from qsim_ozaki.errors import CapacityError, EngineError
from qsim_ozaki.ir import ComplexArray

MOVED_BITS, MOVING_BITS = 10, 8  # log2 of the elements of a tile of `dense/gather.cu`, and of its threads
BLOCK = np.dtype([("num_tiles", "u8"), ("fixed", "u8"), ("tile_size", "u4")], align=True)


@dataclass(frozen=True, slots=True)
class PartTables:
    """Tables by which parts of a state are moved to matrices of 2^k rows and back.

    Attributes:
        places: positions, in the order in which `dense/gather.cu` reads them; the same for every part.
        parts: one `Block` record per part.
        num_columns: number of columns of the matrix of one part.
    """

    places: NDArray[np.uint64]
    parts: NDArray[Any]
    num_columns: int


def part_tables(
    targets: Sequence[int], fixed: dict[int, int], num_qubits: int, max_elements: int, line_qubits: int
) -> PartTables:
    """Returns the tables of parts that cover the state, split over the highest column qubits.

    Args:
        targets: distinct qubits; bit b of a row is ``targets[b]``.
        fixed: qubits with the value at which the block acts.
        num_qubits: width of the state.
        max_elements: largest number of amplitudes of a part, a power of two, at least one column.
        line_qubits: log2 of the amplitudes in a 128-byte line.
    """
    k = len(targets)
    columns = [q for q in range(num_qubits) if q not in fixed and q not in targets]
    num_top = max(k + len(columns) - (max_elements.bit_length() - 1), 0)
    assert num_top <= len(columns), f"{max_elements} amplitudes do not hold one column of {1 << k}"
    top = columns[len(columns) - num_top :]
    columns = columns[: len(columns) - num_top]
    in_block = {q: 1 << b for b, q in enumerate((*columns, *targets))}
    free = sorted(in_block)
    near = {*free[:line_qubits], *columns[:line_qubits]}
    union = sorted([*near, *(q for q in free if q not in near)][:MOVED_BITS])
    by_block = sorted(union, key=in_block.__getitem__)
    slot = {q: 1 << b for b, q in enumerate(union)}
    spare = [slot[q] for q in union[:line_qubits] if q not in by_block[:line_qubits]]
    for q in by_block[:line_qubits]:
        if q not in union[:line_qubits]:
            slot[q] |= spare.pop()
    in_state = {q: 1 << q for q in free}
    sides = []
    for order, offset in ((union, in_state), (by_block, in_block)):
        steps = [(offset[q], slot[q]) for q in order]
        sides.append(np.resize(sums(steps[:MOVING_BITS], np.bitwise_xor), (1 << MOVING_BITS, 2)))
        sides.append(np.resize(sums(steps[MOVING_BITS:], np.bitwise_xor), (1 << MOVED_BITS - MOVING_BITS, 2)))
    tiles = sums([(1 << q, in_block[q]) for q in free if q not in union])
    parts = np.zeros(1 << num_top, BLOCK)
    parts["num_tiles"], parts["tile_size"] = len(tiles), 1 << len(union)
    base = sum(value << q for q, value in fixed.items())
    parts["fixed"] = sums([(1 << q, 0) for q in top])[:, 0] | np.uint64(base)
    return PartTables(np.concatenate([*sides, tiles]).reshape(-1), parts, 1 << len(columns))


def part_elements(k: int, room: int) -> int:
    """Returns the amplitudes of one part, a power of two: at most ``room`` and `LARGEST_PART`, at least one column."""
    return max(min(1 << max(room, 1).bit_length() - 1, LARGEST_PART), 1 << k)


class LibraryProduct:
    """One matrix on states of ``num_qubits`` (padding included), through two buffers of one part each.

    The matrix is uploaded once, in the state's precision. A buffer takes at most a GiB in complex128 and at most a
    quarter of the free memory; between runs, buffers belong to CuPy's memory pool. If a run cannot get its buffers,
    the parts are halved for this and all later runs.

    Args:
        launcher: launches kernels on the GPU.
        matrix: ``(2**k, 2**k)``, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: qubits with the value at which the matrix acts.
        num_qubits: width of the state.
        precision: of the state, ``"double"`` or ``"single"``.
    """

    def __init__(
        self,
        launcher: Launcher,
        matrix: ComplexArray,
        targets: Sequence[int],
        fixed: dict[int, int],
        num_qubits: int,
        precision: str,
    ) -> None:
        self.launcher, self.targets, self.fixed, self.num_qubits = launcher, targets, fixed, num_qubits
        self.instance, self.dtype = INSTANCES[precision], np.dtype(DTYPES[precision]).name
        self.line_qubits = SHAPES[precision].line_qubits
        self.unitary = launcher.cupy.asarray(matrix, self.dtype)
        self._divide(launcher.free_bytes() // MEMORY_SHARE * (1 << self.line_qubits) // 128)

    def _divide(self, room: int) -> None:
        """Divides the state into parts of at most ``room`` amplitudes, but at least one column."""
        elements = part_elements(len(self.targets), room)
        self.tables = part_tables(self.targets, self.fixed, self.num_qubits, elements, self.line_qubits)
        self.places = self.launcher.cupy.asarray(self.tables.places)

    def _buffers(self) -> tuple[Any, Any]:
        """Returns buffers for one part and for its product; the parts become smaller if memory has become short."""
        k = len(self.targets)
        while True:
            try:
                block, out = self.launcher.cupy.empty((2, 1 << k, self.tables.num_columns), self.dtype)
                return block, out
            except MemoryError as error:  # other states have been allocated since
                if self.tables.num_columns == 1:
                    raise out_of_memory(k, self.dtype, self.launcher) from error
                self._divide((self.tables.num_columns << k) // 2)

    def run(self, state: CudaState) -> None:
        """Applies the matrix to ``state``, in place.

        Raises:
            CapacityError: not even two columns of the matrix fit.
        """
        launcher, k = self.launcher, len(self.targets)
        multiply = multiply_by_three if k >= LEAST_QUBITS_OF_THREE else multiply_by_four
        block, out = self._buffers()
        blocks = min(int(self.tables.parts["num_tiles"][0]), 8 * launcher.num_processors)
        for number in range(len(self.tables.parts)):
            record = opaque(self.tables.parts[number : number + 1])
            launcher.launch("block_gather", self.instance, blocks, 256, (state.amps, block, self.places, record))
            multiply(launcher.cupy, self.unitary, block, out)
            launcher.launch("block_scatter", self.instance, blocks, 256, (state.amps, out, self.places, record))


def out_of_memory(k: int, dtype: str, launcher: Launcher) -> CapacityError:
    """Returns the error to raise if two columns of a matrix on ``k`` qubits do not fit."""
    needed = 2 * (16 if dtype == "complex128" else 8) << k
    return CapacityError(
        f"a matrix on {k} qubits needs {needed / 2**20:.3g} MiB beside the state; {launcher.device_name} has "
        f'{launcher.free_bytes() / 2**20:.3g} MiB free. Use a matrix on fewer qubits, a smaller state, or engine="cpu".'
    )


def multiply_by_four(cupy: Any, left: Any, right: Any, out: Any) -> None:
    """Computes ``out = left @ right``."""
    cupy.matmul(left, right, out=out)


def multiply_by_three(cupy: Any, left: Any, right: Any, out: Any) -> None:
    """Computes ``out = left @ right`` by three real products instead of four; complex128 or complex64, row-major.

    The real parts are as exact as with four products; the errors of the imaginary parts are relative to the norm of a
    column.
    Source: cuBLAS, cublasZgemm3m and cublasCgemm3m; Higham, Accuracy and Stability of Numerical Algorithms, 23.2.4.
    """
    handle = ctypes.c_void_p(cupy.cuda.device.get_cublas_handle())
    library = cublas(cupy.cuda.runtime.runtimeGetVersion() // 1000)
    if library is None:
        multiply_by_four(cupy, left, right, out)
        return
    rows, columns = right.shape
    name, real = {"complex128": ("cublasZgemm3m", ctypes.c_double), "complex64": ("cublasCgemm3m", ctypes.c_float)}[
        str(out.dtype)
    ]
    one, zero = (real * 2)(1, 0), (real * 2)(0, 0)
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    # The library stores matrices column by column: out^T = right^T left^T.
    status = library.cublasSetStream_v2(handle, stream) or getattr(library, name)(
        handle,
        *(ctypes.c_int(value) for value in (0, 0, columns, rows, rows)),
        ctypes.byref(one),
        *_matrix(right, columns),
        *_matrix(left, rows),
        ctypes.byref(zero),
        *_matrix(out, columns),
    )
    if status != 0:
        raise EngineError(f"{name} of {rows} x {rows} by {rows} x {columns} failed with status {status}")


def _matrix(values: Any, stride: int) -> tuple[ctypes.c_void_p, ctypes.c_int]:
    """Returns the library's two arguments for a matrix: its address and its stride."""
    return ctypes.c_void_p(values.data.ptr), ctypes.c_int(stride)


@cache
def cublas(version: int) -> Any:
    """Returns the cuBLAS library that CuPy has loaded, or None if its file has an unknown name."""
    for name in (f"libcublas.so.{version}", f"cublas64_{version}.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
