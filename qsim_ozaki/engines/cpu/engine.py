"""The CPU engine: states and tile programs of the C++ extension `_native`.

In: steps of a plan. Out: amplitudes, probabilities, samples. It may not decide anything or use Qiskit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.engines.base import ColumnChecks, HostProgram, StackWork, State, available_threads, collapse_masks
from qsim_ozaki.engines.cpu import calibrate
from qsim_ozaki.engines.cpu.program import tile_program
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import (
    EMPTY,
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
    too_wide,
)
from qsim_ozaki.ozaki import Block
from qsim_ozaki.ozaki import block as emulated_block

SMALL_STATE_BYTES = 1 << 20  # a state up to this size is allocated without a look at the free memory
MEMORY_READING_SECONDS = 0.02  # a reading of the free memory serves planning for this long


class CpuState:
    """Amplitudes in host memory; index bit q is qubit q."""

    def __init__(self, num_qubits: int, precision: str) -> None:
        self.num_qubits = num_qubits
        self.precision = precision
        self.native = _native.State(num_qubits, precision == "single")
        self.checks = ColumnChecks()


class CpuEngine:
    """Runs steps with the kernels of `_native` on ``threads`` threads."""

    name = "cpu"
    samples_stacks = True
    runs_concurrently = True

    def __init__(self, threads: int, max_memory_bytes: int) -> None:
        self.threads = threads or available_threads()
        self.max_memory_bytes = max_memory_bytes
        self._memory_read = -1.0
        self._memory_bytes = 0

    @property
    def device_name(self) -> str:
        """The processor's name, as the operating system states it."""
        return calibrate.processor()

    def device(self) -> Device:
        """Returns the calibrated record of this machine."""
        free = self._recent_memory_bytes()
        return calibrate.cpu_device(self.threads, min(free, self.max_memory_bytes or free))

    def calibrate(self) -> None:
        """Measures this machine anew, about a second, for this and later processes."""
        calibrate.calibrate(self.threads)

    def expect(self, precision: str) -> None:
        """Does nothing: a first run needs nothing that later ones do not."""

    def _recent_memory_bytes(self) -> int:
        """Returns `available_memory_bytes`, up to `MEMORY_READING_SECONDS` old.

        Planning uses this value; the allocation of a large state reads it again.
        """
        now = time.monotonic()
        if now - self._memory_read > MEMORY_READING_SECONDS:
            self._memory_read, self._memory_bytes = now, available_memory_bytes()
        return self._memory_bytes

    def allocate(self, num_qubits: int, precision: str) -> CpuState:
        """Returns a new state |0...0>.

        Raises:
            CapacityError: the state does not fit the memory limit, or the memory that this process may still use.
        """
        needed = amplitude_bytes(precision) << num_qubits
        limit = self.max_memory_bytes or needed
        if needed > SMALL_STATE_BYTES:  # for a smaller state, reading the free memory does not pay
            free = available_memory_bytes()
            limit = min(limit, free if needed <= free else free + _native.release_kept_buffer())
        if needed > limit:
            raise CapacityError(too_wide(num_qubits, precision, calibrate.processor(), limit))
        return CpuState(num_qubits, precision)

    def load(self, vector: NDArray[np.complexfloating], precision: str) -> CpuState:
        """Returns a new state that holds ``vector`` (any complex dtype, ``(2**n,)``)."""
        state = self.allocate(vector.size.bit_length() - 1, precision)
        state.native.vector()[:] = vector
        return state

    def copy(self, state: State) -> CpuState:
        """Returns an independent copy of ``state``."""
        out = self.allocate(state.num_qubits, state.precision)
        out.native.copy_from(_native_state(state), self.threads)
        return out

    def run_step(self, state: State, step: Step) -> None:
        """Runs ``step`` in place."""
        if isinstance(step, Prepare):
            _native_state(state).prepare(np.ascontiguousarray(step.factors).reshape(-1), self.threads)
        elif isinstance(step, DenseBlock) and step.path is not Path.NATIVE:
            self._run_emulated(state, step)
        else:
            _step_program(state.num_qubits, state.precision, step).run(_native_state(state), self.threads)

    def host_programs(self, num_qubits: int, precision: str, steps: Sequence[Step]) -> list[HostProgram] | None:
        """The steps as programs of the extension; None where one of them is an emulated product."""
        programs: list[HostProgram] = []
        for step in steps:
            if isinstance(step, DenseBlock) and step.path is not Path.NATIVE:
                return None
            if isinstance(step, Prepare):
                programs.append(np.ascontiguousarray(step.factors, complex))
            else:
                programs.append(_step_program(num_qubits, precision, step))
        return programs

    def _run_emulated(self, state: State, step: DenseBlock) -> None:
        """Applies one matrix by INT8 products; columns that fail their check are redone natively and counted."""
        assert isinstance(state, CpuState)
        op = step.op
        prepared = emulated_block(op.matrix(), step.num_moduli)
        fixed = dict.fromkeys(step.zero_qubits, 0) | dict.fromkeys(step.one_qubits, 1)
        # a control that is known to have another value selects columns that hold zeros only
        fixed |= {q: op.ctrl_state >> b & 1 for b, q in enumerate(op.controls)}
        free = [q for q in range(state.num_qubits) if q not in fixed and q not in op.targets]
        base = sum(value << q for q, value in fixed.items())
        amps = state.native.vector()
        redone, residual = extension_block(prepared, self.threads).run(
            amps, list(op.targets), free, base, prepared.scheme.tolerance, self.threads
        )
        state.checks.add(redone, residual)

    def take_checks(self, state: State) -> ColumnChecks:
        """Returns the results of the checks of emulated blocks on ``state`` since the last call."""
        assert isinstance(state, CpuState)
        checks, state.checks = state.checks, ColumnChecks()
        return checks

    def vector(self, state: State) -> NDArray[np.complexfloating]:
        """Returns the amplitudes as a view of the state's memory, which lives as long as the view."""
        return cast("NDArray[np.complexfloating]", _native_state(state).vector(self.threads))

    def norm(self, state: State) -> float:
        """Returns the squared 2-norm of the state."""
        return float(_native_state(state).norm(self.threads))

    def probabilities(self, state: State, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Returns marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``."""
        return cast("NDArray[np.float64]", _native_state(state).probabilities(list(qubits), self.threads))

    def pauli_values(self, state: State, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Returns ``<state| P |state>`` of Pauli strings P, ``(strings,)``."""
        return np.asarray(string_values(self.vector(state)[None], x, z, self.threads)[0])

    def amplitudes(self, state: State, indices: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """Returns the amplitudes of the basis states ``indices``."""
        return np.asarray(self.vector(state)[indices])

    def sample(self, state: State, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns, for each i, the basis state at which the cumulative probability passes ``uniforms[i] * norm``."""
        return cast("NDArray[np.int64]", _native_state(state).sample(np.ascontiguousarray(uniforms), self.threads))

    def collapse(self, state: State, qubits: Sequence[int], outcome: int, scale: float) -> None:
        """Sets amplitudes where some ``qubits[j]`` is not bit j of ``outcome`` to 0; scales the others by ``scale``."""
        _native_state(state).collapse(*collapse_masks(qubits, outcome), scale, self.threads)

    @property
    def stack_qubits(self) -> int:
        """The number of qubits of the widest state that stays in a second-level cache with its scratch memory."""
        return int(_native.STACK_TILE)

    def run_stacks(self, works: Sequence[StackWork], precision: str) -> list[NDArray[np.complexfloating]]:
        """Returns for each work its final states, ``(rows, 2**num_qubits)``; the threads share the rows."""
        out: list[NDArray[np.complexfloating]] = []
        for work in works:
            program = _native.StackProgram(work.num_qubits, list(range(work.num_qubits)))
            program.add(OpList.of(work.ops).native)
            program.finish()
            states = np.empty((len(work.numbers), 1 << work.num_qubits), complex)
            program.run(np.ascontiguousarray(work.numbers), states, self.threads)
            out.append(states if precision == "double" else states.astype(np.complex64))
        return out


def _step_program(num_qubits: int, precision: str, step: Step) -> _native.TileProgram:
    """``step`` as a tile program."""
    if isinstance(step, TilePass):
        assert not step.swaps, "no plan for a CPU moves qubits"
        return tile_program(num_qubits, step.qubits, precision, step.ops, (step.zero_qubits, step.one_qubits))
    if isinstance(step, HadamardPass):
        return tile_program(num_qubits, step.qubits, precision, [Op(Kind.HADAMARD, step.qubits, EMPTY)])
    if isinstance(step, DenseBlock):
        fixed = (step.zero_qubits, step.one_qubits)
        return tile_program(num_qubits, step.op.targets, precision, [step.op], fixed)
    raise AssertionError(f"the CPU engine has no step {step}")


def create(threads: int = 0, max_memory_bytes: int = 0) -> CpuEngine:
    """Returns the CPU engine on ``threads`` threads (0: all cores that this process may use)."""
    return CpuEngine(threads, max_memory_bytes)


def available_memory_bytes() -> int:
    """Returns the bytes that a new state may take: the kernel's available memory, within the container's limit."""
    try:
        text = _read("/proc/meminfo")
        at = text.index(b"MemAvailable:")
        free = int(text[at + 13 : text.index(b"kB", at)]) * 1024
    except (OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(free, _container_free_bytes())


def _container_free_bytes() -> int:
    """Returns the bytes that the control group leaves, or a very large number if it sets no limit."""
    try:
        return int(_read("/sys/fs/cgroup/memory.max")) - int(_read("/sys/fs/cgroup/memory.current"))
    except (OSError, ValueError):
        return 1 << 62


def _read(path: str) -> bytes:
    """Returns the text of a file of /proc or /sys, in a third of the time that an open file object takes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 1 << 14)
    finally:
        os.close(descriptor)


def extension_block(block: Block, threads: int = 1) -> _native.OzakiBlock:
    """Returns ``block`` in the form of the extension, which computes its residues on ``threads`` threads."""
    scheme = block.scheme
    constants = _native.OzakiScheme(
        scheme.moduli, [scheme.matrix_bits, scheme.column_bits, block.exponent], list(scheme.product)
    )
    return _native.OzakiBlock(constants, block.matrix, block.weights, block.check_row, threads)


def _native_state(state: State) -> _native.State:
    """Returns the extension's object of ``state``."""
    assert isinstance(state, CpuState)
    return state.native
