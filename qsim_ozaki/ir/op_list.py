"""A list of operators in columns, so that thousands of operators need no Python objects.

In: `Op`s, or rows of a gate table. Out: a sequence of `Op`s; it makes an `Op` when somebody reads it. It may not
rewrite operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

import qsim_ozaki._native as _native
from qsim_ozaki.ir.ops import Kind, Op

KIND_NUMBERS = {Kind.DIAGONAL: 0, Kind.PERMUTATION: 1, Kind.HADAMARD: 2, Kind.UNITARY: 3, Kind.PARITY: 4, Kind.PAULI: 5}
KIND_OF_NUMBER = tuple(KIND_NUMBERS)


class OpList(Sequence[Op]):
    """Operators in order. Nobody changes a finished list, so lists may be shared.

    Args:
        native: the columns in the C++ extension; this list owns them from now on. None makes an empty list.
    """

    __slots__ = ("native",)

    def __init__(self, native: _native.OpList | None = None) -> None:
        self.native = _native.OpList() if native is None else native

    @classmethod
    def of(cls, ops: Iterable[Op]) -> OpList:
        """Returns ``ops`` as an `OpList`; an `OpList` is returned as it is."""
        if isinstance(ops, OpList):
            return ops
        out = cls()
        for op in ops:
            out.append(op)
        return out

    def append(self, op: Op) -> None:
        """Adds ``op`` at the end; only the code that fills a new list may call this."""
        data = np.ascontiguousarray(op.data, complex).reshape(-1)
        self.native.append(KIND_NUMBERS[op.kind], op.targets, op.controls, op.ctrl_state, data, op.permutation, op.name)

    def append_unitary(self, matrix: NDArray[np.complex128], targets: tuple[int, ...], name: str) -> float:
        """Adds a matrix at the end as an operator of the strongest structure that the matrix has.

        A matrix that is not unitary within ``UNITARY_ROUNDING`` is not added.

        Args:
            matrix: ``(2**k, 2**k)``; it is copied.
            targets: the k qubits of the matrix; ``targets[0]`` is bit 0 of its index.
            name: the name in plans and messages.

        Returns:
            The largest entry of |U^dagger U - 1|; infinity for a matrix of another size.
        """
        return float(self.native.append_unitary(matrix, targets, name))

    def extend(self, ops: OpList) -> None:
        """Adds ``ops`` at the end; only the code that fills a new list may call this."""
        self.native.extend(ops.native)

    def content(self, most_bytes: int) -> bytes | None:
        """Returns all operators as bytes, or None where that takes more than ``most_bytes`` bytes.

        Two lists have the same bytes only if they are equal.
        """
        content: bytes | None = self.native.content(most_bytes)
        return content

    def changed_qubits(self) -> set[int]:
        """Returns the qubits whose value some operator changes."""
        return set(self.native.touched_qubits(False))

    def used_qubits(self) -> set[int]:
        """Returns the qubits of all operators, controls included."""
        return set(self.native.touched_qubits(True))

    def __len__(self) -> int:
        return len(self.native)

    @overload
    def __getitem__(self, index: int) -> Op: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Op]: ...
    def __getitem__(self, index: int | slice) -> Op | Sequence[Op]:
        if isinstance(index, slice):
            return [self._op(number) for number in range(*index.indices(len(self)))]
        return self._op(range(len(self))[index])

    def __iter__(self) -> Iterator[Op]:
        return map(self._op, range(len(self)))

    def _op(self, number: int) -> Op:
        kind, targets, controls, ctrl_state, data, permutation, name = self.native.get(number)
        if kind == KIND_NUMBERS[Kind.UNITARY]:
            data = data.reshape(1 << len(targets), -1)
        return Op(KIND_OF_NUMBER[kind], targets, data, controls, ctrl_state, permutation, name)

    def __reduce__(self) -> tuple[object, ...]:
        return OpList.of, (list(self),)


def mask_of(qubits: Iterable[int]) -> int:
    """Returns the basis state in which exactly ``qubits`` are 1."""
    mask = 0
    for q in qubits:
        mask |= 1 << q
    return mask
