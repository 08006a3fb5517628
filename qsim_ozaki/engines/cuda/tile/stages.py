"""Stages of a tile pass: the work between two shared-memory exchanges, with the blocks on its pair of qubits.

In: items and the phases before them. Out: `Stage` objects. It may not choose the stage of an item: the schedule does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from qsim_ozaki.engines.cuda.tile.items import Item
from qsim_ozaki.engines.cuda.tile.pairs import MAX_SELECTING, PairBlock, other_qubits
from qsim_ozaki.ir import mask_of


@dataclass(slots=True, eq=False)
class PhaseTerms:
    """Phases that are multiplied in at one point of a stage, as angles per product of bits."""

    terms: dict[int, int]


@dataclass(slots=True, eq=False)
class Stage:
    """The work between two exchanges.

    Attributes:
        registers: qubits held in registers, ascending; register bit b is ``registers[b]``.
        work: items on register qubits, phases and blocks on ``pair``, in order.
        pair: two qubits that number neighbouring threads, or an empty tuple.
    """

    registers: tuple[int, ...]
    work: list[Item | PhaseTerms | PairBlock] = field(default_factory=list)
    pair: tuple[int, ...] = ()

    def add_on_pair(self, item: Item, terms: dict[int, int], selectable: int) -> None:
        """Adds an item on the pair, and the phases before it, to the last block or to a new one.

        The last block may move to the end of the stage for this.

        Args:
            item: it changes only qubits of the pair.
            terms: the phases before the item.
            selectable: mask of the qubits that may choose a block's matrix. Phases that read other qubits, or too many,
                come before the block.
        """
        pair = mask_of(self.pair)
        if not _can_select(other_qubits(terms, (item,), pair), selectable):
            self.work.append(PhaseTerms({key: angle for key, angle in terms.items() if key & ~pair}))
            terms = {key: angle for key, angle in terms.items() if not key & ~pair}
        block = self._open_block(other_qubits(terms, (item,), pair), selectable)
        if block is None:
            a, b = self.pair
            block = PairBlock((a, b))
            self.work.append(block)
        block.append(terms, (item,))

    def into_block(self, terms: dict[int, int], selectable: int) -> dict[int, int]:
        """Adds the phases that read the pair to the last block, if it can take them; returns the other phases."""
        pair = mask_of(self.pair)
        on_pair = {key: angle for key, angle in terms.items() if key & pair}
        block = self._open_block(other_qubits(on_pair, (), pair), selectable) if on_pair else None
        if block is None:
            return terms
        block.append(on_pair, ())
        return {key: angle for key, angle in terms.items() if not key & pair}

    def delay_blocks(self) -> None:
        """Moves each block to just before the work that depends on it: its operands are then computed already."""
        pair = mask_of(self.pair)
        for block in [work for work in self.work[::-1] if isinstance(work, PairBlock)]:
            number = self.work.index(block)
            end = number + 1
            while end < len(self.work):
                work = self.work[end]
                if (
                    isinstance(work, PairBlock)
                    or _touched_qubits(work) & pair
                    or _changed_qubits(work) & block.selecting
                ):
                    break
                end += 1
            self.work.insert(end - 1, self.work.pop(number))

    def _open_block(self, outer: int, selectable: int) -> PairBlock | None:
        """Returns the last block if it can take more work that reads the qubits ``outer``, else None.

        The block stays where it is; if later work changes qubits of ``outer``, the block moves to the end of the stage.
        If the block's phases ``before`` prevent this, they are taken out of it. `stage_run.hpp` has the same rules.
        """
        changed = 0
        for number in reversed(range(len(self.work))):
            work = self.work[number]
            if isinstance(work, PairBlock):
                moves, fits = bool(outer & changed), _can_select(work.selecting | outer, selectable)
                if not fits or (moves and work.selecting & changed):
                    chosen_by = mask_of(work.chosen_by)
                    if (moves and chosen_by & changed) or not _can_select(chosen_by | outer, selectable):
                        return None
                    self.work.insert(number, PhaseTerms(work.before))
                    work.before, number = {}, number + 1
                if moves:
                    self.work.append(self.work.pop(number))
                return work
            if _touched_qubits(work) & mask_of(self.pair):
                return None
            changed |= _changed_qubits(work)
        return None


def _can_select(qubits: int, selectable: int) -> bool:
    """Returns whether the qubits of a mask may choose a block's matrix: they are few, and all selectable."""
    return not qubits & ~selectable and qubits.bit_count() <= MAX_SELECTING


def _touched_qubits(work: Item | PhaseTerms) -> int:
    """Returns the mask of the qubits that an item or phases read or change."""
    return other_qubits(work.terms, (), 0) if isinstance(work, PhaseTerms) else work.mixed | work.used


def _changed_qubits(work: Item | PhaseTerms) -> int:
    """Returns the mask of the qubits that an item changes; phases change none."""
    return 0 if isinstance(work, PhaseTerms) else work.mixed
