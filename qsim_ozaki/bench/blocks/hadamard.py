"""The founding experiment: H on m qubits of a state, as a fast transform and as products with matrices.

In: options. Out: an `Experiment`: the FP64 fast Walsh-Hadamard transform, H materialised and multiplied by emulation,
radix-128 Kronecker factors by emulation, FP32, and on a GPU TF32 tensor cores. It prints nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.bench.blocks import hadamard_cuda
from qsim_ozaki.bench.blocks.experiment import Experiment, Line, Trial, Variant
from qsim_ozaki.bench.blocks.gemm import GemmOptions, begin, counts
from qsim_ozaki.bench.blocks.maps import BITS_34, BlockMap, make_engine, random_vector, timer
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import ComplexArray, DenseBlock, HadamardPass, Kind, Op, Step
from qsim_ozaki.ir import Path as Arithmetic
from qsim_ozaki.ozaki import MAX_TARGETS

RADIX = 7  # qubits of a Kronecker factor: 128 rows
PASS_QUBITS = 12  # of one transform: what a tile of every engine holds
DENSE_QUBITS = {"cpu": 11, "cuda": MAX_TARGETS}  # a larger matrix of H takes minutes on a CPU


def hadamard(num_qubits: int) -> ComplexArray:
    """The matrix of H on ``num_qubits`` qubits."""
    out = np.ones((1, 1))
    for _ in range(num_qubits):
        out = np.block([[out, out], [out, -out]]) * np.sqrt(0.5)
    return out.astype(complex)


def transformed(columns: NDArray[np.clongdouble]) -> NDArray[np.clongdouble]:
    """H on all qubits of each column ``(2**m, count)``, by butterflies in extended precision."""
    out, size = columns.copy(), len(columns)
    half = 1
    while half < size:
        pairs = out.reshape(size // (2 * half), 2, half, -1)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(size, -1)
        half *= 2
    return np.asarray(out / np.sqrt(np.longdouble(size)))


def blocks_of(targets: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """``targets`` in as few runs as hold ``most`` at most, of about one length."""
    count = -(-len(targets) // most)
    bounds = [len(targets) * i // count for i in range(count + 1)]
    return [tuple(targets[a:b]) for a, b in itertools.pairwise(bounds)]


@dataclass(frozen=True, eq=False)
class HadamardMap:
    """H on the lowest qubits of a state; ``block`` holds engine and state, and no matrix."""

    block: BlockMap

    def trial(self) -> Trial:
        """Exact images of the checked columns."""
        block = self.block
        before = block.vector[block.index(block.numbers)].astype(np.clongdouble)
        norms = np.linalg.norm(before, axis=0)
        return Trial(len(block.targets), block.numbers, transformed(before), norms, timer(block.engine))

    def fast(self, precision: str) -> Variant:
        """The fast transform."""
        steps = [HadamardPass(part) for part in blocks_of(self.block.targets, PASS_QUBITS)]
        name, accuracy = ("FP64", "double") if precision == "double" else ("FP32", "single")
        return self.block.by_steps(f"{name} fast transform", accuracy, steps, precision)

    def by_matrices(self, parts: Sequence[tuple[int, ...]], count: int, name: str) -> Variant:
        """Emulated products, one after the other."""
        steps: list[Step] = []
        for part in parts:
            op = Op(Kind.UNITARY, part, hadamard(len(part)))
            steps.append(DenseBlock(op, Arithmetic.OZAKI, count))
        return self.block.by_steps(name, "34 bits" if count == BITS_34 else "double", steps)

    def variants(self) -> list[Variant]:
        """All there are on this engine at this size."""
        targets, out = self.block.targets, [self.fast("double")]
        for place in range(2):
            if len(targets) <= DENSE_QUBITS[self.block.engine.name]:
                count = counts(len(targets))[place]
                out.append(self.by_matrices([targets], count, f"H materialised, emulated, {count} moduli"))
            if len(targets) > RADIX:
                parts, count = blocks_of(targets, RADIX), counts(RADIX)[place]
                out.append(self.by_matrices(parts, count, f"radix-128 Kronecker, emulated, {count} moduli"))
        out.append(self.fast("single"))
        if self.block.on_gpu:
            out.append(self.tensor())
        return out

    def tensor(self) -> Variant:
        """Radix-128 factors by TF32 tensor cores, in place, transposes in the loads and stores."""
        block, cuda = self.block, self.block.cuda
        assert cuda is not None, "this variant needs the CUDA engine"
        state = cuda.load(block.vector, "single")
        parts = blocks_of(block.targets, RADIX)
        return Variant(
            "radix-128 Kronecker, TF32, fused transposes",
            "single",
            partial(hadamard_cuda.apply, cuda.launcher, state.amps, parts),
            lambda numbers: block.amplitudes(state, numbers),
            16.0 * len(parts) * block.vector.size,
        )

    def left_out(self) -> list[Line]:
        """Variants that this size has not, with the reason."""
        size, limit = len(self.block.targets), DENSE_QUBITS[self.block.engine.name]
        if size <= limit:
            return []
        note = f"left out: a matrix on {size} qubits; the limit here is {limit}"
        return [Line(size, "H materialised, emulated", "double", note=note)]


def measure_hadamard(options: GemmOptions, progress: Callable[[Experiment], None] = lambda _: None) -> Experiment:
    """Times every variant at every size, in turn; ``progress`` is called after each size.

    Raises:
        OptionError: a transform has no qubit, or more than the state.
        EngineError: there is no such engine.
    """
    for size in options.sizes:
        if not 1 <= size <= options.num_qubits:
            raise OptionError(
                f"H on {size} of {options.num_qubits} qubits was asked for; ask for 1 to {options.num_qubits}, "
                "or more --qubits."
            )
    engine = make_engine(options.engine, options.threads)
    experiment = begin("H on m qubits of a state", "hadamard", options, engine)
    vector = random_vector(options.num_qubits, options.seed)
    for size in options.sizes:
        transform = HadamardMap(BlockMap(engine, np.eye(1, dtype=complex), tuple(range(size)), vector))
        lines = transform.trial().run(transform.variants(), options.repeats) + transform.left_out()
        experiment = replace(experiment, lines=(*experiment.lines, *lines))
        progress(experiment)
    return experiment
