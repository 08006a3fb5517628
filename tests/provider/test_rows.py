"""Rows of parameters: what is planned and packed of a later row is, byte for byte, what it would be alone."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import ParameterVector
from qiskit.circuit.library import efficient_su2
from support.devices import DEVICE, H200
from support.parametric import parametric_circuit
from support.random_ops import random_op, random_unitary

from qsim_ozaki.cache import LruCache
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError
from qsim_ozaki.engines.cuda.codegen.straight import arguments, has_pairs, straight
from qsim_ozaki.engines.cuda.interpreter import compile_tile
from qsim_ozaki.engines.cuda.tile import search as cuda_search
from qsim_ozaki.engines.cuda.tile.items import lower, phases_of
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.estimation.evaluator import make_evaluator
from qsim_ozaki.ir import EMPTY, DenseBlock, Kind, Op, OpList, Prepare, TilePass
from qsim_ozaki.planner import PlanOptions, plan
from qsim_ozaki.planner import cache as plan_cache
from qsim_ozaki.planner.cache import Patterns

EVERY = 1 << 30
FROM_ZERO = PlanOptions(from_zero=True)
QUARTERS = np.pi / 2 * np.arange(-3, 5)


def trotter(num_qubits, steps=2):
    """Steps of an Ising chain whose angles are parameters."""
    angles = ParameterVector("t", 2 * steps)
    circuit = QuantumCircuit(num_qubits)
    for step in range(steps):
        for qubit in range(num_qubits - 1):
            circuit.rzz(angles[2 * step], qubit, qubit + 1)
        circuit.rx(angles[2 * step + 1], range(num_qubits))
    return circuit


CIRCUITS = {
    "efficient_su2": lambda: efficient_su2(16, reps=2, entanglement="linear"),
    "trotter": lambda: trotter(15),
    "all gates": lambda: parametric_circuit(np.random.default_rng(5), 14, 40),
}


class Rows:
    """The rows of a circuit, its parameters one value each or as given."""

    def __init__(self, circuit):
        self.evaluator = make_evaluator(circuit)
        self.num_qubits = self.evaluator.num_qubits
        self.count = circuit.num_parameters

    def ops(self, values):
        """The operators of a row."""
        template, code = self.evaluator.template, self.evaluator.code
        (segment,) = code.filled(template.data(np.reshape(values, (1, -1)))[0]).segments
        return segment.ops

    def plan(self, patterns, values, options=FROM_ZERO, device=H200):
        """The plan of a row, with what is kept; without that, where there is none."""
        make = patterns.plan if patterns else plan
        return make(self.ops(values), self.num_qubits, device, options, tuple(range(self.num_qubits)))


def told(made):
    """All that a plan has, as what compares."""
    steps = []
    for step in made.steps:
        fields = {name: getattr(step, name) for name in step.__slots__}
        if isinstance(step, TilePass):
            fields["ops"] = step.ops.content(EVERY)
            del fields["row"]
        if isinstance(step, Prepare):
            fields["factors"] = fields["factors"].tobytes()
        steps.append((type(step), {name: repr(value) for name, value in fields.items()}))
    return steps, made.final_position, made.prediction, made.device, made.options, made.explain()


def packed(made, precision):
    """Every program of a plan, as what compares."""
    out = []
    for step in made.steps:
        if not isinstance(step, TilePass):
            continue
        passed = (Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits), step.ops, made.num_qubits)
        program = compile_tile(*passed, precision)
        out.append((program.words.tobytes(), program.scale, [(at, table.tobytes()) for at, table in program.tables]))
        try:
            for program in straight(*passed, precision, has_pairs(90)):
                out.append((program.source, program.tables.tobytes(), arguments(program, precision).tobytes()))
        except NotStraightError as error:
            out.append(str(error))
    return out


def values_of_rows(count, rng):
    """Rows of usual angles, of multiples of a quarter turn, of both, and all 0."""
    usual = rng.uniform(-7, 7, (3, count))
    special = rng.choice(QUARTERS, (3, count))
    mixed = np.where(rng.random((3, count)) < 0.3, special, rng.uniform(-7, 7, (3, count)))
    return [*usual, *special, *mixed, np.zeros(count), rng.uniform(-7, 7, count)]


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.parametrize("options", [FROM_ZERO, PlanOptions("single", restore_order=True)], ids=["double", "single"])
def test_rows_are_planned_and_packed_as_if_each_were_alone(rng, monkeypatch, name, options):
    rows, patterns, kept = Rows(CIRCUITS[name]()), Patterns(), LruCache(1 << 24, 4096)
    for values in values_of_rows(rows.count, rng):
        monkeypatch.setattr(cuda_search, "SEARCHES", kept)
        later = rows.plan(patterns, values, options)
        programs = packed(later, options.precision)
        monkeypatch.setattr(cuda_search, "SEARCHES", LruCache(0, 0))
        alone = rows.plan(None, values, options)
        assert told(later) == told(alone), values
        assert programs == packed(alone, options.precision), values
    assert len(kept) > 0


def test_passes_know_that_they_are_of_a_further_row():
    rows, patterns = Rows(trotter(15)), Patterns()
    for number, values in enumerate(([0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.5, 0.0, 0.7, 0.8])):
        made = rows.plan(patterns, values)
        assert {step.row for step in made.steps if isinstance(step, TilePass)} == {number == 1}


@pytest.mark.parametrize("device", [DEVICE, H200], ids=lambda device: device.name)
@pytest.mark.parametrize("name", ["efficient_su2", "trotter"])
def test_what_usual_angles_differ_in_is_no_structure(rng, monkeypatch, name, device):
    """One plan is chosen, each pass is searched once, and a kernel has one source, whatever quadrants angles are in."""
    rows, patterns, decided, searched, sources = Rows(CIRCUITS[name]()), Patterns(), [], [], set()
    decide, search = plan_cache.decide, cuda_search._search
    monkeypatch.setattr(plan_cache, "decide", lambda task: decided.append(task) or decide(task))
    monkeypatch.setattr(cuda_search, "_search", lambda *asked: searched.append(asked) or search(*asked))
    monkeypatch.setattr(cuda_search, "SEARCHES", LruCache(1 << 24, 4096))
    for number, values in enumerate(rng.uniform(-7, 7, (6, rows.count))):
        made = rows.plan(patterns, values, device=device)
        if device is H200:
            sources.add(tuple(program[0] for program in packed(made, "double") if isinstance(program[0], str)))
        if not number:
            first = len(searched)
    assert len(decided) == 1
    assert len(searched) == first
    assert len(sources) == (device is H200)
    rows.plan(patterns, np.zeros(rows.count), device=device)
    assert len(decided) == 2


def test_large_matrices_are_planned_each_time(rng, monkeypatch):
    decided, decide = [], plan_cache.decide
    monkeypatch.setattr(plan_cache, "decide", lambda task: decided.append(task) or decide(task))
    patterns, ops = Patterns(), [random_op(rng, 8, max_targets=6) for _ in range(12)]
    for _ in range(2):
        made = patterns.plan(ops, 8, H200, PlanOptions(arithmetic="emulated"), tuple(range(8)))
        assert any(isinstance(step, DenseBlock) for step in made.steps)
    assert len(decided) == 2


def test_another_memory_is_told():
    rows, patterns = Rows(trotter(15)), Patterns()
    rows.plan(patterns, [0.1, 0.2, 0.3, 0.4])
    small = replace(H200, memory_bytes=1 << 30)
    assert rows.plan(patterns, [0.5, 0.6, 0.7, 0.8], device=small).device == small


def test_rows_may_be_planned_on_threads(rng, monkeypatch):
    monkeypatch.setattr(cuda_search, "SEARCHES", LruCache(1 << 16, 5))
    every = {name: Rows(CIRCUITS[name]()) for name in ("efficient_su2", "trotter")}
    asked = [(name, rng.uniform(-7, 7, rows.count)) for name, rows in every.items() for _ in range(8)]
    expected = [(told(made), packed(made, "double")) for made in (every[name].plan(None, v) for name, v in asked)]
    patterns, together = Patterns(), threading.Barrier(4)

    def work(number):
        order = list(range(len(asked)))
        random.Random(number).shuffle(order)
        together.wait()
        for index in order:
            name, values = asked[index]
            made = every[name].plan(patterns, values)
            assert (told(made), packed(made, "double")) == expected[index]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_items_of_a_rotation_multiply_to_it(rng):
    """And the phases of a real matrix are those of its determinant, of a quarter turn at most of one from RX."""
    turns = {"ry": lambda c, s: [[c, -s], [s, c]], "mirror": lambda c, s: [[c, s], [s, -c]]}
    turns |= {"rx": lambda c, s: [[c, -1j * s], [-1j * s, c]], "any": lambda c, s: random_unitary(rng, 2)}
    seen = {name: set() for name in turns}
    for angle in (*rng.uniform(-7, 7, 20), 1e-9, 1e-300, np.pi / 2, 3.0):
        for name, turn in turns.items():
            u = np.array(turn(np.cos(angle), np.sin(angle)), complex)
            items = lower([Op(Kind.UNITARY, (5,), u)], 4)
            product = np.eye(2, dtype=complex)
            for item in items:
                (cos, sin), terms = item.angle, item.terms
                phases = phases_of([terms.get(0, 0), terms.get(0, 0) + terms.get(1 << 5, 0)])
                product = (np.array([[cos, -sin], [sin, cos]]) if item.mixed else np.diag(phases)) @ product
            np.testing.assert_allclose(product, u, rtol=0, atol=1e-15)
            seen[name].add(tuple((item.kind, tuple(item.terms.items())) for item in items))
    assert seen["ry"] == {(("rotate", ()),)}
    assert seen["mirror"] == {(("terms", ((1 << 5, 1 << 63),)), ("rotate", ()))}
    assert seen["rx"] == {(("terms", ((1 << 5, 3 << 62),)), ("rotate", ()), ("terms", ((1 << 5, 1 << 62),)))}


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 0, name="a"), True),
        (Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 1, name="b"), True),
        (Op(Kind.UNITARY, (0,), np.eye(2)[::-1] * 1j, (1,), 1, name="a"), True),
        (Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (), 0, name="a"), True),
        (Op(Kind.DIAGONAL, (1,), np.array([1, 1j]), (0,), 1, name="a"), True),
        (Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * -1j, (0,), 1, name="a"), False),
    ],
    ids=["control value", "name", "qubits", "controls", "kind", "numbers"],
)
def test_structure_tells_apart_all_but_numbers(other, differs):
    op = Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 1, name="a")
    assert (OpList.of([op]).native.structure() != OpList.of([other]).native.structure()) == differs


def test_structure_tells_apart_numbers_that_plans_depend_on():
    h = np.array([[1, 1], [1, -1]]) * np.sqrt(0.5)
    core, swap = np.diag([1, 1, 1, 1j]) + 0j, np.array([0, 2, 1, 3])
    lists = [
        [Op(Kind.UNITARY, (0,), h + 0j)],
        [Op(Kind.UNITARY, (0,), h[::-1] + 0j)],
        [Op(Kind.HADAMARD, (0,), EMPTY)],
        [Op(Kind.UNITARY, (0, 1), core)],
        [Op(Kind.UNITARY, (0, 1), np.kron(h, h) + 0j)],
        [Op(Kind.PERMUTATION, (0, 1), np.ones(4) + 0j, permutation=swap)],
        [Op(Kind.PERMUTATION, (0, 1), np.array([1, 1, 1, 1j]), permutation=swap)],
        [Op(Kind.PERMUTATION, (0, 1), np.ones(4) + 0j, permutation=swap[::-1])],
    ]
    assert len({OpList.of(ops).native.structure() for ops in lists}) == len(lists)


def test_numbers_come_from_where_operators_come_from(rng):
    ops = [random_op(rng, 6) for _ in range(30)]
    others = [
        Op(op.kind, op.targets, op.data * np.exp(1j * (number + 1)), op.controls, op.ctrl_state, op.permutation)
        for number, op in enumerate(ops)
    ]
    first, second = OpList.of(ops), OpList.of(others)
    first.native.number()
    early, rest = first.native.part(3, 30), first.native.split_live(0)[1]
    moved, _ = rest.relabel_swaps([1, 2, 3, 4, 5, 0])
    own = np.array([np.exp(1j * (number + 1)) for number in range(len(ops))])
    for part in (early, moved):
        phases = []
        assert OpList(part.with_data(first.native)).content(EVERY) == OpList(part).content(EVERY)
        for op, original in zip(OpList(part.with_data(second.native)), OpList(part), strict=True):
            assert (op.kind, op.targets, op.controls) == (original.kind, original.targets, original.controls)
            if op.data.size:
                ratios = op.data[original.data != 0] / original.data[original.data != 0]
                np.testing.assert_allclose(ratios, ratios[0])
                phases.append(int(np.argmin(np.abs(own - ratios[0]))))
                np.testing.assert_allclose(ratios[0], own[phases[-1]])
        assert len(set(phases)) == len(phases) > 3  # each has its own
    with pytest.raises(ValueError, match="another structure"):
        early.with_data(OpList.of(ops[:1]).native)
