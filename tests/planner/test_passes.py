"""The search for passes: every op once, in an order that commutes, in tiles that may follow each other; few of them."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.devices import DEVICE, H200

from qsim_ozaki.circuits import build
from qsim_ozaki.ir import Kind, Op, OpList, TilePass
from qsim_ozaki.lowering import lower
from qsim_ozaki.planner import PlanOptions, plan

LONG = 1.0  # seconds of a pass for which a search takes all the time it may
ONE, FLIP = np.ones(2, complex), np.array([1, 0])


def matrix(*targets):
    """An op that changes its targets; what it does to them is of no account here."""
    return Op(Kind.UNITARY, targets, np.eye(1 << len(targets), dtype=complex))


def diagonal(*targets):
    return Op(Kind.DIAGONAL, targets, np.exp(1j * np.arange(1 << len(targets))))


def controlled(control, target):
    return Op(Kind.PERMUTATION, (target,), ONE, (control,), 1, FLIP)


def pairs(rng, n, count):
    """Matrices on random pairs in full layers, as in quantum volume."""
    for _ in range(1 + 2 * count // n):
        order = [int(q) for q in rng.permutation(n)]
        yield from (matrix(*pair) for pair in zip(order[::2], order[1::2], strict=False))


def chain(rng, n, count):
    """Layers of one-qubit matrices, diagonals and controlled flips between neighbours."""
    for layer in range(1 + count // n):
        yield from (matrix(q) for q in range(n) if rng.random() < 0.9)
        yield from (diagonal(q, q + 1) for q in range(layer % 2, n - 1, 2))
        if rng.random() < 0.3:
            yield from (controlled(q, q + 1) for q in range(n - 1))


def cost_layers(rng, n, count):
    """One-qubit matrices around diagonals of any qubits."""
    for _ in range(1 + count // (2 * n)):
        for _ in range(n):
            yield diagonal(*(int(q) for q in rng.choice(n, int(rng.integers(1, 4)), replace=False)))
        yield from (matrix(q) for q in range(n))


def anything(rng, n, count):
    for _ in range(count):
        a, b, c = (int(q) for q in rng.choice(n, 3, replace=False))
        yield (matrix(a), matrix(a, b), controlled(a, b), diagonal(a, b), diagonal(a), matrix(a, b, c))[rng.integers(6)]


KINDS = (pairs, chain, cost_layers, anything)


def numbered(ops):
    """``ops`` with their numbers for names."""
    return OpList.of(
        [
            Op(op.kind, op.targets, op.data, op.controls, op.ctrl_state, op.permutation, name=f"op {k}")
            for k, op in enumerate(ops)
        ]
    )


def masks(op):
    """Masks of the qubits that ``op`` changes and of those that it depends on."""
    return sum(1 << q for q in op.mixed_qubits), sum(1 << q for q in op.qubits)


def check(ops, chosen, tile_qubits, line, before, moves):
    """Asserts what makes ``chosen`` passes over ``ops``."""
    done = [int(op.name.split()[1]) for _, _, members in chosen for op in OpList(members)]
    assert sorted(done) == list(range(len(ops)))
    place = {k: at for at, k in enumerate(done)}
    sets = [masks(op) for op in ops]
    for a, b in combinations(range(len(ops)), 2):
        if sets[a][0] & sets[b][1] or sets[a][1] & sets[b][0]:
            assert place[a] < place[b], (a, b)
    low = line
    for tile, held, members in chosen:
        assert tile.bit_count() <= tile_qubits
        assert members.mixed_mask() & ~tile == 0
        assert held & ~(tile & before) == 0
        assert held.bit_count() == line.bit_count()
        if not moves:
            assert held == low
        before, low = tile, held


def first_come(ops, n, tile_qubits, line):
    """How many passes the plainest search takes: each tile takes the qubits of whatever comes next."""
    left, passes = [masks(op) for op in ops], 0
    while left:
        passes += 1
        tile, blocked, blocked_mix, rest = line, 0, 0, []
        for mixed, used in left:
            fits = not (used & blocked or mixed & blocked_mix) and (tile | mixed).bit_count() <= tile_qubits
            if fits:
                tile |= mixed
            else:
                blocked, blocked_mix = blocked | mixed, blocked_mix | used
                rest.append((mixed, used))
        left = rest
    return passes


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 2**32), st.integers(8, 20), st.booleans(), st.booleans())
@example(anything, 1335, 8, True, True)  # dear rounds that find nothing end no search before the cheap ones
def test_passes_cover_ops_in_order_and_a_longer_search_takes_no_more(kind, seed, n, moves, follows):
    rng = np.random.default_rng(seed)
    tile_qubits, width = int(rng.integers(5, min(n, 10))), int(rng.integers(1, 3))
    ops = numbered(kind(rng, n, int(rng.integers(1, 150))))
    line = (1 << width) - 1
    before = line
    if follows and moves:  # a tile before, with other qubits at the lowest places
        held = [int(q) for q in rng.choice(n, tile_qubits, replace=False)]
        line, before = sum(1 << q for q in held[:width]), sum(1 << q for q in held)
    rows = list(ops)
    counts = []
    for seconds in (0.0, 1e-3, LONG):
        chosen = ops.native.search_tiles(n, tile_qubits, line, seconds, moves, before)
        check(rows, chosen, tile_qubits, line, before, moves)
        counts.append(len(chosen))
        again = ops.native.search_tiles(n, tile_qubits, line, seconds, moves, before)
        assert [tile for tile, _, _ in again] == [tile for tile, _, _ in chosen]
    assert counts[0] >= counts[1] >= counts[2]
    assert counts[0] <= first_come(rows, n, tile_qubits, line)


def fewest(ops, n, tile_qubits, line):
    """The fewest passes there are with tiles that hold the line, by looking at all tiles of all passes."""
    sets = [masks(op) for op in ops]
    others = [q for q in range(n) if not line >> q & 1]
    tiles = [line | sum(1 << q for q in part) for part in combinations(others, tile_qubits - line.bit_count())]

    @cache
    def after(left, tile):
        blocked, blocked_mix, rest = 0, 0, []
        for k in left:
            mixed, used = sets[k]
            if used & blocked or mixed & blocked_mix or mixed & ~tile:
                blocked, blocked_mix = blocked | mixed, blocked_mix | used
                rest.append(k)
        return tuple(rest)

    states, passes = {tuple(range(len(ops)))}, 0
    while () not in states:
        states, passes = {after(state, tile) for state in states for tile in tiles}, passes + 1
    return passes


def test_a_longer_search_finds_the_fewest_passes_of_small_circuits_or_one_more():
    rng, missed = np.random.default_rng(1), 0  # the bound is for this draw: others miss 0 to 5 of 24
    for k in range(24):
        ops = numbered(KINDS[k % 2](rng, 7, 16))
        found = len(ops.native.search_tiles(7, 4, 1, LONG))
        best = fewest(list(ops), 7, 4, 1)
        assert best <= found <= best + 1
        missed += found - best
    assert missed <= 3


@pytest.mark.parametrize(
    ("family", "most"),
    [("quantum_volume", 18), ("supremacy_grid", 8), ("qaoa", 7), ("random_u_cz", 8), ("trotter_ising", 5)],
)
def test_30_qubits_on_an_h200_take_few_passes(family, most):
    """Annealing of whole plans for half a minute finds 15, 7, 6, 8 and 5 (docs/internals/what_bounds_a_pass.md)."""
    for seed in (1, 7):
        (ops,) = lower(build(family, 30, seed)).body
        assert len(plan(ops, 30, H200, PlanOptions()).steps) <= most


def test_parts_of_a_plan_share_tiles():
    """Passes from |0...0> need more and more qubits; each holds a line's number of the tile before, as others do."""
    (ops,) = lower(build("trotter_ising", 30)).body
    passes = [step for step in plan(ops, 30, H200, PlanOptions(from_zero=True)).steps if isinstance(step, TilePass)]
    zeros = [len(step.zero_qubits) for step in passes]
    borders = [k for k in range(1, len(passes)) if zeros[k] < zeros[k - 1]]
    assert any(passes[k - 1].swaps for k in borders)
    for step in passes:
        assert {0, 1, 2} <= set(step.qubits)


def test_a_better_plan_is_looked_for_only_where_it_may_repay_the_search(rng, monkeypatch):
    """The time a state of 12 qubits takes is over before a second plan is made; of 26 qubits it is not."""
    efforts = []
    search = OpList.of([]).native.__class__.search_tiles

    def counting(native, *args):
        efforts.append(args[3])
        return search(native, *args)

    for n, several in ((12, False), (26, True)):
        ops = OpList.of(list(pairs(rng, n, 4 * n)))
        efforts.clear()
        with monkeypatch.context() as patch:
            patch.setattr(type(ops.native), "search_tiles", counting)
            plan(ops, n, DEVICE, PlanOptions())
        assert (len(efforts) > 1) == several
