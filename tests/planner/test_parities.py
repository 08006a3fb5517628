"""CX gates that undo each other become parities and new names; the product stays as it was."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collected import assert_same_product
from support.random_ops import SWAP, phases, random_parity, random_state, random_unitary
from support.reference import apply_op, tolerance

from qsim_ozaki.ir import DIAGONAL_KINDS, EMPTY, Kind, Op, OpList
from qsim_ozaki.planner.fuse import collect_rotations, relabel_swaps

X = np.array([1, 0])
EVERY = 1 << 20  # bytes of data that count


def cx(control, target, value=1):
    return Op(Kind.PERMUTATION, (target,), np.ones(2, complex), (control,), value, X, "cx")


def rz(qubit, angle):
    return Op(Kind.DIAGONAL, (qubit,), np.exp([-0.5j * angle, 0.5j * angle]), name="rz")


def swap(a, b):
    return Op(Kind.PERMUTATION, (a, b), np.ones(4, complex), permutation=SWAP, name="swap")


def random_pair(rng, num_qubits):
    return tuple(int(q) for q in rng.permutation(num_qubits)[:2])


def random_diagonal(rng, num_qubits):
    """A diagonal on up to 4 qubits, controlled or not; half of the others depend on the parity of their bits alone."""
    order = [int(q) for q in rng.permutation(num_qubits)]
    count = int(rng.integers(0, min(4, num_qubits) + 1))
    targets, rest = tuple(order[:count]), order[count:]
    controls = tuple(rest[: rng.integers(0, 3)]) if rng.integers(3) == 0 else ()
    data = phases(rng, 1 << count)
    if rng.integers(2):
        data = phases(rng, 2)[np.bitwise_count(np.arange(1 << count)) & 1]
    return Op(Kind.DIAGONAL, targets, data, controls, int(rng.integers(1 << len(controls))))


def random_mixing(rng, num_qubits):
    """An operator that changes qubits and is no CX that may wait."""
    a, b = random_pair(rng, num_qubits) if num_qubits > 1 else (0, None)
    form = rng.integers(6) if num_qubits > 1 else rng.integers(3)
    if form == 0:
        return Op(Kind.HADAMARD, (a,), EMPTY)
    if form == 1:
        return Op(Kind.PERMUTATION, (a,), phases(rng, 2), permutation=X)
    if form == 2:
        return Op(Kind.UNITARY, (a,), random_unitary(rng, 2))
    if form == 3:
        return cx(a, b, value=0)
    if form == 4:
        return Op(Kind.PERMUTATION, (a,), phases(rng, 2), (b,), 1, X)  # a CX with phases
    return Op(Kind.UNITARY, (a, b), random_unitary(rng, 4))


def random_list(rng, num_qubits, count, mixing=0.15):
    """CX gates on few pairs, for they are to meet again, and all that may lie between them."""
    pairs = [random_pair(rng, num_qubits) for _ in range(4)] if num_qubits > 1 else []
    ops = []
    for _ in range(count):
        draw = rng.random()
        if draw < mixing:
            ops.append(random_mixing(rng, num_qubits))
        elif draw < mixing + 0.2:
            ops.append(random_diagonal(rng, num_qubits))
        elif draw < mixing + 0.25:
            ops.append(random_parity(rng, num_qubits))
        elif pairs:
            a, b = pairs[rng.integers(4)]
            ops.append(swap(a, b) if draw > 0.95 else cx(*((a, b) if rng.integers(2) else (b, a))))
    return ops


def count_cx(ops):
    return sum(op.kind is Kind.PERMUTATION for op in ops)


@given(
    seed=st.integers(0, 2**32 - 1),
    num_qubits=st.integers(1, 8),
    count=st.integers(0, 80),
    mixing=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_the_product_and_its_phase_are_unchanged(seed, num_qubits, count, mixing):
    rng = np.random.default_rng(seed)
    ops = random_list(rng, num_qubits, count, mixing)
    start = tuple(int(q) for q in rng.permutation(num_qubits))
    moved, _ = assert_same_product(rng, ops, num_qubits, start)
    assert count_cx(moved) <= count_cx(ops)
    assert len(moved) <= len(ops)


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 60))
def test_a_run_on_one_pair_is_at_most_one_cx(seed, count):
    """CX both ways, SWAPs, phases: six maps of two bits, of which three are new names."""
    rng, ops = np.random.default_rng(seed), []
    for _ in range(count):
        a, b = random_pair(rng, 2)
        angle = rng.uniform(-3, 3)
        pair = Op(Kind.DIAGONAL, (0, 1), np.exp(1j * angle * np.array([-1, 1, 1, -1])), name="rzz")
        ops.append([cx(a, b), cx(b, a), cx(a, b), swap(a, b), rz(a, angle), pair][rng.integers(6)])
    moved, _ = assert_same_product(rng, ops, 2, random_pair(rng, 2))
    assert count_cx(moved) <= 1


def random_tree(rng, num_qubits, shape):
    """The CX gates (child, parent) of a tree that gathers the parity of all qubits in one, children before parents."""
    order = [int(q) for q in rng.permutation(num_qubits)]
    parent = {
        "ladder": lambda k: order[k - 1],
        "star": lambda k: order[0],
        "tree": lambda k: order[rng.integers(k)],
    }[shape]
    return order[0], [(order[k], parent(k)) for k in range(num_qubits - 1, 0, -1)]


def any_order(rng, edges):
    """``edges`` in a random order in which every child comes before its parent."""
    left, out = list(edges), []
    while left:
        ready = [edge for edge in left if all(other[1] != edge[0] for other in left)]
        out.append(ready[rng.integers(len(ready))])
        left.remove(out[-1])
    return out


@pytest.mark.parametrize("shape", ["ladder", "star", "tree"])
@pytest.mark.parametrize("num_qubits", [2, 3, 4, 8, 11])
def test_what_gathers_a_parity_and_scatters_it_is_one_parity(rng, shape, num_qubits):
    for _ in range(5):
        root, edges = random_tree(rng, num_qubits, shape)
        angle = rng.uniform(-3, 3)
        up, down = any_order(rng, edges), any_order(rng, edges)[::-1]
        ops = [*(cx(*edge) for edge in up), rz(root, angle), *(cx(*edge) for edge in down)]
        moved, final = assert_same_product(rng, ops, num_qubits, tuple(range(num_qubits)))
        (parity,) = moved
        assert final == tuple(range(num_qubits))
        assert set(parity.targets) == set(range(num_qubits))
        if num_qubits > 2:
            assert parity.kind is Kind.PARITY
            np.testing.assert_array_equal(parity.data, rz(root, angle).data)
        else:
            np.testing.assert_array_equal(parity.data, rz(root, angle).data[[0, 1, 1, 0]])


def test_phases_on_the_way_are_parities_too(rng):
    """As a QAOA or a Gray code has them: a phase after each CX of the ladder, on both ways."""
    n = 7
    ops = []
    for q in range(n - 1):
        ops += [cx(q, q + 1), rz(q + 1, rng.uniform(-3, 3))]
    for q in reversed(range(n - 1)):
        ops += [cx(q, q + 1), rz(q + 1, rng.uniform(-3, 3))]
    moved, _ = assert_same_product(rng, ops, n, tuple(int(q) for q in rng.permutation(n)))
    assert all(op.kind in DIAGONAL_KINDS for op in moved)
    assert max(len(op.targets) for op in moved) == n


def test_a_fan_leaves_pairs(rng):
    n = 6
    fan = [cx(0, q) for q in range(1, n)]
    middle = [rz(q, rng.uniform(-3, 3)) for q in range(1, n)]
    back = [fan[k] for k in rng.permutation(n - 1)]
    moved, _ = assert_same_product(rng, [*fan, *middle, *back], n, tuple(range(n)))
    assert sorted(op.targets for op in moved) == [(0, q) for q in range(1, n)]
    assert {op.kind for op in moved} == {Kind.DIAGONAL}


def test_the_widest_ladder_is_one_parity(rng):
    """62 qubits, the widest mask that a plan has."""
    n = 62
    ladder = [cx(q, q + 1) for q in range(n - 1)]
    place = tuple(int(q) for q in rng.permutation(n))
    moved, final = collect_rotations([*ladder, rz(n - 1, 0.3), *ladder[::-1]], place, 6)
    assert [(op.kind, op.targets) for op in moved] == [(Kind.PARITY, tuple(range(n)))]
    assert final == place


def test_ladders_around_a_mixed_qubit_share_what_commutes(rng):
    """The second string changes the basis of its ends alone: the ladder between them cancels through both."""
    n = 8
    ladder = [cx(q, q + 1) for q in range(n - 1)]
    string = [*ladder, rz(n - 1, 0.4), *ladder[::-1]]
    change = [Op(Kind.HADAMARD, (q,), EMPTY) for q in (0, n - 1)]
    moved, _ = assert_same_product(rng, [*string, *change, *string, *change], n, tuple(range(n)))
    assert count_cx(moved) == 0
    assert [op.kind for op in moved] == [Kind.PARITY, Kind.PAULI]


def test_three_cx_of_a_pair_are_a_new_name(rng):
    for order in ((0, 1), (1, 0)):
        ops = [cx(*order), cx(*order[::-1]), cx(*order)]
        moved, final = assert_same_product(rng, ops, 3, (2, 0, 1))
        assert moved == []
        assert final == (0, 2, 1)


def test_two_cx_of_a_pair_are_one_and_a_new_name(rng):
    moved, final = assert_same_product(rng, [cx(0, 1), rz(1, 0.3), cx(1, 0)], 2, (0, 1))
    assert count_cx(moved) == 1
    assert final == (1, 0)


def test_a_routed_phase_costs_no_cx(rng):
    """A phase between distant qubits on a line: SWAPs as three CX, a controlled phase as two CX and three RZ."""
    n, angle = 6, 0.7
    there = [step for q in range(n - 2) for step in (cx(q, q + 1), cx(q + 1, q), cx(q, q + 1))]
    phase = [rz(n - 2, angle), rz(n - 1, angle), cx(n - 2, n - 1), rz(n - 1, -angle), cx(n - 2, n - 1)]
    moved, final = assert_same_product(rng, [*there, *phase], n, tuple(range(n)))
    assert count_cx(moved) == 0
    assert final == relabel_swaps([swap(q, q + 1) for q in range(n - 2)], range(n))[1]


@pytest.mark.parametrize(
    "between",
    [
        Op(Kind.HADAMARD, (1,), EMPTY),
        Op(Kind.HADAMARD, (0,), EMPTY),
        cx(1, 2),
        cx(2, 0),
        Op(Kind.DIAGONAL, (1, 2), np.array([1, 1, 1, 1j])),
        Op(Kind.DIAGONAL, (2,), np.array([1, 1j]), (1,), 1),
        cx(0, 1, value=0),
    ],
    ids=["mixed target", "mixed control", "target read", "control flipped", "diagonal", "controlled", "open control"],
)
def test_a_cx_stays_where_something_between_does_not_commute(rng, between):
    ops = [cx(0, 1), between, cx(0, 1)]
    moved, final = collect_rotations(ops, (2, 0, 1), 6)
    plain, same = relabel_swaps(ops, (2, 0, 1))
    assert final == same
    assert moved.content(EVERY) == plain.content(EVERY)


@pytest.mark.parametrize("num_qubits", [2, 5, 8])
def test_a_list_in_which_nothing_cancels_is_only_relabelled(rng, num_qubits):
    ops = []
    for _ in range(60):
        a, b = random_pair(rng, num_qubits)
        ops += [
            random_diagonal(rng, num_qubits),
            cx(a, b),
            random_mixing(rng, num_qubits),
            random_diagonal(rng, num_qubits),
        ]
        ops += [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in (a, b)]
        if rng.integers(3) == 0:
            ops.append(swap(*random_pair(rng, num_qubits)))
    start = tuple(int(q) for q in rng.permutation(num_qubits))
    moved, final = collect_rotations(ops, start, 6)
    plain, same = relabel_swaps(ops, start)
    assert final == same
    assert moved.content(EVERY) == plain.content(EVERY)


def test_names_and_numbers_of_parities(rng):
    data = phases(rng, 2)
    ops = [cx(0, 1), cx(1, 2), Op(Kind.DIAGONAL, (2,), data, name="p"), cx(1, 2), cx(0, 1)]
    (parity,), _ = collect_rotations(ops, (0, 1, 2), 6)
    assert (parity.kind, parity.name, parity.controls) == (Kind.PARITY, "pauli_rotation", ())
    np.testing.assert_allclose(parity.data, data, rtol=2**-52)
    np.testing.assert_array_equal(parity.matrix(), np.diag(parity.data[[0, 1, 1, 0, 1, 0, 0, 1]]))


def apply_quickly(state, ops):
    """As `apply_ops`, quickly for CX, X with phases, diagonals without controls and parities."""
    index = np.arange(state.size)
    for op in ops:
        if op.kind is Kind.PERMUTATION:
            (target,) = op.targets
            acts = index >> op.controls[0] & 1 if op.controls else 1
            state = (state * op.data[index >> target & 1])[index ^ acts << target]
        elif op.kind not in DIAGONAL_KINDS:
            state = apply_op(state, op)
        else:
            bits = sum(((index >> q) & 1) << j for j, q in enumerate(op.targets))
            state = state * op.data[np.bitwise_count(bits) & 1 if op.kind is Kind.PARITY else bits]
    return state


def test_ten_thousand_operators(rng):
    """CX gates without end that wait for each other: the list of those is bounded, and the product is right."""
    n, ops = 6, OpList()
    for number in range(10_000):
        a, b = random_pair(rng, n)
        if number > 5_000 and number % 50 == 0:
            ops.append(Op(Kind.PERMUTATION, (a,), np.array([1, 1j]), permutation=X))
        else:
            ops.append(cx(a, b) if number % 3 else rz(a, 0.1))
    moved, final = collect_rotations(ops, range(n), 6)
    state, index = random_state(rng, n), np.arange(1 << n)
    got = apply_quickly(state, moved)[sum(((index >> q) & 1) << p for q, p in enumerate(final))]
    assert np.linalg.norm(got - apply_quickly(state, ops)) <= tolerance(len(ops))
    assert count_cx(moved) < count_cx(ops)


def test_four_thousand_ladders_leave_no_cx(rng):
    """Strings one after the other: each is one operator, however long the list."""
    n = 12
    ops = OpList()
    for _ in range(4000):
        targets = sorted(int(q) for q in rng.permutation(n)[: rng.integers(3, n + 1)])
        ladder = [cx(a, b) for a, b in pairwise(targets)]
        ops.extend(OpList.of([*ladder, rz(targets[-1], rng.uniform(-3, 3)), *ladder[::-1]]))
    moved, _ = collect_rotations(ops, range(n), 6)
    assert len(ops) > 50_000
    assert {op.kind for op in moved} == {Kind.PARITY}
    assert len(moved) == 4000
