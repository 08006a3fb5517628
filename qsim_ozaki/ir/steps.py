"""Steps of a plan: tile passes, dense blocks and the like, each with its prediction.

In: the planner's decisions. Out: frozen dataclasses that an engine runs as they are. It may not choose anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from qsim_ozaki.ir.ops import ComplexArray, Op


class Path(Enum):
    """Which arithmetic a dense block uses."""

    NATIVE = "native"
    OZAKI = "ozaki"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected cost of a step on one device, and which of the device's limits bounds it."""

    seconds: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    passes: float = 0.0
    bound_by: str = "launch"


@dataclass(frozen=True, slots=True, eq=False)
class TilePass:
    """One read and one write of the state: every op applied inside tiles of ``2**len(qubits)`` amplitudes.

    Attributes:
        qubits: ascending; every op's mixed qubits are among them.
        ops: in order.
        zero_qubits: qubits outside the tile that still are |0>: tiles where one of them reads 1 hold only zeros.
        one_qubits: qubits outside the tile that still are |1>; an engine may leave out what holds only zeros.
        swaps: pairs of ``qubits`` that change places at the store, which costs nothing there; no qubit twice.
        fresh_qubits: qubits of the tile that are |0>: an engine need not read what holds only zeros.
        row: it differs from an earlier plan's in numbers alone, as more may: it is likely to run once.
    """

    qubits: tuple[int, ...]
    ops: Sequence[Op]
    zero_qubits: tuple[int, ...] = ()
    one_qubits: tuple[int, ...] = ()
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    swaps: tuple[tuple[int, int], ...] = ()
    fresh_qubits: tuple[int, ...] = ()
    row: bool = False


@dataclass(frozen=True, slots=True)
class HadamardPass:
    """H on each of ``qubits`` by a fast Walsh-Hadamard transform, scaled by ``2**(-m/2)`` at the last store."""

    qubits: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DenseBlock:
    """One ``2**k`` x ``2**k`` matrix on arbitrary targets, by a matrix product.

    Attributes:
        op: its matrix, targets and controls.
        path: which arithmetic.
        num_moduli: of the emulated product.
        zero_qubits: as in `TilePass`.
        one_qubits: as in `TilePass`.
        error_bound: proved, of the emulated product: largest error of an entry over its column's norm.
    """

    op: Op
    path: Path = Path.NATIVE
    num_moduli: int = 0
    zero_qubits: tuple[int, ...] = ()
    one_qubits: tuple[int, ...] = ()
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    error_bound: float = 0.0


@dataclass(frozen=True, slots=True)
class Relabel:
    """Qubits change names: what was on qubit q is on ``permutation[q]`` from here on. No data moves."""

    permutation: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Prepare:
    """Writes a product state: qubit q holds ``factors[q, 0]|0> + factors[q, 1]|1>``.

    Attributes:
        factors: complex128 ``(num_qubits, 2)``.
        alone: it is |0...0> but for a factor, and no step that follows reads amplitudes that are known to be 0: an
            engine whose passes keep to their ``zero_qubits`` and ``fresh_qubits`` need write no other amplitude.
    """

    factors: ComplexArray
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """All of a small circuit: its operators as they come, on a state that stays in the cache, other rows beside it."""

    qubits: tuple[int, ...]
    ops: Sequence[Op]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


Step: TypeAlias = TilePass | HadamardPass | DenseBlock | Relabel | Prepare | Stack
