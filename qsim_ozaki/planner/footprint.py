"""The part of a state that a plan has touched so far, and the part that a pass works on.

In: tiles and mixed qubits, in the order of the passes. Out: an `Extent` per pass. It predicts no times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.ir import PAGE_BYTES, amplitude_bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a state a pass works on.

    Attributes:
        read: amplitudes that are read from memory; what is zeroed before comes from the cache.
        worked: amplitudes of tiles that hold more than zeros: they are computed and written.
        fresh_bytes: pages first touched.
    """

    read: float
    worked: float
    fresh_bytes: float = 0.0

    @classmethod
    def whole(cls, num_qubits: int) -> Extent:
        """Of a pass over all of a state."""
        return cls(2.0**num_qubits, 2.0**num_qubits)


@dataclass(slots=True)
class Footprint:
    """Where a state may hold more than zeros as a plan goes on, and which of its memory was touched.

    Attributes:
        num_qubits: width of the state.
        precision: of the state.
        live: mask of the qubits that may be other than |0> or |1>.
        ones: mask of the qubits that are |1>.
        support: at most 2**support amplitudes are other than 0.
        pages: pages of `PAGE_BYTES` touched so far; None where all are.
        skips_zeros: as of the `Device`.
    """

    num_qubits: int
    precision: str
    live: int
    ones: int = 0
    support: int = 64
    pages: int | None = None
    skips_zeros: bool = False

    def fixed_qubits(self, tile: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The qubits outside ``tile`` that are |0>, and those that are |1>."""
        outside = [q for q in range(self.num_qubits) if not (self.live | tile) >> q & 1]
        return tuple(q for q in outside if not self.ones >> q & 1), tuple(q for q in outside if self.ones >> q & 1)

    def fresh_qubits(self, tile: int) -> tuple[int, ...]:
        """The qubits of ``tile`` that are |0>."""
        return tuple(q for q in range(self.num_qubits) if (tile & ~self.live & ~self.ones) >> q & 1)

    def extent(self, tile: int) -> Extent:
        """The extent of a pass with ``tile``; its pages count as touched from then on."""
        in_use = self.live | tile
        outside = (self.live & ~tile).bit_count()
        skipped = outside - min(outside, self.support)  # qubits by which tiles outnumber amplitudes
        read = 2.0 ** (self.live if self.skips_zeros else in_use).bit_count()
        worked = 2.0 ** (in_use.bit_count() - skipped)
        if self.pages is None:
            return Extent(read, worked)
        size = amplitude_bytes(self.precision)
        page = min(PAGE_BYTES, size << self.num_qubits)
        inner = (page // size).bit_length() - 1
        above = (in_use >> inner).bit_count()  # qubits that choose a page
        tile_above = (tile >> inner).bit_count()
        before, written = self.pages, 1 << min(above, tile_above + min(outside, self.support))
        untouched_page_bits = tile & (~self.live >> inner << inner)
        looked_at = before << untouched_page_bits.bit_count()  # a tile is read whole or not at all
        self.pages = max(before, written, min(looked_at, 1 << above))  # pages of used memory are zeroed before a read
        return Extent(min(read, float(before * page // size)), worked, float((self.pages - before) * page))

    def swap(self, swaps: Iterable[tuple[int, int]]) -> None:
        """The qubits of each pair change places."""
        for p, q in swaps:
            for name in ("live", "ones"):
                mask = getattr(self, name)
                if (mask >> p ^ mask >> q) & 1:
                    setattr(self, name, mask ^ (1 << p | 1 << q))

    def mix(self, mask: int, new_support: int) -> None:
        """The qubits of ``mask`` may be anything from here on, and 2**new_support times as many amplitudes too."""
        self.live |= mask
        self.ones &= ~mask
        self.support = min(self.support + new_support, self.num_qubits)
