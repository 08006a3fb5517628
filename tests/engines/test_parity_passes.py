"""Every engine: parities wherever their qubits lie, alone, many at once and among other operators."""

import itertools

import numpy as np
import pytest
from support.random_ops import kinds_of, phases, random_op, random_parity, random_state, random_unitary
from support.reference import apply_ops, tolerance

from qsim_ozaki.ir import EMPTY, Kind, Op, TilePass

PRECISIONS = ["double", "single"]


def assert_pass(engine, state, tile, ops, precision):
    """A pass over ``tile`` does what ``ops`` do."""
    register = engine.load(state, precision)
    engine.run_step(register, TilePass(tile, tuple(ops)))
    error = np.linalg.norm(engine.vector(register) - apply_ops(state, ops))
    limit = tolerance(len(ops), precision)
    assert error <= limit, f"tile {tile}, {[(op.kind.name, op.targets) for op in ops]}: {error:.3g} above {limit:.3g}"


def subsets(qubits):
    return itertools.chain.from_iterable(itertools.combinations(qubits, k) for k in range(len(qubits) + 1))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4])
def test_every_set_of_qubits_in_every_tile_of_a_small_state(engine, rng, num_qubits, precision):
    for tile in subsets(range(num_qubits)):
        if not tile:
            continue
        for targets in subsets(range(num_qubits)):
            parity = Op(Kind.PARITY, targets, phases(rng, 2))
            assert_pass(engine, random_state(rng, num_qubits), tile, [parity], precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("tile", [tuple(range(8)), (0, 1, 2, 3), (0, 1, 2, 3, 6, 7), (0, 1, 2, 4, 5), (3, 7)])
def test_every_set_of_qubits(engine, rng, tile, precision):
    """In lanes, above them, outside the tile, and in any two or all of these."""
    state = random_state(rng, 8)
    for targets in subsets(range(8)):
        order = tuple(int(q) for q in rng.permutation(targets)) if targets else ()
        assert_pass(engine, state, tile, [Op(Kind.PARITY, order, phases(rng, 2))], precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "parts",
    [
        ("low",),
        ("high",),
        ("low", "high"),
        ("outside",),
        ("low", "outside"),
        ("high", "outside"),
        ("low", "high", "outside"),
    ],
)
def test_tables_of_both_halves_and_more_blocks_than_one(engine, rng, parts, precision):
    """A tile of 13 positions has several blocks of the first-level cache and both halves of a table of phases."""
    tile = (*range(7), *range(9, 15))
    places = {"low": tile[:6], "high": tile[6:], "outside": (7, 8, 15)}
    for _ in range(4):
        ops = []
        for _ in range(int(rng.integers(1, 10))):
            chosen = [
                q for part in parts for q in rng.permutation(places[part])[: rng.integers(1, len(places[part]) + 1)]
            ]
            ops.append(Op(Kind.PARITY, tuple(int(q) for q in chosen), phases(rng, 2)))
        assert_pass(engine, random_state(rng, 16), tile, ops, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 9, 40])
def test_crowds_of_parities(engine, rng, count, precision):
    """More than one sweep takes, equal sets among them in any order of their qubits."""
    num_qubits, tile = 11, (0, 1, 2, 3, 5, 6, 8, 9)
    wide = [tuple(int(q) for q in rng.permutation(num_qubits)[:7]) for _ in range((count + 1) // 2)]
    ops = [Op(Kind.PARITY, tuple(rng.permutation(wide[k % len(wide)]).tolist()), phases(rng, 2)) for k in range(count)]
    assert_pass(engine, random_state(rng, num_qubits), tile, ops, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [2, 3, 5, 9, 13])
def test_parities_among_rotations_diagonals_and_matrices(engine, rng, num_qubits, precision):
    """Matrices on lanes move these; the parities that come later find their qubits where they are then."""
    for _ in range(12):
        size = int(rng.integers(1, num_qubits + 1))
        tile = tuple(sorted(int(q) for q in rng.permutation(num_qubits)[:size]))
        ops = []
        for _ in range(int(rng.integers(2, 30))):
            one_of_any = random_op(rng, num_qubits, tile, kinds=kinds_of(engine))
            ops.append(one_of_any if rng.integers(2) else random_parity(rng, num_qubits))
        assert_pass(engine, random_state(rng, num_qubits), tile, ops, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_pauli_rotations(engine, rng, precision):
    """Changes of basis around parities, as the planner leaves a molecule's strings."""
    num_qubits, tile = 10, tuple(range(8))
    turn = np.array([[1, -1j], [-1j, 1]]) * np.sqrt(0.5)
    for _ in range(6):
        ops = []
        for _ in range(12):
            support = [int(q) for q in rng.permutation(num_qubits)[: rng.integers(3, num_qubits + 1)]]
            angle = rng.uniform(-3, 3)
            mixed = [q for q in support if q in tile and rng.integers(2)]
            basis = [
                (Op(Kind.HADAMARD, (q,), EMPTY),) * 2
                if rng.integers(2)
                else (Op(Kind.UNITARY, (q,), turn), Op(Kind.UNITARY, (q,), turn.conj().T))
                for q in mixed
            ]
            ops += [before for before, _ in basis]
            ops.append(Op(Kind.PARITY, tuple(support), np.exp([-0.5j * angle, 0.5j * angle])))
            ops += [after for _, after in basis]
        assert_pass(engine, random_state(rng, num_qubits), tile, ops, precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_signs_are_exact(engine, rng, precision):
    """Factors 1, -1, i and -i do not round, alone or many at once."""
    num_qubits, tile = 9, (0, 1, 2, 3, 4, 7)
    for count in (1, 4, 6):
        ops = []
        for _ in range(count):
            targets = tuple(int(q) for q in rng.permutation(num_qubits)[: rng.integers(1, num_qubits + 1)])
            ops.append(Op(Kind.PARITY, targets, rng.choice([1, -1, 1j, -1j], 2).astype(complex)))
        register = engine.load(random_state(rng, num_qubits), precision)
        state = np.array(engine.vector(register))
        engine.run_step(register, TilePass(tile, tuple(ops)))
        np.testing.assert_array_equal(engine.vector(register), apply_ops(state, ops))


def test_any_number_of_threads_gives_the_same_bits(rng):
    from qsim_ozaki.engines.cpu.engine import create

    num_qubits, tile = 15, tuple(range(12))
    ops = [random_parity(rng, num_qubits) for _ in range(9)]
    ops += [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in tile] + [
        random_parity(rng, num_qubits) for _ in range(3)
    ]
    state, vectors = random_state(rng, num_qubits), []
    for threads in (1, 2, 3):
        engine = create(threads)
        register = engine.load(state, "double")
        engine.run_step(register, TilePass(tile, tuple(ops)))
        vectors.append(engine.vector(register).tobytes())
    assert vectors[0] == vectors[1] == vectors[2]
