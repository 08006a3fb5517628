"""Lowers the operators of a tile pass to the few register operations that `tile/interpreter.cu` has.

In: ops on physical qubits. Out: `Item` objects in the same order. It may not pack them, and it needs no GPU.
Phases are 64-bit integers, one turn = 2**64, so that any number of diagonal operators merges without a rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cuda.device.records import HADAMARD
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import ComplexArray, IndexArray, Kind, Op, OpList, mask_of

TURN = 1 << 64
HALF_TURN = 1 << 63
RUN_TOLERANCE = 1 << 10  # 2**-54 of a turn: below the rounding of the phases themselves
LEAST_COS = 2.0**-10  # below, a rotation is written with its cotangent: a factor so small would use up the exponents
ODD = ([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2])  # entries of a 4x4 matrix that change the parity


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One register-level operation.

    Attributes:
        kind: ``terms``, ``parity``, ``diagonal``, ``hadamard``, ``rotate``, ``flip``, ``matrix`` or ``permute``.
        mixed: mask of the qubits whose value the item changes.
        used: mask of the qubits that the item only reads (controls, diagonal targets); a ``parity`` reads their parity.
        qubits: the targets; ``qubits[0]`` is bit 0 of the data's index.
        condition: (mask, value): the item acts where the basis state's bits under ``mask`` equal ``value``.
        terms: ``terms`` only: the angle to add where all bits of the key are 1, by key.
        parities: ``terms`` only: the angle to add where an odd number of the key's bits are 1, by key.
        data: matrix, diagonal or phases; of a ``parity`` the factors where it is even and where it is odd.
        sources: ``permute`` only: the amplitude that arrives at index j comes from index ``sources[j]``.
        angle: ``rotate`` only: (cos, sin).
    """

    kind: str
    mixed: int = 0
    used: int = 0
    qubits: tuple[int, ...] = ()
    condition: tuple[int, int] = (0, 0)
    terms: dict[int, int] = field(default_factory=dict)
    parities: dict[int, int] = field(default_factory=dict)
    data: ComplexArray | None = None
    sources: IndexArray | None = None
    angle: tuple[float, float] = (1.0, 0.0)


def is_core(item: Item) -> bool:
    """Returns whether an item is a 4x4 matrix without entries between states of different parity."""
    return item.kind == "matrix" and item.data is not None and len(item.qubits) == 2 and not np.any(item.data[ODD])


def members(mask: int) -> list[int]:
    """Returns the positions of the bits of ``mask`` that are 1, ascending."""
    return [b for b in range(mask.bit_length()) if mask >> b & 1]


def lower(ops: Sequence[Op], register_qubits: int) -> list[Item]:
    """Returns all items of ``ops``, in order.

    Args:
        ops: operators on physical qubits.
        register_qubits: number of qubits that a thread holds in registers. An assertion refuses a matrix on more
            qubits: the engine launches such a matrix separately.
    """
    columns = OpList.of(ops)
    items: list[Item] = []
    for number, native in enumerate(_native.tile_items(columns.native)):
        if native is None:
            items += _items(columns[number], register_qubits)
        elif len(native) == 2:
            items.append(Item("terms", 0, native[0], terms=native[1]))
        elif len(native) == 3:
            used, even, odd = native
            items.append(Item("terms", 0, used, terms={0: even}, parities={used: (odd - even) % TURN}))
        else:
            items += _rotation(*native)
    return items


def angles_of(values: ComplexArray) -> list[int]:
    """Returns ``2**64 * arg(value) / (2 pi)`` of each value, as integers modulo a turn.

    The values have modulus 1. The result is exact for +-1 and +-i.
    """
    angles: list[int] = _native.angles_of(np.ascontiguousarray(values, complex))
    return angles


def phases_of(angles: Sequence[int]) -> ComplexArray:
    """Returns ``exp(2 pi i angle / 2**64)``: a rotation by at most an eighth of a turn, then exact quarter turns."""
    phases: ComplexArray = _native.phases_of(list(angles))
    return phases


def _condition(op: Op) -> tuple[int, int]:
    value = sum(1 << c for b, c in enumerate(op.controls) if op.ctrl_state >> b & 1)
    return mask_of(op.controls), value


def _items(op: Op, register_qubits: int) -> Iterator[Item]:
    if op.kind is Kind.DIAGONAL:
        yield _diagonal(op)
    elif op.kind is Kind.PARITY:  # its factors are no phases
        yield Item("parity", 0, mask_of(op.targets), data=op.data)
    elif op.kind is Kind.PAULI:
        raise EngineError("the CUDA engine rotates about no Pauli string; plan for a device without `rotates_paulis`")
    elif op.kind is Kind.HADAMARD:
        for q in op.targets:
            if op.controls:
                yield Item("matrix", 1 << q, mask_of(op.controls), (q,), _condition(op), data=HADAMARD)
            else:
                yield Item("hadamard", 1 << q, 0, (q,))
    elif op.kind is Kind.PERMUTATION:
        yield from _permutation(op)
    else:
        assert len(op.targets) <= register_qubits, f"{op.name}: {len(op.targets)} qubits do not fit the registers"
        yield Item("matrix", mask_of(op.targets), mask_of(op.controls), op.targets, _condition(op), data=op.data)


def _diagonal(op: Op) -> Item:
    """Returns the item of a diagonal that is looked up in memory: its entries are not phases, or there are too many."""
    return Item("diagonal", 0, mask_of(op.qubits), op.targets, _condition(op), data=op.data)


def _rotation(q: int, before: int, everywhere: int, after: int, cos: float, sin: float) -> Iterator[Item]:
    """Yields the items of U = D1 RY D2, where D1 and D2 are diagonal.

    The diagonals merge with the phases of neighbouring operators, so that 2 FMA per amplitude remain of 8.
    """
    if before:
        yield Item("terms", 0, 1 << q, terms={1 << q: before})
    yield Item("rotate", 1 << q, 0, (q,), angle=(cos, sin))
    terms = {key: angle for key, angle in ((0, everywhere), (1 << q, after)) if angle}
    if terms:
        yield Item("terms", 0, 1 << q if after else 0, terms=terms)


def _permutation(op: Op) -> Iterator[Item]:
    assert op.permutation is not None
    control, state = _condition(op)
    k = len(op.targets)
    if not np.array_equal(op.data, np.ones(1 << k)):
        yield from lower([Op(Kind.DIAGONAL, op.targets, op.data, op.controls, op.ctrl_state)], 0)
    if k <= 2:
        for target, extra in _flips(op.permutation.tolist()):
            mask, value = control, state
            if extra is not None:
                mask, value = mask | 1 << op.targets[extra], value | 1 << op.targets[extra]
            yield Item("flip", 1 << op.targets[target], mask, (op.targets[target],), (mask, value))
        return
    sources = np.empty(1 << k, np.int64)
    sources[op.permutation] = np.arange(1 << k)
    ones = np.ones(1 << k, complex)
    yield Item("permute", mask_of(op.targets), control, op.targets, (control, state), data=ones, sources=sources)


def _flips(permutation: list[int]) -> list[tuple[int, int | None]]:
    """Returns a permutation of 2 or 4 states as a sequence of flips (target bit, controlling bit).

    Every such permutation is affine over GF(2), so a sequence of flips always exists. The search is breadth-first.
    """
    size = len(permutation)
    moves: list[tuple[int, int | None]] = [(0, None)] if size == 2 else [(0, None), (1, None), (0, 1), (1, 0)]
    flips_to: dict[tuple[int, ...], list[tuple[int, int | None]]] = {tuple(range(size)): []}
    frontier = list(flips_to)
    while tuple(permutation) not in flips_to:
        reached = []
        for state in frontier:
            for target, extra in moves:
                image = tuple(j ^ (1 << target) if extra is None or j >> extra & 1 else j for j in state)
                if image not in flips_to:
                    flips_to[image] = [*flips_to[state], (target, extra)]
                    reached.append(image)
        frontier = reached
    return flips_to[tuple(permutation)]


def doubling_runs(singles: dict[int, int]) -> list[tuple[int, int, int]]:
    """Returns the runs of single-qubit angles as (lowest qubit, length, angle of the lowest qubit).

    In a run, the angle doubles from each qubit to the next: the kernel multiplies the angle by the bits as one number.
    """
    runs: list[tuple[int, int, int]] = []
    for key in sorted(singles):
        q, angle = key.bit_length() - 1, singles[key]
        if runs:
            start, length, first = runs[-1]
            error = (angle - (first << length)) % TURN
            if q == start + length and min(error, TURN - error) <= RUN_TOLERANCE:
                runs[-1] = (start, length + 1, first)
                continue
        runs.append((q, 1, angle))
    return runs


def angle_words(terms: dict[int, int]) -> list[int]:
    """Returns angles per product of bits as the words that `total_angle` of tile/gates.cuh sums.

    The first two words hold the constant angle. Four words per run or per product follow.
    """
    words = [terms.get(0, 0), 0]
    for start, length, angle in doubling_runs({key: a for key, a in terms.items() if key.bit_count() == 1}):
        words += [0, angle, (1 << length) - 1, start]
    for key, angle in terms.items():
        if key.bit_count() > 1:
            words += [key, angle, 0, 1 << 32]
    return words
