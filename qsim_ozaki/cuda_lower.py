"""Operators of a tile pass as the few things that `tile_exec.cu` can do in registers.

In: ops on physical qubits. Out: `Item` objects in the same order. It packs nothing and needs no GPU.
Phases are 64-bit integers, one turn = 2**64, so that any number of diagonal operators merges without a rounding error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.ops import ComplexArray, IndexArray, Kind, Op

TURN = 1 << 64
HALF_TURN = 1 << 63
SQRT_HALF = 0.7071067811865476
ODD = ([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 0, 3, 0, 3, 1, 2])  # entries of a 4x4 matrix that change the parity
MAX_TERM_QUBITS = 6  # a diagonal on more qubits has over 64 terms and is looked up in memory instead


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


def mask_of(qubits: Sequence[int]) -> int:
    """The basis state in which exactly ``qubits`` are 1."""
    return sum(1 << q for q in qubits)


def members(mask: int) -> list[int]:
    """The bits of ``mask``, ascending."""
    return [b for b in range(mask.bit_length()) if mask >> b & 1]


def lower(ops: Sequence[Op], register_qubits: int) -> list[Item]:
    """All items of ``ops``, in order.

    Args:
        ops: operators on physical qubits.
        register_qubits: qubits a thread holds; a matrix on more is refused by an assertion (the engine splits it off).
    """
    return [item for op in ops for item in _items(op, register_qubits)]


def angles_of(values: ComplexArray) -> list[int]:
    """``2**64 * arg(value) / (2 pi)`` of each unit-modulus value, as integers modulo a turn; exact for +-1 and +-i."""
    turns = np.arctan2(values.imag, values.real) / (2 * np.pi)
    return [round(t * TURN) % TURN for t in turns.tolist()]


def phases_of(angles: Sequence[int]) -> ComplexArray:
    """``exp(2 pi i angle / 2**64)``: a rotation by at most an eighth of a turn, then exact quarter turns."""
    quadrant = np.array([((a + (1 << 61)) >> 62) & 3 for a in angles])
    rest = np.array([((a + (1 << 61)) % (1 << 62)) - (1 << 61) for a in angles], float) * (2 * np.pi / TURN)
    cos, sin = np.cos(rest), np.sin(rest)
    real = np.choose(quadrant, [cos, -sin, -cos, sin])
    imag = np.choose(quadrant, [sin, cos, -sin, -cos])
    return np.asarray(real + 1j * imag, complex)


def diagonal_terms(op_targets: Sequence[int], values: ComplexArray, control: int, state: int) -> dict[int, int]:
    """Angles per product of bits whose sum is the diagonal's angle (Moebius transform), controls included."""
    angles = angles_of(values)
    k = len(op_targets)
    for b in range(k):
        for j in range(1 << k):
            if j >> b & 1:
                angles[j] = (angles[j] - angles[j ^ (1 << b)]) % TURN
    terms: dict[int, int] = {}
    zero_controls = control & ~state
    for j, angle in enumerate(angles):
        if angle == 0:
            continue
        key = mask_of([op_targets[b] for b in range(k) if j >> b & 1]) | state
        # 1 - x for each control that must be 0: inclusion and exclusion over their subsets
        subset = zero_controls
        while True:
            sign = -1 if subset.bit_count() & 1 else 1
            terms[key | subset] = (terms.get(key | subset, 0) + sign * angle) % TURN
            if subset == 0:
                break
            subset = (subset - 1) & zero_controls
    return {m: a for m, a in terms.items() if a}


def _condition(op: Op) -> tuple[int, int]:
    value = sum(1 << c for b, c in enumerate(op.controls) if op.ctrl_state >> b & 1)
    return mask_of(op.controls), value


def _items(op: Op, register_qubits: int) -> Iterator[Item]:
    if op.kind is Kind.DIAGONAL:
        yield _diagonal(op)
    elif op.kind is Kind.HADAMARD:
        for q in op.targets:
            if op.controls:
                matrix = np.asarray(np.array([[1, 1], [1, -1]]) * SQRT_HALF, complex)
                yield Item("matrix", 1 << q, mask_of(op.controls), (q,), _condition(op), data=matrix)
            else:
                yield Item("hadamard", 1 << q, 0, (q,))
    elif op.kind is Kind.PERMUTATION:
        yield from _permutation(op)
    elif len(op.targets) == 1 and not op.controls and _is_unitary(op.data):
        yield from _rotation(op)
    else:
        assert len(op.targets) <= register_qubits, f"{op.name}: {len(op.targets)} qubits do not fit the registers"
        yield Item("matrix", mask_of(op.targets), mask_of(op.controls), op.targets, _condition(op), data=op.data)


def _is_unitary(matrix: ComplexArray) -> bool:
    return bool(np.abs(matrix @ matrix.conj().T - np.eye(len(matrix))).max() < 1e-13)


def _diagonal(op: Op) -> Item:
    control, state = _condition(op)
    unit = bool(np.abs(np.abs(op.data) - 1).max() < 1e-13)
    if unit and len(op.targets) + (control & ~state).bit_count() <= MAX_TERM_QUBITS:
        terms = diagonal_terms(op.targets, op.data, control, state)
        used = 0
        for key in terms:
            used |= key
        return Item("terms", 0, used, terms=terms)
    return Item("diagonal", 0, mask_of(op.qubits), op.targets, (control, state), data=op.data)


def _rotation(op: Op) -> Iterator[Item]:
    """U = D1 RY D2 with diagonal D1, D2 that merge into their neighbours' phases: 2 FMA an amplitude are left of 8."""
    (q,) = op.targets
    (a, b), (c, d) = op.data.tolist()
    cos, sin = abs(a), abs(c)
    p0 = np.angle(a) if cos else 0.0
    p1 = np.angle(c) if sin else 0.0
    inner = np.angle(d) - p1 if cos >= sin else np.angle(-b) - p0
    before = {1 << q: round(inner / (2 * np.pi) * TURN) % TURN}
    first, second = (round(p / (2 * np.pi) * TURN) % TURN for p in (p0, p1))
    after = {0: first, 1 << q: (second - first) % TURN}
    yield Item("terms", 0, 1 << q, terms={m: x for m, x in before.items() if x})
    norm = float(np.hypot(cos, sin))
    yield Item("rotate", 1 << q, 0, (q,), angle=(cos / norm, sin / norm))
    yield Item("terms", 0, 1 << q, terms={m: x for m, x in after.items() if x})


def _permutation(op: Op) -> Iterator[Item]:
    assert op.permutation is not None
    control, state = _condition(op)
    k = len(op.targets)
    if not np.array_equal(op.data, np.ones(1 << k)):
        phase = Op(Kind.DIAGONAL, op.targets, op.data, op.controls, op.ctrl_state)
        yield _diagonal(phase)
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
    found: dict[tuple[int, ...], list[tuple[int, int | None]]] = {tuple(range(size)): []}
    frontier = list(found)
    while tuple(permutation) not in found:
        reached = []
        for state in frontier:
            for target, extra in moves:
                image = tuple(j ^ (1 << target) if extra is None or j >> extra & 1 else j for j in state)
                if image not in found:
                    found[image] = [*found[state], (target, extra)]
                    reached.append(image)
        frontier = reached
    return found[tuple(permutation)]
