"""Packs stacks, which are many rows of small states, into the tables of one launch.

In: operators and the numbers of their slots, row by row. Out: arrays that `kernels/cuda/state/stack.cu` reads.
It may not launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.engines.base import StackWork
from qsim_ozaki.engines.cuda.device.records import HADAMARD
from qsim_ozaki.ir import Kind, Op, mask_of

THREADS = 256
MAX_TARGETS = 16  # of one operator
MAX_STACK_QUBITS = 12  # two copies of a state are 128 KiB
STEP = np.dtype(
    [(name, "<u4") for name in ("kind", "num_targets", "control_mask", "control_value", "target_mask", "from_row")]
    + [("data", "<u8"), ("source", "<u8"), ("target", "u1", MAX_TARGETS)]
)
BLOCK = np.dtype(
    [("values", "<u8"), ("out", "<u8")]
    + [(name, "<u4") for name in ("width", "num_rows", "num_qubits", "first_step", "num_steps", "unused")]
)
DIAGONAL, MATRIX, PERMUTATION = range(3)


@dataclass(frozen=True, slots=True, eq=False)
class StackTables:
    """The tables of one launch.

    Attributes:
        blocks: `BLOCK` records, one for each block of the grid.
        steps: `STEP` records of all programs.
        data: complex128 numbers of the operators that are not slots.
        sources: uint32; for every row of every permutation, the column that goes to this row.
        values: complex128 numbers of the rows, one row after the other.
        num_amps: number of amplitudes of all rows.
        block_amps: number of amplitudes of the largest block.
    """

    blocks: NDArray[np.void]
    steps: NDArray[np.void]
    data: NDArray[np.complex128]
    sources: NDArray[np.uint32]
    values: NDArray[np.complex128]
    num_amps: int
    block_amps: int


def stack_tables(works: Sequence[StackWork]) -> StackTables:
    """Returns the tables of one launch for all rows of ``works``, in order."""
    writer = _Writer([], [], [], 0, 0)
    blocks, values, num_values, num_amps = [], [], 0, 0
    for work in works:
        first = len(writer.steps)
        for op in work.ops:
            writer.add(op)
        rows, width = work.numbers.shape
        block_rows = max(1, THREADS >> work.num_qubits)
        for start in range(0, rows, block_rows):
            count = min(block_rows, rows - start)
            first_value, first_amp = num_values + start * width, num_amps + (start << work.num_qubits)
            num_steps = len(writer.steps) - first
            blocks.append((first_value, first_amp, width, count, work.num_qubits, first, num_steps, 0))
        values.append(work.numbers.reshape(-1))
        num_values += rows * width
        num_amps += rows << work.num_qubits
    return StackTables(
        np.array(blocks, BLOCK),
        np.array(writer.steps, STEP),
        np.concatenate([*writer.data, np.empty(0, complex)]),
        np.concatenate([*writer.sources, np.empty(0, np.uint32)]),
        np.concatenate(values),
        num_amps,
        max(block[3] << block[4] for block in blocks),
    )


def split_rows(amps: NDArray[np.complexfloating], works: Sequence[StackWork]) -> list[NDArray[np.complexfloating]]:
    """Returns the amplitudes of one launch as one array ``(rows, 2**num_qubits)`` per work."""
    ends = np.cumsum([len(work.numbers) << work.num_qubits for work in works])[:-1]
    parts = zip(np.split(amps, ends), works, strict=True)
    return [part.reshape(len(work.numbers), 1 << work.num_qubits) for part, work in parts]


@dataclass(slots=True)
class _Writer:
    """Appends operators as steps, and their numbers to the tables."""

    steps: list[tuple[object, ...]]
    data: list[NDArray[np.complex128]]
    sources: list[NDArray[np.uint32]]
    num_data: int
    num_sources: int

    def add(self, op: Op) -> None:
        from_row = op.name == _native.SLOT_NAME
        for kind, targets, numbers in _parts(op):
            if from_row:
                first = int(numbers[0].real)
            else:
                first = self.num_data
                self.data.append(numbers)
                self.num_data += numbers.size
            controls = mask_of(op.controls)
            value = sum((op.ctrl_state >> b & 1) << control for b, control in enumerate(op.controls))
            mask = mask_of(targets)
            padded = [*targets, *[0] * (MAX_TARGETS - len(targets))]
            self.steps.append((kind, len(targets), controls, value, mask, from_row, first, self.num_sources, padded))
            if kind == PERMUTATION:
                assert op.permutation is not None, "a permutation has one"
                self.sources.append(np.argsort(op.permutation).astype(np.uint32))
                self.num_sources += op.permutation.size


def _parts(op: Op) -> Iterator[tuple[int, tuple[int, ...], NDArray[np.complex128]]]:
    """Yields (kind, targets, numbers): one step per operator, but one per target for a Hadamard transform."""
    if op.kind is Kind.HADAMARD:
        for target in op.targets:
            yield MATRIX, (target,), HADAMARD.reshape(-1)
        return
    kind = {Kind.DIAGONAL: DIAGONAL, Kind.UNITARY: MATRIX, Kind.PERMUTATION: PERMUTATION}[op.kind]
    yield kind, op.targets, np.asarray(op.data, complex).reshape(-1)
