"""Cores as tables and turns, and the stages of a pass, against plain NumPy."""

import numpy as np
import pytest
from support.random_ops import random_state, random_unitary
from support.reference import apply_op, tolerance

from qsim_ozaki.engines.cuda.codegen.cores import CLASSES, Table, Turn, share_tables
from qsim_ozaki.engines.cuda.tile.items import Item, lower, members, phases_of
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock
from qsim_ozaki.engines.cuda.tile.schedule import Style, TileFrame, schedule
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms
from qsim_ozaki.ir import EMPTY, PARITY_PRESERVING, Kind, Op

HALF = np.array([[1, 1], [1, -1]]) / np.sqrt(2)


def core(even, odd):
    out = np.zeros((4, 4), complex)
    out[np.ix_([0, 3], [0, 3])], out[np.ix_([1, 2], [1, 2])] = even, odd
    return out


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


X, Z, ONE = np.array([[0, 1], [1, 0]]), np.diag([1, -1]), np.eye(2)
CORES = {
    "identity": core(ONE, ONE),
    "swap": core(ONE, X),
    "iswap": core(ONE, 1j * X),
    "half of a swap": core(ONE, (np.exp(0.25j * np.pi) * ONE + np.exp(-0.25j * np.pi) * X) / np.sqrt(2)),
    "signs": core(ONE, -ONE),
    "phases": core(np.diag(np.exp([1j, 2j])), np.diag(np.exp([3j, 0.5j]))),
    "flips": core(X, X),
    "flips with signs": core(1j * X, -X @ Z),
    "almost flips": core(turned(np.pi / 2 - 1e-5), turned(np.pi / 2 + 1e-9)),
    "hadamards": core(HALF, -1j * HALF),
    "turns by i": core(turned(0.4) @ np.diag([1, 1j]), turned(1.1) @ np.diag([1, -1j])),
    "flips by i": core(X @ np.diag([1, 1j]), -X @ np.diag([1j, 1])),
}


def applied(state, work, num_qubits):
    """The state after one statement of a stage, with the factor and the phase it leaves out put back."""
    number = np.arange(1 << num_qubits)
    if isinstance(work, Table):
        for (a, b), values in work.factors:
            assert values[0] == 1
            state = state * values[(number >> a & 1) | (number >> b & 1) << 1]
        return state * phases_of([work.angle])[0]
    assert isinstance(work, Turn)
    matrix = np.zeros((4, 4), complex)
    for k, places in enumerate(CLASSES):
        p, u, v = work.values[3 * k : 3 * k + 3]
        upright, near = work.near[2 * k : 2 * k + 2]
        block = np.array([[1, -u], [v, 1]]) if near else np.array([[u, -1], [1, v]])
        matrix[np.ix_(places, places)] = block * np.array([1, 1 + 1j * p if upright else p + 1j])
    return apply_op(state, Op(Kind.UNITARY, work.qubits, work.scale * matrix))


def item_of(matrix, qubits):
    return lower([Op(Kind.UNITARY, qubits, np.asarray(matrix, complex), name=PARITY_PRESERVING)], 4)[0]


@pytest.mark.parametrize("name", [*CORES, "random"])
def test_a_core_is_turn_and_table(rng, name):
    matrices = (
        [CORES[name]] if name in CORES else [core(random_unitary(rng, 2), random_unitary(rng, 2)) for _ in range(20)]
    )
    for matrix in matrices:
        turn, _ = work = share_tables([item_of(matrix, (2, 0))])
        got = state = random_state(rng, 3)
        for each in work:
            got = applied(got, each, 3)
        wanted = apply_op(state, Op(Kind.UNITARY, (2, 0), matrix))
        assert np.linalg.norm(got - wanted) <= tolerance(4, "double"), turn


def test_disjoint_cores_share_tables_and_others_do_not(rng):
    matrices = [core(random_unitary(rng, 2), random_unitary(rng, 2)) for _ in range(4)]
    rotation = Item("rotate", 1 << 3, 0, (3,), angle=(0.6, 0.8))
    items = [item_of(matrix, pair) for matrix, pair in zip(matrices, [(0, 1), (2, 3), (1, 2), (3, 0)], strict=True)]
    work = share_tables([items[0], rotation, items[1], items[2], items[3]])
    kinds = [type(each).__name__ for each in work]
    assert kinds == ["Item", *["Turn", "Turn", "Table"] * 2]
    assert [len(each.factors) for each in work if isinstance(each, Table)] == [2, 2]
    got = wanted = random_state(rng, 4)
    for each in work[1:]:
        got = applied(got, each, 4)
    for matrix, pair in zip(matrices, [(0, 1), (2, 3), (1, 2), (3, 0)], strict=True):
        wanted = apply_op(wanted, Op(Kind.UNITARY, pair, matrix))
    assert np.linalg.norm(got - wanted) <= tolerance(8, "double")


def test_matrices_that_are_not_unitary_and_conditions_stay(rng):
    controlled = Op(Kind.UNITARY, (0, 1), CORES["iswap"], (2,), 1, name=PARITY_PRESERVING)
    for op in (controlled, Op(Kind.UNITARY, (0, 1), 0.5 * CORES["iswap"], name=PARITY_PRESERVING)):
        (item,) = lower([op], 4)
        assert share_tables([item]) == [item]


def random_ops(rng, num_qubits, count):
    """Operators of every kind that a stage can do."""
    for _ in range(count):
        a, b, c = (int(q) for q in rng.permutation(num_qubits)[:3])
        yield [
            Op(Kind.UNITARY, (a,), random_unitary(rng, 2)),
            Op(Kind.HADAMARD, (a, b), EMPTY),
            Op(Kind.DIAGONAL, (a, b), np.exp(1j * rng.uniform(0, 6, 4))),
            Op(Kind.DIAGONAL, (a, b), np.array([1, 1, 1, -1], complex)),
            Op(Kind.PERMUTATION, (a,), np.ones(2, complex), (b,), 1, np.array([1, 0])),
            Op(Kind.UNITARY, (a, b), core(random_unitary(rng, 2), random_unitary(rng, 2)), name=PARITY_PRESERVING),
            Op(Kind.UNITARY, (a, b), random_unitary(rng, 4)),
            Op(Kind.UNITARY, (a,), random_unitary(rng, 2), (b, c), 2),
        ][int(rng.integers(8))]


def done(state, stage, num_qubits, tile):
    """The state after a stage; its items act on its registers and its pair only, in a tile of the lowest qubits."""
    number = np.arange(1 << num_qubits)
    for work in stage.work:
        if isinstance(work, PhaseTerms):
            for key, angle in work.terms.items():
                state = np.where(number & key == key, state * phases_of([angle])[0], state)
            continue
        qubits = work.qubits
        assert set(qubits) <= set(stage.pair if isinstance(work, PairBlock) else stage.registers)
        if isinstance(work, PairBlock):
            selecting = members(work.selecting)
            assert not set(selecting) & set(range(tile)) - set(stage.registers)
            for value, matrix in enumerate(work.all_matrices(selecting)):
                state = apply_op(state, Op(Kind.UNITARY, qubits, matrix, tuple(selecting), value))
            continue
        cos, sin = work.angle
        plain = {"hadamard": HALF, "flip": X, "rotate": np.array([[cos, -sin], [sin, cos]])}
        matrix = work.data if work.kind == "matrix" else plain[work.kind]
        mask, value = work.condition
        controls = tuple(q for q in range(num_qubits) if mask >> q & 1)
        state_of = sum((value >> q & 1) << i for i, q in enumerate(controls))
        op = Op(Kind.UNITARY, qubits, np.asarray(matrix, complex), controls, state_of)
        state = apply_op(state, op)
    return state


@pytest.mark.parametrize("style", [Style(), Style(straight=True), Style(straight=True, pairs=True)], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_stages_do_what_their_items_do(rng, style, seed):
    tile = int(rng.integers(7, 11))
    n = tile + int(rng.integers(3))
    ops = [op for op in random_ops(rng, n, (0, 5, 60, 200)[seed]) if max(op.mixed_qubits, default=0) < tile]
    frame = TileFrame(tuple(range(tile)), 4, 3, ((0, tile - 1),) * (seed % 2))
    stages = schedule(lower(ops, 4), frame, style)
    assert all(len(stage.registers) == 4 and not set(stage.registers) & set(stage.pair) for stage in stages)
    assert not any(stage.pair for stage in stages) or style.pairs
    assert not set(stages[-1].registers) & {q for q in range(tile) if frame.lines(stored=True) >> q & 1}
    got = wanted = random_state(rng, n)
    for stage in stages:
        got = done(got, stage, n, tile)
    for op in ops:
        wanted = apply_op(wanted, op)
    assert np.linalg.norm(got - wanted) <= tolerance(len(ops) + 1, "double")


def test_more_pairs_than_fit_registers_go_to_neighbouring_threads(rng):
    """Three dense matrices on six qubits: two in registers, one on a pair, in one stage."""
    ops = [Op(Kind.UNITARY, pair, random_unitary(rng, 4)) for pair in ((3, 5), (4, 8), (7, 9))]
    (stage,) = schedule(lower(ops, 4), TileFrame(tuple(range(10)), 4, 3), Style(straight=True, pairs=True))
    assert len(stage.work) == 3
    assert sum(isinstance(work, PairBlock) for work in stage.work) == 1


def test_neighbours_choose_the_matrix_of_a_block(rng):
    """Bricks on six qubits of a chain: four layers on the innermost two are one block, whatever their neighbours do."""
    qubits, ops = range(3, 9), []
    for layer in range(4):
        reached = range(3 + layer // 2, 9 - layer // 2)
        ops += [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in reached]
        links = [(a, a + 1) for a in qubits[layer % 2 : -1 : 2] if {a, a + 1} <= set(reached)]
        ops += [Op(Kind.DIAGONAL, link, np.array([1, 1, 1, -1], complex)) for link in links]
    (stage,) = schedule(lower(ops, 4), TileFrame(tuple(range(10)), 4, 3), Style(straight=True, pairs=True))
    blocks = [work for work in stage.work if isinstance(work, PairBlock)]
    assert [(block.qubits, members(block.selecting)) for block in blocks] == [((5, 6), [4, 7])]
    state = random_state(rng, 10)
    wanted = state
    for op in ops:
        wanted = apply_op(wanted, op)
    assert np.linalg.norm(done(state, stage, 10, 10) - wanted) <= tolerance(len(ops), "double")
