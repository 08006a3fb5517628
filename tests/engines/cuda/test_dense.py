"""Dense blocks and library products of the CUDA engine on the host: kernels emulated, against NumPy."""

import ctypes
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from support import kernels_host, straight_host
from support.random_ops import random_state, random_unitary
from support.reference import apply_op, tolerance

from qsim_ozaki.engines.cuda.dense import product
from qsim_ozaki.engines.cuda.dense import tables as cuda_dense
from qsim_ozaki.engines.cuda.device import records, shapes
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import Kind, Op

PRECISIONS = ["double", "single"]
pytestmark = pytest.mark.skipif(straight_host.compiler() is None, reason="no C++ compiler")


def places_of(kind, k, n, rng):
    """Targets: the lowest, the highest, such that each of the lowest qubits is a target and is none, or random."""
    order = {
        "low": list(range(k)),
        "high": list(range(n - 1, n - k - 1, -1)),
        "zero": [0, *range(n - k + 1, n)],
        "one": [1, *range(n - k + 1, n)],
        "one two": [2, 1, *range(n - k + 2, n)],
        "two": [*range(4, 3 + k), 2],
        "zero two": [0, 2, *range(4, 2 + k)],
        "random": [int(q) for q in rng.permutation(n)[:k]],
    }[kind]
    return tuple(int(q) for q in rng.permutation(order))


def run_dense(tables, shape, k, state):
    """The state after one dense block of ``tables``, on the host."""
    out = state.copy()
    tickets = (np.zeros(1, np.uint64),) if isinstance(shape, cuda_dense.HeldShape) else ()
    args = (out, tables.matrix, tables.places, *tickets, tables.tile)
    kernels_host.launch(shape.kernel, shape.macros(k), min(2, tables.num_tiles), shape.threads, args)
    return out


KINDS = ("low", "high", "zero", "one", "one two", "two", "zero two", "random")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("k", [4, 5, 6, 7, 8, 9])
def test_dense_blocks_on_the_host(rng, k, precision):
    """Tiles in turn, tensor cores emulated: a ring that goes round, any number of groups, the last tile not full."""
    shape = cuda_dense.BLOCK_SHAPES[precision][k]
    n = k + cuda_dense.GROUP_BITS + ((16 * shape.groups).bit_length() if k < 7 else {7: 5, 8: 4, 9: 4}[k])
    for kind in KINDS if k in (4, 6) else KINDS[::7] if k < 8 else KINDS[:1]:
        targets = places_of(kind, k, n, rng)
        control = next(q for q in rng.permutation(n) if q not in targets)
        op = Op(Kind.UNITARY, targets, random_unitary(rng, 1 << k), (int(control),), 1)
        tables = cuda_dense.dense_tables(op.data, op.targets, {int(control): 1}, n, shape)
        assert tables.num_tiles == -(-(1 << (n - k - cuda_dense.GROUP_BITS - 1)) // shape.groups)
        assert k > 6 or tables.num_tiles > 2 * shape.stages, "two blocks"
        state = random_state(rng, n).astype(np.complex128 if precision == "double" else np.complex64)
        got = run_dense(tables, shape, k, state)
        terms = 1 << k if precision == "double" else 1  # complex64 is multiplied in FP64 and rounded once
        assert np.linalg.norm(got - apply_op(state, op)) <= tolerance(terms, precision), (targets, control)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("k", [4, 5, 6])
def test_dense_blocks_of_small_states_on_the_host(rng, k, precision):
    """Fewer groups than a tile has: none, one or two qubits number them."""
    shape = cuda_dense.BLOCK_SHAPES[precision][k]
    for n in range(k + cuda_dense.GROUP_BITS, k + cuda_dense.GROUP_BITS + 3):
        op = Op(Kind.UNITARY, places_of("random", k, n, rng), random_unitary(rng, 1 << k))
        tables = cuda_dense.dense_tables(op.data, op.targets, {}, n, shape)
        assert tables.num_tiles == 1
        state = random_state(rng, n).astype(np.complex128 if precision == "double" else np.complex64)
        got = run_dense(tables, shape, k, state)
        terms = 1 << k if precision == "double" else 1
        assert np.linalg.norm(got - apply_op(state, op)) <= tolerance(terms, precision), (n, op.targets)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_lanes_read_from_distinct_banks(rng, precision):
    """Lanes that read 128 bytes of shared memory together have distinct slots of a 128-byte row; so have 8 writers."""
    for k, shape in cuda_dense.BLOCK_SHAPES[precision].items():
        n, at_once = k + cuda_dense.GROUP_BITS + 2, 128 // (16 if precision == "double" else 8)
        for kind in KINDS:
            targets = places_of(kind, k, n, rng)
            tables = cuda_dense.dense_tables(np.eye(1 << k, dtype=complex), targets, {}, n, shape)
            reads = tables.places[-32:].reshape(-1, at_once) % at_once
            assert all(len(set(row)) == at_once for row in reads), (k, targets)
            slots = tables.places[: 2 * shape.threads].reshape(-1, 8, 2)[:, :, 1] % at_once
            assert all(len(set(row)) == 8 for row in slots), (k, targets)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("n", "k", "part"), [(5, 3, 5), (9, 3, 4), (13, 5, 12), (14, 10, 13)])
def test_parts_become_matrices_and_return(rng, n, k, part, precision):
    """Gathered parts hold what a transposition of the state holds; scattered they go back where they were."""
    dtype, real = (np.complex128, "double") if precision == "double" else (np.complex64, "float")
    line_qubits = shapes.SHAPES[precision].line_qubits
    for kind in ("low", "high", "random"):
        targets = places_of(kind, k, n - 1, rng)
        control = n - 1
        state = random_state(rng, n).astype(dtype)
        tables = product.part_tables(targets, {control: 1}, n, 1 << part, line_qubits)
        columns = [q for q in range(n - 1) if q not in targets]
        index = records.sums([(1 << q, 0) for q in (*columns, *targets)])[:, 0].astype(np.int64) | 1 << control
        want = state[index].reshape(1 << k, -1)
        back, start = np.zeros_like(state), 0
        for number in range(len(tables.parts)):
            record = tables.parts[number : number + 1]
            block = np.full((1 << k, tables.num_columns), np.nan, dtype)
            launch = partial(kernels_host.launch, instance={"REAL": real}, blocks=3, threads=256)
            launch("block_gather", args=(state, block, tables.places, record))
            assert np.array_equal(block, want[:, start : start + tables.num_columns]), targets
            launch("block_scatter", args=(back, block, tables.places, record))
            start += tables.num_columns
        assert np.array_equal(back[index], state[index])
        assert np.count_nonzero(back) == len(index)


class Library:
    """cuBLAS as far as a product by three asks for it: column-major matrices at addresses."""

    def __init__(self):
        self.calls = 0

    def cublasSetStream_v2(self, handle, stream):  # noqa: N802
        assert (handle.value, stream.value) == (7, 9)
        return 0

    def cublasZgemm3m(self, handle, *arguments):  # noqa: N802
        self.multiply(ctypes.c_double, handle, *arguments)
        return 0

    def cublasCgemm3m(self, handle, *arguments):  # noqa: N802
        self.multiply(ctypes.c_float, handle, *arguments)
        return 0

    def multiply(self, real, handle, *arguments):
        """The product, of matrices of ``real`` pairs."""
        trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = arguments
        assert (handle.value, trans_a.value, trans_b.value) == (7, 0, 0)
        assert (alpha._obj[:], beta._obj[:]) == ([1, 0], [0, 0])
        m, n, k = m.value, n.value, k.value
        left, right, out = (
            np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(real)), (columns, stride.value, 2)).view(
                "c16" if real is ctypes.c_double else "c8"
            )
            for at, stride, columns in ((a, lda, k), (b, ldb, n), (c, ldc, n))
        )
        out[:, :m, 0] = right[:, :k, 0] @ left[:, :m, 0]
        self.calls += 1


@pytest.fixture
def library(monkeypatch):
    """A library in place of cuBLAS, and what CuPy says of streams and addresses."""
    found = SimpleNamespace(
        device=SimpleNamespace(get_cublas_handle=lambda: 7),
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 13000),
        get_current_stream=lambda: SimpleNamespace(ptr=9),
    )
    monkeypatch.setattr(kernels_host.Launcher.cupy, "cuda", found)
    address = property(lambda array: SimpleNamespace(ptr=array.ctypes.data))
    monkeypatch.setattr(kernels_host.Array, "data", address, raising=False)
    library = Library()
    monkeypatch.setattr(product, "cublas", lambda version: library)
    return library


@pytest.mark.parametrize(("k", "precision", "calls"), [(5, "double", 0), (7, "single", 16), (7, "double", 16)])
def test_library_products_on_the_host(rng, monkeypatch, library, k, precision, calls):
    """Gather, product, scatter over parts: by four real products, or by three where the library has them."""
    n, dtype = 13, np.complex128 if precision == "double" else np.complex64
    monkeypatch.setattr(product, "part_elements", lambda k, room: 1 << 8)
    targets = places_of("random", k, n - 1, rng)
    op = Op(Kind.UNITARY, targets, random_unitary(rng, 1 << k), (n - 1,), 1)
    state = random_state(rng, n)
    amps = state.astype(dtype)
    launch = product.LibraryProduct(kernels_host.Launcher(), op.data, targets, {n - 1: 1}, n, precision).run
    launch(SimpleNamespace(amps=amps))
    assert np.linalg.norm(amps - apply_op(state, op)) <= tolerance(4, precision)
    assert library.calls == calls


def test_parts_fit_the_memory(rng, monkeypatch, library):
    """Parts take a share of what is free, and less where a run does not get it; the matrix is on the device once."""
    k, n, engine = 7, 12, kernels_host.Launcher()
    assert product.part_elements(10, 1 << 40) == product.LARGEST_PART
    assert product.part_elements(10, 5000) == 4096
    assert product.part_elements(10, 0) == 1024
    free, limit, empty, asked = 4 * 16 << 11, [1 << 40], engine.cupy.empty, []

    def bounded(shape, dtype):
        asked.append(int(np.prod(shape)))
        if asked[-1] * 16 > limit[0]:
            raise MemoryError(f"{asked[-1]} amplitudes")
        return empty(shape, dtype)

    monkeypatch.setattr(engine.cupy, "empty", staticmethod(bounded))
    monkeypatch.setattr(kernels_host.Launcher, "free_bytes", lambda engine: free)
    op = Op(Kind.UNITARY, places_of("random", k, n, rng), random_unitary(rng, 1 << k))
    state = random_state(rng, n)
    amps, uploads = state.copy(), []
    launch = product.LibraryProduct(engine, op.data, op.targets, {}, n, "double").run
    asarray = engine.cupy.asarray
    monkeypatch.setattr(
        engine.cupy, "asarray", staticmethod(lambda values, *dtype: uploads.append(values) or asarray(values, *dtype))
    )
    launch(SimpleNamespace(amps=amps))
    limit[0] = 16 << 10
    launch(SimpleNamespace(amps=amps))
    launch(SimpleNamespace(amps=amps))
    assert not any(values is op.data for values in uploads)
    assert asked == [1 << 12, 1 << 12, 1 << 11, 1 << 10, 1 << 10]
    assert np.linalg.norm(amps - apply_op(apply_op(apply_op(state, op), op), op)) <= tolerance(12)
    limit[0] = 100
    with pytest.raises(CapacityError, match=r"a matrix on 7 qubits needs 0.00391 MiB .* has 0.125 MiB free"):
        launch(SimpleNamespace(amps=amps))


def test_three_products_are_as_exact_as_four(rng):
    """Errors of columns of every kind, over their norms, against NumPy's; real matrices keep real states real."""
    k, n = 6, 12
    shape, targets = cuda_dense.BLOCK_SHAPES["double"][k], tuple(range(6, 12))
    assert shape.products == 3

    def run(matrix, columns):
        tables = cuda_dense.dense_tables(matrix, targets, {}, n, shape)
        return run_dense(tables, shape, k, columns.reshape(-1)).reshape(1 << k, -1)

    def error(found, matrix, columns):
        exact = matrix.astype(np.clongdouble) @ columns.astype(np.clongdouble)
        return np.max(np.abs(found - exact) / np.linalg.norm(columns, axis=0))

    random = rng.normal(size=(1 << k, 64)) + 1j * rng.normal(size=(1 << k, 64))
    fourier = np.exp(2j * np.pi * np.outer(range(1 << k), range(1 << k)) / (1 << k)) / 8
    unitary = random_unitary(rng, 1 << k)
    kinds = {
        "random": random,
        "real and imaginary parts cancel": random.real * (1 - 1j) + 1e-9 * random,
        "of many magnitudes": random * 10.0 ** -rng.uniform(0, 30, random.shape),
        "aligned with the matrix": unitary.conj().T + 1e-3 * random,
        "real": random.real.astype(complex),
    }
    for matrix in (unitary, fourier, np.linalg.qr(random.real)[0].astype(complex)):
        for name, columns in kinds.items():
            least = error(matrix @ columns, matrix, columns)
            assert error(run(matrix, columns), matrix, columns) <= max(3 * least, 4 * 2.0**-53), name
    real = np.linalg.qr(random.real)[0].astype(complex)
    assert np.all(run(real, kinds["real"]).imag == 0)
