"""The CUDA engine: states in GPU memory, steps as launches of the kernels in `kernels/cuda`.

In: steps of a plan. Out: amplitudes, probabilities, samples. It decides nothing and holds no second copy of a state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki import cuda_calibrate, cuda_dense, cuda_measure, cuda_pauli, jit
from qsim_ozaki.cuda_layout import SHAPES, Tile
from qsim_ozaki.cuda_ozaki import EmulatedBlock
from qsim_ozaki.cuda_product import product_launch
from qsim_ozaki.cuda_stack import MAX_STACK_QUBITS, THREADS, split_rows, stack_tables
from qsim_ozaki.cuda_tiles import INSTANCES, REPEAT_QUBITS, Compiler, tile_launch
from qsim_ozaki.device import Device, amplitude_bytes
from qsim_ozaki.engine import ColumnChecks, StackWork, State, available_threads, collapse_masks
from qsim_ozaki.errors import CapacityError, EngineError
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import EMPTY, ComplexArray, Kind, Op
from qsim_ozaki.pauli import string_values
from qsim_ozaki.steps import DenseBlock, HadamardPass, Path, Prepare, Step, TilePass

DTYPES: dict[str, type[np.complexfloating]] = {"double": np.complex128, "single": np.complex64}
POOLED_BYTES = 64 << 20  # larger states come straight from the driver and go straight back
CACHED_PROGRAMS = 256
EVEN_RATES = (90,)  # architectures whose FP64 tensor cores do as many flop a second as their FP32 units
TABLE_BITS = 11  # of each of the tables that a product state is made of
COUNTER_AMPS, COUNTER_BYTES = 256, 8  # of a state that its counters are as large as, and of a counter


class CudaState:
    """Amplitudes in GPU memory; index bit q is qubit q. Tiny states are padded with zeros to one thread's registers."""

    def __init__(self, num_qubits: int, precision: str, amps: Any) -> None:
        self.num_qubits = num_qubits
        self.precision = precision
        self.amps = amps
        self.checks = ColumnChecks()
        self._counters: Any = None  # zeroed together: between passes that would cost each a launch
        self._addresses: Iterator[int] = iter(())

    def new_tickets(self) -> np.uint64:
        """Address of a counter at 0, in device memory, from which blocks draw the tiles of this state's next pass."""
        address = next(self._addresses, 0)
        if not address:
            if self._counters is None:
                self._counters = self.amps[:COUNTER_AMPS].view(np.uint64).copy()
            data = self._counters.data
            data.memset_async(0, self._counters.nbytes)
            self._addresses = iter(range(data.ptr, data.ptr + self._counters.nbytes, COUNTER_BYTES))
            address = next(self._addresses)
        return np.uint64(address)

    @property
    def kernel_qubits(self) -> int:
        """Width that the kernels see."""
        return max(self.num_qubits, SHAPES[self.precision].register_qubits)


Launch = Callable[[CudaState], None]


class CudaEngine:
    """Runs steps on one GPU, on CuPy's current stream of the calling thread."""

    name = "cuda"

    def __init__(self, cupy: Any, max_memory_bytes: int = 0) -> None:
        self.cupy = cupy
        self.threads = available_threads()
        self.max_memory_bytes = max_memory_bytes
        self.device_id = int(cupy.cuda.Device().id)
        properties = cupy.cuda.runtime.getDeviceProperties(self.device_id)
        self.device_name = properties["name"].decode()
        self.num_processors = int(properties["multiProcessorCount"])
        self.shared_bytes = jit.block_shared_bytes(self.device_id)
        self.architecture = jit.nearest_architecture(int(cupy.cuda.Device().compute_capability))
        self._programs: OrderedDict[tuple[int, int, str], tuple[Step, list[Launch]]] = OrderedDict()
        self.compiler = Compiler(self.architecture)
        self._ones: dict[str, Any] = {}
        self.workspaces: WeakValueDictionary[tuple[int, ...], Any] = WeakValueDictionary()  # of emulated blocks

    def device(self) -> Device:
        """The calibrated record of this GPU."""
        return cuda_calibrate.cuda_device(self)

    def free_bytes(self) -> int:
        """Memory that a new state may take."""
        pool = self.cupy.get_default_memory_pool()
        pool.free_all_blocks()
        free: int = self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes()
        return min(free, self.max_memory_bytes or free)

    def _empty(self, num_qubits: int, precision: str) -> CudaState:
        needed = amplitude_bytes(precision) << num_qubits
        size = 1 << max(num_qubits, SHAPES[precision].register_qubits)
        num_bytes = size * amplitude_bytes(precision)
        if num_bytes < POOLED_BYTES and not self.max_memory_bytes:
            return CudaState(num_qubits, precision, self.cupy.empty(size, DTYPES[precision]))
        free = self.free_bytes()
        if needed > free and self._programs:  # their matrices and tables may be in the way
            self.forget()
            free = self.free_bytes()
        if needed > free:
            fits = (free // amplitude_bytes(precision)).bit_length() - 1
            raise CapacityError(
                f"{num_qubits} qubits need {needed / 2**30:.3g} GiB in {precision} precision; {self.device_name} has "
                f'{free / 2**30:.3g} GiB free. Use at most {fits} qubits, or engine="cpu".'
            )
        memory = self.cupy.cuda.MemoryPointer(self.cupy.cuda.Memory(num_bytes), 0)
        return CudaState(num_qubits, precision, self.cupy.ndarray(size, DTYPES[precision], memory))

    def allocate(self, num_qubits: int, precision: str) -> CudaState:
        """A new state |0...0>.

        Raises:
            CapacityError: it does not fit the GPU's free memory or the engine's limit.
        """
        state = self._empty(num_qubits, precision)
        state.amps.data.memset_async(0, state.amps.nbytes)
        if precision not in self._ones:
            self._ones[precision] = self.cupy.asarray(np.ones(1, DTYPES[precision]))
        _put_first(state, self._ones[precision])
        return state

    def load(self, vector: NDArray[np.complexfloating], precision: str) -> CudaState:
        """A new state holding ``vector`` (any complex dtype, ``(2**n,)``)."""
        state = self._empty(vector.size.bit_length() - 1, precision)
        if state.amps.size != vector.size:
            state.amps.fill(0)
        state.amps[: vector.size].set(np.ascontiguousarray(vector, DTYPES[precision]))
        return state

    def copy(self, state: State) -> CudaState:
        """An independent copy of ``state``."""
        out = self._empty(state.num_qubits, state.precision)
        out.amps[...] = _own(state).amps
        return out

    def vector(self, state: State) -> NDArray[np.complexfloating]:
        """The amplitudes as a new host array."""
        own = _own(state)
        return cast("NDArray[np.complexfloating]", own.amps[: 1 << own.num_qubits].get())

    def norm(self, state: State) -> float:
        """Squared 2-norm of the state, the same bits on every run."""
        return float(self.probabilities(state, ())[0])

    def probabilities(self, state: State, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``."""
        return cuda_measure.probabilities(self, _own(state), qubits)

    def pauli_values(self, state: State, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
        """``<state| P |state>`` of Pauli strings, ``(strings,)``."""
        if state.num_qubits < cuda_pauli.CHUNK_QUBITS:
            return np.asarray(string_values(self.vector(state)[None], x, z, self.threads)[0])
        return cuda_pauli.values(self, _own(state), x, z)

    def amplitudes(self, state: State, indices: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """The amplitudes of these basis states."""
        return cast("NDArray[np.complexfloating]", _own(state).amps[self.cupy.asarray(indices)].get())

    def sample(self, state: State, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """The basis state at which the cumulative probability passes each of ``uniforms`` times the norm."""
        return cuda_measure.sample(self, _own(state), uniforms)

    def collapse(self, state: State, qubits: Sequence[int], outcome: int, scale: float) -> None:
        """Zeroes the amplitudes whose ``qubits[j]`` is not bit j of ``outcome``, multiplies the others by ``scale``."""
        own = _own(state)
        mask, wanted = collapse_masks(qubits, outcome)
        args = (own.amps, np.uint64(own.amps.size), np.uint64(mask), np.uint64(wanted), np.float64(scale))
        self.launch("collapse", INSTANCES[own.precision], own.amps.size // 256, 256, args)

    @property
    def stack_qubits(self) -> int:
        """Qubits of the widest state of which two copies fit a block's shared memory, in double precision."""
        return min(MAX_STACK_QUBITS, (self.shared_bytes // (2 * amplitude_bytes("double"))).bit_length() - 1)

    def run_stacks(self, works: Sequence[StackWork], precision: str) -> list[NDArray[np.complexfloating]]:
        """Each work's final states, ``(rows, 2**num_qubits)``: all of them in one launch."""
        tables, kind = stack_tables(works), DTYPES[precision]
        out = self.cupy.empty(tables.num_amps, kind)
        records = (tables.blocks.view(np.uint8), tables.steps.view(np.uint8), tables.data.astype(kind), tables.sources)
        args = [self.cupy.asarray(table) for table in (*records, tables.values.astype(kind))]
        shared_bytes = 2 * tables.block_amps * amplitude_bytes(precision)
        self.launch("stack_run", INSTANCES[precision], len(tables.blocks), THREADS, (*args, out), shared_bytes)
        return split_rows(out.get(), works)

    def run_step(self, state: State, step: Step) -> None:
        """Does ``step`` in place. It is compiled once per width and precision: a plan that runs again only launches."""
        own = _own(state)
        emulated = isinstance(step, DenseBlock) and step.path is Path.OZAKI  # one block serves states of every width
        key = (id(step), 0 if emulated else own.num_qubits, own.precision)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = (step, self._launches(own, step))  # holding the step keeps its id its own
            if len(self._programs) > CACHED_PROGRAMS:
                self._programs.popitem(last=False)
        else:
            self._programs.move_to_end(key)
        for launch in found[1]:
            launch(own)

    def _launches(self, state: CudaState, step: Step) -> list[Launch]:
        """What does ``step`` on states of this width and precision."""
        if isinstance(step, Prepare):
            return self._prepare(state, step)
        if isinstance(step, HadamardPass):
            tile = SHAPES[state.precision].tile_qubits
            if len(step.qubits) > tile:
                raise EngineError(f"a Hadamard pass over {len(step.qubits)} qubits does not fit a tile of {tile}")
            return self._compile(state, Tile(step.qubits), [Op(Kind.HADAMARD, step.qubits, EMPTY)])
        if isinstance(step, TilePass):
            held = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            return self._compile(state, held, step.ops, step.row)
        if isinstance(step, DenseBlock) and step.path is Path.NATIVE:
            return self._compile(state, Tile(step.op.targets, step.zero_qubits), [step.op])
        if isinstance(step, DenseBlock):
            return [self._emulated(state, step)]
        raise EngineError(f"the CUDA engine has no step {step}")

    def _emulated(self, state: CudaState, step: DenseBlock) -> Launch:
        """One matrix by INT8 products; columns that fail their check are redone natively, and counted."""
        op = step.op
        fixed = dict.fromkeys(step.zero_qubits, 0) | dict.fromkeys(step.one_qubits, 1)
        fixed |= {c: op.ctrl_state >> b & 1 for b, c in enumerate(op.controls)}
        block = EmulatedBlock(self, op.matrix(), op.targets, fixed, step.num_moduli)
        instance = INSTANCES[state.precision]
        return lambda target: target.checks.add(*block.run(target.amps, instance))

    def take_checks(self, state: State) -> ColumnChecks:
        """What the checks of the emulated blocks on ``state`` found since this was last asked."""
        own = _own(state)
        checks, own.checks = own.checks, ColumnChecks()
        return checks

    def launch(
        self,
        name: str,
        instance: Mapping[str, str],
        blocks: int,
        threads: int,
        args: tuple[Any, ...],
        shared_bytes: int = 0,
    ) -> None:
        """Launches one kernel of the table on the current stream."""
        self.launch_function(self.function(name, instance), blocks, threads, args, shared_bytes)

    def function(self, name: str, instance: Mapping[str, str]) -> Any:
        """A kernel of the table, loaded: what runs again and again asks for it once."""
        return jit.load(name, tuple(sorted(instance.items())), self.device_id)

    def launch_function(
        self, function: Any, blocks: int, threads: int, args: tuple[Any, ...], shared_bytes: int = 0
    ) -> None:
        """Launches a loaded kernel on the current stream."""
        function((min(max(blocks, 1), (1 << 31) - 1),), (threads,), args, shared_mem=shared_bytes)

    def forget(self) -> None:
        """Lets go of what steps were compiled to, matrices and tables on the device with it."""
        self._programs.clear()

    def _compile(self, state: CudaState, tile: Tile, ops: Sequence[Op], row: bool = False) -> list[Launch]:
        """Tile programs, with matrices that do not fit the registers or that tensor cores do better in between."""
        launches: list[Launch] = []
        waiting: list[Op] = []
        later = replace(tile, fresh_qubits=())

        def flush(swaps: tuple[tuple[int, int], ...] = ()) -> None:
            here = later if launches else tile
            if waiting or swaps or here.fresh_qubits:
                launches.append(tile_launch(self, state, replace(here, swaps=swaps), tuple(waiting), row))
                waiting.clear()

        shape = SHAPES[state.precision]
        if _fits_one(ops, shape.tile_qubits):
            return [tile_launch(self, state, tile, ops, row)]
        for op in ops:
            # alone on a large state, tensor cores do a matrix on 3 or 4 qubits in the time of a pass
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
        """Whether this GPU has FP64 tensor cores, and for complex64 such as do as many flop a second as FP32 units."""
        known = jit.TENSOR_CORES if state.precision == "double" else EVEN_RATES
        return self.architecture in known

    def _dense_launch(self, state: CudaState, op: Op, zero_qubits: Sequence[int]) -> Launch:
        if len(op.targets) == 3:
            op = cuda_dense.widened(op, zero_qubits, state.kernel_qubits)
        k = len(op.targets)
        fixed = {q: 0 for q in zero_qubits if q not in op.targets}
        fixed |= {c: op.ctrl_state >> b & 1 for b, c in enumerate(op.controls)}
        free = state.kernel_qubits - len(fixed)
        shapes = cuda_dense.BLOCK_SHAPES[state.precision]
        if not (self._has_tensor_cores(state) and k in shapes and free >= k + cuda_dense.GROUP_BITS):
            return product_launch(self, op.matrix(), op.targets, fixed, state.kernel_qubits, state.precision)
        shape = shapes[k]
        tables = cuda_dense.dense_tables(op.matrix(), op.targets, fixed, state.kernel_qubits, shape)
        matrix, places = self.cupy.asarray(tables.matrix), self.cupy.asarray(tables.places)
        blocks = min(tables.num_tiles, shape.blocks * self.num_processors)
        function = self.function(shape.kernel, shape.macros(k))
        shared_bytes, ordered = shape.shared_bytes(k), isinstance(shape, cuda_dense.HeldShape)
        tile = cuda_dense.opaque(tables.tile)

        def run(target: CudaState) -> None:
            tickets = (target.new_tickets(),) if ordered else ()
            args = (target.amps, matrix, places, *tickets, tile)
            self.launch_function(function, blocks, shape.threads, args, shared_bytes)

        return run

    def _prepare(self, state: CudaState, step: Prepare) -> list[Launch]:
        """A product state; its tables are on the device once."""
        n, padded = state.num_qubits, state.amps.size != 1 << state.num_qubits
        if step.alone and not padded:
            amp = self.cupy.asarray(step.factors[:, 0].prod(keepdims=True).astype(DTYPES[state.precision]))
            return [partial(_put_first, amp=amp)]
        low, middle = min(n, TABLE_BITS), min(max(n - TABLE_BITS, 0), TABLE_BITS)
        parts = [step.factors[:low], step.factors[low : low + middle], step.factors[low + middle :]]
        tables = [self.cupy.asarray(product_table(part).astype(DTYPES[state.precision])) for part in parts]
        num_chunks = 1 << (n - low)
        args = (*tables, np.int32(low), np.int32(middle), np.uint64(num_chunks))
        function = self.function("prepare", INSTANCES[state.precision])

        def run(target: CudaState) -> None:
            if padded:
                target.amps.fill(0)
            self.launch_function(function, num_chunks, 256, (target.amps, *args))

        return [run]


def _put_first(state: CudaState, amp: Any) -> None:
    """Writes the amplitude of |0...0>, from an array of one: assignment would take three times as long."""
    state.amps.data.copy_from_device_async(amp.data, amp.nbytes)


def product_table(factors: ComplexArray) -> ComplexArray:
    """``table[i] = prod_q factors[q, bit q of i]``."""
    table = np.ones(1, complex)
    for zero, one in factors:
        table = np.concatenate([table * zero, table * one])
    return table


def create(threads: int = 0, max_memory_bytes: int = 0) -> CudaEngine:
    """The CUDA engine on the current GPU.

    Args:
        threads: not used; a GPU has its own.
        max_memory_bytes: limit for one state, 0 for what the GPU has free.

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
    return CudaEngine(cupy, max_memory_bytes)


def _fits_one(ops: Sequence[Op], tile_qubits: int) -> bool:
    """Whether no operator is one that a tile program may not hold."""
    if not isinstance(ops, OpList) or not ops or ops.native.large_matrices(3):
        return False
    return bool(ops.native.mixed_mask().bit_count() <= tile_qubits)


def _own(state: State) -> CudaState:
    assert isinstance(state, CudaState)
    return state
