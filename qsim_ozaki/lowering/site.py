"""The place of an instruction in the user's circuit, and its angles as checked floats.

In: names, qubits, Qiskit's parameters. Out: floats, or errors that name the place. It may not depend on the gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeAlias

from qiskit.circuit import ParameterExpression

from qsim_ozaki.errors import LoweringError

Qubits: TypeAlias = tuple[int, ...]


class UnboundError(LoweringError):
    """An angle of an instruction has a parameter without a value."""


@dataclass(slots=True)
class Deviation:
    """How far the numbers that a user gave are from an ideal operation.

    Attributes:
        largest: of all matrices the largest entry of |U^dagger U - 1|, of all vectors the largest | |v| - 1 |.
    """

    largest: float = 0.0

    def add(self, deviation: float) -> None:
        """Takes the deviation of one more matrix or vector into account."""
        self.largest = max(self.largest, deviation)


@dataclass(frozen=True, slots=True)
class Site:
    """The place of an instruction in the user's circuit, for messages.

    Attributes:
        circuit: the circuit's name.
        gate: the instruction's name.
        program_qubits: the instruction's qubits in the program; ~i is the circuit's idle qubit i.
        active: the circuit's index of each program qubit; None if both indices are the same.
        deviation: collects the deviations of the instruction's matrices and vectors.
    """

    circuit: str
    gate: str
    program_qubits: Sequence[int]
    active: Qubits | None = None
    deviation: Deviation = field(default_factory=Deviation)

    @property
    def qubits(self) -> Qubits:
        """The instruction's qubits in the circuit."""
        active = self.active
        return tuple([~q if q < 0 else q if active is None else active[q] for q in self.program_qubits])

    def error(self, problem: str, remedy: str) -> LoweringError:
        """Returns a `LoweringError` that names gate, qubits, circuit, problem and remedy."""
        where = f"qubit {self.qubits[0]}" if len(self.qubits) == 1 else f"qubits {list(self.qubits)}"
        return LoweringError(
            f"qsim_ozaki cannot run {self.gate!r} on {where} of circuit {self.circuit!r}: {problem}. {remedy}."
        )


def matched(inner: Sequence[Any], outer: Sequence[int], noun: str, site: Site) -> dict[Any, int]:
    """Maps the bits of a definition to its instruction's; fewer bits are the instruction's first ones, as in Qiskit.

    Args:
        inner: qubits or classical bits of the definition.
        outer: indices of the instruction's.
        noun: of the bits, for messages.
        site: for messages.

    Raises:
        LoweringError: the definition has more bits than the instruction.
    """
    if len(inner) > len(outer):
        raise site.error(
            f"its definition has {len(inner)} {noun}, but the instruction has {len(outer)}", "Define it on as many"
        )
    return dict(zip(inner, outer, strict=False))


def numbers(params: Iterable[Any], site: Site) -> tuple[float, ...]:
    """Converts the angles ``params``, in radians, to floats.

    Raises:
        UnboundError: an angle is unbound.
        LoweringError: an angle is complex, NaN or infinite.
    """
    values = []
    for param in params:
        if isinstance(param, ParameterExpression) and param.parameters:
            names = ", ".join(sorted(p.name for p in param.parameters))
            problem, remedy = f"unbound parameters: {names}", "Bind them with circuit.assign_parameters({...})"
            raise UnboundError(str(site.error(problem, remedy)))
        try:
            value = float(param)
        except (TypeError, ValueError, OverflowError):
            raise site.error(f"angle {param} is not a real number", "Give real angles, in radians") from None
        if not isfinite(value):
            raise site.error(f"angle {value} is not finite", "Give finite angles, in radians")
        values.append(value)
    return tuple(values)
