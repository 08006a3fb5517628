"""Phases of a tile pass that wait: they are multiplied in before one of their qubits changes.

In: the phases of `Item` objects. Out: items and angles of the phases that can wait no longer. It may not choose when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, RUN_TOLERANCE, TURN, Item, members, phases_of

FULL = TURN - 1  # angles are integers modulo a turn
QUARTER_TURN = HALF_TURN // 2
MAX_PUSHED = 2  # most qubits of a product that moves behind a flip: longer products grow in number with each flip
SMALL_PARITY = 2  # a parity of at most as many qubits is three products of bits, which merge with others


@dataclass(slots=True, eq=False)
class Pending:
    """Phases that wait.

    Attributes:
        terms: the angle where all bits of the key are 1, by key.
        parities: the angle where an odd number of the key's bits are 1, by key.
    """

    terms: dict[int, int] = field(default_factory=dict)
    parities: dict[int, int] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Adds the phases of an item of kind ``terms``."""
        for key, angle in item.terms.items():
            _add_angle(self.terms, key, angle)
        for key, angle in item.parities.items():
            self._add_parity(key, angle)

    def push_behind(self, flip: Item, tile: int) -> bool:
        """Moves the phases on a flip's qubit behind it, rewritten in the values after it; returns whether they moved.

        They stay if the flip has more than one control, or if the products cannot move.
        """
        control, value = flip.condition
        if control & (control - 1) or not self._push_terms(flip, tile):
            return False
        for key in [key for key in self.parities if key & flip.mixed]:
            angle = self.parities.pop(key)
            if not value:  # no control, or one that acts where it is 0: odd is even afterwards
                _add_angle(self.terms, 0, angle)
                angle = -angle
            self._add_parity(key ^ control, angle)  # the bit before is the exclusive or of bit and control after it
        return True

    def take(self, need: int, registers: int, lazy: bool) -> tuple[list[Item], dict[int, int]]:
        """Takes the phases on the qubits ``need`` that are about to change.

        Args:
            need: mask of qubits.
            registers: mask of the qubits that number registers.
            lazy: whether to take nothing else. If not, products that read only register qubits and the other qubits of
                these phases are taken as well: they need no further qubit to choose a table.

        Returns:
            (items of parities, angles by product of bits).
        """
        keys = self._keys(need, registers, lazy)
        items, products = self._take_parities(need, registers, keys)
        return items, _sum_of({key: self.terms.pop(key) for key in keys}, products)

    def take_all(self, registers: int) -> tuple[list[Item], dict[int, int]]:
        """Takes all phases, the global one as well; the results are those of `take`."""
        items, products = self._take_parities(FULL, registers, list(self.terms))
        terms, self.terms = self.terms, {}
        return items, _sum_of(terms, products)

    def _add_parity(self, key: int, angle: int) -> None:
        """Adds a parity's angle; small ones, and half turns, which are signs of single bits, become products."""
        if key.bit_count() <= SMALL_PARITY:
            self.terms = _sum_of(self.terms, _products(key, angle))
            return
        _add_angle(self.parities, key, angle)
        if self.parities.get(key) == HALF_TURN:
            del self.parities[key]
            for q in members(key):
                _add_angle(self.terms, 1 << q, HALF_TURN)

    def _push_terms(self, flip: Item, tile: int) -> bool:
        """Moves products behind a flip with at most one control, which is a qubit of the tile.

        With control c, the value of the bit before the flip is the exclusive or x + c - 2xc of the values after it.
        Returns whether the phases moved: they stay if a product of more than `MAX_PUSHED` qubits would result.
        """
        control, value = flip.condition
        if control & ~tile:
            return not any(key & flip.mixed for key in self.terms)
        image = {0: 0, flip.mixed: 1, control: 1, flip.mixed | control: -2} if control else {0: 1, flip.mixed: -1}
        if control and not value:
            image = {0: 1, flip.mixed: -1, control: -1, flip.mixed | control: 2}
        moved: dict[int, int] = {}
        for key, angle in self.terms.items():
            if key & flip.mixed:
                for bits, count in image.items():
                    new = key & ~flip.mixed | bits
                    moved[new] = moved.get(new, 0) + count * angle
        moved = {key: angle & FULL for key, angle in moved.items() if angle & FULL}
        if any(key.bit_count() > MAX_PUSHED for key in moved):
            return False
        self.terms = _sum_of({key: angle for key, angle in self.terms.items() if not key & flip.mixed}, moved)
        return True

    def _keys(self, need: int, registers: int, lazy: bool) -> list[int]:
        """Returns the products that `take` takes."""
        outside = 0
        keys = [key for key in self.terms if key & need]
        for key in keys:
            outside |= key & ~registers
        # A global phase waits for the end of the pass: by itself it costs one product per amplitude.
        if keys and not lazy:
            keys += [key for key in self.terms if key and not key & need and not key & ~(registers | outside)]
        return keys

    def _take_parities(self, need: int, registers: int, keys: Sequence[int]) -> tuple[list[Item], dict[int, int]]:
        """Takes the parities on ``need``, those that read register qubits alone as products if a table is there anyway.

        Args:
            need: mask of qubits.
            registers: mask of the qubits that number registers.
            keys: the products that are taken with them.

        Returns:
            (items, angles by product of bits).
        """
        taken = {key: self.parities.pop(key) for key in [key for key in self.parities if key & need]}
        inside = [key for key in taken if not key & ~registers]
        products: dict[int, int] = {}
        if len(inside) + any(key and not key & ~registers for key in keys) > 1:
            for key in inside:
                products = _sum_of(products, _products(key, taken.pop(key)))
        return [self._item(key, angle) for key, angle in taken.items()], products

    def _item(self, key: int, angle: int) -> Item:
        """Returns the item of a parity.

        Its factors are conjugate, so that the kernel needs half the arithmetic; the rest joins the global phase.
        Factors of quarter turns stay exact.
        """
        if not angle % QUARTER_TURN:
            return Item("parity", 0, key, data=phases_of([0, angle]))
        half = angle // 2
        common = (self.terms.pop(0, 0) + half) & FULL
        if QUARTER_TURN < common <= 3 * QUARTER_TURN:
            common ^= HALF_TURN
            half ^= HALF_TURN
        if min(common, TURN - common) > RUN_TOLERANCE:
            self.terms[0] = common
        factors = phases_of([half])
        return Item("parity", 0, key, data=np.array([factors[0].conjugate(), factors[0]]))


def _products(key: int, angle: int) -> dict[int, int]:
    """Returns the angles by product of bits that are ``angle`` where the parity of the bits of ``key`` is odd."""
    out: dict[int, int] = {}
    part = key
    while part:
        out[part] = angle * (-2) ** (part.bit_count() - 1) & FULL
        part = (part - 1) & key
    return out


def _sum_of(angles: dict[int, int], others: dict[int, int]) -> dict[int, int]:
    """Adds ``others`` to ``angles``, which it changes and returns."""
    for key, angle in others.items():
        _add_angle(angles, key, angle)
    return angles


def _add_angle(angles: dict[int, int], key: int, angle: int) -> None:
    """Adds ``angle`` to the angle of ``key``, modulo a turn."""
    total = (angles.get(key, 0) + angle) & FULL
    if total:
        angles[key] = total
    else:
        angles.pop(key, None)
