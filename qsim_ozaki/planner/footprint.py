"""The part of a state that a plan has touched so far, and the part that a pass works on.

In: tiles and mixed qubits in the order of the passes. Out: an `Extent` per pass. It may not predict times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.ir import PAGE_BYTES, amplitude_bytes


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a state a pass works on.

    Attributes:
        read: number of amplitudes that are read from memory; amplitudes that were just zeroed come from the cache.
        worked: number of amplitudes in tiles that hold more than zeros: they are computed and written.
        fresh_bytes: bytes of the pages that the pass touches first.
    """

    read: float
    worked: float
    fresh_bytes: float = 0.0

    @classmethod
    def whole(cls, num_qubits: int) -> Extent:
        """Returns the extent of a pass over a whole state."""
        return cls(2.0**num_qubits, 2.0**num_qubits)


@dataclass(slots=True)
class Footprint:
    """Where a state may hold more than zeros at a point of a plan, and how much of its memory was touched.

    Attributes:
        num_qubits: number of qubits of the state.
        precision: precision of the state.
        live: mask of the qubits that may be neither |0> nor |1>.
        ones: mask of the qubits that are |1>.
        support: at most 2**support amplitudes are not 0.
        pages: number of pages of `PAGE_BYTES` touched so far; None where all pages are touched.
        skips_zeros: the ability of the `Device` of the same name.
    """

    num_qubits: int
    precision: str
    live: int
    ones: int = 0
    support: int = 64
    pages: int | None = None
    skips_zeros: bool = False

    def fixed_qubits(self, tile: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Returns the qubits outside ``tile`` that are |0>, and the qubits outside it that are |1>."""
        outside = [q for q in range(self.num_qubits) if not (self.live | tile) >> q & 1]
        return tuple(q for q in outside if not self.ones >> q & 1), tuple(q for q in outside if self.ones >> q & 1)

    def fresh_qubits(self, tile: int) -> tuple[int, ...]:
        """Returns the qubits of ``tile`` that are |0>."""
        return tuple(q for q in range(self.num_qubits) if (tile & ~self.live & ~self.ones) >> q & 1)

    def extent(self, tile: int) -> Extent:
        """Returns the extent of a pass with ``tile``; from then on its pages count as touched."""
        in_use = self.live | tile
        outside = (self.live & ~tile).bit_count()
        skipped = outside - min(outside, self.support)  # at most 1 tile in 2**skipped holds more than zeros
        read = 2.0 ** (self.live if self.skips_zeros else in_use).bit_count()
        worked = 2.0 ** (in_use.bit_count() - skipped)
        if self.pages is None:
            return Extent(read, worked)
        size = amplitude_bytes(self.precision)
        page = min(PAGE_BYTES, size << self.num_qubits)
        inner = (page // size).bit_length() - 1
        above = (in_use >> inner).bit_count()  # number of qubits in use that select a page
        tile_above = (tile >> inner).bit_count()
        before, written = self.pages, 1 << min(above, tile_above + min(outside, self.support))
        untouched_page_bits = tile & (~self.live >> inner << inner)
        read_pages = before << untouched_page_bits.bit_count()  # a tile is read as a whole or not at all
        # A pass zeroes the untouched pages of its tiles before it reads them, which touches them.
        self.pages = max(before, written, min(read_pages, 1 << above))
        return Extent(min(read, float(before * page // size)), worked, float((self.pages - before) * page))

    def swap(self, swaps: Iterable[tuple[int, int]]) -> None:
        """Exchanges the places of the qubits of each pair."""
        for p, q in swaps:
            for name in ("live", "ones"):
                mask = getattr(self, name)
                if (mask >> p ^ mask >> q) & 1:
                    setattr(self, name, mask ^ (1 << p | 1 << q))

    def mix(self, mask: int, new_support: int) -> None:
        """Marks the qubits of ``mask`` as live, and lets the support grow by a factor of at most 2**new_support."""
        self.live |= mask
        self.ones &= ~mask
        self.support = min(self.support + new_support, self.num_qubits)
