"""The engine protocol, the table of engines, and how one is selected.

In: an engine's name. Out: a ready engine. It may not plan, and imports an engine only when that engine is selected.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import Device, Op, Step


@dataclass(slots=True)
class ColumnChecks:
    """What the checks of emulated blocks found.

    Attributes:
        redone: columns whose check failed, which were redone natively.
        residual: the largest residual of the other columns' checks, over the column's norm.
    """

    redone: int = 0
    residual: float = 0.0

    def add(self, redone: int, residual: float) -> None:
        """Takes in the checks of one more block."""
        self.redone += redone
        self.residual = max(self.residual, residual)


@dataclass(frozen=True, slots=True, eq=False)
class StackWork:
    """Rows of one program on few qubits, run side by side.

    Attributes:
        num_qubits: of each state.
        ops: in order; those called `_native.SLOT_NAME` get their numbers from each row.
        numbers: of the slots, ``(rows, width)``.
    """

    num_qubits: int
    ops: Sequence[Op]
    numbers: NDArray[np.complex128]


class State(Protocol):
    """A register of amplitudes owned by an engine; index bit q is (physical) qubit q."""

    @property
    def num_qubits(self) -> int:
        """Qubits of the register."""

    @property
    def precision(self) -> str:
        """``"double"`` (complex128) or ``"single"`` (complex64)."""


class Engine(Protocol):
    """Does steps. It decides nothing: tiles, paths and order come with the plan."""

    name: str
    threads: int  # of the host, for what is computed there
    samples_stacks: bool  # its stacks may run where the host samples them, state by state, without `run_stacks`
    runs_concurrently: bool  # threads may work on states side by side; else they take turns, for its memory is scarce

    @property
    def device_name(self) -> str:
        """The hardware, as its vendor calls it."""

    def device(self) -> Device:
        """The calibrated record that planning reads (measured once, then cached in a file)."""

    def allocate(self, num_qubits: int, precision: str) -> State:
        """A new state |0...0>. Raises CapacityError with numbers where it does not fit."""

    def load(self, vector: NDArray[np.complexfloating], precision: str) -> State:
        """A new state holding ``vector`` (any complex dtype, ``(2**n,)``)."""

    def copy(self, state: State) -> State:
        """An independent copy of ``state``."""

    def run_step(self, state: State, step: Step) -> None:
        """Does exactly ``step``, in place, or raises. `Relabel` moves no data and never reaches an engine."""

    def take_checks(self, state: State) -> ColumnChecks:
        """What the checks of the emulated blocks on ``state`` found since this was last asked."""

    def vector(self, state: State) -> NDArray[np.complexfloating]:
        """The amplitudes as a host array of the state's precision; the CPU engine gives a view, not a copy."""

    def norm(self, state: State) -> float:
        """Squared 2-norm of the state, the same bits for any number of threads."""

    def probabilities(self, state: State, qubits: Sequence[int]) -> NDArray[np.float64]:
        """Marginal probabilities ``(2**len(qubits),)``; index bit j is ``qubits[j]``, any order."""

    def pauli_values(self, state: State, x: NDArray[np.uint64], z: NDArray[np.uint64]) -> NDArray[np.float64]:
        """``<state| P |state>`` of strings, ``(strings,)``: X or Y at the bits of ``x``, Y or Z at those of ``z``."""

    def amplitudes(self, state: State, indices: NDArray[np.int64]) -> NDArray[np.complexfloating]:
        """The amplitudes of these basis states, in the state's precision."""

    def sample(self, state: State, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """The basis state at which the cumulative probability passes ``uniforms[i] * norm``, for each i, in order."""

    def collapse(self, state: State, qubits: Sequence[int], outcome: int, scale: float) -> None:
        """Zeroes the amplitudes whose ``qubits[j]`` is not bit j of ``outcome``, multiplies the others by ``scale``."""

    @property
    def stack_qubits(self) -> int:
        """Qubits of the widest states that `run_stacks` takes."""

    def run_stacks(self, works: Sequence[StackWork], precision: str) -> list[NDArray[np.complexfloating]]:
        """Each work's final states from |0...0>, ``(rows, 2**num_qubits)``, as new host arrays."""


def available_threads() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def collapse_masks(qubits: Sequence[int], outcome: int) -> tuple[int, int]:
    """The index bits of ``qubits``, and those of them that are 1 where ``qubits[j]`` is bit j of ``outcome``."""
    return sum(1 << qubit for qubit in qubits), sum((outcome >> j & 1) << qubit for j, qubit in enumerate(qubits))


# name: module that holds `create(threads, max_memory_bytes) -> Engine`
ENGINES: dict[str, str] = {"cpu": "qsim_ozaki.engines.cpu.engine", "cuda": "qsim_ozaki.engines.cuda.engine"}


def select(name: str, *, threads: int = 0, max_memory_bytes: int = 0) -> Engine:
    """The engine called ``name``.

    Args:
        name: a key of `ENGINES`, or ``"auto"``: the CPU engine, which is always available.
        threads: worker threads, 0 for all cores this process may use.
        max_memory_bytes: limit for one state, 0 for what the device has free.

    Raises:
        EngineError: the name is unknown or the engine is not available here, with the reason.
    """
    if name == "auto":
        name = "cpu"
    if name not in ENGINES:
        raise EngineError(f"engine {name!r} is not known; available: auto, {', '.join(ENGINES)}")
    engine: Engine = importlib.import_module(ENGINES[name]).create(threads, max_memory_bytes)
    return engine


class SharedEngines:
    """Engines by their options, made when first needed, each with the lock by which its users take turns.

    Any thread may ask. A forked process makes its own engines, for threads and devices do not survive a fork.
    """

    def __init__(self) -> None:
        self._engines: dict[tuple[int, str, int, int], tuple[Engine, Lock]] = {}

    def shared(self, name: str, threads: int, max_memory_bytes: int) -> tuple[Engine, Lock]:
        """The engine that `select` gives for these arguments, the same for the same ones, and its lock.

        Raises:
            EngineError: as `select`.
        """
        key = (os.getpid(), name, threads, max_memory_bytes)
        if key not in self._engines:
            engine = select(name, threads=threads, max_memory_bytes=max_memory_bytes)
            self._engines.setdefault(key, (engine, Lock()))
        return self._engines[key]
