"""Stages of a tile pass: the work between two shared-memory exchanges, and where blocks on a pair of qubits go in it.

In: items, phases before them. Out: `Stage` objects. The schedule decides which stage an item belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qsim_ozaki.engines.cuda.tile.items import Item
from qsim_ozaki.engines.cuda.tile.pairs import MAX_SELECTING, PairBlock, outside
from qsim_ozaki.ir import mask_of


@dataclass(slots=True, eq=False)
class PhaseTerms:
    """Pending phases to multiply in, as angles per product of bits, taken at one moment."""

    terms: dict[int, int]


@dataclass(slots=True, eq=False)
class Stage:
    """The work between two exchanges.

    Attributes:
        registers: qubits held in registers, ascending; register bit b is ``registers[b]``.
        work: items on register qubits, phases, blocks on ``pair``, in order.
        pair: two qubits that number neighbouring threads, or none.
    """

    registers: tuple[int, ...]
    work: list[Item | PhaseTerms | PairBlock] = field(default_factory=list)
    pair: tuple[int, ...] = ()

    def add_on_pair(self, item: Item, terms: dict[int, int], selectable: int) -> None:
        """Adds an item on the pair, and the phases before it, to the last block: where it is, or where it can move to.

        Args:
            item: it changes qubits of the pair alone.
            terms: the phases.
            selectable: mask of the qubits that may choose a block's matrix, a few of them; phases that read others
                come before the block.
        """
        pair = mask_of(self.pair)
        if not _selects(outside(terms, (item,), pair), selectable):
            self.work.append(PhaseTerms({key: angle for key, angle in terms.items() if key & ~pair}))
            terms = {key: angle for key, angle in terms.items() if not key & ~pair}
        block = self._open_block(outside(terms, (item,), pair), selectable)
        if block is None:
            a, b = self.pair
            block = PairBlock((a, b))
            self.work.append(block)
        block.then(terms, (item,))

    def into_block(self, terms: dict[int, int], selectable: int) -> dict[int, int]:
        """Adds phases that read the pair to the last block on it, if that can take them; returns the others."""
        pair = mask_of(self.pair)
        on_pair = {key: angle for key, angle in terms.items() if key & pair}
        block = self._open_block(outside(on_pair, (), pair), selectable) if on_pair else None
        if block is None:
            return terms
        block.then(on_pair, ())
        return {key: angle for key, angle in terms.items() if not key & pair}

    def delay_blocks(self) -> None:
        """Moves each block to just before the work that depends on it, where earlier arithmetic leaves its operands."""
        pair = mask_of(self.pair)
        for block in [work for work in self.work[::-1] if isinstance(work, PairBlock)]:
            number = self.work.index(block)
            end = number + 1
            while end < len(self.work):
                work = self.work[end]
                if isinstance(work, PairBlock) or _touched(work) & pair or _changed(work) & block.selecting:
                    break
                end += 1
            self.work.insert(end - 1, self.work.pop(number))

    def _open_block(self, outer: int, selectable: int) -> PairBlock | None:
        """The last block, if it can take more work that reads the qubits ``outer``; None if there is no such block.

        The block stays where it is, or moves to the end of the stage where later work changes qubits of ``outer``.
        Phases that it begins with are taken out of it where they are in the way. `stage_run.hpp` counts on the same.
        """
        changed = 0
        for number in reversed(range(len(self.work))):
            work = self.work[number]
            if isinstance(work, PairBlock):
                moves, fits = bool(outer & changed), _selects(work.selecting | outer, selectable)
                if not fits or (moves and work.selecting & changed):
                    chosen_by = mask_of(work.chosen_by)
                    if (moves and chosen_by & changed) or not _selects(chosen_by | outer, selectable):
                        return None
                    self.work.insert(number, PhaseTerms(work.before))
                    work.before, number = {}, number + 1
                if moves:
                    self.work.append(self.work.pop(number))
                return work
            if _touched(work) & mask_of(self.pair):
                return None
            changed |= _changed(work)
        return None


def _selects(qubits: int, selectable: int) -> bool:
    """Whether so many qubits, and these, may choose a block's matrix."""
    return not qubits & ~selectable and qubits.bit_count() <= MAX_SELECTING


def _touched(work: Item | PhaseTerms) -> int:
    return outside(work.terms, (), 0) if isinstance(work, PhaseTerms) else work.mixed | work.used


def _changed(work: Item | PhaseTerms) -> int:
    return 0 if isinstance(work, PhaseTerms) else work.mixed
