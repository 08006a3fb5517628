"""Exact lengths of time: sums of multiples of units whose ratio is unknown.

In: numbers and units. Out: immutable lengths, and their order where it is certain. It may not see a circuit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from qsim_ozaki.errors import ProgramError

SECONDS = {name: Fraction(1, 10**power) for name, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9), ("ps", 12))}
STRETCH = "stretch "  # prefix of a stretch's unit; a stretch is at least 0 long, all other units are longer than 0


@dataclass(frozen=True, slots=True)
class Length:
    """A sum of multiples of the units ``"s"``, ``"dt"`` and stretches; the ratios of these units are unknown.

    Attributes:
        parts: pairs (unit, multiple) sorted by unit; no multiple is 0.
    """

    parts: tuple[tuple[str, Fraction], ...] = ()

    @staticmethod
    def of(value: float, unit: str) -> Length:
        """Returns ``value`` times ``unit`` exactly; the decimal units of time become multiples of a second.

        Raises:
            ProgramError: ``value`` is not finite.
        """
        multiple = _exact(value)
        if unit in SECONDS:
            unit, multiple = "s", multiple * SECONDS[unit]
        return Length(((unit, multiple),) if multiple else ())

    def plus(self, other: Length, factor: int = 1) -> Length:
        """Returns ``self + factor * other``."""
        total = dict(self.parts)
        for unit, multiple in other.parts:
            total[unit] = total.get(unit, Fraction(0)) + factor * multiple
        return Length(tuple(sorted((unit, multiple) for unit, multiple in total.items() if multiple)))

    def times(self, factor: float | Fraction) -> Length:
        """Returns ``factor * self``.

        Raises:
            ProgramError: ``factor`` is not finite.
        """
        exact = _exact(factor)
        return Length(tuple((unit, exact * multiple) for unit, multiple in self.parts) if exact else ())

    def over(self, divisor: float) -> Length:
        """Returns ``self / divisor``, for a divisor other than 0.

        Raises:
            ProgramError: ``divisor`` is not finite.
        """
        return self.times(1 / _exact(divisor))

    def ratio(self, other: Length) -> float:
        """Returns ``self / other``.

        Raises:
            ProgramError: ``other`` is 0, or the ratio depends on the length of a unit.
        """
        if not other.parts:
            raise ProgramError("a duration is divided by a duration of 0. Check the divisor before the division")
        quotient = dict(self.parts).get(other.parts[0][0], Fraction(0)) / other.parts[0][1]
        if self.plus(other.times(quotient), -1).parts:
            raise ProgramError(f"the ratio of {self} and {other} is not known. Use one unit, and no stretch")
        return float(quotient)

    def sign(self) -> int:
        """Returns the sign: -1, 0 or 1.

        Raises:
            ProgramError: the sign depends on the length of a unit.
        """
        if not self.parts:
            return 0
        positive = {multiple > 0 for _, multiple in self.parts}
        if len(positive) == 2 or all(unit.startswith(STRETCH) for unit, _ in self.parts):
            raise ProgramError(
                f"whether {self} is longer than 0 is not known. Compare durations of one unit, without a stretch"
            )
        return 1 if True in positive else -1

    def __str__(self) -> str:
        return " + ".join(f"{float(multiple):g} {unit}" for unit, multiple in self.parts) or "0"


def _exact(value: float | Fraction) -> Fraction:
    """Returns ``value`` as a fraction.

    Raises:
        ProgramError: ``value`` is not finite.
    """
    try:
        return Fraction(value)
    except (OverflowError, ValueError):
        raise ProgramError(f"a duration is multiplied or divided by {value}. Use a finite number") from None
