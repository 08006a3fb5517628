"""Times matrices on k qubits on one GPU, by cuBLAS and by emulation, with errors against an extended-precision product.

usage: cuda_blocks.py OUT.md [NUM_QUBITS]
Haar-random matrices at random targets of a random state, complex128, all in one run; times are medians of device events
after a warm-up. "native" is one cuBLAS product of the matrix with a state that already lies column by column: no
gather, no scatter. An emulated time is that of the whole block in place, its checks included.
"""

import sys
from pathlib import Path

import numpy as np

from qsim_ozaki import cuda_calibrate, moduli
from qsim_ozaki.cuda_ozaki import EmulatedBlock
from qsim_ozaki.engine import select

COUNTS = (15, 9)  # FP64 parity, and about 34 bits
CHECKED_COLUMNS = 8  # whose exact products a host computes
UNIT = 2.0**-53


def haar(cupy, size):
    """A Haar-random matrix, drawn on the device."""
    q, r = cupy.linalg.qr(cupy.random.standard_normal((size, size)) + 1j * cupy.random.standard_normal((size, size)))
    phases = cupy.diag(r)
    return (q * (phases / abs(phases))).get()


def largest_error(found, exact, columns):
    """Over the columns' norms, in units of 2**-53."""
    return float(np.max(np.abs(found - exact) / np.linalg.norm(columns, axis=0))) / UNIT


def row(engine, state, k, rng):
    """One line of the table: native milliseconds, then per number of moduli milliseconds, error, its bound."""
    cupy, num_qubits = engine.launcher.cupy, state.size.bit_length() - 1
    matrix = haar(cupy, 1 << k)
    targets = tuple(int(q) for q in rng.permutation(num_qubits)[:k])
    on_device, by_columns = cupy.asarray(matrix), state.reshape(1 << k, -1)
    native = cuda_calibrate.event_seconds(engine.launcher.cupy, lambda: cupy.matmul(on_device, by_columns))
    cells = [str(k), f"{native * 1e3:.2f}"]
    numbers = np.sort(rng.integers(0, 1 << (num_qubits - k), CHECKED_COLUMNS))
    for count in COUNTS:
        block = EmulatedBlock(engine.launcher, matrix, targets, {}, count)
        rows = block.row_offset.astype(np.int64)[:, None]
        index = rows | cupy.asarray(block._column_offsets(numbers).astype(np.int64))[None, :]
        before = state[index].get()
        redone, _ = block.run(state, {"REAL": "double"})
        exact = block.block.matrix.astype(np.clongdouble) @ before.astype(np.clongdouble)
        error = largest_error(state[index].get(), exact, before)
        plain = largest_error(cupy.matmul(cupy.asarray(block.block.matrix), cupy.asarray(before)).get(), exact, before)
        seconds = cuda_calibrate.event_seconds(engine.launcher.cupy, lambda b=block: b.run(state, {"REAL": "double"}))
        bound = float(moduli.error_bound(count, max(k, 7))) / UNIT
        cells += [f"{seconds * 1e3:.2f}", f"{error:.3g}", f"{plain:.2g}", f"{bound:.3g}", str(redone)]
    return "| " + " | ".join(cells) + " |"


def main(out, num_qubits=26):
    """Writes the table."""
    engine = select("cuda")
    cupy, rng = engine.launcher.cupy, np.random.default_rng(1)
    size = 1 << int(num_qubits)
    state = cupy.random.standard_normal(size) + 1j * cupy.random.standard_normal(size)
    state /= cupy.linalg.norm(state)
    names = ["k", "native ms"]
    for count in COUNTS:
        names += [f"{count} moduli ms", "error", "native error", "bound", "redone"]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += [row(engine, state, k, rng) for k in range(7, 13)]
    text = f"{engine.launcher.device_name}, {num_qubits} qubits; errors over a column's norm, in units of 2^-53.\n\n"
    Path(out).write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
