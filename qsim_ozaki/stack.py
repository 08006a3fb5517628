"""Stacks: small states of one structure, run many at a time, each with its own numbers.

In: `Code` with slots and their data, one row per state. Out: states ``(rows, 2**num_qubits)``, samples, overlaps. It
decides nothing and knows nothing of Qiskit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._cpu as _cpu
from qsim_ozaki.code import Code, Segment
from qsim_ozaki.cpu import available_threads
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Save

MAX_STACK_QUBITS: int = _cpu.STACK_TILE  # one state stays in a second-level cache
PLAIN_SAVE = ("statevector", "single", False)
STACK_NUMBERS = 1 << 19  # 8 MiB of amplitudes, or 4 MiB of random numbers, at a time

States = NDArray[np.complex128]  # (rows, 2**num_qubits)


def is_stackable(code: Code) -> bool:
    """Whether ``code`` is operators on few qubits, then measurements or the final state: no collapse, no branch."""
    *before, last = code.items or (Segment(0, OpList()),)
    plain = isinstance(last, Save) and (last.what, last.form, last.conditional) == PLAIN_SAVE
    ends = isinstance(last, Segment) or plain
    answers = bool(code.reads) if code.measures else not isinstance(last, Segment)
    return code.num_qubits <= MAX_STACK_QUBITS and ends and answers and all(isinstance(i, Segment) for i in before)


def num_threads(asked: int) -> int:
    """Threads for stacks where ``asked`` is the option, 0 for all cores this process may use."""
    return asked or available_threads()


def stack_program(
    num_qubits: int, lists: Iterable[OpList | _cpu.OpList], tile: Sequence[int] | None = None
) -> _cpu.StackProgram:
    """A program of the extension.

    Args:
        num_qubits: of each state.
        lists: operators and slots in order.
        tile: qubits of a tile, ascending; all where not given.
    """
    program = _cpu.StackProgram(num_qubits, list(range(num_qubits) if tile is None else tile))
    for ops in lists:
        program.add(ops.native if isinstance(ops, OpList) else ops)
    program.finish()
    return program


def run_stack(program: _cpu.StackProgram, num_qubits: int, rows: NDArray[np.complex128], threads: int) -> States:
    """The final states, one for each row of numbers."""
    states = np.empty((len(rows), 1 << num_qubits), complex)
    program.run(np.ascontiguousarray(rows), states, threads)
    return states


def pieces(num_rows: int, num_qubits: int, shots: int = 0) -> Iterator[slice]:
    """Rows that are run together: few enough that their states and samples are small, and a job can be cancelled."""
    most = max(1, STACK_NUMBERS // max(1 << num_qubits, shots))
    for start in range(0, num_rows, most):
        yield slice(start, min(num_rows, start + most))


def sample_stack(states: States, uniforms: NDArray[np.float64], threads: int) -> NDArray[np.int64]:
    """The basis states ``(rows, shots)`` at which cumulative probabilities pass ``uniforms`` times the state's norm."""
    out = np.empty(uniforms.shape, np.int64)
    _cpu.sample_stack(states, uniforms, out, threads)
    return out
