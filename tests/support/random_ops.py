"""Random operators of every kind, for tests of fusion, planning and engines."""

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.ir import EMPTY, Kind, Op, OpList

SWAP = np.array([0, 2, 1, 3])
SMALL_KINDS = (Kind.DIAGONAL, Kind.PERMUTATION, Kind.HADAMARD, Kind.UNITARY)  # others may be wider than `max_targets`
KINDS = (*SMALL_KINDS, Kind.PARITY)  # of every engine
ALL_KINDS = (*KINDS, Kind.PAULI)  # of engines that rotate Paulis


def kinds_of(engine):
    """The kinds of ops that ``engine`` does."""
    return ALL_KINDS if engine.device().abilities.rotates_paulis else KINDS


def random_unitary(rng, size):
    """Random ``size`` x ``size`` unitary, size a power of two: from the Haar measure up to 32.

    A larger one is a Kronecker product of two smaller ones, its rows permuted, its columns turned by phases, and
    reflected at a random vector, so that no structure is left: as dense as any, and drawn in time proportional to its
    entries.
    """
    if size > 32:
        part = 1 << (size.bit_length() - 1) // 2
        product = np.kron(random_unitary(rng, part), random_unitary(rng, size // part))
        turned = product[rng.permutation(size)] * phases(rng, size)
        normal = random_state(rng, size.bit_length() - 1)
        return turned - 2 * np.outer(normal, normal.conj() @ turned)
    q, r = np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))
    return q * (np.diag(r) / np.abs(np.diag(r)))


def random_state(rng, num_qubits):
    """Random complex128 state of norm 1."""
    state = rng.normal(size=1 << num_qubits) + 1j * rng.normal(size=1 << num_qubits)
    return state / np.linalg.norm(state)


def random_swaps(rng, tile):
    """Up to two disjoint pairs of ``tile``, often none."""
    order = [int(q) for q in rng.permutation(tile)]
    count = int(rng.integers(0, min(3, len(tile) // 2 + 1)))
    return tuple(zip(order[:count], order[count : 2 * count], strict=True))


def swap_ops(swaps):
    """``swaps`` as operators."""
    return [Op(Kind.PERMUTATION, pair, np.ones(4, complex), permutation=SWAP, name="swap") for pair in swaps]


def phases(rng, size):
    return np.exp(1j * rng.uniform(0, 2 * np.pi, size))


def rotation(rng):
    """A rotation, a reflection or a rotation with imaginary off-diagonal; now and then a quarter or half turn."""
    angle = rng.choice([rng.uniform(0, 2 * np.pi), np.pi / 2, np.pi, 1e-9])
    c, s = np.cos(angle), np.sin(angle)
    return [[[c, -s], [s, c]], [[c, s], [s, -c]], [[c, -1j * s], [-1j * s, c]]][rng.integers(3)]


def data_of(rng, kind, count):
    """Random ``data`` and ``permutation`` of an op of ``kind`` on ``count`` targets."""
    size = 1 << count
    if kind is Kind.DIAGONAL:
        return phases(rng, size), None
    if kind is Kind.PERMUTATION:
        return (np.ones(size, complex) if rng.integers(2) else phases(rng, size)), rng.permutation(size)
    if kind is Kind.HADAMARD:
        return EMPTY, None
    if kind is Kind.PARITY:
        return phases(rng, 2), None
    form = rng.integers(4)
    if form == 0 and count == 1:
        return np.array(rotation(rng), complex), None
    if form == 1:
        return np.linalg.qr(rng.normal(size=(size, size)))[0].astype(complex), None
    return random_unitary(rng, size), None


def random_parity(rng, num_qubits):
    """A random parity of any number of qubits."""
    targets = rng.permutation(num_qubits)[: rng.integers(0, num_qubits + 1)]
    return Op(Kind.PARITY, tuple(int(q) for q in targets), phases(rng, 2))


def random_pauli(rng, num_qubits, tile=None, max_targets=4):
    """A random rotation about a Pauli string with X or Y on up to ``max_targets`` qubits, and Z on any others."""
    inner = list(range(num_qubits)) if tile is None else list(tile)
    mixed = rng.permutation(inner)[: rng.integers(1, min(max_targets, len(inner)) + 1)].tolist()
    others = rng.permutation([q for q in range(num_qubits) if q not in mixed])
    read = others[: rng.integers(0, len(others) + 1)].tolist()
    letters = [*rng.integers(1, 3, len(mixed)).tolist(), *(3 for _ in read)]
    order = rng.permutation(len(letters))
    targets, letters = np.array([*mixed, *read])[order], np.array(letters)[order]
    angle = rng.choice([rng.uniform(0, 2 * np.pi), np.pi / 4, np.pi / 2, 1e-9])
    data = phases(rng, 1) * [np.cos(angle), -1j * np.sin(angle)]
    return Op(Kind.PAULI, tuple(int(q) for q in targets), data, permutation=letters)


def random_op(rng, num_qubits, tile=None, max_targets=4, max_controls=3, kinds=KINDS):
    """A random op of one of ``kinds``; where it mixes qubits, they are in ``tile`` (None: any)."""
    kind = kinds[rng.integers(len(kinds))]
    if kind is Kind.PARITY:
        return random_parity(rng, num_qubits)
    if kind is Kind.PAULI:
        return random_pauli(rng, num_qubits, tile, max_targets)
    inner = list(range(num_qubits)) if tile is None or kind is Kind.DIAGONAL else list(tile)
    if kind is Kind.PERMUTATION and len(inner) > 1 and rng.integers(4) == 0:
        a, b = rng.permutation(inner)[:2]
        return Op(kind, (int(a), int(b)), np.ones(4, complex), permutation=SWAP, name="swap")
    count = int(rng.integers(kind is not Kind.DIAGONAL, min(max_targets, len(inner)) + 1))
    targets = tuple(int(q) for q in rng.permutation(inner)[:count])
    rest = rng.permutation([q for q in range(num_qubits) if q not in targets])
    controls = tuple(int(q) for q in rest[: rng.integers(0, max_controls + 1)])
    data, permutation = data_of(rng, kind, count)
    return Op(kind, targets, data, controls, int(rng.integers(1 << len(controls))), permutation)


def slotted(rng, ops, num_rows):
    """The ops as a list, half of the matrices and diagonals as slots; offsets; rows of numbers; each row's ops."""
    placed, offsets, columns, each = OpList(), [], [], [[] for _ in range(num_rows)]
    width = 0
    for op in ops:
        if op.kind in (Kind.PERMUTATION, Kind.HADAMARD, Kind.PARITY) or rng.integers(2):
            placed.append(op)
            offsets.append(-1)
            for row in each:
                row.append(op)
            continue
        data = [data_of(rng, op.kind, len(op.targets))[0] for _ in range(num_rows)]
        waiting = np.zeros_like(op.data)
        waiting.flat[0] = width
        placed.append(Op(op.kind, op.targets, waiting, op.controls, op.ctrl_state, name=_native.SLOT_NAME))
        offsets.append(width)
        columns.append(np.stack([entry.reshape(-1) for entry in data]))
        width += columns[-1].shape[1]
        for row, entry in zip(each, data, strict=True):
            row.append(Op(op.kind, op.targets, entry, op.controls, op.ctrl_state))
    rows = np.concatenate(columns, axis=1) if columns else np.empty((num_rows, 0), complex)
    return placed, offsets, rows, each
