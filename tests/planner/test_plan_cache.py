"""Plans are made once for equal operators, whoever asks, and for nothing that differs."""

from dataclasses import replace

import numpy as np
import pytest
from qiskit import QuantumCircuit
from support.devices import DEVICE, H200
from support.random_ops import ALL_KINDS, random_op

from qsim_ozaki import OzakiBackend
from qsim_ozaki.engines.cpu.engine import CpuEngine
from qsim_ozaki.ir import Kind, Op, OpList
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.planner import cache as plan_cache
from qsim_ozaki.planner.cache import MAX_PLANS, PlanCache
from qsim_ozaki.runtime import executor, preview

EVERY = 1 << 20  # bytes
FORWARD = tuple(range(6))


def random_list(seed, count=20, num_qubits=6):
    rng = np.random.default_rng(seed)
    return OpList.of([random_op(rng, num_qubits, kinds=ALL_KINDS) for _ in range(count)])


@pytest.mark.parametrize("device", [DEVICE, H200], ids=lambda device: device.name)
def test_equal_operators_have_one_plan(device):
    cache = PlanCache()
    first = cache.plan(random_list(1), 6, device, PlanOptions(), FORWARD)
    assert cache.plan(random_list(1), 6, device, PlanOptions(), FORWARD) is first
    assert cache.plan(list(random_list(1)), 6, device, PlanOptions(), FORWARD) is first


def test_less_memory_is_told_and_plans_nothing_anew():
    cache = PlanCache()
    first = cache.plan(random_list(1), 6, DEVICE, PlanOptions(), FORWARD)
    small = replace(DEVICE, memory_bytes=DEVICE.memory_bytes // 2)
    second = cache.plan(random_list(1), 6, small, PlanOptions(), FORWARD)
    assert second.steps is first.steps
    assert (first.device, second.device) == (DEVICE, small)


def test_whatever_differs_has_a_plan_of_its_own():
    cache = PlanCache()
    asked = [
        (random_list(1), 6, DEVICE, PlanOptions(), FORWARD),
        (random_list(2), 6, DEVICE, PlanOptions(), FORWARD),
        (random_list(1, 19), 6, DEVICE, PlanOptions(), FORWARD),
        (random_list(1), 7, DEVICE, PlanOptions(), (*FORWARD, 6)),
        (random_list(1), 6, H200, PlanOptions(), FORWARD),
        (random_list(1), 6, DEVICE, PlanOptions(precision="single"), FORWARD),
        (random_list(1), 6, DEVICE, PlanOptions(from_zero=True), FORWARD),
        (random_list(1), 6, DEVICE, PlanOptions(), FORWARD[::-1]),
    ]
    plans = [cache.plan(*each) for each in asked]
    assert len({id(each) for each in plans}) == len(asked)
    assert [cache.plan(*each) for each in asked] == plans


@pytest.mark.parametrize(
    "other",
    [
        Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 0, name="a"),
        Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 1, name="b"),
        Op(Kind.UNITARY, (0,), np.eye(2)[::-1] * 1j, (1,), 1, name="a"),
        Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (), 0, name="a"),
        Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * -1j, (0,), 1, name="a"),
        Op(Kind.DIAGONAL, (1,), np.array([1, 1j]), (0,), 1, name="a"),
        Op(Kind.PERMUTATION, (1,), np.ones(2), (0,), 1, permutation=np.array([1, 0]), name="a"),
    ],
    ids=["control value", "name", "qubits", "controls", "numbers", "kind", "permutation"],
)
def test_content_tells_operators_apart(other):
    op = Op(Kind.UNITARY, (1,), np.eye(2)[::-1] * 1j, (0,), 1, name="a")
    assert OpList.of([op]).content(EVERY) == OpList.of([op]).content(EVERY)
    assert OpList.of([op]).content(EVERY) != OpList.of([other]).content(EVERY)


def test_permutations_are_told_apart():
    swap, other = (
        Op(Kind.PERMUTATION, (0, 1), np.ones(4), permutation=np.array(places))
        for places in ((0, 2, 1, 3), (0, 1, 3, 2))
    )
    assert OpList.of([swap]).content(EVERY) != OpList.of([other]).content(EVERY)


def test_what_is_large_is_planned_each_time(monkeypatch):
    assert random_list(1).content(100) is None
    monkeypatch.setattr(plan_cache, "MAX_OPS_BYTES", 100)
    cache = PlanCache()
    first, second = (cache.plan(random_list(1), 6, DEVICE, PlanOptions(), FORWARD) for _ in range(2))
    assert first is not second
    assert len(first.steps) == len(second.steps)


def test_no_more_is_kept_than_fits(monkeypatch):
    size = len(random_list(0).content(EVERY))
    monkeypatch.setattr(plan_cache, "MAX_CACHED_BYTES", 5 * size // 2)
    cache = PlanCache()
    first, second, _ = (cache.plan(random_list(0), n, DEVICE, PlanOptions(), range(n)) for n in (6, 7, 8))
    assert cache.plan(random_list(0), 7, DEVICE, PlanOptions(), range(7)) is second
    assert cache.plan(random_list(0), 6, DEVICE, PlanOptions(), range(6)) is not first


def test_the_oldest_are_forgotten():
    cache = PlanCache()
    first = cache.plan(random_list(0, 2), 6, DEVICE, PlanOptions(), FORWARD)
    for seed in range(1, MAX_PLANS):
        cache.plan(random_list(seed, 2), 6, DEVICE, PlanOptions(), FORWARD)
    assert cache.plan(random_list(0, 2), 6, DEVICE, PlanOptions(), FORWARD) is first
    cache.plan(random_list(MAX_PLANS, 2), 6, DEVICE, PlanOptions(), FORWARD)
    assert cache.plan(random_list(0, 2), 6, DEVICE, PlanOptions(), FORWARD) is first
    again = cache.plan(random_list(1, 2), 6, DEVICE, PlanOptions(), FORWARD)
    assert cache.plan(random_list(1, 2), 6, DEVICE, PlanOptions(), FORWARD) is again


def test_a_circuit_that_runs_again_is_planned_once_and_runs_as_shown(monkeypatch):
    made, ran, run_step = [], [], CpuEngine.run_step

    def counted(task):
        made.append(task.options)
        return decide(task)

    def noted(engine, state, step):
        ran.append(step)
        run_step(engine, state, step)

    decide = plan_cache.decide
    monkeypatch.setattr(plan_cache, "decide", counted)
    monkeypatch.setattr(preview, "PLANS", PlanCache())
    monkeypatch.setattr(executor, "PLANS", preview.PLANS)
    monkeypatch.setattr(CpuEngine, "run_step", noted)
    circuit = QuantumCircuit(15)
    for q in range(15):
        circuit.ry(0.1 + q, q)
        circuit.cx(q, (q + 1) % 15)
    circuit.measure_all()
    backend = OzakiBackend()
    shown = [step for each in backend.plan(circuit).plans for step in each.steps]
    counts = [backend.run(circuit, shots=100, seed_simulator=5).result().get_counts() for _ in range(2)]
    assert counts[0] == counts[1]
    assert [options.precision for options in made].count("double") == 1  # single is looked at for advice
    assert [id(step) for step in ran] == [id(step) for step in shown] * 2
