"""Times dense blocks on one GPU under several layouts of the kernel and sizes of a library product's parts.

usage: dense_variants.py OUT.json [NUM_QUBITS [K ...]]   (28 qubits and k from 3 to 10 if not given; complex128,
           then complex64)
       dense_variants.py steps [NUM_QUBITS]              (the engine's native blocks as a run sees them, the host's
           time included; 20 qubits if not given; needs the compiled extension too)
       dense_variants.py profile                         (four launches for a profiler to look at)
The first variant of each k and precision is the package's. Targets are the lowest, the highest and random qubits; one
pass is an in-place copy of the state in its precision. Errors are of 8 columns against extended precision, over the
columns' norms in units of 2**-53 or 2**-24, beside those of the library's product of the same columns. Needs CuPy, not
the compiled extension.
"""

import json
import sys
import time
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from qsim_ozaki.engines.cuda.dense import product
from qsim_ozaki.engines.cuda.dense import tables as cuda_dense
from qsim_ozaki.engines.cuda.dense.tables import BLOCK_SHAPES
from qsim_ozaki.engines.cuda.device import kernels, nvrtc, records
from qsim_ozaki.ir import Kind, Op

UNIT = {"double": 2.0**-53, "single": 2.0**-24}
DTYPE = {"double": np.complex128, "single": np.complex64}
CHECKED_QUBITS, CHECKED_COLUMNS = 18, 8
# by the names of `kernels.HELD_MACROS` (to 6 qubits) or `kernels.STREAMED_MACROS` from the third on
OTHER_SHAPES = {
    ("double", 4): ("128 16 1 3 4 2",),
    ("double", 5): ("256 8 2 4 4 1", "128 4 1 4 4 3"),
    ("double", 6): ("256 4 1 6 3 1", "128 4 1 3 4 2"),
    ("double", 7): ("256 8 4 1",),
    ("double", 8): ("256 6 3 1",),
    ("double", 9): ("256 2 2 1",),
    ("single", 4): ("128 16 1 3 4 3",),
    ("single", 5): ("128 8 2 4 3 2",),
    ("single", 6): ("256 4 1 6 3 1",),
    ("single", 7): ("256 8 4 1",),
    ("single", 8): ("256 8 4 1", "256 6 3 1"),
    ("single", 9): ("256 6 3 1", "256 3 3 1"),
}
# log2 of amplitudes, products
PARTS = {("double", 10): ((26, 3), (21, 3)), ("single", 9): ((26, 3),), ("single", 10): ((26, 3), (26, 4))}


class Launcher:
    """The part of a launcher that one block needs."""

    def __init__(self, cupy):
        self.cupy, self.device = cupy, cupy.cuda.Device()
        self.num_processors = self.device.attributes["MultiProcessorCount"]
        self.architecture = nvrtc.nearest_architecture(int(self.device.compute_capability))
        self.device_name, self.functions = "the GPU", {}

    def free_bytes(self):
        """Memory that buffers may take."""
        return self.cupy.cuda.runtime.memGetInfo()[0]

    def function(self, name, instance):
        """A kernel, compiled without the disk's cache."""
        key = (name, *sorted(instance.items()))
        if key not in self.functions:
            self.functions[key] = self.compiled(name, instance)
        return self.functions[key]

    def compiled(self, name, instance):
        """A kernel on this device; says where it spills."""
        kernel = kernels.KERNELS[name]
        source = (kernels.SOURCES / kernel.file).read_text()
        compiled = nvrtc.nvrtc().compile(
            source, kernel.file, nvrtc.nvrtc_options(kernel, dict(instance), self.architecture)
        )
        if nvrtc.spilled_bytes(compiled.log):
            print(name, instance, "spills")
        return nvrtc.function(compiled.code, kernel.function)

    def launch(self, name, instance, blocks, threads, args, shared_bytes=0):
        """One launch on the current stream."""
        self.function(name, instance)((max(blocks, 1),), (threads,), args, shared_mem=shared_bytes)

    def seconds(self, action, repeats=3):
        """Least time of ``action`` by device events, after a warm-up."""
        action()
        times = []
        for _ in range(repeats):
            start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            start.record()
            action()
            end.record()
            end.synchronize()
            times.append(self.cupy.cuda.get_elapsed_time(start, end) * 1e-3)
        return min(times)


class State:
    """Amplitudes as a launch takes them."""

    def __init__(self, amps):
        self.amps = amps


@cache
def haar(k):
    """A random unitary; a large one is a product of smaller ones, as dense and quicker to draw."""
    rng = np.random.default_rng(k)
    if k > 8:
        return np.kron(haar(k - 8), haar(8))
    z = rng.normal(size=(1 << k, 1 << k)) + 1j * rng.normal(size=(1 << k, 1 << k))
    return np.linalg.qr(z)[0]


def by_kernel(launcher, matrix, targets, num_qubits, shape):
    """A launch of the kernel of ``shape``."""
    op = Op(Kind.UNITARY, tuple(targets), matrix)
    if len(targets) == 3:
        op = cuda_dense.with_free_target(op, (), num_qubits)
    k = len(op.targets)
    tables = cuda_dense.dense_tables(op.matrix(), op.targets, {}, num_qubits, shape)
    arrays = [launcher.cupy.asarray(values) for values in (tables.matrix, tables.places)]
    blocks = min(tables.num_tiles, shape.blocks * launcher.num_processors)
    tickets = [launcher.cupy.zeros(1, np.uint64)] if isinstance(shape, cuda_dense.HeldShape) else []

    def run(state):
        for counter in tickets:
            counter.data.memset_async(0, 8)
        args = (state.amps, *arrays, *tickets, tables.tile)
        launcher.launch(shape.kernel, shape.macros(k), blocks, shape.threads, args, shape.shared_bytes(k))

    return run


def by_library(launcher, matrix, targets, num_qubits, part, precision):
    """A launch of gather, product and scatter, in parts of 2**part[0] amplitudes and by part[1] products."""
    product.part_elements = lambda k, room: max(1 << part[0], 1 << k)
    product.LEAST_QUBITS_OF_THREE = 0 if part[1] == 3 else 99
    run = product.LibraryProduct(launcher, matrix, targets, {}, num_qubits, precision).run

    def launch(state):
        product.LEAST_QUBITS_OF_THREE = 0 if part[1] == 3 else 99
        run(state)

    return launch


def variants(k, precision):
    """Names and makers of what can do a matrix on ``k`` qubits of a state in ``precision``."""
    wide, own = max(k, 4), BLOCK_SHAPES[precision].get(max(k, 4))
    macros = [name.lower() for name in (kernels.HELD_MACROS if wide <= 6 else kernels.STREAMED_MACROS)]
    for text in (None, *OTHER_SHAPES.get((precision, wide), ())) if own else ():
        shape = own
        if text:
            shape = replace(own, **dict(zip(macros[2:], map(int, text.split()), strict=True)))
        values = shape.macros(k)
        yield " ".join(values[name.upper()] for name in macros[2:]), partial(by_kernel, shape=shape)
    for part in PARTS.get((precision, k), ()):
        yield f"library 2^{part[0]} by {part[1]}", partial(by_library, part=part, precision=precision)


@cache
def columns_of(targets, precision):
    """A random state of few qubits, the indices of its columns, some of them, and their exact products."""
    rng, n, matrix = np.random.default_rng(5), CHECKED_QUBITS, haar(len(targets))
    state = (rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n)).astype(DTYPE[precision])
    rows = records.sums([(1 << t, 0) for t in targets])[:, 0].astype(np.int64)
    others = records.sums([(1 << q, 0) for q in range(n) if q not in targets])[:, 0].astype(np.int64)
    index = rows[:, None] | others[None, :]
    some = rng.choice(len(others), CHECKED_COLUMNS, replace=False)
    return state, index, some, matrix.astype(np.clongdouble) @ state[index[:, some]].astype(np.clongdouble)


@cache
def rotation(k):
    """A real orthogonal matrix."""
    return np.linalg.qr(haar(k).real)[0].astype(complex)


def errors(launcher, make, targets, precision):
    """Largest errors of a variant and of the library on the same columns, and what is left of exact zeros."""
    cupy, n, k = launcher.cupy, CHECKED_QUBITS, len(targets)
    before, index, some, exact = columns_of(tuple(targets), precision)
    dtype = DTYPE[precision]
    state = State(cupy.asarray(before))
    make(launcher, haar(k), targets, n)(state)
    after = state.amps.get()[index]
    library = cupy.matmul(cupy.asarray(haar(k).astype(dtype)), cupy.asarray(before[index])).get()
    norms = np.linalg.norm(before[index[:, some]], axis=0) * UNIT[precision]
    error, other = (float(np.max(np.abs(values[:, some] - exact) / norms)) for values in (after, library))
    real = State(cupy.asarray(before.real.astype(dtype)))
    make(launcher, rotation(k), targets, n)(real)
    return error, other, float(np.max(np.abs(after - library))), int(cupy.count_nonzero(real.amps.imag))


def measure(out, num_qubits, widths, precisions=tuple(DTYPE)):
    """One row per width, place and variant."""
    import cupy

    launcher, found = Launcher(cupy), []
    for precision in precisions:
        state = random_state(cupy, num_qubits, precision)
        unit = launcher.seconds(lambda amps=state.amps: cupy.multiply(amps, amps.dtype.type(1), out=amps), 5)
        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        print(f"{name}, {num_qubits} qubits, {precision}, pass {unit * 1e3:.3f} ms", flush=True)
        for k in widths:
            for name, make in variants(k, precision):
                row = measured(launcher, state, (k, precision, name), make, unit)
                found.append(row)
                Path(out).write_text(json.dumps(found, indent=1))
        if precision == "double":
            pieces(launcher, state, num_qubits)


def random_state(cupy, num_qubits, precision):
    """Amplitudes of norm about 1."""
    amps = cupy.empty(1 << num_qubits, DTYPE[precision])
    part = cupy.random.standard_normal(1 << 25).view(complex) * 2.0 ** (-num_qubits / 2)
    for first in range(0, amps.size, part.size):
        amps[first : first + part.size] = part[: amps.size]
    return State(amps)


def measured(launcher, state, what, make, unit):
    """One row: seconds at each place, and errors."""
    (k, precision, name), n = what, state.amps.size.bit_length() - 1
    matrix, rng = haar(k), np.random.default_rng(k)
    spread = sorted(int(q) for q in rng.permutation(n)[:k])
    near = sorted(int(q) for q in rng.permutation(CHECKED_QUBITS)[:k])
    places = {"low": range(k), "high": range(n - k, n), "spread": spread}
    times = {
        where: launcher.seconds(partial(make(launcher, matrix, list(targets), n), state))
        for where, targets in places.items()
    }
    checked = (range(k), range(CHECKED_QUBITS - k, CHECKED_QUBITS), near)
    worst = [errors(launcher, make, list(targets), precision) for targets in checked]
    error, library, distance, imaginary = (max(column) for column in zip(*worst, strict=True))
    passes = "  ".join(f"{where} {t / unit:6.2f}" for where, t in times.items())
    wrong = " WRONG" if distance > 1e4 * UNIT[precision] or imaginary else ""
    print(f"k={k:2} {name:22} {passes}  passes; error {error:5.2f}, library's {library:5.2f}{wrong}", flush=True)
    row = {"k": k, "precision": precision, "variant": name, **times}
    return row | {"pass": unit, "error": error, "library_error": library}


def pieces(launcher, state, n):
    """The parts of a library product on 10 qubits, each in passes' milliseconds over the whole state."""
    cupy, k = launcher.cupy, 10
    matrix = cupy.asarray(haar(k))
    for bits in (bits for bits in (20, 21, 26) if bits <= n):
        shape, count = (1 << k, 1 << bits - k), 1 << n - bits
        block, out = cupy.ones(shape, complex), cupy.empty(shape, complex)
        multiply = {"by 3": partial(product.multiply_by_three, cupy, matrix, block, out)}
        multiply["by 4"] = partial(cupy.matmul, matrix, block, out=out)
        words = [f"{name} {count * launcher.seconds(action) * 1e3:.2f}" for name, action in multiply.items()]
        for where, targets in (("low", range(k)), ("high", range(n - k, n))):
            tables = product.part_tables(list(targets), {}, n, 1 << bits, 3)
            places, blocks = cupy.asarray(tables.places), min(1 << bits - 10, 8 * launcher.num_processors)
            for kernel in ("block_gather", "block_scatter"):

                def move(kernel=kernel, places=places, parts=tables.parts, blocks=blocks, block=block):
                    pair = (state.amps, block)
                    for number in range(len(parts)):
                        launcher.launch(
                            kernel, kernels.DOUBLE, blocks, 256, (*pair, places, parts[number : number + 1])
                        )

                words.append(f"{kernel} {where} {launcher.seconds(move) * 1e3:.2f}")
        print(f"parts of 2^{bits}, ms: " + ", ".join(words), flush=True)


def steps(num_qubits=20):
    """Milliseconds of a native block on the lowest qubits, from its call until the device is done."""
    from qsim_ozaki.engines.cuda import engine as cuda
    from qsim_ozaki.ir import DenseBlock

    engine = cuda.create()
    wait = engine.launcher.cupy.cuda.get_current_stream().synchronize

    def seconds(register, step):
        start = time.perf_counter()
        engine.run_step(register, step)
        wait()
        return time.perf_counter() - start

    for precision in DTYPE:
        register = engine.allocate(num_qubits, precision)
        for k in range(3, 11):
            step = DenseBlock(Op(Kind.UNITARY, tuple(range(k)), haar(k)))
            first, *times = (seconds(register, step) * 1e3 for _ in range(24))
            words = f"least {min(times):.4f} ms, median {np.median(times):.4f} ms, first {first:.1f} ms"
            print(f"{num_qubits} qubits, {precision}, k={k:2}: {words}", flush=True)


def profile(num_qubits=26):
    """One launch each of k = 6, 8 and 9 on the lowest qubits, and of k = 5."""
    import cupy

    launcher, state = Launcher(cupy), State(cupy.zeros(1 << num_qubits, complex))
    for k in (5, 6, 8, 9):
        by_kernel(launcher, haar(k), list(range(k)), num_qubits, BLOCK_SHAPES["double"][k])(state)
    cupy.cuda.Device().synchronize()


def main():
    """Measures, or launches for a profiler."""
    if sys.argv[1] == "profile":
        profile()
    elif sys.argv[1] == "steps":
        steps(*map(int, sys.argv[2:]))
    else:
        numbers = [int(word) for word in sys.argv[2:]]
        measure(sys.argv[1], numbers[0] if numbers else 28, numbers[1:] or range(3, 11))


if __name__ == "__main__":
    main()
