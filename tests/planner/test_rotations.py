"""Clifford gates that undo each other leave rotations about Pauli strings; the product stays as it was."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.collected import assert_same_product
from support.devices import DEVICE, with_abilities
from support.random_ops import SWAP, phases, random_unitary

from qsim_ozaki.ir import DIAGONAL_KINDS, EMPTY, Kind, Op
from qsim_ozaki.planner import PlanOptions, plan
from qsim_ozaki.planner.fuse import collect_rotations

X = np.array([1, 0])
R = np.sqrt(0.5)
CLIFFORDS = {  # as a transpiler or a user writes them
    "s": Op(Kind.DIAGONAL, (0,), np.array([1, 1j])),
    "sdg": Op(Kind.DIAGONAL, (0,), np.array([1, -1j])),
    "z": Op(Kind.DIAGONAL, (0,), np.array([1, -1], complex)),
    "rz": Op(Kind.DIAGONAL, (0,), np.exp([-0.25j * np.pi, 0.25j * np.pi])),
    "x": Op(Kind.PERMUTATION, (0,), np.ones(2, complex), permutation=X),
    "y": Op(Kind.PERMUTATION, (0,), np.array([1j, -1j]), permutation=X),
    "h": Op(Kind.HADAMARD, (0,), EMPTY),
    "matrix of h": Op(Kind.UNITARY, (0,), np.array([[R, R], [R, -R]], complex)),
    "sx": Op(Kind.UNITARY, (0,), np.array([[1 + 1j, 1 - 1j], [1 - 1j, 1 + 1j]]) / 2),
    "sxdg": Op(Kind.UNITARY, (0,), np.array([[1 - 1j, 1 + 1j], [1 + 1j, 1 - 1j]]) / 2),
    "ry": Op(Kind.UNITARY, (0,), np.array([[R, -R], [R, R]], complex)),
}
LETTERS = {"X": [[0, 1], [1, 0]], "Y": [[0, -1j], [1j, 0]], "Z": [[1, 0], [0, -1]]}


def on(op, qubit):
    return Op(op.kind, (qubit,), op.data, permutation=op.permutation)


def cx(control, target):
    return Op(Kind.PERMUTATION, (target,), np.ones(2, complex), (control,), 1, X, "cx")


def rotation(letter, qubit, angle):
    """exp(-0.5 i angle letter); about Z as the diagonal that it is."""
    matrix = np.cos(angle / 2) * np.eye(2) - 1j * np.sin(angle / 2) * np.array(LETTERS[letter])
    if letter == "Z":
        return Op(Kind.DIAGONAL, (qubit,), matrix.diagonal().copy(), name="rz")
    return Op(Kind.UNITARY, (qubit,), matrix, name=f"r{letter.lower()}")


def string_ops(letters, angle):
    """exp(-0.5 i angle P) as a ladder of CX in a changed basis, ``letters`` by qubit."""
    to_z = {"X": ("h", "h"), "Y": ("sx", "sxdg"), "Z": ()}
    change = [(q, *to_z[letter]) for q, letter in letters.items() if letter != "Z"]
    qubits = list(letters)
    ladder = [cx(a, b) for a, b in pairwise(qubits)]
    before = [on(CLIFFORDS[there], q) for q, there, _ in change]
    after = [on(CLIFFORDS[back], q) for q, _, back in change]
    return [*before, *ladder, rotation("Z", qubits[-1], angle), *ladder[::-1], *after]


def random_letters(rng, num_qubits, least=1):
    chosen = rng.permutation(num_qubits)[: rng.integers(least, num_qubits + 1)].tolist()
    return {q: str(rng.choice(list("XYZ"))) for q in chosen}


def random_item(rng, num_qubits, pairs):
    """An operator of a Clifford-heavy circuit, as a list of one; now and then a string."""
    draw, qubit = rng.random(), int(rng.integers(num_qubits))
    if draw < 0.35:
        return [on(CLIFFORDS[str(rng.choice(list(CLIFFORDS)))], qubit)]
    if draw < 0.7 and pairs:
        a, b = pairs[rng.integers(len(pairs))]
        return [cx(a, b)]
    if draw < 0.85:
        angle = rng.choice([rng.uniform(-7, 7), np.pi / 2, np.pi, 1e-9])
        return [rotation(str(rng.choice(list("XYZ"))), qubit, angle)]
    if draw < 0.9:
        return string_ops(random_letters(rng, num_qubits), rng.uniform(-3, 3))
    if draw < 0.93 and pairs:
        return [Op(Kind.PERMUTATION, pairs[0], np.ones(4, complex), permutation=SWAP, name="swap")]
    if draw < 0.97 and pairs:
        return [Op(Kind.DIAGONAL, pairs[-1], phases(rng, 4))]
    return [Op(Kind.UNITARY, (qubit,), random_unitary(rng, 2))]


def random_list(rng, num_qubits, count):
    order = [int(q) for q in rng.permutation(num_qubits)]
    pairs = list(pairwise(order))[: rng.integers(1, 4)]
    pairs += [pair[::-1] for pair in pairs if rng.integers(2)]
    return [op for _ in range(count) for op in random_item(rng, num_qubits, pairs)]


def direction(op):
    """The number of qubits on which a PAULI has X or Y."""
    return len(op.mixed_qubits)


def assert_collected(rng, ops, num_qubits, start, max_direction):
    """Returns the collected operators: the same product, and no direction wider than ``max_direction``."""
    moved, _ = assert_same_product(rng, ops, num_qubits, start, max_direction)
    assert all(direction(op) <= max_direction for op in moved if op.kind is Kind.PAULI)
    return moved


@given(
    seed=st.integers(0, 2**32 - 1),
    num_qubits=st.integers(1, 7),
    count=st.integers(0, 60),
    max_direction=st.integers(0, 7),
)
def test_the_product_and_its_phase_are_unchanged(seed, num_qubits, count, max_direction):
    rng = np.random.default_rng(seed)
    ops = random_list(rng, num_qubits, count)
    start = tuple(int(q) for q in rng.permutation(num_qubits))
    assert_collected(rng, ops, num_qubits, start, max_direction)


@pytest.mark.parametrize("num_qubits", [3, 6, 9])
def test_a_string_is_one_rotation(rng, num_qubits):
    """Whatever the letters and the order of the ladder."""
    for _ in range(10):
        letters, angle = random_letters(rng, num_qubits, 3), rng.uniform(0.1, 1)
        start = tuple(int(q) for q in rng.permutation(num_qubits))
        (op,) = assert_collected(rng, string_ops(letters, angle), num_qubits, start, num_qubits)
        if set(letters.values()) == {"Z"}:
            assert op.kind in DIAGONAL_KINDS
            continue
        assert op.kind is Kind.PAULI
        spelled = dict(zip(op.targets, ("?XYZ"[letter] for letter in op.permutation), strict=True))
        assert spelled == {start[q]: letter for q, letter in letters.items()}
        np.testing.assert_allclose(op.data, [np.cos(angle / 2), -1j * np.sin(angle / 2)], rtol=0, atol=1e-15)


def test_strings_in_a_row_are_as_many_rotations(rng):
    n = 8
    strings = [(random_letters(rng, n, 3), rng.uniform(0.1, 1)) for _ in range(60)]
    ops = [op for letters, angle in strings for op in string_ops(letters, angle)]
    moved = assert_collected(rng, ops, n, tuple(range(n)), n)
    assert len(moved) == len(strings)
    assert all(op.kind in (*DIAGONAL_KINDS, Kind.PAULI) for op in moved)


@pytest.mark.parametrize("letters", ["XX", "XY", "ZY", "YX"])
def test_a_pair_stays_a_phase_in_a_changed_basis(rng, letters):
    """A diagonal shares its sweep with others, a rotation of two qubits has one to itself."""
    moved = assert_collected(rng, string_ops(dict(enumerate(letters)), 0.4), 2, (1, 0), 2)
    assert [op.targets for op in moved if op.kind in DIAGONAL_KINDS] == [(0, 1)]
    assert all(len(op.targets) == 1 for op in moved if op.kind not in DIAGONAL_KINDS)


@pytest.mark.parametrize("max_direction", [0, 1, 3])
def test_a_string_of_a_wide_direction_keeps_its_change_of_basis(rng, max_direction):
    moved = assert_collected(rng, string_ops(dict(enumerate("XYYXZ")), 0.4), 5, (3, 1, 0, 4, 2), max_direction)
    (central,) = (op for op in moved if len(op.targets) > 1)
    changes = 4 - max_direction
    assert [len(op.targets) for op in moved] == [*[1] * changes, 5, *[1] * changes]
    assert central.kind is (Kind.PAULI if max_direction else Kind.PARITY)


def test_the_widest_string_is_one_rotation():
    """62 qubits, the widest mask that a plan has."""
    letters = dict.fromkeys(range(62), "Z") | {0: "X", 61: "Y"}
    moved, _ = collect_rotations(string_ops(letters, 0.3), range(62), 6)
    (op,) = moved
    assert (op.kind, op.targets, op.mixed_qubits) == (Kind.PAULI, tuple(range(62)), (0, 61))


def test_clifford_gates_that_undo_each_other_leave_their_phase(rng):
    """Around a rotation and a CX there and back: S four times, H twice, X Y Z, all times i."""
    words = [["s"] * 4, ["h", "h"], ["h", "matrix of h"], ["x", "y", "z"], ["sx", "sxdg"], ["rz"] * 8]
    for word in words:
        gates = [on(CLIFFORDS[name], 1) for name in word]
        half = int(rng.integers(1, len(gates)))
        ops = [*gates[:half], rotation("Z", 1, 0.3), *gates[half:], cx(0, 2), cx(0, 2)]
        moved = assert_collected(rng, ops, 3, (0, 1, 2), 3)
        assert sum(bool(op.targets) for op in moved) == 1, word


@pytest.mark.parametrize("num_qubits", [6, 20, 62])
def test_plans_say_how_many_rotations_they_have(num_qubits):
    """As text and in a notebook, however wide the strings."""
    device = replace(with_abilities(DEVICE, rotates_paulis=True), memory_bytes=1 << 70)
    plain, mixed = (
        dict.fromkeys(range(num_qubits), "Z"),
        dict.fromkeys(range(num_qubits - 1), "Z") | {num_qubits - 1: "X"},
    )
    ops = [*string_ops(plain, 0.3), *string_ops(mixed, 0.4), *string_ops(plain, 0.5)]
    made = plan(ops, num_qubits, device, PlanOptions())
    (step,) = made.steps
    assert [op.kind for op in step.ops] == [Kind.PARITY, Kind.PAULI, Kind.PARITY]
    assert "TilePass 3 pauli_rotation" in made.explain()
    assert "TilePass 3 pauli_rotation" in made.html()
    assert num_qubits - 1 in step.qubits
