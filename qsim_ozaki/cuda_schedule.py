"""Order inside a tile pass: which qubits sit in registers when, and which phases are multiplied in when.

In: `Item` objects. Out: `Phase` objects, each a register set and what is done meanwhile. It packs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from qsim_ozaki.cuda_lower import Item


@dataclass(slots=True, eq=False)
class Phases:
    """Pending phases to multiply in, as angles per product of bits, taken at one moment."""

    terms: dict[int, int]


@dataclass(slots=True, eq=False)
class Phase:
    """What happens between two exchanges.

    Attributes:
        registers: qubits held in registers, ascending; register bit b is ``registers[b]``.
        work: items and phases in order.
    """

    registers: tuple[int, ...]
    work: list[Item | Phases] = field(default_factory=list)


WINDOW = 96  # items looked at when a register set is chosen: keeps the choice linear in the number of items


def schedule(
    items: Sequence[Item], tile: Sequence[int], register_qubits: int, line_qubits: int, lazy: bool = False
) -> list[Phase]:
    """Phases that do all ``items`` once each, in an order that commutes with the given one.

    Args:
        items: in order; mixed qubits are in ``tile``.
        tile: qubits of the tile, ascending.
        register_qubits: qubits a phase holds in registers.
        line_qubits: the lowest qubits; the first and the last phase leave them to the lanes, for whole lines.
        lazy: phases wait until a qubit of theirs changes; else those that one table holds anyway go with it.
    """
    lines = _line_mask(tile, register_qubits, line_qubits)
    pending: dict[int, int] = {}
    todo = list(items)
    phases: list[Phase] = []
    while True:
        todo = _absorb(todo, pending)
        if not todo:
            break
        registers = _choose(todo, tile, register_qubits, lines if not phases else 0)
        if not phases and registers & lines:
            phases.append(Phase(_fill(0, tile, register_qubits, lines)))
        phase = Phase(_fill(registers, tile, register_qubits, lines))
        todo = _run(phase, todo, pending, lazy)
        phases.append(phase)
    if not phases:
        phases.append(Phase(_fill(0, tile, register_qubits, lines)))
    if pending:
        phases[-1].work.append(Phases(dict(pending)))
    if _mask(phases[-1].registers) & lines:
        phases.append(Phase(_fill(0, tile, register_qubits, lines)))
    return phases


def cut(
    phases: Sequence[Phase], sizes: Sequence[int], limit: int, tile: Sequence[int], line_qubits: int
) -> list[list[Phase]]:
    """``phases`` as consecutive parts of about equal size, each a pass of its own, with about ``limit`` at most.

    Args:
        phases: as `schedule` returns them.
        sizes: of each.
        limit: of a part.
        tile: qubits of the tile, ascending.
        line_qubits: as for `schedule`: parts begin and end without them in registers.
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
    count = len(phases[0].registers)
    lines = _line_mask(tile, count, line_qubits)
    outer = _fill(0, tile, count, lines)
    for part in parts:
        if _mask(part[0].registers) & lines:
            part.insert(0, Phase(outer))
        if _mask(part[-1].registers) & lines:
            part.append(Phase(outer))
    return parts


def _line_mask(tile: Sequence[int], register_qubits: int, line_qubits: int) -> int:
    return (1 << line_qubits) - 1 if len(tile) >= register_qubits + line_qubits else 0


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
                total = (pending.get(key, 0) + angle) & 0xFFFFFFFFFFFFFFFF
                if total:
                    pending[key] = total
                else:
                    pending.pop(key, None)
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


def _choose(todo: list[Item], tile: Sequence[int], count: int, avoid: int) -> int:
    """Greedy growth: add the targets of the item that lets most others run; ties go to the lowest qubits."""
    ready = _ready_masks(todo)
    chosen = 0
    for forbidden in (avoid, 0) if avoid else (0,):
        while True:
            options = {
                chosen | m
                for m in ready | {1 << q for q in tile}
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


def _run(phase: Phase, todo: list[Item], pending: dict[int, int], lazy: bool) -> list[Item]:
    """Fills ``phase`` with rounds of: absorb phases, multiply in those that the next items need, do the items."""
    registers = _mask(phase.registers)
    while True:
        todo = _absorb(todo, pending)
        mixed = used = 0
        ready, rest = [], []
        for item in todo:
            blocked = item.mixed & (mixed | used) or item.used & mixed
            outside = item.mixed & ~registers and item.kind != "permute"
            if blocked or outside:
                rest.append(item)
            else:
                ready.append(item)
            mixed |= item.mixed
            used |= item.used
        if not ready:
            return rest
        need = 0
        for item in ready:
            need |= item.mixed
        terms = _take(pending, need, registers, lazy)
        if terms:
            phase.work.append(Phases(terms))
        phase.work.extend(ready)
        todo = rest


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
