"""Linear maps on qubits of a state as an experiment's variants: an engine's steps, a library's product, founding forms.

In: an engine, a matrix, targets, a state. Out: `Variant`s. It times nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.bench.blocks import founding, founding_cuda
from qsim_ozaki.bench.blocks.experiment import Timer, Trial, Variant, wall_seconds
from qsim_ozaki.bench.blocks.founding import Form
from qsim_ozaki.engines import Engine, State, select
from qsim_ozaki.engines.cuda.calibrate import clock
from qsim_ozaki.engines.cuda.device.kernels import DOUBLE
from qsim_ozaki.engines.cuda.device.state import CudaState
from qsim_ozaki.engines.cuda.engine import CudaEngine
from qsim_ozaki.engines.cuda.ozaki.block import EmulatedBlock
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline
from qsim_ozaki.ir import ComplexArray, DenseBlock, Kind, Op, Step
from qsim_ozaki.ir import Path as Arithmetic

CHECKED_COLUMNS = 8  # whose images are computed in extended precision
BITS_34 = 9  # moduli: about 34 bits
PLANES_READY = "planes ready: products and CRT only"


@dataclass(frozen=True, eq=False)
class BlockMap:
    """A matrix at targets of a state, on an engine.

    Attributes:
        engine: it applies the matrix.
        matrix: ``(2**k, 2**k)``; index bit b is ``targets[b]``.
        targets: distinct qubits.
        vector: the state, ``(2**n,)``, of norm 1.
    """

    engine: Engine
    matrix: ComplexArray
    targets: tuple[int, ...]
    vector: ComplexArray

    @property
    def num_qubits(self) -> int:
        """Width of the state."""
        return self.vector.size.bit_length() - 1

    @property
    def op(self) -> Op:
        """The map as an operator."""
        return Op(Kind.UNITARY, self.targets, self.matrix)

    @property
    def cuda(self) -> CudaEngine | None:
        """The engine where it is the CUDA engine; None on a CPU."""
        return on_cuda(self.engine)

    @property
    def on_gpu(self) -> bool:
        """Whether arrays are CuPy's."""
        return self.cuda is not None

    @property
    def arrays(self) -> Any:
        """NumPy, or CuPy."""
        return self.cuda.launcher.cupy if self.cuda else np

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The columns that are checked."""
        count = 1 << (self.num_qubits - len(self.targets))
        drawn = np.random.default_rng(3).choice(count, min(CHECKED_COLUMNS, count), replace=False)
        return np.sort(drawn).astype(np.int64)

    def index(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Basis states of the columns with these numbers, ``(2**k, len(numbers))``."""
        free = [q for q in range(self.num_qubits) if q not in self.targets]
        rows = np.arange(1 << len(self.targets))
        return deposit(rows, self.targets)[:, None] | deposit(numbers, free)[None, :]

    def trial(self) -> Trial:
        """Exact images of the checked columns, with which variants are compared."""
        before = self.vector[self.index(self.numbers)].astype(np.clongdouble)
        exact = self.matrix.astype(np.clongdouble) @ before
        return Trial(len(self.targets), self.numbers, exact, np.linalg.norm(before, axis=0), timer(self.engine))

    def by_steps(
        self, name: str, accuracy: str, steps: Sequence[Step], precision: str = "double", num_bytes: float | None = None
    ) -> Variant:
        """Steps of the engine on a state of their own, in place."""
        state = self.engine.load(self.vector, precision)
        passes = len(steps) * (16 if precision == "single" else 32) * self.vector.size

        def step() -> None:
            for part in steps:
                self.engine.run_step(state, part)

        def columns(numbers: NDArray[np.int64]) -> NDArray[np.complexfloating]:
            return self.amplitudes(state, numbers)

        return Variant(name, accuracy, step, columns, passes if num_bytes is None else num_bytes)

    def amplitudes(self, state: State, numbers: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """The columns with these numbers of a state of the engine."""
        index = self.index(numbers)
        if isinstance(state, CudaState):
            return np.asarray(state.amps[self.arrays.asarray(index)].get())
        return np.asarray(self.engine.vector(state)[index])

    def native(self) -> Variant:
        """The engine's own FP64 block."""
        return self.by_steps("native block, in place", "double", [DenseBlock(self.op)])

    def emulated(self, count: int, name: str = "emulated, in place") -> Variant:
        """The engine's emulated block with ``count`` moduli."""
        step = DenseBlock(self.op, Arithmetic.OZAKI, count)
        return self.by_steps(name, "34 bits" if count == BITS_34 else "double", [step])

    def emulated_on_gpu(self, count: int, how: Pipeline) -> Variant:
        """The emulated block with a given write-back."""
        assert self.cuda is not None, "this variant needs the CUDA engine"
        state = self.cuda.load(self.vector, "double")
        block = EmulatedBlock(self.cuda.launcher, self.matrix, self.targets, {}, count, how)
        kernels = f"one kernel for {how.columns} columns" if how.columns else "two kernels"
        return Variant(
            f"emulated, written back by {kernels}",
            "34 bits" if count == BITS_34 else "double",
            lambda: block.run(state.amps, DOUBLE),
            lambda numbers: self.amplitudes(state, numbers),
            block.bytes_per_amplitude(16) * self.vector.size,
        )

    def library(self) -> Variant:
        """The library's FP64 product with a state that already lies column by column."""
        arrays = self.arrays
        left = arrays.asarray(self.matrix)
        count = 1 << (self.num_qubits - len(self.targets))
        right = arrays.asarray(np.ascontiguousarray(self.vector[self.index(np.arange(count))]))
        out = arrays.empty_like(right)

        def columns(numbers: NDArray[np.int64]) -> NDArray[np.complexfloating]:
            checked = out[:, arrays.asarray(numbers)]
            return np.asarray(checked.get() if self.on_gpu else checked)

        num_bytes = 32 * self.vector.size + 16 * self.matrix.size
        note = "no gather, no scatter"
        return Variant(
            "library product", "double", lambda: arrays.matmul(left, right, out=out), columns, num_bytes, note
        )

    def by_form(self, form: Form, accuracy: str) -> Variant:
        """A founding form on the real embedding of the complex product."""
        embedded = np.block([[self.matrix.real, -self.matrix.imag], [self.matrix.imag, self.matrix.real]])
        left = founding.planes(np.ldexp(embedded, -founding.row_exponents(embedded)[:, None]), form)
        count = 1 << (self.num_qubits - len(self.targets))
        depth, num_rows = left.shape[2], left.shape[1]
        right = np.random.default_rng(5).integers(-60, 61, (form.num_planes, count, depth)).astype(np.int8)

        def columns(numbers: NDArray[np.int64]) -> NDArray[np.complexfloating]:
            return founding.complex_product(self.matrix, self.vector[self.index(numbers)], form)

        num_bytes = float(left.nbytes + right.nbytes + 8 * num_rows * count)
        run: Callable[[], object] = partial(founding.multiply, left, right, form)
        if self.cuda is not None:
            launcher = self.cuda.launcher
            rows = launcher.cupy.asarray(founding_cuda.padded(left, founding_cuda.TILE_ROWS))
            others = launcher.cupy.asarray(founding_cuda.padded(right, founding_cuda.TILE_COLUMNS))
            out = launcher.cupy.empty((rows.shape[1], others.shape[1]))
            run = partial(founding_cuda.launch, launcher, rows, others, out, form)
        return Variant(f"founding: {form.name}", accuracy, run, columns, num_bytes, PLANES_READY, False)


def deposit(values: NDArray[np.int64], qubits: Sequence[int]) -> NDArray[np.int64]:
    """Bit b of each value at ``qubits[b]``; a CuPy array makes a CuPy array."""
    out = 0 * values
    for b, q in enumerate(qubits):
        out |= (values >> b & 1) << q
    return out


def timer(engine: Engine) -> Timer:
    """Seconds of a step by events on a GPU, by the clock elsewhere."""
    cuda = on_cuda(engine)
    if cuda is None:
        return wall_seconds
    cupy = cuda.launcher.cupy
    return lambda step: clock(cupy, step).seconds


def on_cuda(engine: Engine) -> CudaEngine | None:
    """``engine`` where it is the CUDA engine."""
    return engine if isinstance(engine, CudaEngine) else None


def make_engine(name: str, threads: int) -> Engine:
    """The engine of that name."""
    return select(name, threads=threads)


def random_vector(num_qubits: int, seed: int) -> ComplexArray:
    """A random state of norm 1."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=2 << num_qubits)
    parts /= np.linalg.norm(parts)
    return np.asarray(parts.view(np.complex128))
