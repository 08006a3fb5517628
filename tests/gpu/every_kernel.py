"""Runs every CUDA kernel once on small states and compares with NumPy: short enough for compute-sanitizer.

usage: PYTHONPATH=tests:tests/support python tests/gpu/every_kernel.py [fast]
With `fast` it leaves out what racecheck takes minutes for: the widest matrices. Fails where a kernel of the table was
not launched. tests/ has to be on the path, for its reference.
"""

import sys
from functools import reduce

import numpy as np
from random_gates import gate
from support.reference import apply_op

from qsim_ozaki.bench.blocks import founding, founding_cuda, hadamard_cuda
from qsim_ozaki.bench.blocks.maps import random_vector
from qsim_ozaki.engines import StackWork, haar
from qsim_ozaki.engines.cuda import engine as cuda
from qsim_ozaki.engines.cuda import passes
from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.engines.cuda.ozaki import block as cuda_ozaki
from qsim_ozaki.engines.cuda.ozaki import tables
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, Wgmma, pipeline
from qsim_ozaki.ir import EMPTY, DenseBlock, HadamardPass, Kind, Op, Path, Prepare, TilePass, string_values

WORST = {"double": 1e-12, "single": 2e-4, "tf32": 2.0**-10, "34 bits": 1e-7, "exact": 0.0}
SUM_ROUNDING = 1e-12  # of cumulative probabilities that are summed in another order
PROCESSORS = 2  # a few blocks, each with several tiles in turn; clusters have two


def judge(what, got, want, precision="double"):
    """Prints the distance and ends the run where it is too large."""
    error = float(np.linalg.norm(np.asarray(got) - want))
    print(f"{what} {precision}: {error:.2g}", flush=True)
    if not error <= WORST[precision]:
        sys.exit(f"{what} in {precision} precision is off by {error:.3g}")


def noted():
    """Names of the table's kernels as they are looked up; whoever does so launches them."""
    names, load = set(), nvrtc.load

    def noting(name, *others):
        names.add(name)
        return load(name, *others)

    nvrtc.load = noting
    return names


def tiles(engine, precision, n=16):
    """Tile passes by the interpreter and as straight-line kernels, with qubits that move, none or two |0> before."""
    rng = np.random.default_rng(4)
    tile = (0, 1, 2, 3, *range(6, 14))
    limits = passes.REPEAT_QUBITS, passes.ONCE_QUBITS
    for kinds, straight, fresh in ((7, False, ()), (5, True, ()), (7, False, (7, 13)), (5, True, (7, 13))):
        ops = []
        while len(ops) < 24:
            op = gate(rng, n, kinds)
            if set(op.mixed_qubits) <= set(tile) and len(op.targets) < 5:
                ops.append(op)
        for place, angle in ((5, 0.7), (12, np.pi / 2), (20, 2.5)):
            qubits = tuple(int(q) for q in rng.permutation(n)[: rng.integers(3, n)])
            ops.insert(place, Op(Kind.PARITY, qubits, np.exp([-0.5j * angle, 0.5j * angle])))
        step = TilePass(tile, tuple(ops), swaps=((0, 9), (2, 13)), fresh_qubits=fresh)
        swaps = [Op(Kind.PERMUTATION, pair, np.ones(4), permutation=np.array([0, 2, 1, 3])) for pair in step.swaps]
        unread = np.arange(1 << n) & sum(1 << q for q in fresh) != 0
        want = np.where(unread, 0, random_vector(n, 1))
        start = np.where(unread, np.nan, want)
        for op in [*ops, *swaps]:
            want = apply_op(want, op)
        passes.REPEAT_QUBITS, passes.ONCE_QUBITS = (0, 0) if straight else (99, 99)
        if straight:
            engine.run_step(engine.load(start, precision), step)
            engine.compiler.finish()
            if None in engine.compiler.code.values():
                sys.exit(f"a straight-line kernel does not compile in {precision} precision")
        state = engine.load(start, precision)
        engine.run_step(state, step)
        judge("straight-line tile" if straight else "interpreted tile", engine.vector(state), want, precision)
    passes.REPEAT_QUBITS, passes.ONCE_QUBITS = limits


def blocks(engine, precision, widths):
    """Dense matrices natively: tensor cores, gather and scatter around a library product."""
    for k in widths:
        n = 18 if k == 3 else 16  # 3 qubits go to tensor cores on large states only
        targets = tuple(int(q) for q in np.random.default_rng(k).permutation(n)[:k])
        op = Op(Kind.UNITARY, targets, haar(1 << k, k), tuple(q for q in range(n) if q not in targets)[:1], 1)
        state = engine.load(random_vector(n, 1), precision)
        engine.run_step(state, DenseBlock(op))
        judge(f"dense block of {k}", engine.vector(state), apply_op(random_vector(n, 1), op), precision)


def library_block(engine, precision, k=7):
    """A dense matrix on a state too small for the kernels of tensor cores: gather, library product, scatter."""
    targets = tuple(range(k, 0, -1))
    op = Op(Kind.UNITARY, targets, haar(1 << k, k))
    state = engine.load(random_vector(k + 1, 1), precision)
    engine.run_step(state, DenseBlock(op))
    judge(f"library block of {k}", engine.vector(state), apply_op(random_vector(k + 1, 1), op), precision)


def transforms(engine, n=14):
    """Hadamard passes in both precisions, and by TF32 tensor cores."""
    qubits = (0, 3, 4, 11)
    want = start = random_vector(n, 1)
    for q in qubits:
        want = apply_op(want, Op(Kind.HADAMARD, (q,), EMPTY))
    for precision in ("double", "single"):
        state = engine.load(start, precision)
        engine.run_step(state, HadamardPass(qubits))
        judge("Hadamard pass", engine.vector(state), want, precision)
    state = engine.load(start, "single")
    hadamard_cuda.apply(engine.launcher, state.amps, [qubits])
    judge("Hadamard transform", engine.vector(state), want, "tf32")


def stacks(engine, precision, n=8):
    """Many small states in one launch."""
    rng = np.random.default_rng(8)
    ops = [gate(rng, n, 5) for _ in range(20)]
    want = np.eye(1, 1 << n, 0, complex)[0]
    for op in ops:
        want = apply_op(want, op)
    (states,) = engine.run_stacks([StackWork(n, ops, np.empty((70, 0), complex))], precision)
    judge("worst of a stack", np.abs(states - want).max(0), np.zeros(1 << n), precision)


def emulations(fast):
    """(qubits, moduli, pipeline) of emulated blocks: encoded whole or in two kernels, written back by one or by two."""
    one, held = Pipeline(16, 8), Pipeline(8, 0, wgmma=Wgmma.HELD)
    cases = [(7, 15, Pipeline()), (7, 9, Pipeline(0, 0)), (7, 15, one), (7, 9, held), (8, 9, one)]
    if not fast:
        cases += [(9, 15, pipeline(9, 15)), (10, 9, pipeline(10, 9)), (10, 15, pipeline(10, 15)), (10, 15, Pipeline())]
    return cases


def compiled(engine, fast):
    """Compiles every kernel that is launched, on all cores."""
    wanted = [(name, instance) for name, row in kernels.KERNELS.items() for instance in row.instances]
    for k, moduli, how in emulations(fast):
        for real in kernels.INSTANCES.values():
            wanted += how.kernels(1 << k - 7, moduli, real)
    for whole in (0, 8, 16):
        for form in Wgmma:
            wanted += Pipeline(whole, wgmma=form).kernels(2, 3, kernels.INSTANCES["double"])[2:4]
    nvrtc.cache_all(wanted, engine.launcher.architecture)


def emulated(engine, fast, n=14):
    """Matrices by INT8 products."""
    for k, moduli, how in emulations(fast):
        op = Op(Kind.UNITARY, tuple(range(2, 2 + k)), haar(1 << k, 3))
        want = apply_op(random_vector(n, 1), op)
        block = cuda_ozaki.EmulatedBlock(engine.launcher, op.matrix(), op.targets, {}, moduli, how)
        for precision in ("double", "single"):
            state = engine.load(random_vector(n, 1), precision)
            redone, _ = block.run(state.amps, kernels.INSTANCES[precision])
            what = f"emulated block of {k}, {moduli} moduli, {how.columns} columns whole"
            limit = precision if moduli == 15 or precision == "single" else "34 bits"
            judge(what, engine.vector(state), want, limit)
            judge(what + ", columns redone", redone, 0, "exact")
    op = Op(Kind.UNITARY, tuple(range(2, 9)), haar(1 << 7, 3), (10,), 1)
    state = engine.load(random_vector(n, 1), "double")
    engine.run_step(state, DenseBlock(op, Path.OZAKI, 15))
    judge("emulated step", engine.vector(state), apply_op(random_vector(n, 1), op))


def products(engine, k=8, moduli=3):
    """INT8 products: raw sums are the naive kernel's, in each plane in another order; both product kernels agree."""
    cupy, rng, size, columns = engine.launcher.cupy, np.random.default_rng(9), 1 << k, tables.PRODUCT_COLUMNS
    block = cuda_ozaki.EmulatedBlock(engine.launcher, haar(1 << k, 5), tuple(range(k)), {}, moduli)
    planes = 2 * moduli
    matrix = block.operand = cupy.asarray(rng.integers(-120, 121, planes * size * size).astype(np.int8))
    operand = cupy.asarray(rng.integers(-120, 121, planes * size * columns).astype(np.int8))
    naive, raw = (cupy.zeros(planes * size * columns, np.int32) for _ in range(2))
    sizes = (np.uint64(naive.size), np.int32(size), np.uint64(columns))
    engine.launcher.launch("ozaki_naive", {}, 512, 256, (matrix, operand, naive, *sizes))
    record = tables.product_record(size, columns, planes)
    shared = cuda_ozaki.STAGES[engine.launcher.architecture] * cuda_ozaki.STAGE_BYTES
    args = (matrix, operand, raw, record, block.scheme)
    engine.launcher.launch("ozaki_product", {"RAW": "1"}, PROCESSORS, cuda_ozaki.THREADS, args, shared)
    got, want = (np.sort(sums.get().reshape(planes, -1)) for sums in (raw, naive))
    judge("sums of INT8 products", got, want, "exact")
    for whole in (0, 8, 16):
        block.order = {"WHOLE": str(whole)}
        found = []
        for form in (None, *Wgmma) if engine.launcher.architecture == 90 else (None,):
            out = cupy.full(naive.size, -99, np.int8)
            block.multiply(operand, out, columns, form)
            found.append(out.get().astype(int))
        judge(
            f"residues of products, {whole} columns whole", np.stack(found), np.stack([found[0]] * len(found)), "exact"
        )


def founding_design(engine):
    """The founding design's kernels: every layer is the CPU's, bit for bit."""
    rng = np.random.default_rng(11)
    left, right = rng.uniform(-1, 1, (150, 40)), rng.uniform(-1, 1, (40, 90))
    for form, layers in ((founding.halves(), ("sums", "residues")), (founding.slices(5), ())):
        planes = founding.planes(left, form), founding.planes(np.ascontiguousarray(right.T), form)
        product, sums = next(iter(founding.sums(*planes, form)))
        want = {"sums": sums}
        if form.moduli:
            want["residues"] = founding.residues_of(sums, form.moduli[product.modulus])
        for layer in layers:
            got = founding_cuda.multiply(engine.launcher, *planes, form, layer, 0)
            judge(f"founding {layer} by {form.name}", got.astype(int), want[layer], "exact")
        naive = founding_cuda.naive_sums(engine.launcher, planes[0][product.left], planes[1][product.right])
        judge(f"founding naive sums by {form.name}", naive, sums, "exact")
        got = founding_cuda.multiply(engine.launcher, *planes, form)
        judge(f"founding product by {form.name}", got, founding.multiply(*planes, form), "exact")
    form = founding.halves()
    planes = founding.planes(left, form), founding.planes(np.ascontiguousarray(right.T), form)
    number, product = next((i, p) for i, p in enumerate(form.products) if p.scale)
    parts = founding.parts(left, form), founding.parts(right, form)
    count = len(form.moduli)
    exact = parts[0][product.left // count].astype(object) @ parts[1][product.right // count].astype(object)
    got = founding_cuda.multiply(engine.launcher, *planes, form, "integers", number)
    judge("founding integers", (got.astype(object) - exact).astype(float), np.zeros(exact.shape), "exact")


def reading(engine, precision, n=14):
    """Product states, marginals, samples, Pauli strings, collapse."""
    rng = np.random.default_rng(6)
    factors = rng.normal(size=(n, 2)) + 1j * rng.normal(size=(n, 2))
    factors /= np.linalg.norm(factors, axis=1)[:, None]
    state = engine.allocate(n, precision)
    engine.run_step(state, Prepare(factors))
    want = reduce(lambda low, row: np.kron(row, low), factors, np.ones(1, complex))
    judge("product state", engine.vector(state), want, precision)
    weights = np.abs(engine.vector(state).astype(complex)) ** 2  # of what is stored
    got = engine.probabilities(state, (1, 4))
    judge("marginal", got, weights.reshape(-1, 2, 4, 2, 2).sum((0, 2, 4)).ravel())
    judge("norm", engine.norm(state), weights.sum())
    uniforms = rng.random(4096)
    shots = engine.sample(state, uniforms)
    above = np.cumsum(weights)
    aim, below = uniforms * above[-1], above - weights
    outside = (aim < below[shots] - SUM_ROUNDING) | (aim > above[shots] + SUM_ROUNDING)
    judge("samples outside their amplitude's interval", outside.sum(), 0, "exact")
    x, z = (np.random.default_rng(seed).integers(0, 1 << n, 600).astype(np.uint64) for seed in (9, 10))
    x[:300] = 0
    judge("Pauli strings", engine.pauli_values(state, x, z), string_values(engine.vector(state)[None], x, z, 1)[0])
    engine.collapse(state, (5,), 1, 1.0)
    judge("collapse", engine.vector(state), np.where(np.arange(1 << n) >> 5 & 1, want, 0), precision)


def main():
    """Every kernel of the table."""
    fast = "fast" in sys.argv[1:]
    names = noted()
    engine = cuda.create()
    engine.launcher.num_processors = PROCESSORS
    compiled(engine, fast)
    for precision in ("double", "single"):
        tiles(engine, precision)
        reading(engine, precision)
        stacks(engine, precision)
    transforms(engine)
    library_block(engine, "double")
    library_block(engine, "single")
    blocks(engine, "double", (3, 4, 5, 6, 7) if fast else range(3, 11))
    blocks(engine, "single", (6,) if fast else (6, 8))
    emulated(engine, fast)
    products(engine)
    founding_design(engine)
    engine.launcher.launch(
        "rate_int8", {}, PROCESSORS, 256, (engine.launcher.cupy.zeros(1, np.int32), np.int32(5), np.int32(5))
    )
    engine.launcher.cupy.cuda.Device().synchronize()
    left_out = {
        name for name, row in kernels.KERNELS.items() if engine.launcher.architecture in row.architectures
    } - names
    if left_out:
        sys.exit(f"not launched: {', '.join(sorted(left_out))}")
    print("every kernel agrees with NumPy")


if __name__ == "__main__":
    main()
