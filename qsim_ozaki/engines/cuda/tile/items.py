"""Operators of a tile pass as the few things that `tile/interpreter.cu` can do in registers.

In: ops on physical qubits. Out: `Item` objects in the same order. It packs nothing and needs no GPU.
Phases are 64-bit integers, one turn = 2**64, so that any number of diagonal operators merges without a rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.engines.cuda.device.records import HADAMARD
from qsim_ozaki.ir import ComplexArray, IndexArray, Kind, Op, OpList, mask_of

TURN = 1 << 64
HALF_TURN = 1 << 63
RUN_TOLERANCE = 1 << 10  # 2**-54 of a turn: below the rounding of the phases themselves
LEAST_COS = 2.0**-10  # below, a rotation is written with its cotangent: its factor would eat the range
ODD = ([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2])  # entries of a 4x4 matrix that change the parity


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One register-level operation.

    Attributes:
        kind: ``terms``, ``diagonal``, ``hadamard``, ``rotate``, ``flip``, ``matrix`` or ``permute``.
        mixed: mask of the qubits whose value it changes.
        used: mask of the qubits it only reads (controls, diagonal targets).
        qubits: the targets; ``qubits[0]`` is bit 0 of the data's index.
        condition: (mask, value): it acts where the basis state's bits under ``mask`` equal ``value``.
        terms: angle added where all bits of the key are 1 (``terms`` only).
        data: matrix, diagonal or phases.
        sources: ``permute`` only: the amplitude that arrives at j comes from ``sources[j]``.
        angle: ``rotate`` only: (cos, sin).
    """

    kind: str
    mixed: int = 0
    used: int = 0
    qubits: tuple[int, ...] = ()
    condition: tuple[int, int] = (0, 0)
    terms: dict[int, int] = field(default_factory=dict)
    data: ComplexArray | None = None
    sources: IndexArray | None = None
    angle: tuple[float, float] = (1.0, 0.0)


def is_core(item: Item) -> bool:
    """Whether an item is a 4x4 matrix without entries between states of unlike parity."""
    return item.kind == "matrix" and item.data is not None and len(item.qubits) == 2 and not np.any(item.data[ODD])


def members(mask: int) -> list[int]:
    """The bits of ``mask``, ascending."""
    return [b for b in range(mask.bit_length()) if mask >> b & 1]


def lower(ops: Sequence[Op], register_qubits: int) -> list[Item]:
    """All items of ``ops``, in order.

    Args:
        ops: operators on physical qubits.
        register_qubits: qubits a thread holds; a matrix on more is refused by an assertion (the engine splits it off).
    """
    columns = OpList.of(ops)
    items: list[Item] = []
    for number, native in enumerate(_native.tile_items(columns.native)):
        if native is None:
            items += _items(columns[number], register_qubits)
        elif len(native) == 2:
            items.append(Item("terms", 0, native[0], terms=native[1]))
        else:
            items += _rotation(*native)
    return items


def angles_of(values: ComplexArray) -> list[int]:
    """``2**64 * arg(value) / (2 pi)`` of each unit-modulus value, as integers modulo a turn; exact for +-1 and +-i."""
    angles: list[int] = _native.angles_of(np.ascontiguousarray(values, complex))
    return angles


def phases_of(angles: Sequence[int]) -> ComplexArray:
    """``exp(2 pi i angle / 2**64)``: a rotation by at most an eighth of a turn, then exact quarter turns."""
    phases: ComplexArray = _native.phases_of(list(angles))
    return phases


def _condition(op: Op) -> tuple[int, int]:
    value = sum(1 << c for b, c in enumerate(op.controls) if op.ctrl_state >> b & 1)
    return mask_of(op.controls), value


def _items(op: Op, register_qubits: int) -> Iterator[Item]:
    if op.kind is Kind.DIAGONAL:
        yield _diagonal(op)
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
    """A diagonal that is looked up in memory: its entries are no phases, or too many."""
    return Item("diagonal", 0, mask_of(op.qubits), op.targets, _condition(op), data=op.data)


def _rotation(q: int, before: int, everywhere: int, after: int, cos: float, sin: float) -> Iterator[Item]:
    """U = D1 RY D2 with diagonal D1, D2 that merge into their neighbours' phases: 2 FMA an amplitude are left of 8."""
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
    """A permutation of 2 or 4 states as flips (target bit, controlling bit); all are affine, so some word exists."""
    size = len(permutation)
    moves: list[tuple[int, int | None]] = [(0, None)] if size == 2 else [(0, None), (1, None), (0, 1), (1, 0)]
    words: dict[tuple[int, ...], list[tuple[int, int | None]]] = {tuple(range(size)): []}
    frontier = list(words)
    while tuple(permutation) not in words:
        reached = []
        for state in frontier:
            for target, extra in moves:
                image = tuple(j ^ (1 << target) if extra is None or j >> extra & 1 else j for j in state)
                if image not in words:
                    words[image] = [*words[state], (target, extra)]
                    reached.append(image)
        frontier = reached
    return words[tuple(permutation)]


def doubling_runs(singles: dict[int, int]) -> list[tuple[int, int, int]]:
    """Single-bit angles as (lowest qubit, length, its angle): qubits whose angle doubles are one product."""
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
    """Angles per product of bits as `total_angle` of tile/gates.cuh sums them, after the constant one."""
    words = [terms.get(0, 0), 0]
    for start, length, angle in doubling_runs({key: a for key, a in terms.items() if key.bit_count() == 1}):
        words += [0, angle, (1 << length) - 1, start]
    for key, angle in terms.items():
        if key.bit_count() > 1:
            words += [key, angle, 0, 1 << 32]
    return words
