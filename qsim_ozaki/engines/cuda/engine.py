"""The CUDA engine: states in GPU memory, and steps as launches of the kernels in `kernels/cuda`.

In: steps of a plan. Out: amplitudes, probabilities, samples. It may not plan, nor hold a second copy of a state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.base import (
    ColumnChecks,
    HostProgram,
    StackWork,
    State,
    available_threads,
    collapse_masks,
)
from qsim_ozaki.engines.cuda import calibrate, measure, pauli
from qsim_ozaki.engines.cuda.codegen.compiler import Compiler
from qsim_ozaki.engines.cuda.dense import tables as cuda_dense
from qsim_ozaki.engines.cuda.dense.product import LibraryProduct
from qsim_ozaki.engines.cuda.device.kernels import INSTANCES, TENSOR_CORES
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.records import opaque
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.device.state import DTYPES, CudaState, StateLaunch, new_state
from qsim_ozaki.engines.cuda.ozaki.block import EmulatedBlock
from qsim_ozaki.engines.cuda.passes import PassWork, tile_launch
from qsim_ozaki.engines.cuda.stack import MAX_STACK_QUBITS, THREADS, split_rows, stack_tables
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.engines.cuda.tuning import REPEAT_QUBITS
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import (
    EMPTY,
    ComplexArray,
    DenseBlock,
    Device,
    HadamardPass,
    Kind,
    Op,
    OpList,
    Path,
    Prepare,
    Step,
    TilePass,
    amplitude_bytes,
    string_values,
)

CACHED_PROGRAMS = 256
EVEN_RATES = (90,)  # architectures whose FP64 tensor cores do as many flops per second as their FP32 units
TABLE_BITS = 11  # qubits of one table of a product state, at most


class CudaEngine:
    """Runs steps on one GPU, on CuPy's current stream of the calling thread.

    Attributes:
        launcher: launches kernels on the GPU.
        compiler: compiles specialised kernels.
        threads: threads of the host, for computations there.
    """

    name = "cuda"
    samples_stacks = False
    runs_concurrently = False

    def __init__(self, launcher: Launcher) -> None:
        self.launcher = launcher
        self.threads = available_threads()
        self.compiler = Compiler(launcher.architecture)
        self._programs: OrderedDict[tuple[int, int, str], tuple[Step, list[StateLaunch]]] = OrderedDict()
        self._ones: dict[str, Any] = {}
        self._expected: set[str] = set()

    @property
    def device_name(self) -> str:
        """The name of the GPU, as the driver reports it."""
        return self.launcher.device_name

    def device(self) -> Device:
        """Returns the record of this GPU: measured rates if `calibrate` has run on this machine, else shipped ones."""
        return calibrate.cuda_device(self)

    def calibrate(self) -> None:
        """Measures this GPU anew, about 25 seconds, for this and later processes."""
        calibrate.calibrate(self)

    def expect(self, precision: str) -> None:
        """Begins to compile the kernels that nearly every run in ``precision`` needs, in the background."""
        if precision not in self._expected:
            self._expected.add(precision)
            self.compiler.compile_first(precision)

    def _empty(self, num_qubits: int, precision: str) -> CudaState:
        """Returns a state whose amplitudes are not written yet; if it does not fit, compiled steps are freed first."""
        self.expect(precision)
        return new_state(self.launcher, num_qubits, precision, self.forget)

    def allocate(self, num_qubits: int, precision: str) -> CudaState:
        """Returns a new state |0...0>.

        Raises:
            CapacityError: the state does not fit the GPU's free memory or the engine's limit.
        """
        state = self._empty(num_qubits, precision)
        if precision not in self._ones:
            self._ones[precision] = self.launcher.cupy.asarray(np.ones(1, DTYPES[precision]))
        state.put_off(partial(CudaState.put_zeros, one=self._ones[precision]))
        return state

    def load(self, vector: NDArray[np.complexfloating], precision: str) -> CudaState:
        """Returns a new state with the amplitudes ``vector`` (any complex dtype, ``(2**n,)``)."""
        state = self._empty(vector.size.bit_length() - 1, precision)
        amps = state.overwritten()
        if amps.size != vector.size:
            amps.fill(0)
        amps[: vector.size].set(np.ascontiguousarray(vector, DTYPES[precision]))
        return state

    def copy(self, state: State) -> CudaState:
        """Returns an independent copy of ``state``."""
        out = self._empty(state.num_qubits, state.precision)
        out.overwritten()[...] = _on_gpu(state).amps
        return out

    def vector(self, state: State) -> NDArray[np.complexfloating]:
        """Returns the amplitudes as a new host array."""
        return _on_gpu(state).vector()

    def norm(self, state: State) -> float:
        """Returns the squared 2-norm of the state; every run gives the same bits."""
        return float(self.probabilities(state, ())[0])

    def probabilities(self, state: State, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Returns marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``."""
        return measure.probabilities(self.launcher, _on_gpu(state), qubits)

    def pauli_values(self, state: State, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Returns ``<state| P |state>`` of Pauli strings, ``(strings,)``."""
        if state.num_qubits < pauli.CHUNK_QUBITS:
            return np.asarray(string_values(self.vector(state)[None], x, z, self.threads)[0])
        return pauli.values(self.launcher, _on_gpu(state), x, z)

    def amplitudes(self, state: State, indices: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """Returns the amplitudes of the basis states ``indices``."""
        amps = _on_gpu(state).amps[self.launcher.cupy.asarray(indices)]
        return cast("NDArray[np.complexfloating]", amps.get())

    def sample(self, state: State, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns the basis states at which the cumulative probability passes ``uniforms`` times the squared norm."""
        return measure.sample(self.launcher, _on_gpu(state), uniforms)

    def collapse(self, state: State, qubits: Sequence[int], outcome: int, scale: float) -> None:
        """Zeroes the amplitudes whose ``qubits[j]`` is not bit j of ``outcome``, multiplies the others by ``scale``."""
        amps = _on_gpu(state).amps
        mask, value = collapse_masks(qubits, outcome)
        args = (amps, np.uint64(amps.size), np.uint64(mask), np.uint64(value), np.float64(scale))
        self.launcher.launch("collapse", INSTANCES[state.precision], amps.size // 256, 256, args)

    def host_programs(self, num_qubits: int, precision: str, steps: Sequence[Step]) -> list[HostProgram] | None:
        """None: the device alone runs steps."""
        return None

    @property
    def stack_qubits(self) -> int:
        """Width of the widest state of which two double-precision copies fit a block's shared memory."""
        num_amps = self.launcher.shared_bytes // (2 * amplitude_bytes("double"))
        return min(MAX_STACK_QUBITS, num_amps.bit_length() - 1)

    def run_stacks(self, works: Sequence[StackWork], precision: str) -> list[NDArray[np.complexfloating]]:
        """Runs all works in one launch; returns the final states of every work, ``(rows, 2**num_qubits)``."""
        cupy = self.launcher.cupy
        tables, kind = stack_tables(works), DTYPES[precision]
        out = cupy.empty(tables.num_amps, kind)
        records = (tables.blocks.view(np.uint8), tables.steps.view(np.uint8), tables.data.astype(kind), tables.sources)
        args = [cupy.asarray(table) for table in (*records, tables.values.astype(kind))]
        shared_bytes = 2 * tables.block_amps * amplitude_bytes(precision)
        blocks = len(tables.blocks)
        self.launcher.launch("stack_run", INSTANCES[precision], blocks, THREADS, (*args, out), shared_bytes)
        return split_rows(out.get(), works)

    def run_step(self, state: State, step: Step) -> None:
        """Does ``step`` in place.

        A step is compiled once per width and precision; a plan that runs again only launches.
        """
        on_gpu = _on_gpu(state)
        emulated = isinstance(step, DenseBlock) and step.path is Path.OZAKI  # one block runs on states of every width
        key = (id(step), 0 if emulated else on_gpu.num_qubits, on_gpu.precision)
        program = self._programs.get(key)
        if program is None:
            # The entry keeps the step alive, so that no other step can have its id while the entry exists.
            program = self._programs[key] = (step, self._launches(on_gpu, step))
            if len(self._programs) > CACHED_PROGRAMS:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(key)
        for launch in program[1]:
            launch(on_gpu)

    def take_checks(self, state: State) -> ColumnChecks:
        """Returns the outcome of the checks of the emulated blocks on ``state`` since the last call."""
        on_gpu = _on_gpu(state)
        checks, on_gpu.checks = on_gpu.checks, ColumnChecks()
        return checks

    def forget(self) -> None:
        """Frees compiled steps with their matrices and tables on the device, and the memory kept for the next state."""
        self._programs.clear()
        self.launcher.memory.release_kept_buffer()

    def _launches(self, state: CudaState, step: Step) -> list[StateLaunch]:
        """Returns the launches that do ``step`` on states of this width and precision."""
        if isinstance(step, Prepare):
            return self._prepare(state, step)
        if isinstance(step, HadamardPass):
            tile = SHAPES[state.precision].tile_qubits
            if len(step.qubits) > tile:
                raise EngineError(f"a Hadamard pass over {len(step.qubits)} qubits does not fit a tile of {tile}")
            return self._compile(state, Tile(step.qubits), [Op(Kind.HADAMARD, step.qubits, EMPTY)])
        if isinstance(step, TilePass):
            tile_of_pass = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            return self._compile(state, tile_of_pass, step.ops, step.row)
        if isinstance(step, DenseBlock) and step.path is Path.NATIVE:
            return self._compile(state, Tile(step.op.targets, step.zero_qubits), [step.op])
        if isinstance(step, DenseBlock):
            return [self._emulated(state, step)]
        raise EngineError(f"the CUDA engine has no step {step}")

    def _emulated(self, state: CudaState, step: DenseBlock) -> StateLaunch:
        """Returns the launch of one matrix by INT8 products; columns that fail are redone in FP64 and counted."""
        op = step.op
        fixed = dict.fromkeys(step.zero_qubits, 0) | dict.fromkeys(step.one_qubits, 1)
        fixed |= {c: op.ctrl_state >> b & 1 for b, c in enumerate(op.controls)}
        block = EmulatedBlock(self.launcher, op.matrix(), op.targets, fixed, step.num_moduli)
        instance = INSTANCES[state.precision]
        return lambda target: target.checks.add(*block.run(target.amps, instance))

    def _compile(self, state: CudaState, tile: Tile, ops: Sequence[Op], row: bool = False) -> list[StateLaunch]:
        """Returns the launches of a tile pass.

        They are tile programs, and between them launches of matrices that do not fit the registers or that tensor
        cores do faster.
        """
        launches: list[StateLaunch] = []
        waiting: list[Op] = []
        later = replace(tile, fresh_qubits=())

        def add_pass(pass_tile: Tile, pass_ops: Sequence[Op]) -> None:
            work = PassWork(pass_tile, pass_ops, state.kernel_qubits, state.precision, row)
            launches.append(tile_launch(self.launcher, self.compiler, work))

        def flush(swaps: tuple[tuple[int, int], ...] = ()) -> None:
            pass_tile = later if launches else tile
            if waiting or swaps or pass_tile.fresh_qubits:
                add_pass(replace(pass_tile, swaps=swaps), tuple(waiting))
                waiting.clear()

        shape = SHAPES[state.precision]
        if _fits_one_program(ops, shape.tile_qubits):
            add_pass(tile, ops)
            return launches
        for op in ops:
            # On a large state, tensor cores do a single matrix on 3 or 4 qubits in the time of a pass.
            alone = len(ops) == 1 and state.kernel_qubits >= REPEAT_QUBITS and self._has_tensor_cores(state)
            widest = 2 if alone else shape.register_qubits
            wide = op.kind is Kind.UNITARY and len(op.targets) > widest
            if wide or (len(op.mixed_qubits) > shape.tile_qubits):
                flush()
                launches.append(self._dense_launch(state, op, tile.zero_qubits))
            else:
                waiting.append(op)
        flush(tile.swaps)
        return launches

    def _has_tensor_cores(self, state: CudaState) -> bool:
        """Returns whether dense blocks should use the FP64 tensor cores of this GPU.

        For complex64, these must do as many flops per second as the FP32 units.
        """
        known = TENSOR_CORES if state.precision == "double" else EVEN_RATES
        return self.launcher.architecture in known

    def _dense_launch(self, state: CudaState, op: Op, zero_qubits: Sequence[int]) -> StateLaunch:
        """Returns the launch of one matrix in native arithmetic: by a dense kernel, else by a library product."""
        launcher = self.launcher
        if len(op.targets) == 3:
            op = cuda_dense.with_free_target(op, zero_qubits, state.kernel_qubits)
        k = len(op.targets)
        fixed = {q: 0 for q in zero_qubits if q not in op.targets}
        fixed |= {c: op.ctrl_state >> b & 1 for b, c in enumerate(op.controls)}
        free = state.kernel_qubits - len(fixed)
        shapes = cuda_dense.BLOCK_SHAPES[state.precision]
        if not (self._has_tensor_cores(state) and k in shapes and free >= k + cuda_dense.GROUP_BITS):
            matrix, targets = op.matrix(), op.targets
            return LibraryProduct(launcher, matrix, targets, fixed, state.kernel_qubits, state.precision).run
        shape = shapes[k]
        tables = cuda_dense.dense_tables(op.matrix(), op.targets, fixed, state.kernel_qubits, shape)
        matrix, places = launcher.cupy.asarray(tables.matrix), launcher.cupy.asarray(tables.places)
        blocks = min(tables.num_tiles, shape.blocks * launcher.num_processors)
        function = launcher.function(shape.kernel, shape.macros(k))
        shared_bytes, ordered = shape.shared_bytes(k), isinstance(shape, cuda_dense.HeldShape)
        tile = opaque(tables.tile)

        def run(target: CudaState) -> None:
            tickets = (target.new_tickets(),) if ordered else ()
            args = (target.amps, matrix, places, *tickets, tile)
            launcher.launch_function(function, blocks, shape.threads, args, shared_bytes)

        return run

    def _prepare(self, state: CudaState, step: Prepare) -> list[StateLaunch]:
        """Returns the launches that write a product state; its tables are uploaded once."""
        launcher = self.launcher
        n, padded = state.num_qubits, state.kernel_qubits != state.num_qubits
        if step.alone and not padded:
            amp = launcher.cupy.asarray(step.factors[:, 0].prod(keepdims=True).astype(DTYPES[state.precision]))
            return [partial(CudaState.put_first, amp=amp)]
        low, middle = min(n, TABLE_BITS), min(max(n - TABLE_BITS, 0), TABLE_BITS)
        parts = [step.factors[:low], step.factors[low : low + middle], step.factors[low + middle :]]
        tables = [launcher.cupy.asarray(product_table(part).astype(DTYPES[state.precision])) for part in parts]
        num_chunks = 1 << (n - low)
        args = (*tables, np.int32(low), np.int32(middle), np.uint64(num_chunks))
        function = launcher.function("prepare", INSTANCES[state.precision])

        def run(target: CudaState) -> None:
            amps = target.overwritten()
            if padded:
                amps.fill(0)
            launcher.launch_function(function, num_chunks, 256, (amps, *args))

        return [run]


def product_table(factors: ComplexArray) -> ComplexArray:
    """Returns ``table[i] = prod_q factors[q, bit q of i]``."""
    table = np.ones(1, complex)
    for zero, one in factors:
        table = np.concatenate([table * zero, table * one])
    return table


def create(threads: int = 0, max_memory_bytes: int = 0) -> CudaEngine:
    """Returns the CUDA engine on the current GPU.

    Args:
        threads: not used; the option is for the CPU engine.
        max_memory_bytes: limit for one state; 0 for the free memory of the GPU.

    Raises:
        EngineError: CuPy is not installed, or there is no usable GPU, with the reason.
    """
    del threads
    try:
        import cupy
    except ImportError as error:
        raise EngineError(
            f'engine "cuda" needs CuPy: {error}. Install it with: pip install "qsim-ozaki[cuda13]" (or cuda12), '
            'or use engine="cpu".'
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise EngineError(f'engine "cuda" found no NVIDIA GPU: {error}. Use engine="cpu".') from error
    if count == 0:
        raise EngineError('engine "cuda" found no NVIDIA GPU. Use engine="cpu".')
    return CudaEngine(Launcher(cupy, max_memory_bytes))


def _fits_one_program(ops: Sequence[Op], tile_qubits: int) -> bool:
    """Returns whether one tile program can hold all operators."""
    if not isinstance(ops, OpList) or not ops or ops.native.large_matrices(3):
        return False
    return bool(ops.native.mixed_mask().bit_count() <= tile_qubits)


def _on_gpu(state: State) -> CudaState:
    assert isinstance(state, CudaState)
    return state
