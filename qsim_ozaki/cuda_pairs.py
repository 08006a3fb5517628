"""Operators on two qubits that number neighbouring threads: one 4x4 matrix, applied by FP64 tensor cores.

In: `Item` objects. Out: `PairBlock` objects, a matrix as tensor cores want it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.cuda_lower import SQRT_HALF, Item, phases_of
from qsim_ozaki.ops import ComplexArray

HADAMARD = np.array([[SQRT_HALF, SQRT_HALF], [SQRT_HALF, -SQRT_HALF]], complex)
FLIP = np.array([[0, 1], [1, 0]], complex)


@dataclass(slots=True, eq=False)
class PairBlock:
    """A 4x4 unitary matrix.

    Attributes:
        qubits: bit 0 and bit 1 of the matrix's index.
        matrix: complex, rows are outputs.
    """

    qubits: tuple[int, int]
    matrix: ComplexArray = field(default_factory=lambda: np.eye(4, dtype=complex))

    def then(self, terms: dict[int, int], items: Sequence[Item]) -> None:
        """Phases of these two qubits and items on them, after what is there."""
        bits = [sum(1 << q for i, q in enumerate(self.qubits) if j >> i & 1) for j in range(4)]
        angles = [sum(angle for key, angle in terms.items() if key & ~b == 0) for b in bits]
        self.matrix = phases_of(angles)[:, None] * self.matrix
        for item in items:
            self.matrix = _on_pair(item, self.qubits) @ self.matrix

    def fragments(self) -> NDArray[np.float64]:
        """What the threads of a warp hold of the second factor of an m16n8k8 product: shape (32, 2).

        Thread 4 g + t has rows t and t + 4 of column g: real and imaginary part of input t, as output g takes them.
        """
        thread = np.arange(32)
        entry = self.matrix[thread >> 3, thread & 3]
        imaginary = (thread >> 2 & 1).astype(bool)
        return np.stack(
            [np.where(imaginary, entry.imag, entry.real), np.where(imaginary, entry.real, -entry.imag)], axis=1
        )


def inside(item: Item, pair: int) -> bool:
    """Whether an item changes and reads nothing but the qubits of the mask ``pair``."""
    return bool(item.mixed) and not (item.mixed | item.used) & ~pair


def _on_pair(item: Item, pair: tuple[int, int]) -> ComplexArray:
    """The item's matrix on both qubits."""
    if item.kind == "rotate":
        cos, sin = item.angle
        small: ComplexArray = np.array([[cos, -sin], [sin, cos]], complex)
    elif item.kind == "matrix":
        assert item.data is not None
        small = item.data
    else:
        small = {"hadamard": HADAMARD, "flip": FLIP}[item.kind]
    if len(item.qubits) == 2:
        order = [0, 1, 2, 3] if item.qubits == pair else [0, 2, 1, 3]
        return np.asarray(small[np.ix_(order, order)], complex)
    target = pair.index(item.qubits[0])
    other = pair[1 - target]
    full = np.eye(4, dtype=complex)
    for value in (0, 1):
        if not item.condition[0] >> other & 1 or item.condition[1] >> other & 1 == value:
            rows = [value << 1 - target | bit << target for bit in (0, 1)]
            full[np.ix_(rows, rows)] = small
    return full
