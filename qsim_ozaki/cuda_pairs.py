"""Operators on two qubits that number neighbouring threads: one 4x4 matrix, applied by FP64 tensor cores.

In: `Item` objects. Out: `PairBlock` objects, which pair of qubits is worth one, a matrix as tensor cores want it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.cuda_lower import SQRT_HALF, Item, phases_of
from qsim_ozaki.ops import ComplexArray

# FP64 instructions an amplitude that an item costs in registers, the phases that come with it included.
COSTS = {"rotate": 3.2, "hadamard": 2.0, "flip": 0.5}
BLOCK_COST = 8.0  # of one block
LEAST_GAIN = 3.0  # below, registers do as well: fewer exchanges and shorter code count too
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

    def then(self, terms: dict[int, int], item: Item) -> None:
        """Phases of these two qubits and an item on them, after what is there."""
        bits = [sum(1 << q for i, q in enumerate(self.qubits) if j >> i & 1) for j in range(4)]
        angles = [sum(angle for key, angle in terms.items() if key & ~b == 0) for b in bits]
        self.matrix = _on_pair(item, self.qubits) @ (phases_of(angles)[:, None] * self.matrix)

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


def best_pair(todo: Sequence[Item], tile: Sequence[int], line_qubits: int) -> tuple[int, ...]:
    """The two qubits on which a phase can do most work, empty where it is not worth a block.

    They are chosen before the phase's registers, which take what is left.

    Args:
        todo: items in order.
        tile: the tile's qubits; those of a pair differ in place modulo ``line_qubits``, so that threads use all banks.
        line_qubits: of the kernel.
    """
    wanted = 0
    for item in todo:
        wanted |= item.mixed
    free = [q for q in tile if wanted & 1 << q]
    found: tuple[float, tuple[int, ...]] = (LEAST_GAIN, ())
    for a, b in combinations(free, 2):
        if (tile.index(a) - tile.index(b)) % line_qubits:
            gain = _gain(todo, 1 << a | 1 << b)
            if gain > found[0]:
                found = gain, (a, b)
    return found[1]


def _gain(todo: Sequence[Item], pair: int) -> float:
    """FP64 instructions that the pair's own items of a phase would cost in registers, less those of their blocks.

    Phases between one of the two and another qubit end a block.
    """
    mixed = used = 0
    gain, closed = 0.0, True
    for item in todo:
        own = inside(item, pair)
        blocked = item.mixed & (mixed | used) or item.used & mixed
        if blocked or (item.mixed and not own):
            mixed |= item.mixed
            used |= item.used
        elif own:
            gain += COSTS.get(item.kind, 4.0 * (1 << len(item.qubits)) - 4) - BLOCK_COST * closed
            closed = False
        elif item.used & pair and item.used & ~pair:
            closed = True
    return gain


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
