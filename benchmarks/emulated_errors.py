"""Errors of emulated FP64 beside native FP64's, against extended precision, for every size of matrix up to 2^12.

usage: emulated_errors.py OUT.json [LARGEST]

Haar-random, Fourier and Hadamard matrices; columns that are random, that spread over 1e-300 to 1 (1e-30 in complex64),
and that are rows of the matrix, so that sums are the largest there are. Each row has the largest error of 16 columns
over a column's norm, in units of 2^-53 (of 2^-24 for complex64), beside that of NumPy's product, and the proved bound.
All on the CPU engine. Then the founding form of 17-bit halves on a product of 2048 x 2048 x 2048 entries U(-1, 1).
"""

import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from qsim_ozaki.bench.blocks import founding
from qsim_ozaki.bench.blocks.hadamard import hadamard
from qsim_ozaki.engines import haar
from qsim_ozaki.engines.cpu import processor
from qsim_ozaki.engines.cpu.engine import extension_block
from qsim_ozaki.ozaki import moduli, scheme

COLUMNS = 16
PRODUCT_SIZE = 2048


def matrices(k):
    """Name and matrix, one at a time."""
    size = 1 << k
    yield "haar", haar(size, k)
    index = np.arange(size)
    yield "fourier", np.exp(2j * np.pi * (np.outer(index, index) % size) / size) / np.sqrt(size)
    yield "hadamard", hadamard(k)


def columns(rng, matrix, spread):
    """Name and ``(2**k, COLUMNS)`` columns; the second spread over 10**-spread to 1."""
    size = len(matrix)
    x = rng.normal(size=(size, COLUMNS)) + 1j * rng.normal(size=(size, COLUMNS))
    yield "random", x / np.linalg.norm(x)
    yield f"spread over 1e-{spread} to 1", x * 10.0 ** -rng.uniform(0, spread, x.shape)
    yield "rows of the matrix", np.ascontiguousarray(matrix[rng.integers(size, size=COLUMNS)].conj().T)


def rows(k, precision, rng):
    """The lines of one size."""
    dtype = np.complex64 if precision == "single" else np.complex128
    unit = 2.0**-24 if precision == "single" else 2.0**-53
    count = moduli.num_moduli_for(None, k, precision)
    for name, matrix in matrices(k):
        block = scheme.block(matrix, count)
        run = extension_block(block, 2)
        extended = matrix.astype(np.clongdouble)
        for kind, x in columns(rng, matrix, 30 if precision == "single" else 300):
            used = x.astype(dtype)
            exact = extended @ used.astype(np.clongdouble)
            norms = np.linalg.norm(used.astype(np.clongdouble), axis=0)
            state = np.ascontiguousarray(used.T).reshape(-1)
            redone, _ = run.run(state, list(range(k)), list(range(k, k + 4)), 0, block.scheme.tolerance, 0)
            found = state.reshape(COLUMNS, -1).T
            native = matrix.astype(dtype) @ used
            errors = [float(np.max(np.abs(y - exact) / norms)) / unit for y in (found, native)]
            yield {
                "qubits": k,
                "precision": precision,
                "matrix": name,
                "columns": kind,
                "moduli": count,
                "error": errors[0],
                "native_error": errors[1],
                "ratio": errors[0] / max(errors[1], 1.0),
                "bound": float(moduli.error_bound(count, k)) / unit,
                "redone": redone,
            }


def product_of_halves(rng):
    """The founding form on a large product."""
    left, right = rng.uniform(-1, 1, (2, PRODUCT_SIZE, PRODUCT_SIZE))
    form = founding.halves()
    start = time.perf_counter()
    found = founding.multiply(founding.planes(left, form), founding.planes(right.T, form), form)
    seconds = time.perf_counter() - start
    error = 0.0
    for first in range(0, PRODUCT_SIZE, 256):  # FP64's own error is 1e-13: it can stand in for the exact product
        part = slice(first, first + 256)
        error = max(error, float(np.max(np.abs(found[part] - left[part] @ right))))
    return {"form": form.name, "size": PRODUCT_SIZE, "error": error, "seconds": seconds}


def main(path, largest=12):
    """Every size, then the record."""
    rng = np.random.default_rng(3)
    record = {
        "command": " ".join(sys.argv),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": processor(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "rows": [],
    }
    record["product"] = product_of_halves(rng)
    print(record["product"], flush=True)
    for k in range(3, int(largest) + 1):
        for precision in ("double", "single"):
            for row in rows(k, precision, rng):
                record["rows"].append(row)
                print("  ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()), flush=True)
        record["largest_ratio"] = max(row["ratio"] for row in record["rows"])
        Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"largest ratio to native: {record['largest_ratio']:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
