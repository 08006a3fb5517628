"""Stacks: batches of small states, which all run one program with different numbers.

In: an `Executable` and the data of its slots, one row per state. Out: states ``(rows, 2**num_qubits)``, or the outcomes
of shots. It may not import Qiskit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.engines import available_threads
from qsim_ozaki.ir import OpList, Save
from qsim_ozaki.runtime.bytecode import Executable, Segment
from qsim_ozaki.runtime.sampling import Drawn, seed_words

MAX_STACK_QUBITS: int = _native.STACK_TILE  # a state of so many qubits stays in a second-level cache
MAX_MATRIX_TARGETS = 5  # wider matrices are faster as steps of the engine
MAX_UNPLANNED_UPDATES = 1 << 30  # half a second, during which the job cannot be cancelled
PLAIN_SAVE = ("statevector", "single", False)
STACK_NUMBERS = 1 << 19  # held at one time: 8 MiB of amplitudes, or 4 MiB of random numbers

States = NDArray[np.complex128]  # (rows, 2**num_qubits)
Reads: TypeAlias = tuple[tuple[int, int], ...]


def is_stackable(code: Executable) -> bool:
    """Whether ``code`` is operators on few qubits, then measurements or the final state, without collapse or branch."""
    *before, last = code.items or (Segment(0, OpList()),)
    plain = isinstance(last, Save) and (last.what, last.form, last.conditional) == PLAIN_SAVE
    ends = isinstance(last, Segment) or plain
    answers = bool(code.reads) if code.measures else not isinstance(last, Segment)
    if code.num_qubits > MAX_STACK_QUBITS or not (ends and answers and all(isinstance(i, Segment) for i in before)):
        return False
    return not any(segment.ops.native.large_matrices(MAX_MATRIX_TARGETS + 1) for segment in code.segments)


def is_unplanned(code: Executable) -> bool:
    """Whether ``code`` without slots runs as a stack without a plan: stackable, short, measured at the end."""
    return bool(code.reads) and updates(code) <= MAX_UNPLANNED_UPDATES and is_stackable(code)


def updates(code: Executable) -> int:
    """The number of amplitude updates of stackable ``code``: operators times amplitudes."""
    return code.num_ops << code.num_qubits


def num_threads(option: int) -> int:
    """The number of threads for stacks: the value of the option, where 0 stands for all cores this process may use."""
    return option or available_threads()


def stack_program(
    num_qubits: int, lists: Iterable[OpList | _native.OpList], tile: Sequence[int] | None = None
) -> _native.StackProgram:
    """A stack program of the extension.

    Args:
        num_qubits: the width of every state.
        lists: operators and slots in order.
        tile: the qubits of a tile, ascending; None stands for all qubits.
    """
    program = _native.StackProgram(num_qubits, list(range(num_qubits) if tile is None else tile))
    for ops in lists:
        program.add(ops.native if isinstance(ops, OpList) else ops)
    program.finish()
    return program


def run_stack(program: _native.StackProgram, num_qubits: int, rows: NDArray[np.complex128], threads: int) -> States:
    """The final states, one per row of numbers."""
    states = np.empty((len(rows), 1 << num_qubits), complex)
    program.run(np.ascontiguousarray(rows), states, threads)
    return states


def pieces(num_rows: int, num_qubits: int) -> Iterator[slice]:
    """Slices of rows that run together: few enough that their states stay within `STACK_NUMBERS`."""
    most = max(1, STACK_NUMBERS >> num_qubits)
    for start in range(0, num_rows, most):
        yield slice(start, min(num_rows, start + most))


@dataclass(frozen=True, slots=True, eq=False)
class StackRows:
    """Rows of one program whose states are measured.

    Attributes:
        program: the program of the extension; None where ``numbers`` are the states themselves.
        numbers: the data of the program's slots, ``(rows, width)``; or the states, ``(rows, 2**num_qubits)``.
        reads: pairs (qubit, bit of the value that is shown).
        first: the job's index of the first row, the key of its random stream.
    """

    program: _native.StackProgram | None
    numbers: NDArray[np.complex128]
    reads: Reads
    first: int


def sample_stacks(stacks: Sequence[StackRows], seed: int, shots: int, memory: bool, threads: int) -> list[Drawn]:
    """The outcomes of ``shots`` shots of every row; a row depends on its numbers, the seed and its index alone.

    A shot is the first basis state whose cumulative probability exceeds the next number of the row's stream.
    """
    native, forms = [], []
    for stack in stacks:
        qubits, reads = _keys(stack.reads)
        native.append((stack.program, stack.numbers, qubits, stack.first))
        forms += [reads] * len(stack.numbers)
    ends, keys, counts, order = _native.sample_stacks(native, seed_words(seed), shots, memory, threads)
    orders = order.reshape(len(forms), shots) if memory else [None] * len(forms)
    begin, drawn = 0, []
    for end, reads, row_order in zip(ends, forms, orders, strict=True):
        # copies, so that a caller who keeps one row does not keep the memory of all rows
        order_copy = None if row_order is None else row_order.copy()
        drawn.append(Drawn(keys[begin:end].copy(), counts[begin:end].copy(), reads, order_copy))
        begin = end
    return drawn


@lru_cache(maxsize=32)
def _keys(reads: Reads) -> tuple[list[int], Reads]:
    """The measured qubits, ascending, whose values form a key; and pairs (bit of the key, bit of the value)."""
    qubits = sorted({qubit for qubit, _ in reads})
    return qubits, tuple([(qubits.index(qubit), bit) for qubit, bit in reads])
