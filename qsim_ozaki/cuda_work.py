"""What is done between two exchanges of a tile pass, in order, and where blocks on a pair of qubits go in it.

In: items, phases before them. Out: `Phase` objects. In which phase an item comes is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qsim_ozaki.cuda_lower import Item, mask_of
from qsim_ozaki.cuda_pairs import MAX_SELECTING, PairBlock, outside


@dataclass(slots=True, eq=False)
class Phases:
    """Pending phases to multiply in, as angles per product of bits, taken at one moment."""

    terms: dict[int, int]


@dataclass(slots=True, eq=False)
class Phase:
    """What happens between two exchanges.

    Attributes:
        registers: qubits held in registers, ascending; register bit b is ``registers[b]``.
        work: items on register qubits, phases, blocks on ``pair``, in order.
        pair: two qubits that number neighbouring threads, or none.
    """

    registers: tuple[int, ...]
    work: list[Item | Phases | PairBlock] = field(default_factory=list)
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
            self.work.append(Phases({key: angle for key, angle in terms.items() if key & ~pair}))
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
        own = {key: angle for key, angle in terms.items() if key & pair}
        block = self._open_block(outside(own, (), pair), selectable) if own else None
        if block is None:
            return terms
        block.then(own, ())
        return {key: angle for key, angle in terms.items() if not key & pair}

    def delay_blocks(self) -> None:
        """Moves blocks to where what follows needs them: arithmetic before leaves operands where they want them."""
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
        """The block that can take more, which reads the qubits ``outer``: where it is, or moved to the end.

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
                    self.work.insert(number, Phases(work.before))
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


def _touched(work: Item | Phases) -> int:
    return outside(work.terms, (), 0) if isinstance(work, Phases) else work.mixed | work.used


def _changed(work: Item | Phases) -> int:
    return 0 if isinstance(work, Phases) else work.mixed
