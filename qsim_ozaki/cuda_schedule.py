"""Order inside a tile pass: which qubits sit in registers when, and which phases are multiplied in when.

In: `Item` objects. Out: `Phase` objects, each a register set and what is done meanwhile. It packs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from qsim_ozaki.cuda_lower import Item
from qsim_ozaki.cuda_pairs import PairBlock, best_pair, inside


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


@dataclass(frozen=True, slots=True)
class Frame:
    """What a schedule keeps to.

    Attributes:
        tile: qubits of the tile, ascending.
        register_qubits: qubits a phase holds in registers.
        line_qubits: the lowest qubits; the first and the last phase leave them to the lanes, for whole lines.
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
        return _mask([q for q in self.tile if (self.stored_at(q) if stored else q) < self.line_qubits])

    def stored_at(self, qubit: int) -> int:
        """Where the store puts ``qubit``."""
        for pair in self.swaps:
            if qubit in pair:
                return pair[pair[0] == qubit]
        return qubit


FULL = (1 << 64) - 1  # angles are integers modulo a turn
MAX_PUSHED = 2  # qubits of a product that may wait behind a flip: longer ones multiply from flip to flip
WINDOW = 96  # items looked at when a register set is chosen: keeps the choice linear in the number of items


@dataclass(frozen=True, slots=True)
class Style:
    """What the kernel can do.

    Attributes:
        straight: phases wait until a qubit of theirs changes (else those that one table holds anyway go with it);
            what the last phase's registers can still do waits for it, while the next tile is fetched.
        pairs: matrices on two qubits that number threads.
    """

    straight: bool = False
    pairs: bool = False


def schedule(items: Sequence[Item], frame: Frame, style: Style = Style()) -> list[Phase]:
    """Phases that do all ``items`` once each, in an order that commutes with the given one.

    Args:
        items: in order; mixed qubits are in the tile.
        frame: the tile.
        style: of the kernel.
    """
    phases = _schedule(list(items), [], 0, frame, style)
    if style.straight and len(phases) > 1:
        registers = _choose(list(reversed(items)), frame.tile, frame.register_qubits, frame.lines(stored=True))
        if not registers & frame.lines(stored=True):
            first, last = _split(items, registers)
            others = _schedule(first, last, registers, frame, style)
            if len(others) <= len(phases):
                return others
    return phases


def _schedule(todo: list[Item], last: list[Item], registers: int, frame: Frame, style: Style) -> list[Phase]:
    """Phases that do ``todo``, and ``last`` in a phase of its own that holds ``registers``."""
    tile, count, lines = frame.tile, frame.register_qubits, frame.lines()
    stored = frame.lines(stored=True)
    pending: dict[int, int] = {}
    phases: list[Phase] = []
    while True:
        todo = _absorb(todo, pending)
        if not todo:
            break
        pair: tuple[int, ...] = ()
        if style.pairs and phases:
            pair = best_pair(todo[:WINDOW], tile, frame.line_qubits)
        chosen = _choose(todo, tile, count, 0 if phases else lines, _mask(pair))
        if not phases and chosen & lines:
            phases.append(Phase(_fill(0, tile, count, lines)))
        phase = Phase(_fill(chosen, [q for q in tile if q not in pair], count, lines), pair=pair)
        todo = _run(phase, todo, pending, _mask(tile), style.straight)
        phases.append(phase)
    if not phases:
        phases.append(Phase(_fill(0, tile, count, lines)))
    alone = frame.swaps and len(phases) == 1
    if last or phases[-1].pair or _mask(phases[-1].registers) & stored or alone:
        phase = Phase(_fill(registers, tile, count, stored))
        rest = _run(phase, last, pending, _mask(tile), style.straight)
        assert not rest, "the last phase does all that was left to it"
        phases.append(phase)
    if pending:
        phases[-1].work.append(Phases(dict(pending)))
    return phases


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


def cut(phases: Sequence[Phase], sizes: Sequence[int], limit: int, frame: Frame) -> list[list[Phase]]:
    """``phases`` as consecutive parts of about equal size, each a pass of its own, with about ``limit`` at most.

    Args:
        phases: as `schedule` returns them.
        sizes: of each.
        limit: of a part.
        frame: as for `schedule`: parts begin and end without the lowest qubits in registers.
    """
    share = sum(sizes) / max(-(-sum(sizes) // limit), 1)
    parts: list[list[Phase]] = [[]]
    room = share
    for phase, size in zip(phases, sizes, strict=True):
        if parts[-1] and size / 2 > room:
            parts.append([])
            room += share
        parts[-1].append(phase)
        room -= size
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        lines, stored = frame.lines(), frame.lines(stored=last)
        if part[0].pair or _mask(part[0].registers) & lines:
            part.insert(0, Phase(_fill(0, frame.tile, frame.register_qubits, lines)))
        alone = last and frame.swaps and len(part) == 1
        if part[-1].pair or _mask(part[-1].registers) & stored or alone:
            part.append(Phase(_fill(0, frame.tile, frame.register_qubits, stored)))
    return parts


def _mask(qubits: Sequence[int]) -> int:
    return sum(1 << q for q in qubits)


def _fill(mask: int, tile: Sequence[int], count: int, lines: int) -> tuple[int, ...]:
    """``mask`` completed to ``count`` qubits, from the top, line qubits last."""
    for q in sorted(tile, key=lambda q: (lines >> q & 1, -q)):
        if mask.bit_count() == count:
            break
        mask |= 1 << q
    return tuple(q for q in tile if mask >> q & 1)


def _absorb(todo: list[Item], pending: dict[int, int]) -> list[Item]:
    """Moves every phase that no earlier item blocks from ``todo`` to ``pending``."""
    rest = []
    mixed = 0
    for item in todo:
        if item.kind == "terms" and not item.used & mixed:
            for key, angle in item.terms.items():
                _add(pending, key, angle)
        else:
            mixed |= item.mixed
            rest.append(item)
    return rest


def _reach(todo: list[Item], registers: int) -> int:
    """How many items could run with ``registers`` held."""
    mixed = used = count = 0
    for item in todo[:WINDOW]:
        if item.mixed & (mixed | used) or item.used & mixed or (item.mixed & ~registers and item.kind != "permute"):
            mixed |= item.mixed
            used |= item.used
        elif item.mixed:
            count += 1
    return count


def _choose(todo: list[Item], tile: Sequence[int], count: int, avoid: int, never: int = 0) -> int:
    """Greedy growth: add the targets of the item that lets most others run; ties go to the lowest qubits."""
    ready = {m for m in _ready_masks(todo) if not m & never}
    chosen = 0
    for forbidden in (avoid, 0) if avoid else (0,):
        while True:
            options = {
                chosen | m
                for m in ready | {1 << q for q in tile if not never >> q & 1}
                if m & ~chosen and not m & forbidden and (chosen | m).bit_count() <= count
            }
            scored = [(_reach(todo, o), -(o & -o), o) for o in options]
            if not scored:
                break
            best = max(scored)
            if best[0] <= _reach(todo, chosen):
                break
            chosen = best[2]
        if chosen:
            break
    return chosen


def _ready_masks(todo: list[Item]) -> set[int]:
    mixed = used = 0
    ready = set()
    for item in todo[:WINDOW]:
        if item.mixed and not (item.mixed & (mixed | used) or item.used & mixed):
            ready.add(item.mixed)
        mixed |= item.mixed
        used |= item.used
    return ready


def _run(phase: Phase, todo: list[Item], pending: dict[int, int], tile: int, lazy: bool) -> list[Item]:
    """Fills ``phase`` with rounds of: absorb phases, multiply in those that the next items need, do the items."""
    registers, pair = _mask(phase.registers), _mask(phase.pair)
    while True:
        todo = _absorb(todo, pending)
        mixed = used = 0
        ready, rest = [], []
        for item in todo:
            blocked = item.mixed & (mixed | used) or item.used & mixed
            outside = item.mixed & ~registers and item.kind != "permute" and not inside(item, pair)
            if blocked or outside:
                rest.append(item)
            else:
                ready.append(item)
            mixed |= item.mixed
            used |= item.used
        if not ready:
            return rest
        alone = [(lazy and item.kind == "flip") or inside(item, pair) for item in ready]
        first = [item for item, wait in zip(ready, alone, strict=True) if not wait]
        groups = [first, *([item] for item, wait in zip(ready, alone, strict=True) if wait)]
        for group in groups:
            need = 0
            for item in group:
                need |= item.mixed
            if need & pair:
                _on_pair(phase, group[0], _take(pending, need, registers, lazy))
                continue
            if not (group and group[0].kind == "flip" and lazy and _push(pending, group[0], tile)):
                terms = _take(pending, need, registers, lazy)
                if terms:
                    phase.work.append(Phases(terms))
            phase.work.extend(group)
        todo = rest


def _on_pair(phase: Phase, item: Item, terms: dict[int, int]) -> None:
    """Adds an item on the pair, and the phases before it, to the last block that nothing in between depends on."""
    pair = _mask(phase.pair)
    own = {key: angle for key, angle in terms.items() if not key & ~pair}
    others = {key: angle for key, angle in terms.items() if key & ~pair}
    if others:
        phase.work.append(Phases(others))
    block = next((work for work in reversed(phase.work) if _touches(work, pair)), None)
    if not isinstance(block, PairBlock):
        a, b = phase.pair
        block = PairBlock((a, b))
        phase.work.append(block)
    block.then(own, item)


def _touches(work: Item | Phases | PairBlock, pair: int) -> bool:
    if isinstance(work, Phases):
        return any(key & pair for key in work.terms)
    return isinstance(work, PairBlock) or bool((work.mixed | work.used) & pair)


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
