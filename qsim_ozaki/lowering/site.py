"""The place of an instruction in the user's circuit, and its angles as checked floats.

In: names, qubits, Qiskit's parameters. Out: floats, or errors that name the place. It may not depend on the gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from qiskit.circuit import ParameterExpression

from qsim_ozaki.errors import LoweringError

Qubits: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """The place of an instruction in the user's circuit, for messages.

    Attributes:
        circuit: the circuit's name.
        gate: the instruction's name.
        program_qubits: the instruction's qubits in the program; ~i is the circuit's idle qubit i.
        active: the circuit's index of each program qubit; None if both indices are the same.
    """

    circuit: str
    gate: str
    program_qubits: Sequence[int]
    active: Qubits | None = None

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


def numbers(params: Iterable[Any], site: Site) -> tuple[float, ...]:
    """Converts the angles ``params``, in radians, to floats.

    Raises:
        LoweringError: an angle is unbound, complex, NaN or infinite.
    """
    values = []
    for param in params:
        if isinstance(param, ParameterExpression) and param.parameters:
            names = ", ".join(sorted(p.name for p in param.parameters))
            raise site.error(f"unbound parameters: {names}", "Bind them with circuit.assign_parameters({...})")
        try:
            value = float(param)
        except (TypeError, ValueError):
            raise site.error(f"angle {param} is not a real number", "Give real angles, in radians") from None
        if not isfinite(value):
            raise site.error(f"angle {value} is not finite", "Give finite angles, in radians")
        values.append(value)
    return tuple(values)
