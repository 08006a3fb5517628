"""The steps of a plan: tile passes, dense blocks and others, each with its prediction.

In: the planner's decisions. Out: frozen dataclasses that an engine runs as they are. It may not choose anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from qsim_ozaki.ir.ops import ComplexArray, Op


class Path(Enum):
    """The arithmetic of a dense block: native floating point, or FP64 emulated by the Ozaki scheme."""

    NATIVE = "native"
    OZAKI = "ozaki"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected cost of a step on one device, and the limit of the device that bounds it.

    Attributes:
        seconds: time of the step.
        bytes: bytes of memory traffic.
        flops: additions and multiplications.
        passes: memory traffic as a multiple of one read and one write of the whole state.
        bound_by: the limit that takes the most time, such as ``"memory"`` or ``"arithmetic"``.
    """

    seconds: float = 0.0
    bytes: float = 0.0
    flops: float = 0.0
    passes: float = 0.0
    bound_by: str = "launch"


@dataclass(frozen=True, slots=True, eq=False)
class TilePass:
    """One read and one write of the state, which apply every op inside tiles of ``2**len(qubits)`` amplitudes.

    Attributes:
        qubits: qubits of the tile, ascending; they contain the mixed qubits of every op.
        ops: operators in order.
        zero_qubits: qubits outside the tile that are still |0>: a tile where one of them reads 1 holds only zeros.
        one_qubits: qubits outside the tile that are still |1>; an engine may skip tiles that hold only zeros.
        prediction: expected cost of the pass.
        reason: why the planner chose the pass, for the table of the plan.
        swaps: pairs of ``qubits`` that exchange places at the store, where that costs nothing; no qubit occurs twice.
        fresh_qubits: qubits of the tile that are |0>: an engine need not read amplitudes that are known to be 0.
        row: the pass differs from a pass of an earlier plan only in its numbers, and further rows may differ in the
            same way: the pass probably runs once.
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
    """H on all m ``qubits`` by a fast Walsh-Hadamard transform, scaled by ``2**(-m/2)`` at the last store."""

    qubits: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class DenseBlock:
    """One ``2**k`` x ``2**k`` matrix on arbitrary targets, applied by a matrix product.

    Attributes:
        op: the operator with the matrix, its targets and controls.
        path: the arithmetic of the product.
        num_moduli: number of moduli of the emulated product; 0 for a native one.
        zero_qubits: as in `TilePass`.
        one_qubits: as in `TilePass`.
        prediction: expected cost of the block.
        reason: why the planner chose the block and its path, for the table of the plan.
        error_bound: proved bound of the emulated product: the largest error of an entry over its column's norm.
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
    """Renames qubits: from this step on, the content of qubit q is on ``permutation[q]``. No data moves."""

    permutation: tuple[int, ...]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Prepare:
    """Writes a product state: qubit q holds ``factors[q, 0]|0> + factors[q, 1]|1>``.

    Attributes:
        factors: complex128 ``(num_qubits, 2)``.
        prediction: expected cost of the write.
        reason: why the planner chose the state, for the table of the plan.
        alone: the state is |0...0> up to a factor, and no later step reads amplitudes that are known to be 0. An
            engine whose passes respect ``zero_qubits`` and ``fresh_qubits`` need write only this one amplitude.
    """

    factors: ComplexArray
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""
    alone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """All operators of a small circuit in their order, on states that stay in the cache, one per row of parameters."""

    qubits: tuple[int, ...]
    ops: Sequence[Op]
    prediction: Prediction = field(default_factory=Prediction)
    reason: str = ""


Step: TypeAlias = TilePass | HadamardPass | DenseBlock | Relabel | Prepare | Stack
