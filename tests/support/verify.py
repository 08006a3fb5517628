"""What must hold after lowering."""

from collections.abc import Sequence

import numpy as np

from qsim_ozaki.ir import Kind, Measure, Op, bits_read, bits_written, qubits_of, walk

UNIT_TOLERANCE = 1e-6  # of what verify calls unitary: coarser than lowering's own check, finer than any mistake


def verify(program):
    """Asserts what must hold after lowering; the message names the failing instruction."""
    for number, instruction in enumerate(_one_by_one(program.body)):
        where = f"instruction {number} of {program.name!r}: {instruction}"
        assert all(0 <= bit < program.num_clbits for bit in bits_read(instruction) | bits_written(instruction)), where
        qubits = qubits_of(instruction)
        distinct = [q for q in qubits if q >= 0]
        assert all(q < program.num_qubits for q in qubits), where
        assert len(set(distinct)) == len(distinct) or isinstance(instruction, Measure), where
        if isinstance(instruction, Op):
            assert bool(np.all(np.isfinite(instruction.data))), where
            assert 0 <= instruction.ctrl_state < 1 << len(instruction.controls), where
            assert _is_of_its_kind(instruction), where


def _is_of_its_kind(op):
    """Whether the data of ``op`` has its kind's shape and is unitary."""
    size = 1 << len(op.targets)
    shape = {Kind.UNITARY: (size, size), Kind.HADAMARD: (0,)}.get(op.kind, (size,))
    if (
        op.data.dtype != np.complex128
        or op.data.shape != shape
        or (op.kind is Kind.PERMUTATION) != (op.permutation is not None)
    ):
        return False
    if op.permutation is not None and not np.array_equal(np.sort(op.permutation), np.arange(size)):
        return False
    error = op.data.conj().T @ op.data - np.eye(size) if op.kind is Kind.UNITARY else np.abs(op.data) - 1
    return bool(np.max(np.abs(error), initial=0) < UNIT_TOLERANCE)


def _one_by_one(body):
    for instruction in walk(body):
        if isinstance(instruction, Sequence):
            yield from instruction
        else:
            yield instruction
