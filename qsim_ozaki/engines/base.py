"""The engine protocol, the table of engines, and their selection.

In: an engine's name. Out: a ready engine. It may not plan, or import an engine before that engine is selected.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import Device, Op, Step


@dataclass(slots=True)
class ColumnChecks:
    """The results of the checks of emulated blocks.

    Attributes:
        redone: number of columns whose check failed; the engine redid them natively.
        residual: the largest residual of the other columns' checks, over the column's norm.
    """

    redone: int = 0
    residual: float = 0.0

    def add(self, redone: int, residual: float) -> None:
        """Adds the results of the checks of one more block."""
        self.redone += redone
        self.residual = max(self.residual, residual)


@dataclass(frozen=True, slots=True, eq=False)
class StackWork:
    """The rows of one program on few qubits, which run side by side.

    Attributes:
        num_qubits: number of qubits of the state of one row.
        ops: operators in order; operators named `_native.SLOT_NAME` take their numbers from the row.
        numbers: numbers for the slots, ``(rows, width)``.
    """

    num_qubits: int
    ops: Sequence[Op]
    numbers: NDArray[np.complex128]


# A step that the extension can run on the host: a tile program, or the factors of a `Prepare`, ``(num_qubits, 2)``.
HostProgram: TypeAlias = "_native.TileProgram | NDArray[np.complex128]"


class State(Protocol):
    """A register of amplitudes owned by an engine; index bit q is (physical) qubit q."""

    @property
    def num_qubits(self) -> int:
        """The number of qubits of the register."""

    @property
    def precision(self) -> str:
        """``"double"`` (complex128) or ``"single"`` (complex64)."""


class Engine(Protocol):
    """Runs steps. It may not decide anything: the plan holds the tiles, the paths and the order."""

    name: str
    threads: int  # number of host threads for computations on the host
    samples_stacks: bool  # the host may run and sample its stacks state by state, without `run_stacks`
    runs_concurrently: bool  # threads may work on states side by side; else they take turns, as its memory is scarce

    @property
    def device_name(self) -> str:
        """The vendor's name of the hardware."""

    def device(self) -> Device:
        """Returns the record that planning reads: measured once and kept in a file, or shipped with the package."""

    def calibrate(self) -> None:
        """Measures the hardware anew, for this and later processes."""

    def expect(self, precision: str) -> None:
        """Says that runs in ``precision`` will follow: the engine may begin in the background what the first needs."""

    def allocate(self, num_qubits: int, precision: str) -> State:
        """Returns a new state |0...0>.

        Raises:
            CapacityError: the state does not fit; the message states the bytes.
        """

    def load(self, vector: NDArray[np.complexfloating], precision: str) -> State:
        """Returns a new state that holds ``vector`` (any complex dtype, ``(2**n,)``)."""

    def copy(self, state: State) -> State:
        """Returns an independent copy of ``state``."""

    def run_step(self, state: State, step: Step) -> None:
        """Runs exactly ``step`` in place, or raises. A `Relabel` moves no data and never reaches an engine."""

    def take_checks(self, state: State) -> ColumnChecks:
        """Returns the results of the checks of emulated blocks on ``state`` since the last call."""

    def vector(self, state: State) -> NDArray[np.complexfloating]:
        """Returns the amplitudes as a host array of the state's precision; the CPU engine returns a view."""

    def norm(self, state: State) -> float:
        """Returns the squared 2-norm of the state, with the same bits for any number of threads."""

    def probabilities(self, state: State, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Returns marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``, in any order."""

    def pauli_values(self, state: State, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Returns ``<state| P |state>`` of Pauli strings P, ``(strings,)``.

        Args:
            state: the state.
            x: masks of the qubits with X or Y, ``(strings,)``.
            z: masks of the qubits with Y or Z, ``(strings,)``.
        """

    def amplitudes(self, state: State, indices: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """Returns the amplitudes of the basis states ``indices``, in the state's precision."""

    def sample(self, state: State, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Returns, for each i, the basis state at which the cumulative probability passes ``uniforms[i] * norm``."""

    def collapse(self, state: State, qubits: Sequence[int], outcome: int, scale: float) -> None:
        """Sets amplitudes where some ``qubits[j]`` is not bit j of ``outcome`` to 0; scales the others by ``scale``."""

    def host_programs(self, num_qubits: int, precision: str, steps: Sequence[Step]) -> list[HostProgram] | None:
        """The steps as programs of the extension, which runs them on many small states; None: they run here alone."""

    @property
    def stack_qubits(self) -> int:
        """The number of qubits of the widest states that `run_stacks` takes."""

    def run_stacks(self, works: Sequence[StackWork], precision: str) -> list[NDArray[np.complexfloating]]:
        """Returns for each work its final states from |0...0>, ``(rows, 2**num_qubits)``, as new host arrays."""


def available_threads() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def collapse_masks(qubits: Sequence[int], outcome: int) -> tuple[int, int]:
    """Returns the mask of ``qubits``, and the value of these index bits where ``qubits[j]`` is bit j of ``outcome``."""
    mask = sum(1 << qubit for qubit in qubits)
    value = sum((outcome >> j & 1) << qubit for j, qubit in enumerate(qubits))
    return mask, value


# name: the module that defines `create(threads, max_memory_bytes) -> Engine`
ENGINES: dict[str, str] = {"cpu": "qsim_ozaki.engines.cpu.engine", "cuda": "qsim_ozaki.engines.cuda.engine"}


def select(name: str, *, threads: int = 0, max_memory_bytes: int = 0) -> Engine:
    """Returns the engine called ``name``.

    Args:
        name: a key of `ENGINES`, or ``"auto"`` for the CPU engine, which is always available.
        threads: number of worker threads; 0 for all cores that this process may use.
        max_memory_bytes: limit for one state; 0 for all memory that the device has free.

    Raises:
        EngineError: the name is unknown, or the engine is not available; the message states the reason.
    """
    if name == "auto":
        name = "cpu"
    if name not in ENGINES:
        raise EngineError(f"engine {name!r} is not known; available: auto, {', '.join(ENGINES)}")
    engine: Engine = importlib.import_module(ENGINES[name]).create(threads, max_memory_bytes)
    return engine


class SharedEngines:
    """Engines by their options, created when first needed, with the locks by which their users take turns.

    Any thread may use it. A forked process creates its own engines, because threads and devices do not survive a fork.
    """

    def __init__(self) -> None:
        self._engines: dict[tuple[int, str, int, int], tuple[Engine, Lock]] = {}

    def shared(self, name: str, threads: int, max_memory_bytes: int) -> tuple[Engine, Lock]:
        """Returns the engine that `select` returns for these arguments, and its lock.

        The same arguments return the same engine.

        Raises:
            EngineError: as `select` does.
        """
        key = (os.getpid(), name, threads, max_memory_bytes)
        if key not in self._engines:
            engine = select(name, threads=threads, max_memory_bytes=max_memory_bytes)
            self._engines.setdefault(key, (engine, Lock()))
        return self._engines[key]
