"""Straight-line tile kernels: the generated source run on the host against NumPy, its structure, its compilation."""

import re

import numpy as np
import pytest
from support import straight_host
from support.random_ops import SMALL_KINDS, random_op, random_state, random_swaps, random_unitary, swap_ops
from support.reference import apply_op, tolerance

from qsim_ozaki import _native
from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError
from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.tile import search
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.engines.cuda.tile.pairs import split_tf32
from qsim_ozaki.ir import EMPTY, PARITY_PRESERVING, Kind, Op

PRECISIONS = ["double", "single"]
CZ = np.array([1, 1, 1, -1], complex)

needs_compiler = pytest.mark.skipif(straight_host.compiler() is None, reason="no C++ compiler")


def reference(state, ops):
    for op in ops:
        state = apply_op(state, op)
    return state


def straight_ops(rng, num_qubits, tile, count):
    """Random ops without the few kinds that only the interpreter knows."""
    ops = []
    while len(ops) < count:
        op = random_op(rng, num_qubits, tile, max_targets=2, max_controls=2, kinds=SMALL_KINDS)
        if op.kind is not Kind.PERMUTATION or len(op.targets) < 3:
            ops.append(op)
    return ops


def brick(rng, qubits, layers):
    """Layers of one-qubit unitaries and CZ between neighbours."""
    for layer in range(layers):
        yield from (Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in qubits)
        pairs = zip(qubits[layer % 2 :: 2], qubits[layer % 2 + 1 :: 2], strict=False)
        yield from (Op(Kind.DIAGONAL, pair, CZ) for pair in pairs)


def trotter(qubits, layers, num_qubits):
    """RZZ on a chain that leaves the tile at both ends, then RX."""
    zz = np.exp(np.array([-0.15j, 0.15j, 0.15j, -0.15j]))
    rx = np.array([[np.cos(0.1), -1j * np.sin(0.1)], [-1j * np.sin(0.1), np.cos(0.1)]])
    for _ in range(layers):
        yield from (Op(Kind.DIAGONAL, (q, (q + 1) % num_qubits), zz) for q in qubits)
        yield Op(Kind.DIAGONAL, (qubits[0], qubits[0] - 1), zz)
        yield from (Op(Kind.UNITARY, (q,), rx) for q in qubits)


def qft(top, num_qubits):
    """The part of a QFT that mixes the qubits from ``top`` down to ``num_qubits - 9``."""
    for q in range(top, top - 9, -1):
        yield Op(Kind.HADAMARD, (q,), EMPTY)
        yield from (Op(Kind.DIAGONAL, (q, p), np.array([1, 1, 1, np.exp(1j * np.pi / 2 ** (q - p))])) for p in range(q))


def chain(rng, qubits, layers, num_qubits):
    """RY, RZ and a chain of CX on ``qubits`` that begins with a control outside: phases wait behind flips."""
    for _ in range(layers):
        for q in qubits:
            yield Op(Kind.UNITARY, (q,), random_unitary(rng, 2))
        for q in qubits:
            flip = Op(Kind.PERMUTATION, (q,), np.ones(2, complex), ((q - 1) % num_qubits,), 1, np.array([1, 0]))
            yield flip
            if rng.integers(4) == 0:  # a flip without control, and one whose control must be 0
                yield Op(Kind.PERMUTATION, (q,), np.ones(2, complex), permutation=np.array([1, 0]))
                yield Op(Kind.PERMUTATION, (q,), np.ones(2, complex), ((q + 1) % num_qubits,), 0, np.array([1, 0]))


def core(rng):
    out = np.zeros((4, 4), complex)
    out[np.ix_([0, 3], [0, 3])], out[np.ix_([1, 2], [1, 2])] = random_unitary(rng, 2), random_unitary(rng, 2)
    return out


def cores(rng, qubits, count):
    """Two-qubit cores and rotations on random pairs."""
    for _ in range(count):
        a, b = (int(q) for q in rng.permutation(qubits)[:2])
        angle = rng.uniform(0, 6)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]], complex)
        yield from (Op(Kind.UNITARY, (q,), turn) for q in (a, b))
        yield Op(Kind.UNITARY, (a, b), core(rng), name=PARITY_PRESERVING)


def check(programs, ops, state, precision, folder, **options):
    got = state
    for number, program in enumerate(programs):
        (folder / str(number)).mkdir()
        got = straight_host.run(program, got, precision, folder / str(number), **options)
    assert np.linalg.norm(got - reference(state, ops)) <= tolerance(len(ops), precision)


@needs_compiler
@pytest.mark.parametrize(
    ("precision", "pairs"), [("double", False), ("double", True), ("single", False), ("single", True)]
)
@pytest.mark.parametrize("seed", range(3))
def test_sources_do_what_their_ops_do(tmp_path, rng, precision, pairs, seed):
    n = 15
    size = int(rng.integers(3, SHAPES[precision].tile_qubits + 1))
    tile = tuple(sorted(int(q) for q in rng.permutation(n)[:size]))
    ops = straight_ops(rng, n, tile, 25)
    swaps = random_swaps(rng, tile)
    programs = straight.straight(Tile(tile, (), swaps), ops, n, precision, pairs)
    check(programs, [*ops, *swap_ops(swaps)], random_state(rng, n), precision, tmp_path, early=(0, 4, 8)[seed])


@needs_compiler
@pytest.mark.parametrize("pairs", [False, True], ids=["registers", "pairs"])
@pytest.mark.parametrize("family", ["brick", "trotter", "qft", "cores", "chain"])
def test_circuit_families_on_the_host(tmp_path, rng, family, pairs):
    n, tile = 15, (0, 1, 2, *range(6, 15))
    ops = {
        "brick": lambda: list(brick(rng, tile, 3)),
        "trotter": lambda: list(trotter(range(6, 15), 3, n)),
        "qft": lambda: list(qft(14, n)),
        "cores": lambda: list(cores(rng, tile, 12)),
        "chain": lambda: list(chain(rng, tile, 3, n)),
    }[family]()
    swaps = {"brick": ((0, 9), (1, 10), (2, 11)), "trotter": ((1, 6),)}.get(family, ())
    programs = straight.straight(Tile(tile, (), swaps), ops, n, "double", pairs)
    assert "pair_block" not in programs[0].source or pairs
    assert "pair_block" in programs[0].source or not pairs or family not in ("brick", "cores")
    assert {"trotter": "times_chosen", "qft": "phases[", "chain": "times_chosen"}.get(family, "") in programs[-1].source
    assert {"brick": "times_mirrored", "cores": "turn4_by"}.get(family, "") in programs[0].source
    check(programs, [*ops, *swap_ops(swaps)], random_state(rng, n), "double", tmp_path)


@needs_compiler
def test_pairs_of_complex64_by_halves_of_tf32(tmp_path, rng, monkeypatch):
    """Blocks that bricks on a chain leave, cheap so that there are many, with swaps at the store."""
    monkeypatch.setitem(search.STAGE_ENERGIES, "single", _native.StageEnergies(300, 30, 100, 100, 0))
    n, tile, swaps = 15, (0, 1, 2, 3, *range(6, 15)), ((0, 9), (1, 10), (2, 11), (3, 14))
    ops = list(brick(rng, tile, 4))
    programs = straight.straight(Tile(tile, (), swaps), ops, n, "single", True)
    assert sum(program.source.count("pair_block<") for program in programs) >= 2
    check(programs, [*ops, *swap_ops(swaps)], random_state(rng, n), "single", tmp_path)


def test_halves_of_tf32_are_what_tensor_cores_read(rng):
    values = np.concatenate([rng.normal(size=(40, 2)), [[0.0, 1.0], [-1.0, 2.0**-130]]])
    high, low = np.split(split_tf32(values), 2, axis=-1)
    for half in (high, low):
        assert half.dtype == np.float32
        assert not np.any(half.view(np.uint32) & 0x1FFF)
    assert np.all(np.abs(high.astype(float) + low - values) <= 2.0**-23 * np.abs(values))


@needs_compiler
def test_pairs_take_every_kind_of_item(tmp_path, rng, monkeypatch):
    """Hadamards, flips with and without control, rotations, phases, matrices: one block where blocks cost nothing."""
    monkeypatch.setitem(search.STAGE_ENERGIES, "double", _native.StageEnergies(300, 0, 100, 100, 0))
    n, tile, (a, b) = 15, tuple(range(12)), (4, 9)
    x = np.array([1, 0])
    for first, second in ((a, b), (b, a)):
        ops = []
        for _ in range(3):
            ops += [Op(Kind.HADAMARD, (first,), EMPTY), Op(Kind.UNITARY, (first, second), random_unitary(rng, 4))]
            ops += [Op(Kind.PERMUTATION, (first,), np.ones(2, complex), (second,), c, x) for c in (1, 0)]
            ops += [Op(Kind.PERMUTATION, (second,), np.ones(2, complex), permutation=x)]
            ops += [Op(Kind.DIAGONAL, (first, second), np.exp(1j * rng.uniform(0, 6, 4)))]
            ops += [Op(Kind.UNITARY, (second,), random_unitary(rng, 2), (first,), 1)]
        programs = straight.straight(Tile(tile), ops, n, "double", True)
        assert sum(p.source.count("pair_block<") for p in programs) == 1
        folder = tmp_path / str(first)
        folder.mkdir()
        check(programs, ops, random_state(rng, n), "double", folder)


@needs_compiler
def test_a_single_table_of_outer_bits(tmp_path, rng):
    """Two phases between register and outer bits and one of the registers alone: one product, from one table."""
    n, tile = 15, (0, 1, 2, *range(6, 15))
    rotation = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]], complex)
    pairs = ((12, 13), (14, 7), (12, 8), (13, 4))
    ops = [Op(Kind.DIAGONAL, pair, np.array([1, 1, 1, np.exp(1j * rng.uniform(1, 6))])) for pair in pairs]
    ops += [Op(Kind.UNITARY, (q,), rotation) for q in (12, 13, 14)]
    (program,) = straight.straight(Tile(tile), ops, n, "double")
    assert program.source.count("times_chosen") == 1
    check([program], ops, random_state(rng, n), "double", tmp_path)


def test_phases_wait_behind_flips(rng):
    """RZ before a chain of CX cost one table with the next layer's, not one before each flip."""
    tile = (0, 1, 2, *range(6, 15))
    (program,) = straight.straight(Tile(tile), list(chain(np.random.default_rng(1), tile, 2, 15)), 15, "double")
    body = program.source.split("run(")[1]
    assert 2 * body.count("times") < 3 * body.count("flip_bit")


def test_equal_tables_are_kept_once():
    """A Trotter step's angles are the same at every qubit."""
    ops = list(trotter(range(6, 15), 4, 15))
    (program,) = straight.straight(Tile((0, 1, 2, *range(6, 15))), ops, 15, "double")
    places = re.findall(r"times_chosen<.*chosen, (\d+),", program.source)
    assert len(set(places)) < len(places), places


@needs_compiler
def test_a_heavy_pass_is_cut_and_zero_qubits_leave_out_tiles(tmp_path, rng, monkeypatch):
    monkeypatch.setitem(straight.MAX_INSTRUCTIONS, "double", 1500)
    n, tile = 15, tuple(range(12))
    state = random_state(rng, n)
    state[np.arange(state.size) >> 14 != 0] = 0
    ops = list(brick(rng, tile, 4))
    swaps = ((0, 7), (2, 10))
    programs = straight.straight(Tile(tile, (14,), swaps), ops, n, "double")
    assert len(programs) > 1
    assert {p.num_tiles for p in programs} == {4}
    check(programs, [*ops, *swap_ops(swaps)], state, "double", tmp_path)


def fresh_in(program):
    """The qubits that a kernel takes for |0>: of threads, the lowest of the tile, and of registers."""
    threads, registers = (
        int(re.search(rf"QSIM_FRESH_{who} (\d+)", program.source)[1]) for who in ("THREADS", "REGISTERS")
    )
    bits = threads | registers << len(program.tile) - len(program.stride_in)
    return tuple(q for i, q in enumerate(program.tile) if bits >> i & 1)


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "single"])
def test_fresh_qubits_are_zero_whatever_memory_holds(tmp_path, rng, precision, monkeypatch):
    """In registers and in lanes, of a pass that is cut: its second part reads what the first wrote."""
    monkeypatch.setitem(straight.MAX_INSTRUCTIONS, precision, 1500)
    n, tile = 15, tuple(range(3, 15)) if precision == "double" else tuple(range(2, 15))
    fresh = (tile[0], tile[4], tile[-1])
    unread = sum(1 << q for q in fresh)
    state = random_state(rng, n)
    state[np.arange(state.size) & unread != 0] = 0
    ops = list(brick(rng, tile, 4))
    programs = straight.straight(Tile(tile, (), (), fresh), ops, n, precision)
    assert len(programs) > 1
    assert [fresh_in(p) for p in programs] == [fresh, *[()] * (len(programs) - 1)]
    expected = reference(state, ops)
    state[np.arange(state.size) & unread != 0] = np.nan
    for number, program in enumerate(programs):
        (tmp_path / str(number)).mkdir()
        state = straight_host.run(program, state, precision, tmp_path / str(number))
    assert np.linalg.norm(state - expected) <= tolerance(len(ops), precision)


@pytest.mark.parametrize("pairs", [False, True])
def test_equal_structure_is_equal_source(rng, pairs):
    """Angles, matrices and the tile's place are arguments: a sweep compiles nothing."""
    first, second, moved = (
        straight.straight(Tile((0, 1, 2, *range(s, s + 9))), [*brick(rng, range(s, s + 9), 4)], 30, "double", pairs)
        for s in (8, 8, 17)
    )
    assert first[0].source == second[0].source == moved[0].source
    assert first[0].values != second[0].values
    assert first[0].stride_in != moved[0].stride_in


def test_what_only_the_interpreter_knows_is_refused(rng):
    op = Op(Kind.UNITARY, (3, 4, 5), random_unitary(rng, 8))
    with pytest.raises(NotStraightError, match="matrix"):
        straight.straight(Tile((3, 4, 5)), [op], 20, "double")


def programs_to_compile(precision):
    rng = np.random.default_rng(5)
    tile = (0, 1, 2, *range(20, 29))
    yield "brick", straight.straight(Tile(tile), list(brick(rng, range(20, 29), 3)), 30, precision)
    yield "trotter", straight.straight(Tile(tile), list(trotter(range(20, 29), 2, 30)), 30, precision)
    yield "cores", straight.straight(Tile(tile), list(cores(rng, tile, 4)), 30, precision)
    if precision == "double":
        yield "pairs", straight.straight(Tile(tile), list(cores(rng, tile, 12)), 30, precision, True)


ARCHITECTURES_OF = {"brick": kernels.ARCHITECTURES, "pairs": (90,)}
SOURCES = [
    pytest.param(program.source, precision, arch, id=f"{name}-{precision}-sm_{arch}")
    for precision in PRECISIONS
    for name, programs in programs_to_compile(precision)
    for program in programs
    for arch in ARCHITECTURES_OF.get(name, (86, 120))  # other families: test_straight_families.py
]


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("source", "precision", "architecture"), SOURCES)
def test_generated_kernels_compile_without_spills(source, precision, architecture):
    options = nvrtc.nvrtc_options(kernels.STRAIGHT, straight.instance(architecture, precision), architecture)
    log = nvrtc.compile_generated(source, options).log
    assert "bytes stack frame" in log
    assert nvrtc.spilled_bytes(log) == 0, log
