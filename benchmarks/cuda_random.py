"""Compares the CUDA engine with the CPU engine on random circuits, both precisions of the plan's kernels included.

usage: cuda_random.py [COUNT [MAX_QUBITS]]
Every sixth circuit runs as straight-line kernels, compiled first; the others as the engine chooses. Prints the worst
distance ||cuda - cpu|| in complex128 and fails above 1e-12.
"""

import sys
import time

import numpy as np

from qsim_ozaki import cuda, cuda_tiles
from qsim_ozaki.engine import select
from qsim_ozaki.ops import EMPTY, Kind, Op, Relabel
from qsim_ozaki.plan import PlanOptions, plan

LIMIT = 1e-12


def unitary(rng, size):
    """A random unitary matrix."""
    return np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))[0]


def gate(rng, n, kinds):
    """One random op of the first ``kinds`` kinds: 5 of them have straight-line kernels."""
    kind = rng.integers(kinds)
    qubits = [int(q) for q in rng.permutation(n)[:5]]
    if kind == 0:
        return Op(Kind.HADAMARD, tuple(qubits[: rng.integers(1, 4)]), EMPTY)
    if kind == 1:
        return Op(Kind.UNITARY, (qubits[0],), unitary(rng, 2), tuple(qubits[1 : 1 + rng.integers(3)]), 0)
    if kind == 2:
        return Op(Kind.UNITARY, tuple(qubits[:2]), unitary(rng, 4))
    if kind == 3:
        k = int(rng.integers(1, 4))
        return Op(Kind.DIAGONAL, tuple(qubits[:k]), np.exp(1j * rng.uniform(0, 2 * np.pi, 1 << k)))
    if kind == 4:
        return Op(Kind.PERMUTATION, (qubits[0],), np.ones(2, complex), (qubits[1],), 1, np.array([1, 0]))
    if kind == 5:
        k = int(rng.integers(2, 4))
        return Op(Kind.PERMUTATION, tuple(qubits[:k]), np.ones(1 << k, complex), permutation=rng.permutation(1 << k))
    k = int(rng.integers(3, 6))
    return Op(Kind.UNITARY, tuple(qubits[:k]), unitary(rng, 1 << k))


def run(engine, state, ops, restore_order):
    """The vector after ``ops`` as the engine's own plan does them, in program order."""
    device = engine.device()
    p = plan(ops, state.num_qubits, device, PlanOptions(restore_order=restore_order))
    for step in p.steps:
        if not isinstance(step, Relabel):
            engine.run_step(state, step)
    axes = [state.num_qubits - 1 - p.final_position[state.num_qubits - 1 - a] for a in range(state.num_qubits)]
    return engine.vector(state).reshape((2,) * state.num_qubits).transpose(axes).reshape(-1)


def main():
    """Runs the comparison."""
    count, widest = (int(a) for a in (sys.argv[1:] + ["500", "26"][len(sys.argv) - 1 :]))
    rng = np.random.default_rng(1)
    gpu, cpu = cuda.create(), select("cpu")
    worst, start = 0.0, time.time()
    for number in range(count):
        straight = number % 6 == 0
        n = int(rng.integers(18 if straight else 10, 21)) if number % 16 else int(rng.integers(21, widest + 1))
        ops = [gate(rng, n, 5 if straight else 7) for _ in range(int(rng.integers(10, 60)))]
        vector = rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n)
        vector /= np.linalg.norm(vector)
        state = gpu.load(vector, "double")
        ordered = number % 5 == 0  # else passes move qubits
        if straight:
            cuda_tiles.ONCE_QUBITS = 0
            run(gpu, gpu.load(vector, "double"), ops, ordered)
            gpu.compiler.finish()
        got = run(gpu, state, ops, ordered)
        cuda_tiles.ONCE_QUBITS = 26
        error = float(np.linalg.norm(got - run(cpu, cpu.load(vector, "double"), ops, ordered)))
        if error > LIMIT:
            print(f"circuit {number}, {n} qubits: distance {error:.3g}", flush=True)
        worst = max(worst, error)
    straight = sum(code is not None for code in gpu.compiler.code.values())
    print(f"{count} circuits to {widest} qubits, {straight} straight-line kernels, in {time.time() - start:.0f} s:")
    print(f"worst distance {worst:.3g}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
