"""Operators on two qubits that number neighbouring threads, as 4x4 matrices that tensor cores apply.

In: `Item` objects. Out: `PairBlock` objects, and their matrices as fragments of tensor cores. It may not order items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.cuda.device.records import HADAMARD
from qsim_ozaki.engines.cuda.tile.items import Item, members, phases_of
from qsim_ozaki.ir import ComplexArray, mask_of

FLIP = np.array([[0, 1], [1, 0]], complex)
IDENTITY: ComplexArray = np.eye(4, dtype=complex)
SWAPPED = np.ix_([0, 2, 1, 3], [0, 2, 1, 3])
# ROWS[target][value]: the two matrix indices that differ in bit ``target`` and have ``value`` as their other bit.
ROWS = ((slice(0, 2), slice(2, 4)), (slice(0, 4, 2), slice(1, 4, 2)))
MAX_SELECTING = 3  # most qubits that choose a block's matrix: eight matrices are 4 KiB


@dataclass(slots=True, eq=False)
class PairBlock:
    """4x4 unitary matrices on two qubits, one for each basis state of the qubits that choose among them.

    Attributes:
        qubits: bit 0 and bit 1 of a matrix's index.
        before: phases that are applied before ``matrices`` and also read other qubits; they can be taken out again.
        changed: mask of those of ``qubits`` that ``matrices`` change.
        chosen_by: qubits outside of ``qubits`` whose values choose among ``matrices``.
        matrices: complex, shape ``(2,) * len(chosen_by) + (4, 4)``; axis i is the bit of ``chosen_by[i]``, rows are
            outputs.
    """

    qubits: tuple[int, int]
    before: dict[int, int] = field(default_factory=dict)
    changed: int = 0
    chosen_by: tuple[int, ...] = ()
    matrices: ComplexArray = field(default_factory=lambda: np.eye(4, dtype=complex))

    @property
    def mask(self) -> int:
        """The mask of the two qubits."""
        return mask_of(self.qubits)

    @property
    def selecting(self) -> int:
        """The mask of the other qubits that the block reads."""
        return mask_of(self.chosen_by) | other_qubits(self.before, (), self.mask)

    def append(self, terms: dict[int, int], items: Sequence[Item]) -> None:
        """Appends phases and then items to the block; other qubits that they read choose its matrix from now on."""
        first = {key: angle for key, angle in terms.items() if key & ~self.mask and not key & self.changed}
        for key, angle in first.items():
            self.before[key] = self.before.get(key, 0) + angle
        terms = {key: angle for key, angle in terms.items() if key not in first}
        for q in members(other_qubits(terms, items, self.mask) & ~mask_of(self.chosen_by)):
            self.matrices = np.stack([self.matrices] * 2, axis=len(self.chosen_by))
            self.chosen_by += (q,)
        assert len(self.chosen_by) <= MAX_SELECTING, "registers that differ in no selecting bit share a product"
        shape = self.matrices.shape
        values = [sum(bit << q for q, bit in zip(self.chosen_by, bits, strict=True)) for bits in np.ndindex(shape[:-2])]
        if terms:
            self.matrices = self._phases(terms, values).reshape(*shape[:-1], 1) * self.matrices
        for item in items:
            chosen = values if item.used & ~self.mask else values[:1]
            factors = np.stack([_matrix_on_pair(item, self.qubits, value) for value in chosen])
            self.matrices = (factors.reshape(shape) if len(factors) > 1 else factors[0]) @ self.matrices
            self.changed |= item.mixed

    def _phases(self, terms: dict[int, int], values: Sequence[int]) -> ComplexArray:
        """Returns the phases of the four states of the two qubits, for each basis state ``values`` of the others."""
        states = [mask_of(q for i, q in enumerate(self.qubits) if j >> i & 1) for j in range(4)]
        zeros = [~(value | state) for value in values for state in states]
        return phases_of([sum(angle for key, angle in terms.items() if not key & zero) for zero in zeros])

    def all_matrices(self, order: Sequence[int]) -> ComplexArray:
        """Returns one matrix for each basis state of the qubits ``order``, shape ``(2^len(order), 4, 4)``.

        Args:
            order: the qubits of ``selecting``; ``order[0]`` is bit 0 of the first index.
        """
        values = [sum(1 << q for i, q in enumerate(order) if number >> i & 1) for number in range(1 << len(order))]
        matrices = self.matrices[tuple(np.array([value >> q & 1 for value in values]) for q in self.chosen_by)]
        return np.asarray(matrices * self._phases(self.before, values).reshape(-1, 1, 4))

    def fragments(self, order: Sequence[int] = ()) -> NDArray[np.float64]:
        """Returns the second factor of an m16n8k8 product as a warp's threads hold it, shape (2^len(order), 32, 2).

        Thread 4 g + t has rows t and t + 4 of column g: the factors of the real and the imaginary part of input t in
        output g.

        Args:
            order: the qubits of ``selecting``, as in `all_matrices`.
        """
        thread = np.arange(32)
        entry = self.all_matrices(order)[:, thread >> 3, thread & 3]
        imaginary = (thread >> 2 & 1).astype(bool)
        parts = [np.where(imaginary, entry.imag, entry.real), np.where(imaginary, entry.real, -entry.imag)]
        return np.stack(parts, axis=-1)


def split_tf32(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Returns each value as two floats that TF32 tensor cores read without loss.

    Along the last axis, the high parts of all values come first and then the low parts.
    """
    high = _rounded(values)
    return np.concatenate([high, _rounded(values - high)], axis=-1)


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Returns the values rounded to 11 bits, ties away from zero."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + np.uint32(0x1000) & np.uint32(0xFFFFE000)).view(np.float32)


def other_qubits(terms: dict[int, int], items: Sequence[Item], pair: int) -> int:
    """Returns the mask of the qubits outside ``pair`` that the phases and items read."""
    read = 0
    for key in terms:
        read |= key
    for item in items:
        read |= item.used
    return read & ~pair


def fits_pair(item: Item, pair: int, selectable: int = 0) -> bool:
    """Returns whether an item can be part of a block on the qubits of the mask ``pair``.

    It must change qubits, and only those of ``pair``, and may read at most `MAX_SELECTING` others, all ``selectable``.
    """
    others = item.used & ~pair
    changes = bool(item.mixed) and not item.mixed & ~pair
    return changes and not others & ~selectable and others.bit_count() <= MAX_SELECTING


def _matrix_on_pair(item: Item, pair: tuple[int, int], value: int) -> ComplexArray:
    """Returns the item's matrix on both qubits, where the other qubits have their bits of the basis state ``value``."""
    mask, required = item.condition
    if (value ^ required) & mask & ~mask_of(pair):
        return IDENTITY
    if item.kind == "rotate":
        cos, sin = item.angle
        small: ComplexArray = np.array([[cos, -sin], [sin, cos]], complex)
    elif item.kind == "matrix":
        assert item.data is not None
        small = item.data
    else:
        small = {"hadamard": HADAMARD, "flip": FLIP}[item.kind]
    if len(item.qubits) == 2:
        return small if item.qubits == pair else small[SWAPPED]
    target = pair.index(item.qubits[0])
    other = pair[1 - target]
    full = IDENTITY.copy()
    for bit_of_other in (0, 1):
        if not mask >> other & 1 or required >> other & 1 == bit_of_other:
            rows = ROWS[target][bit_of_other]
            full[rows, rows] = small
    return full
