"""Rotations about Pauli strings: every direction and letter in every place, alone, together, among others."""

import itertools

import numpy as np
import pytest
from support.random_ops import ALL_KINDS, phases, random_op, random_pauli, random_state
from support.reference import apply_ops, tolerance

from qsim_ozaki.engines.cpu.engine import create
from qsim_ozaki.engines.cuda.tile.items import lower
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import Kind, Op, OpList, TilePass
from qsim_ozaki.runtime import stack_program

PRECISIONS = ["double", "single"]


@pytest.fixture(scope="module")
def cpu():
    return create(2, 0)


def assert_pass(cpu, rng, num_qubits, tile, ops, precision):
    """A pass over ``tile`` does what ``ops`` do."""
    state = random_state(rng, num_qubits)
    register = cpu.load(state, precision)
    cpu.run_step(register, TilePass(tuple(tile), tuple(ops)))
    error = np.linalg.norm(cpu.vector(register) - apply_ops(state, ops))
    limit = tolerance(len(ops), precision)
    assert error <= limit, f"tile {tile}, {[(op.kind.name, op.targets) for op in ops]}: {error:.3g} above {limit:.3g}"


def rotation(rng, letters):
    """A rotation about the string ``letters`` (letter of each qubit), by any angle, times a phase."""
    angle = rng.uniform(0, 2 * np.pi)
    data = phases(rng, 1) * [np.cos(angle), -1j * np.sin(angle)]
    return Op(Kind.PAULI, tuple(letters), data, permutation=np.array(list(letters.values())))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4])
def test_every_string_on_a_small_state(cpu, rng, num_qubits, precision):
    for string in itertools.product(range(4), repeat=num_qubits):
        letters = {qubit: letter for qubit, letter in enumerate(string) if letter}
        mixed = [qubit for qubit, letter in letters.items() if letter < 3]
        if mixed:
            for tile in (tuple(range(num_qubits)), tuple(mixed)):
                assert_pass(cpu, rng, num_qubits, tile, [rotation(rng, letters)], precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("letters", [(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)])
def test_every_pair_of_qubits(cpu, rng, letters, precision):
    """In lanes, vectors, first-level blocks and above, the Z inside the tile and outside."""
    num_qubits, tile = 14, (*range(11), 12)
    for pair in itertools.permutations(range(num_qubits), 2):
        if all(letter == 3 or qubit in tile for qubit, letter in zip(pair, letters, strict=True)):
            assert_pass(cpu, rng, num_qubits, tile, [rotation(rng, dict(zip(pair, letters, strict=True)))], precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rotations_of_one_direction_that_commute_or_do_not(cpu, rng, precision):
    """Of those that commute, one sweep takes as many as it can tell apart by four parities."""
    num_qubits, tile = 12, tuple(range(10))
    for _ in range(20):
        mixed = rng.permutation(tile)[:4].tolist()
        others = [q for q in range(num_qubits) if q not in mixed]
        ops = []
        for _ in range(int(rng.integers(2, 16))):
            letters = {int(q): int(rng.integers(1, 3)) for q in mixed}
            letters |= {int(q): 3 for q in rng.permutation(others)[: rng.choice([0, 3, 8])]}
            ops.append(rotation(rng, letters))
        assert_pass(cpu, rng, num_qubits, tile, ops, precision)


@pytest.mark.parametrize("angle", [0.0, np.pi / 2, np.pi, 1e-200, 1e-9])
def test_whole_turns_quarter_turns_and_angles_near_zero(cpu, rng, angle):
    for phase in (1, 1j, -1, phases(rng, 1)[0]):
        data = phase * np.array([np.cos(angle), -1j * np.sin(angle)])
        ops = [Op(Kind.PAULI, (4, 0, 7), data, permutation=np.array([1, 2, 3]))] * 3
        assert_pass(cpu, rng, 9, (0, 1, 4, 5), ops, "double")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 3, 6, 9, 13])
def test_rotations_among_operators_of_every_kind(cpu, rng, num_qubits, precision):
    for _ in range(15):
        tile = tuple(sorted(rng.permutation(num_qubits)[: rng.integers(1, num_qubits + 1)].tolist()))
        ops = []
        for _ in range(int(rng.integers(2, 30))):
            pauli = random_pauli(rng, num_qubits, tile)
            ops.append(pauli if rng.integers(2) else random_op(rng, num_qubits, tile, kinds=ALL_KINDS))
        assert_pass(cpu, rng, num_qubits, tile, ops, precision)


def test_zero_and_one_qubits(cpu, rng):
    """A Z on a qubit outside the tile that is known to be 1 changes the sign."""
    num_qubits, tile, ones, zeros = 9, (0, 1, 2, 3, 5), (7,), (8,)
    small = random_state(rng, 7)
    state = np.zeros(1 << num_qubits, complex)
    state[1 << 7 : (1 << 7) + (1 << 7)] = small
    ops = [rotation(rng, {3: 1, 5: 2, 7: 3, 8: 3}), rotation(rng, {0: 2, 6: 3, 7: 3})]
    register = cpu.load(state, "double")
    cpu.run_step(register, TilePass(tile, tuple(ops), zeros, ones))
    np.testing.assert_allclose(cpu.vector(register), apply_ops(state, ops), atol=1e-14)


def test_a_qubit_that_a_string_mixes_must_be_in_the_tile(cpu, rng):
    register = cpu.load(random_state(rng, 8), "double")
    with pytest.raises(ValueError, match="mixes a qubit outside the tile"):
        cpu.run_step(register, TilePass((0, 1, 2), (rotation(rng, {1: 1, 6: 2}),)))


@pytest.mark.parametrize("kind", [Kind.PARITY, Kind.PAULI])
def test_a_stack_refuses_operators_that_only_plans_have(rng, kind):
    """It would read a matrix where they have two numbers."""
    op = Op(kind, (0, 1), phases(rng, 2), permutation=np.array([1, 2]) if kind is Kind.PAULI else None)
    with pytest.raises(ValueError, match="a stack takes gates"):
        stack_program(2, [OpList.of([op])])


def test_the_cuda_engine_refuses_a_pauli_rotation(rng):
    with pytest.raises(EngineError, match="rotates about no Pauli string"):
        lower([rotation(rng, {0: 1, 1: 2})], 4)
