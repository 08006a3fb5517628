"""Runs every CUDA kernel once on small states and compares with NumPy: short enough for compute-sanitizer.

usage: cuda_every_kernel.py [fast]
With `fast` it leaves out what racecheck takes minutes for: the widest matrices.
"""

import sys

import numpy as np
from cuda_bench import apply
from cuda_random import gate

from qsim_ozaki import cuda, cuda_tiles
from qsim_ozaki.bench_blocks import haar, random_vector
from qsim_ozaki.engine import StackWork
from qsim_ozaki.ops import EMPTY, DenseBlock, HadamardPass, Kind, Op, Path, Prepare, TilePass

WORST = {"double": 1e-12, "single": 2e-4}


def judge(what, got, want, precision="double"):
    """Prints the distance and ends the run where it is too large."""
    error = float(np.linalg.norm(np.asarray(got) - want))
    print(f"{what} {precision}: {error:.2g}", flush=True)
    if not error <= WORST[precision]:
        sys.exit(f"{what} in {precision} precision is off by {error:.3g}")


def tiles(engine, precision, n=16):
    """Tile passes by the interpreter and as straight-line kernels, with qubits that move."""
    rng = np.random.default_rng(4)
    tile = (0, 1, 2, 3, *range(6, 14))
    for kinds, straight in ((7, False), (5, True)):
        ops = []
        while len(ops) < 24:
            op = gate(rng, n, kinds)
            if set(op.mixed_qubits) <= set(tile) and len(op.targets) < 5:
                ops.append(op)
        step = TilePass(tile, tuple(ops), swaps=((0, 9), (2, 13)))
        swaps = [Op(Kind.PERMUTATION, pair, np.ones(4), permutation=np.array([0, 2, 1, 3])) for pair in step.swaps]
        want = start = random_vector(n, 1)
        for op in [*ops, *swaps]:
            want = apply(want, op, n)
        cuda_tiles.REPEAT_QUBITS, cuda_tiles.ONCE_QUBITS = (0, 0) if straight else (99, 99)
        if straight:
            engine.run_step(engine.load(start, precision), step)
            engine.compiler.finish()
        state = engine.load(start, precision)
        engine.run_step(state, step)
        judge("straight-line tile" if straight else "interpreted tile", engine.vector(state), want, precision)


def blocks(engine, precision, widths):
    """Dense matrices natively: tensor cores, gather and scatter around a library product."""
    for k in widths:
        n = 18 if k == 3 else 16  # 3 qubits go to tensor cores on large states only
        targets = tuple(int(q) for q in np.random.default_rng(k).permutation(n)[:k])
        op = Op(Kind.UNITARY, targets, haar(1 << k, k), tuple(q for q in range(n) if q not in targets)[:1], 1)
        state = engine.load(random_vector(n, 1), precision)
        engine.run_step(state, DenseBlock(op))
        judge(f"dense block of {k}", engine.vector(state), apply(random_vector(n, 1), op, n), precision)


def stacks(engine, precision, n=8):
    """Many small states in one launch."""
    rng = np.random.default_rng(8)
    ops = [gate(rng, n, 5) for _ in range(20)]
    want = np.eye(1, 1 << n, 0, complex)[0]
    for op in ops:
        want = apply(want, op, n)
    (states,) = engine.run_stacks([StackWork(n, ops, np.empty((70, 0), complex))], precision)
    judge("worst of a stack", np.abs(states - want).max(0), np.zeros(1 << n), precision)


def emulated(engine, n=14):
    """A matrix by INT8 products at 15 and at 9 moduli."""
    op = Op(Kind.UNITARY, tuple(range(2, 9)), haar(1 << 7, 3))
    want = apply(random_vector(n, 1), op, n)
    for moduli, limit in ((15, 1e-12), (9, 1e-7)):
        state = engine.load(random_vector(n, 1), "double")
        engine.run_step(state, DenseBlock(op, Path.OZAKI, moduli))
        error = float(np.linalg.norm(engine.vector(state) - want))
        print(f"emulated block, {moduli} moduli: {error:.2g}", flush=True)
        if not error <= limit:
            sys.exit(f"an emulated block with {moduli} moduli is off by {error:.3g}")


def reading(engine, precision, n=14):
    """Product states, marginals, norm, samples, collapse."""
    rng = np.random.default_rng(6)
    factors = rng.normal(size=(n, 2)) + 1j * rng.normal(size=(n, 2))
    factors /= np.linalg.norm(factors, axis=1)[:, None]
    state = engine.allocate(n, precision)
    engine.run_step(state, Prepare(factors))
    want = np.ones(1, complex)
    for row in factors:
        want = np.kron(row, want)
    judge("product state", engine.vector(state), want, precision)
    weights = np.abs(want) ** 2
    judge(
        "marginal",
        engine.probabilities(state, (1, 4)),
        weights.reshape(-1, 2, 4, 2, 2).sum((0, 2, 4)).ravel(),
        precision,
    )
    shots = engine.sample(state, rng.random(4096))
    judge("mean of samples", np.array([(shots >> 3 & 1).mean() * 1e-6]), np.array([abs(factors[3, 1]) ** 2 * 1e-6]))
    engine.collapse(state, (5,), 1, 1.0)
    judge("collapse", engine.vector(state), np.where(np.arange(1 << n) >> 5 & 1, want, 0), precision)
    state = engine.load(want, precision)
    engine.run_step(state, HadamardPass((0, 3, 4, 11)))
    for q in (0, 3, 4, 11):
        want = apply(want, Op(Kind.HADAMARD, (q,), EMPTY), n)
    judge("Hadamard pass", engine.vector(state), want, precision)


def main():
    """Every kernel of the table."""
    fast = "fast" in sys.argv[1:]
    engine = cuda.create()
    engine.num_processors = 1  # a block or two: each then does several tiles in turn
    for precision in ("double", "single"):
        tiles(engine, precision)
        reading(engine, precision)
        stacks(engine, precision)
    blocks(engine, "double", (3, 4, 5, 6, 7) if fast else range(3, 11))
    blocks(engine, "single", (6,) if fast else (6, 8))
    emulated(engine)
    print("every kernel agrees with NumPy")


if __name__ == "__main__":
    main()
