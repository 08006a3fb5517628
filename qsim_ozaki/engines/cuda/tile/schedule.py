"""Order inside a tile pass: which qubits sit in registers when, and which phases are multiplied in when.

In: `Item` objects. Out: `Stage` objects, each a register set and the work done meanwhile. It packs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.engines.cuda.tile.items import Item
from qsim_ozaki.engines.cuda.tile.pairs import inside
from qsim_ozaki.engines.cuda.tile.search import Rules, searched_stages
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.ir import mask_of


@dataclass(frozen=True, slots=True)
class TileFrame:
    """The tile of a pass, as its schedule sees it.

    Attributes:
        tile: qubits of the tile, ascending.
        register_qubits: qubits a stage holds in registers.
        line_qubits: the lowest qubits; the first and the last stage leave them to the lanes, for whole lines.
        swaps: pairs of the tile's qubits that change places at the store.
    """

    tile: tuple[int, ...]
    register_qubits: int
    line_qubits: int
    swaps: tuple[tuple[int, int], ...] = ()

    def lines(self, stored: bool = False) -> int:
        """The qubits that are the lowest at the load, or at the store; 0 where the tile is too small to choose."""
        if len(self.tile) < self.register_qubits + self.line_qubits:
            return 0
        return mask_of(q for q in self.tile if (self.stored_at(q) if stored else q) < self.line_qubits)

    def stored_at(self, qubit: int) -> int:
        """Where the store puts ``qubit``."""
        for first, second in self.swaps:
            if qubit == first:
                return second
            if qubit == second:
                return first
        return qubit


FULL = (1 << 64) - 1  # angles are integers modulo a turn
MAX_PUSHED = 2  # qubits of a product that may wait behind a flip: longer ones multiply from flip to flip


@dataclass(frozen=True, slots=True)
class Style:
    """Abilities of the kernel that a schedule is for.

    Attributes:
        straight: phases wait until a qubit of theirs changes (else those that one table holds anyway go with it).
        pairs: whether it multiplies by matrices on two qubits that number threads.
        brief: the search is quick rather than good: longer it would take more than all else, and save little.
        precision: its energies count.
    """

    straight: bool = False
    pairs: bool = False
    brief: bool = False
    precision: str = "double"


def schedule(items: Sequence[Item], frame: TileFrame, style: Style = Style()) -> list[Stage]:
    """Stages that do all ``items`` once each, in an order that commutes with the given one.

    Args:
        items: in order; mixed qubits are in the tile.
        frame: the tile.
        style: of the kernel.
    """
    tile = mask_of(frame.tile)
    todo = list(items)
    pending: dict[int, int] = {}
    stages: list[Stage] = []
    lines, stored = 0 if style.straight else frame.lines(), frame.lines(stored=True)
    rules = Rules(frame.tile, frame.register_qubits, frame.line_qubits, lines, stored, style.pairs, style.brief)
    path, holds = searched_stages(items, rules, style.precision)
    last: list[Item] = []
    if holds:
        todo, last = _split(todo, path[-1][0])
    if not path or path[0][0] & lines:
        path.insert(0, (_fill(frame, lines), 0))
    todo = _absorb(todo, pending)
    for number, (registers, pair) in enumerate(path):
        if number == len(path) - 1:
            todo = _absorb(todo + last, pending)
        elif not todo:
            continue
        stage = Stage(_among(frame.tile, registers), pair=_among(frame.tile, pair))
        todo = _run(stage, todo, pending, tile, style.straight)
        stage.delay_blocks()
        stages.append(stage)
    assert not todo, "every item is in some stage"
    if mask_of(stages[-1].registers) & stored or (frame.swaps and len(stages) == 1 and not style.straight):
        stages.append(Stage(_among(frame.tile, _fill(frame, stored))))
    if pending:
        stages[-1].work.append(PhaseTerms(dict(pending)))
    return stages


def _split(items: Sequence[Item], registers: int) -> tuple[list[Item], list[Item]]:
    """``items`` as those that come first and those that ``registers`` can do after all of them."""
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
    """``stages`` as consecutive parts of about equal size, each a pass of its own, with about ``limit`` at most.

    Args:
        stages: as `schedule` returns them.
        sizes: of each.
        limit: of a part.
        frame: as for `schedule`: parts end without the lowest qubits in registers.
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
            part.append(Stage(_among(frame.tile, _fill(frame, stored))))
    return parts


def _among(tile: Sequence[int], mask: int) -> tuple[int, ...]:
    return tuple(q for q in tile if mask >> q & 1)


def _fill(frame: TileFrame, lines: int) -> int:
    """As many register qubits as the kernel has, from the top, those of ``lines`` last."""
    return mask_of(sorted(frame.tile, key=lambda q: (lines >> q & 1, -q))[: frame.register_qubits])


def _absorb(todo: list[Item], pending: dict[int, int], tile: int = -1) -> list[Item]:
    """Moves every phase that no earlier item blocks from ``todo`` to ``pending``.

    Items whose qubits are all outside of ``tile`` are taken for gone: all that follows one that mixes its last qubit is
    blocked.
    """
    rest = []
    mixed = 0
    for number, item in enumerate(todo):
        if item.kind == "terms" and not item.used & mixed:
            for key, angle in item.terms.items():
                _add(pending, key, angle)
        else:
            mixed |= item.mixed
            rest.append(item)
            if mixed == tile:
                rest += todo[number + 1 :]
                break
    return rest


def _run(stage: Stage, todo: list[Item], pending: dict[int, int], tile: int, lazy: bool) -> list[Item]:
    """Fills ``stage`` with rounds of: absorb phases, multiply in those that the next items need, do the items."""
    registers, pair = mask_of(stage.registers), mask_of(stage.pair)
    selectable = ~tile | registers
    while True:
        todo = _absorb(todo, pending, tile)
        mixed = used = 0
        on_pair: list[Item] = []
        others: list[Item] = []
        rest: list[Item] = []
        for number, item in enumerate(todo):
            if mixed == tile:  # all that follows is blocked
                rest += todo[number:]
                break
            blocked = item.mixed & (mixed | used) or item.used & mixed
            if blocked:
                rest.append(item)
            elif inside(item, pair, selectable):
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
            stage.add_on_pair(item, _take(pending, item.mixed, registers, lazy), selectable)
        alone = [item for item in others if lazy and item.kind == "flip"]
        groups = [[item for item in others if item not in alone], *([item] for item in alone)]
        for group in groups:
            if not (group and group[0].kind == "flip" and lazy and _push(pending, group[0], tile)):
                terms = _take(pending, _mixed(group), registers, lazy)
                terms = stage.into_block(terms, selectable)
                if terms:
                    stage.work.append(PhaseTerms(terms))
            stage.work.extend(group)
        todo = rest


def _mixed(items: Sequence[Item]) -> int:
    mixed = 0
    for item in items:
        mixed |= item.mixed
    return mixed


def _push(pending: dict[int, int], item: Item, inside: int) -> bool:
    """Moves pending phases behind a flip by at most one qubit of the tile; whether it could without longer products.

    Behind the flip the bit is another one: that of the qubit and the control, x + c - 2xc, goes in its place.
    """
    control, value = item.condition
    if control & (control - 1) or control & ~inside:
        return False
    image = {0: 0, item.mixed: 1, control: 1, item.mixed | control: -2} if control else {0: 1, item.mixed: -1}
    if control and not value:
        image = {0: 1, item.mixed: -1, control: -1, item.mixed | control: 2}
    moved: dict[int, int] = {}
    for key, angle in pending.items():
        if key & item.mixed:
            for bits, count in image.items():
                new = key & ~item.mixed | bits
                moved[new] = moved.get(new, 0) + count * angle
    moved = {key: angle & FULL for key, angle in moved.items() if angle & FULL}
    if any(key.bit_count() > MAX_PUSHED for key in moved):
        return False
    kept = {key: angle for key, angle in pending.items() if not key & item.mixed}
    pending.clear()
    for key, angle in [*kept.items(), *moved.items()]:
        _add(pending, key, angle)
    return True


def _add(pending: dict[int, int], key: int, angle: int) -> None:
    total = (pending.get(key, 0) + angle) & FULL
    if total:
        pending[key] = total
    else:
        pending.pop(key, None)


def _take(pending: dict[int, int], need: int, registers: int, lazy: bool) -> dict[int, int]:
    """Phases on the qubits about to change, and those on register qubits that ask for no further selecting qubit."""
    outside = 0
    taken = [key for key in pending if key & need]
    if not taken:
        return {}
    for key in taken:
        outside |= key & ~registers
    # A global phase waits for the end of the pass: alone, it costs a product for every amplitude.
    if not lazy:
        taken += [key for key in pending if key and not key & need and not key & ~(registers | outside)]
    return {key: pending.pop(key) for key in taken}
