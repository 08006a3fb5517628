"""Orders a tile pass: decides which qubits are in registers in each stage, and when phases are multiplied in.

In: `Item` objects. Out: `Stage` objects, each with its register qubits and its work. It may not pack or write code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.engines.cuda.tile.items import Item
from qsim_ozaki.engines.cuda.tile.pairs import fits_pair
from qsim_ozaki.engines.cuda.tile.pending import Pending
from qsim_ozaki.engines.cuda.tile.search import Rules, searched_stages
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.ir import mask_of


@dataclass(frozen=True, slots=True)
class TileFrame:
    """The sizes of a pass's tile that its schedule depends on.

    Attributes:
        tile: qubits of the tile, ascending.
        register_qubits: number of qubits that a stage last_waits in registers.
        line_qubits: number of the lowest qubits that number the amplitudes of a line. The first and the last stage
            leave these to the lanes, so that memory is read and written in whole lines.
        swaps: pairs of the tile's qubits that change places at the store.
    """

    tile: tuple[int, ...]
    register_qubits: int
    line_qubits: int
    swaps: tuple[tuple[int, int], ...] = ()

    def lines(self, stored: bool = False) -> int:
        """Returns the mask of the lowest qubits at the load or at the store; 0 if the tile is too small to choose."""
        if len(self.tile) < self.register_qubits + self.line_qubits:
            return 0
        return mask_of(q for q in self.tile if (self.stored_at(q) if stored else q) < self.line_qubits)

    def stored_at(self, qubit: int) -> int:
        """Returns the qubit position to which the store moves ``qubit``."""
        for first, second in self.swaps:
            if qubit == first:
                return second
            if qubit == second:
                return first
        return qubit


@dataclass(frozen=True, slots=True)
class Style:
    """Abilities of the kernel that a schedule is for.

    Attributes:
        straight: whether the kernel is straight-line code. Its phases wait until one of their qubits changes; else
            phases are multiplied in earlier if a table that is needed anyway can hold them.
        pairs: whether the kernel multiplies by matrices on two qubits that number threads.
        brief: whether the search is quick rather than good: a longer search would take more time than all other host
            work and save little.
        precision: the precision whose energies the search uses, ``"double"`` or ``"single"``.
    """

    straight: bool = False
    pairs: bool = False
    brief: bool = False
    precision: str = "double"


def schedule(items: Sequence[Item], frame: TileFrame, style: Style = Style()) -> list[Stage]:
    """Returns stages that do every item once, in an order that is equivalent to the order of ``items``.

    Args:
        items: the pass's items, in order; the qubits that they change are in the tile.
        frame: the tile.
        style: abilities of the kernel.
    """
    tile = mask_of(frame.tile)
    todo = list(items)
    pending = Pending()
    stages: list[Stage] = []
    lines, stored = 0 if style.straight else frame.lines(), frame.lines(stored=True)
    rules = Rules(frame.tile, frame.register_qubits, frame.line_qubits, lines, stored, style.pairs, style.brief)
    path, last_waits = searched_stages(items, rules, style.precision)
    last: list[Item] = []
    if last_waits:
        todo, last = _split_off_last(todo, path[-1][0])
    if not path or path[0][0] & lines:
        path.insert(0, (_top_registers(frame, lines), 0))
    todo = _collect_phases(todo, pending)
    for number, (registers, pair) in enumerate(path):
        if number == len(path) - 1:
            todo = _collect_phases(todo + last, pending)
        elif not todo:
            continue
        stage = Stage(_qubits_among(frame.tile, registers), pair=_qubits_among(frame.tile, pair))
        todo = _fill_stage(stage, todo, pending, tile, style.straight)
        stage.delay_blocks()
        stages.append(stage)
    assert not todo, "every item is in some stage"
    if mask_of(stages[-1].registers) & stored or (frame.swaps and len(stages) == 1 and not style.straight):
        stages.append(Stage(_qubits_among(frame.tile, _top_registers(frame, stored))))
    parities, terms = pending.take_all(mask_of(stages[-1].registers))
    stages[-1].work.extend(parities)
    if terms:
        stages[-1].work.append(PhaseTerms(terms))
    return stages


def _split_off_last(items: Sequence[Item], registers: int) -> tuple[list[Item], list[Item]]:
    """Splits ``items`` into those that come first and those that a last stage with ``registers`` can do after them."""
    first: list[Item] = []
    last: list[Item] = []
    mixed = used = 0
    for item in reversed(items):
        if item.mixed & (mixed | used | ~registers) or item.used & mixed:
            mixed |= item.mixed
            used |= item.used
            first.append(item)
        else:
            last.append(item)
    return first[::-1], last[::-1]


def cut(stages: Sequence[Stage], sizes: Sequence[int], limit: int, frame: TileFrame) -> list[list[Stage]]:
    """Cuts ``stages`` into consecutive parts of about equal size, at most about ``limit``; a part is a separate pass.

    Args:
        stages: the stages that `schedule` returned.
        sizes: the size of every stage.
        limit: the largest size of a part.
        frame: the frame that `schedule` used; a part ends without the lowest qubits in registers.
    """
    share = sum(sizes) / max(-(-sum(sizes) // limit), 1)
    parts: list[list[Stage]] = [[]]
    room = share
    for stage, size in zip(stages, sizes, strict=True):
        if parts[-1] and size / 2 > room:
            parts.append([])
            room += share
        parts[-1].append(stage)
        room -= size
    for part in parts:
        stored = frame.lines(stored=part is parts[-1])
        if mask_of(part[-1].registers) & stored:
            part.append(Stage(_qubits_among(frame.tile, _top_registers(frame, stored))))
    return parts


def _qubits_among(tile: Sequence[int], mask: int) -> tuple[int, ...]:
    """Returns the qubits of ``tile`` that are in ``mask``, in the tile's order."""
    return tuple(q for q in tile if mask >> q & 1)


def _top_registers(frame: TileFrame, lines: int) -> int:
    """Returns the mask of the highest qubits, as many as registers hold; qubits of ``lines`` come last."""
    return mask_of(sorted(frame.tile, key=lambda q: (lines >> q & 1, -q))[: frame.register_qubits])


def _collect_phases(todo: list[Item], pending: Pending, tile: int = -1) -> list[Item]:
    """Moves every phase that no earlier item blocks from ``todo`` to ``pending``; returns the rest of ``todo``.

    The search ends early once the earlier items change every qubit of ``tile``: then all later items count as blocked.
    """
    rest = []
    mixed = 0
    for number, item in enumerate(todo):
        if item.kind == "terms" and not item.used & mixed:
            pending.add(item)
        else:
            mixed |= item.mixed
            rest.append(item)
            if mixed == tile:
                rest += todo[number + 1 :]
                break
    return rest


def _fill_stage(stage: Stage, todo: list[Item], pending: Pending, tile: int, lazy: bool) -> list[Item]:
    """Fills ``stage`` in rounds, and returns the items that it cannot do.

    One round collects phases, multiplies in the phases on qubits that the next items change, and does these items.
    """
    registers, pair = mask_of(stage.registers), mask_of(stage.pair)
    selectable = ~tile | registers
    while True:
        todo = _collect_phases(todo, pending, tile)
        mixed = used = 0
        on_pair: list[Item] = []
        others: list[Item] = []
        rest: list[Item] = []
        for number, item in enumerate(todo):
            if mixed == tile:  # all later items are blocked
                rest += todo[number:]
                break
            blocked = item.mixed & (mixed | used) or item.used & mixed
            if blocked:
                rest.append(item)
            elif fits_pair(item, pair, selectable):
                on_pair.append(item)
            elif item.mixed & ~registers and item.kind != "permute":
                rest.append(item)
            else:
                others.append(item)
            mixed |= item.mixed
            used |= item.used
        if not on_pair and not others:
            return rest
        for item in on_pair:
            parities, terms = pending.take(item.mixed, registers, lazy)
            stage.work.extend(parities)
            stage.add_on_pair(item, terms, selectable)
        alone = [item for item in others if lazy and item.kind == "flip"]
        groups = [[item for item in others if item not in alone], *([item] for item in alone)]
        for group in groups:
            if not (group and group[0].kind == "flip" and lazy and pending.push_behind(group[0], tile)):
                parities, terms = pending.take(_changed_qubits(group), registers, lazy)
                stage.work.extend(parities)
                terms = stage.into_block(terms, selectable)
                if terms:
                    stage.work.append(PhaseTerms(terms))
            stage.work.extend(group)
        todo = rest


def _changed_qubits(items: Sequence[Item]) -> int:
    """Returns the mask of the qubits that the items change."""
    mixed = 0
    for item in items:
        mixed |= item.mixed
    return mixed
