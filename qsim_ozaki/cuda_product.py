"""Matrices on many qubits of a GPU's state by a library product: gather, product, scatter, part by part.

In: a matrix, its targets, the engine. Out: a launch that applies it in place. It chooses no path and no arithmetic.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from qsim_ozaki import cuda_dense
from qsim_ozaki.cuda_layout import SHAPES
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ops import ComplexArray

LEAST_PART, LARGEST_PART = (
    1 << 21,
    1 << 26,
)  # amplitudes: 32 MiB in complex128 stay in L2 (H200: 50 MB), 1 GiB fit memory
PART_WORK = 1 << 31  # products of a part, amplitudes times 2^k: 0.3 ms on an H200, so that launches cost nothing
LEAST_QUBITS_OF_THREE = 7  # memory bounds smaller matrices, whose exact zeros four products keep


def part_elements(k: int) -> int:
    """Amplitudes of one part: few enough for L2 where the product itself takes long."""
    return max(min(max(PART_WORK >> k, LEAST_PART), LARGEST_PART), 1 << k)


def product_launch(
    engine: Any, matrix: ComplexArray, targets: Sequence[int], fixed: dict[int, int], num_qubits: int, precision: str
) -> Callable[[Any], None]:
    """A launch of one matrix on a state of ``num_qubits`` (padding included), through two bounded buffers.

    Args:
        engine: a CUDA engine.
        matrix: ``(2**k, 2**k)``, index bit 0 is ``targets[0]``.
        targets: distinct qubits.
        fixed: value of each qubit at which the matrix acts.
        num_qubits: width of the state.
        precision: of the state, ``"double"`` or ``"single"``.
    """
    cupy, k = engine.cupy, len(targets)
    dtype = "complex128" if precision == "double" else "complex64"
    instance = {"REAL": "double" if precision == "double" else "float"}
    tables = cuda_dense.part_tables(targets, fixed, num_qubits, part_elements(k), SHAPES[precision].line_qubits)
    places, shape = cupy.asarray(tables.places), (1 << k, tables.num_columns)
    blocks = min(int(tables.parts["num_tiles"][0]), 8 * engine.num_processors)

    def run(target: Any) -> None:
        unitary = cupy.asarray(matrix, dtype)
        block, out = cupy.empty(shape, dtype), cupy.empty(shape, dtype)
        for number in range(len(tables.parts)):
            record = tables.parts[number : number + 1]
            engine.launch("block_gather", instance, blocks, 256, (target.amps, block, places, record))
            if precision == "double" and k >= LEAST_QUBITS_OF_THREE:
                multiply_by_three(cupy, unitary, block, out)
            else:
                cupy.matmul(unitary, block, out=out)
            engine.launch("block_scatter", instance, blocks, 256, (target.amps, out, places, record))

    return run


def multiply_by_three(cupy: Any, left: Any, right: Any, out: Any) -> None:
    """``out = left @ right`` by three real products instead of four, complex128, all row-major.

    The real parts are those of four products; the imaginary parts are as exact as a column's norm.
    Source: cuBLAS, cublasZgemm3m; Higham, Accuracy and Stability of Numerical Algorithms, 23.2.4.
    """
    handle = ctypes.c_void_p(cupy.cuda.device.get_cublas_handle())
    library = cublas(cupy.cuda.runtime.runtimeGetVersion() // 1000)
    if library is None:
        cupy.matmul(left, right, out=out)
        return
    rows, columns = right.shape
    one, zero = (ctypes.c_double * 2)(1, 0), (ctypes.c_double * 2)(0, 0)
    stream = ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)
    # the library stores by columns: out^T = right^T left^T
    status = library.cublasSetStream_v2(handle, stream) or library.cublasZgemm3m(
        handle,
        *(ctypes.c_int(value) for value in (0, 0, columns, rows, rows)),
        ctypes.byref(one),
        *_matrix(right, columns),
        *_matrix(left, rows),
        ctypes.byref(zero),
        *_matrix(out, columns),
    )
    if status != 0:
        raise EngineError(f"cublasZgemm3m of {rows} x {rows} by {rows} x {columns} failed with status {status}")


def _matrix(values: Any, stride: int) -> tuple[ctypes.c_void_p, ctypes.c_int]:
    return ctypes.c_void_p(values.data.ptr), ctypes.c_int(stride)


@cache
def cublas(version: int) -> Any:
    """The cuBLAS that CuPy has loaded, by its own name; None where it goes by another."""
    for name in (f"libcublas.so.{version}", f"cublas64_{version}.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
