"""Factors by the parity of many qubits in tile passes: interpreted, generated, merged, moved behind flips, on a GPU."""

import re
from itertools import pairwise

import numpy as np
import pytest
from qiskit import QuantumCircuit
from support import straight_host, tile_twin
from support.devices import H200
from support.random_ops import random_op, random_parity, random_state, random_swaps, random_unitary, swap_ops
from support.reference import apply_op, tolerance, zero_state
from support.reference_engine import final_vector

from qsim_ozaki.engines.cuda import interpreter, passes
from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, lower
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.engines.cuda.tile.pending import Pending
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import EMPTY, Kind, Op, Prepare, Relabel, TilePass
from qsim_ozaki.lowering import lower as lowered
from qsim_ozaki.planner import PlanOptions, plan

PRECISIONS = ["double", "single"]
DTYPES = {"double": np.complex128, "single": np.complex64}
TILE = (0, 1, 2, *range(6, 15))
HADAMARDS = [Op(Kind.HADAMARD, (q,), EMPTY) for q in TILE]

needs_compiler = pytest.mark.skipif(straight_host.compiler() is None, reason="no C++ compiler")


def parity(targets, *factors):
    return Op(Kind.PARITY, tuple(targets), np.array(factors, complex))


def rz(targets, angle):
    return parity(targets, np.exp(-0.5j * angle), np.exp(0.5j * angle))


def reference(state, ops):
    for op in ops:
        state = apply_op(state, op)
    return state


def mixed_ops(rng, num_qubits, tile, count, max_targets):
    """Random ops that every kernel knows, every third a parity."""
    ops = []
    while len(ops) < count:
        op = random_op(rng, num_qubits, tile, max_targets=max_targets, max_controls=2)
        if len(ops) % 3 == 1:
            ops.append(random_parity(rng, num_qubits))
        elif op.kind is not Kind.PERMUTATION or len(op.targets) < 3:
            ops.append(op)
    return ops


def interpreted(tile, ops, state, precision):
    program = interpreter.compile_tile(tile, ops, state.size.bit_length() - 1, precision)
    return tile_twin.run(program, state.astype(DTYPES[precision]), precision)


def generated(tile, ops, state, precision, folder, pairs=False):
    programs = straight.straight(tile, ops, state.size.bit_length() - 1, precision, pairs)
    for number, program in enumerate(programs):
        (folder / str(number)).mkdir(parents=True)
        state = straight_host.run(program, state, precision, folder / str(number))
    return state, [program.source for program in programs]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("num_qubits", [3, 5, 8, 11, 15])
def test_interpreted_passes_with_parities(rng, num_qubits, precision):
    shape = SHAPES[precision]
    width = max(num_qubits, shape.register_qubits)  # a smaller state lies in one of as many qubits
    for _ in range(8):
        size = int(rng.integers(1, min(num_qubits, shape.tile_qubits) + 1))
        tile = tuple(sorted(int(q) for q in rng.permutation(num_qubits)[:size]))
        ops = mixed_ops(rng, num_qubits, tile, int(rng.integers(2, 30)), 2)
        state, swaps = random_state(rng, width), random_swaps(rng, tile)
        got = interpreted(Tile(tile, (), swaps), ops, state, precision)
        assert np.linalg.norm(got - reference(state, [*ops, *swap_ops(swaps)])) <= tolerance(len(ops), precision)


@needs_compiler
@pytest.mark.parametrize("pairs", [False, True], ids=["registers", "pairs"])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("seed", range(2))
def test_generated_passes_with_parities(tmp_path, rng, precision, pairs, seed):
    size = int(rng.integers(3, SHAPES[precision].tile_qubits + 1)) if seed else SHAPES[precision].tile_qubits
    tile = tuple(sorted(int(q) for q in rng.permutation(15)[:size]))
    ops, swaps, state = mixed_ops(rng, 15, tile, 30, 2), random_swaps(rng, tile), random_state(rng, 15)
    got, sources = generated(Tile(tile, (), swaps), ops, state, precision, tmp_path, pairs)
    assert "turn_by_parity" in "".join(sources)
    assert np.linalg.norm(got - reference(state, [*ops, *swap_ops(swaps)])) <= tolerance(len(ops), precision)


def every_place(rng, registers, count):
    """Parities on subsets of register, thread and tile-number qubits, none of a kind to all of it, in every mixture."""
    threads = [q for q in TILE if q not in registers]
    outside = [q for q in range(17) if q not in TILE]
    for number in range(1, 8):
        for _ in range(count):
            targets = []
            for bit, qubits in enumerate((registers, threads, outside)):
                if number >> bit & 1:
                    targets += rng.permutation(qubits)[: rng.integers(3, len(qubits) + 1)].tolist()
            yield rz(targets, rng.uniform(-6, 6))


@needs_compiler
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_parity_reads_qubits_of_every_place(tmp_path, rng, precision):
    """Rotations of the registers of the first stage before and after, so that nothing may leave it."""
    registers = (9, 10, 11, 12) if precision == "double" else (8, 9, 10, 11, 12)
    state = random_state(rng, 17)
    turns = [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in registers]
    for number, group in enumerate(np.array_split(np.array(list(every_place(rng, registers, 3)), object), 3)):
        ops = [*turns, *group, *turns]
        want = reference(state, ops)
        got = interpreted(Tile(TILE), ops, state, precision)
        assert np.linalg.norm(got - want) <= tolerance(len(ops), precision)
        got, sources = generated(Tile(TILE), ops, state, precision, tmp_path / str(number))
        assert "".join(sources).count("by_parity") >= 4
        assert np.linalg.norm(got - want) <= tolerance(len(ops), precision)


@needs_compiler
@pytest.mark.parametrize("precision", PRECISIONS)
def test_parities_of_quarter_turns_are_exact(tmp_path, rng, precision):
    turns = np.array([1, 1j, -1, -1j])
    ops = []
    for _ in range(12):
        targets = rng.permutation(15)[: rng.integers(3, 16)].tolist()
        ops.append(parity(targets, *rng.choice(turns, 2)))
        a, b = (int(q) for q in rng.permutation(TILE)[:2])
        ops.append(Op(Kind.PERMUTATION, (a,), np.ones(2, complex), (b,), int(rng.integers(2)), np.array([1, 0])))
    state = random_state(rng, 15).astype(DTYPES[precision])
    want = reference(state.astype(complex), ops)
    assert np.array_equal(interpreted(Tile(TILE), ops, state, precision), want)
    assert np.array_equal(generated(Tile(TILE), ops, state, precision, tmp_path)[0], want)


@needs_compiler
def test_factors_that_are_no_phases(tmp_path, rng):
    """They are as they are, merged with nothing."""
    ops = [*HADAMARDS, parity((1, 4, 9), 0.5, 2j), parity((1, 4, 9), 3, 1j), parity(range(15), 0.5 - 0.5j, 0.5 + 0.5j)]
    ops += [*HADAMARDS, parity((0, 3, 7), 0.0, 1.0)]
    state = random_state(rng, 15)
    want = reference(state, ops)
    assert np.linalg.norm(interpreted(Tile(TILE), ops, state, "double") - want) <= tolerance(len(ops))
    assert np.linalg.norm(generated(Tile(TILE), ops, state, "double", tmp_path)[0] - want) <= tolerance(len(ops))


def statements(ops, precision="double"):
    """Numbers of factors by parity, of the two forms, in the interpreter's program and in the generated source."""
    program = interpreter.compile_tile(Tile(TILE), ops, 30, precision)
    sources = "".join(p.source for p in straight.straight(Tile(TILE), ops, 30, precision))
    codes = [int(word) & 255 for word in program.words[program.first_op :]]
    return codes.count(interpreter.PARITY), sources.count("turn_by_parity"), sources.count("times_by_parity")


def test_parities_on_the_same_qubits_merge():
    qubits = (0, 7, 12, 25, 29)
    assert statements([*HADAMARDS, rz(qubits, 0.3), rz(qubits[::-1], 0.4), *HADAMARDS]) == (1, 1, 0)
    assert statements([*HADAMARDS, rz(qubits, 0.3), rz(qubits, -0.3), *HADAMARDS]) == (0, 0, 0)
    eighth, quarter = parity(qubits, 1, np.sqrt(0.5) * (1 + 1j)), parity(qubits, 1, 1j)
    assert statements([*HADAMARDS, eighth, eighth, *HADAMARDS]) == (1, 0, 1)
    assert statements([*HADAMARDS, quarter, eighth, eighth, *HADAMARDS]) == (0, 0, 0)  # signs of single bits


def test_a_rotation_leaves_no_global_phase():
    """Its factors are conjugate already: nothing else is multiplied in."""
    (program,) = straight.straight(Tile(TILE), [rz((3, 9, 20), 1.3), rz(range(25), -0.7), *HADAMARDS], 30, "double")
    assert program.source.count("turn_by_parity") == 2
    assert "times" not in program.source.split("run(")[1]


def test_parities_inside_the_registers_join_a_table():
    registers = (11, 12, 13, 14)
    turns = [Op(Kind.UNITARY, (q,), np.array([[0.8, -0.6], [0.6, 0.8]])) for q in registers]
    table = Op(Kind.DIAGONAL, (11, 13), np.exp(1j * np.arange(4)))
    assert statements([*turns, rz((11, 12, 13), 0.3), *turns])[1:] == (1, 0)
    assert statements([*turns, rz((11, 12, 13), 0.3), rz((11, 12, 14), 0.3), *turns])[1:] == (0, 0)
    assert statements([*turns, rz((11, 12, 13), 0.3), table, *turns])[1:] == (0, 0)


@needs_compiler
def test_parities_wait_behind_flips(tmp_path, rng):
    """A CX adds its control to the parities of its target, wherever the control is; an X turns them round."""
    x = np.array([1, 0])
    ops = [*HADAMARDS, *(rz(rng.permutation(15)[:6].tolist(), 1.1) for _ in range(5))]
    for _ in range(25):
        target = int(rng.choice(TILE))
        controls = [q for q in rng.permutation(15).tolist() if q != target][: rng.integers(2)]
        value = int(rng.integers(2)) if controls else 0
        ops.append(Op(Kind.PERMUTATION, (target,), np.ones(2, complex), tuple(controls), value, x))
    state = random_state(rng, 15)
    got, sources = generated(Tile(TILE), ops, state, "double", tmp_path)
    body = "".join(sources).split("run(")[1]
    assert 0 < body.count("turn_by_parity") <= 5
    assert body.rindex("flip_bit") < body.index("by_parity")  # they wait for the end
    assert np.linalg.norm(got - reference(state, ops)) <= tolerance(len(ops))


def test_a_parity_meets_its_inverse_on_the_other_side_of_a_flip():
    pending = Pending()
    flip = Op(Kind.PERMUTATION, (3,), np.ones(2, complex), (5,), 1, np.array([1, 0]))
    before, item, after, rest = lower([rz((1, 2, 3), 0.7), flip, rz((1, 2, 3, 5), -0.7), rz((1, 3, 5), 0.1)], 4)
    pending.add(before)
    assert pending.push_behind(item, -1)
    pending.add(after)
    assert pending.parities == pending.terms == {}
    pending.add(rest)
    assert pending.push_behind(item, -1)  # of two qubits: products of their bits
    assert set(pending.terms) - {0} == {0b10, 0b1000, 0b1010}
    assert pending.parities == {}
    assert HALF_TURN > pending.terms[0b10] == pending.terms[0b1000] > 0


def ladders(rng, num_qubits, count):
    """Rotations about Pauli strings of double excitations, written as CX ladders, after X on half of the qubits."""
    circuit = QuantumCircuit(num_qubits)
    circuit.x(range(num_qubits // 2))
    for _ in range(count):
        ends = np.sort(rng.permutation(num_qubits)[:4])
        angle = rng.uniform(-3, 3)
        chain = [int(q) for q in (*range(ends[0], ends[1] + 1), *range(ends[2], ends[3] + 1))]
        for letters in ("xxxy", "yxyy", "xyxx"):
            turned = [(int(q), letter) for q, letter in zip(ends, letters, strict=True)]
            for q, letter in turned:
                circuit.h(q) if letter == "x" else circuit.rx(np.pi / 2, q)
            for a, b in pairwise(chain):
                circuit.cx(a, b)
            circuit.rz(angle, chain[-1])
            for a, b in reversed(list(pairwise(chain))):
                circuit.cx(a, b)
            for q, letter in turned:
                circuit.h(q) if letter == "x" else circuit.rx(-np.pi / 2, q)
    return circuit


def planned(circuit, precision="double"):
    (ops,) = lowered(circuit).body
    out = plan(ops, circuit.num_qubits, H200, PlanOptions(precision=precision))
    assert any(op.kind is Kind.PARITY for step in out.steps if isinstance(step, TilePass) for op in step.ops)
    return ops, out


@pytest.mark.parametrize("precision", PRECISIONS)
def test_ladders_planned_for_a_gpu(rng, precision):
    ops, out = planned(ladders(rng, 14, 6), precision)
    state = zero_state(14)
    for step in out.steps:
        if isinstance(step, Prepare):
            state = final_vector([step], range(14))
        elif not isinstance(step, Relabel):
            tile = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            program = interpreter.compile_tile(tile, step.ops, 14, precision)
            state = tile_twin.run(program, state.astype(DTYPES[precision]), precision)
    index = np.arange(1 << 14)
    state = state[sum(((index >> q) & 1) << p for q, p in enumerate(out.final_position))]
    assert np.linalg.norm(state - reference(zero_state(14), ops)) <= tolerance(len(ops), precision)


def ladder_pass(num_qubits, precision, pairs):
    """The longest generated kernel of a plan with many parities."""
    rng = np.random.default_rng(3)
    _, out = planned(ladders(rng, num_qubits, 12), precision)
    programs = []
    for step in out.steps:
        if isinstance(step, TilePass):
            tile = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            programs += straight.straight(tile, step.ops, num_qubits, precision, pairs)
    return max(programs, key=lambda program: program.source.count("by_parity")).source


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("architecture", [86, 90, 120])
def test_kernels_of_ladders_compile_without_spills(precision, architecture):
    source = ladder_pass(28, precision, straight.has_pairs(architecture))
    assert len(re.findall("turn_by_parity", source)) > 8
    options = nvrtc.nvrtc_options(kernels.STRAIGHT, straight.instance(architecture, precision), architecture)
    log = nvrtc.compile_generated(source, options).log
    assert nvrtc.spilled_bytes(log) == 0, log


@pytest.mark.cuda
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("form", "num_qubits"), [("interpreted", 4), ("interpreted", 12), ("interpreted", 19), ("generated", 19)]
)
def test_ladders_on_a_gpu(rng, num_qubits, precision, form, monkeypatch):
    from qsim_ozaki.engines.cuda.engine import create

    try:
        cuda = create()
    except EngineError as error:
        pytest.skip(str(error))
    limit = 0 if form == "generated" else 99
    for name in ("REPEAT_QUBITS", "ONCE_QUBITS", "ROW_QUBITS"):
        monkeypatch.setattr(passes, name, limit)
    ops, out = planned(ladders(rng, num_qubits, 6), precision)
    steps = [step for step in out.steps if not isinstance(step, Relabel)]
    for _ in range(2):  # the second run finds what the first had compiled
        state = cuda.allocate(num_qubits, precision)
        for step in steps:
            cuda.run_step(state, step)
        cuda.compiler.finish()
    assert None not in cuda.compiler.code.values()
    assert bool(cuda.compiler.code) is (form == "generated")
    want = final_vector(out.steps, range(num_qubits))
    assert np.linalg.norm(cuda.vector(state) - want) <= tolerance(len(ops), precision)
