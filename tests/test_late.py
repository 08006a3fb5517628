"""Operators in parts that need few qubits first: nothing lost, an order that commutes, states that stay small."""

from dataclasses import replace

import numpy as np
import pytest
import tile_twin
from devices import DEVICE, H200
from random_ops import random_op, swap_ops
from reference import apply_ops, tolerance, zero_state

from qsim_ozaki import late
from qsim_ozaki.circuits import build
from qsim_ozaki.cpu import create
from qsim_ozaki.cuda_layout import Tile
from qsim_ozaki.cuda_program import compile_tile
from qsim_ozaki.lower import lower
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Kind, Op, Relabel, TilePass
from qsim_ozaki.plan import PlanOptions, plan

CYCLE = np.eye(4, dtype=complex)[[0, 2, 3, 1]]


def brick(rng, num_qubits, layers):
    """A chain of random operators on neighbours: what reaches a qubit grows by one a layer."""
    ops = []
    for layer in range(layers):
        for q in range(layer % 2, num_qubits - 1, 2):
            op = random_op(rng, 2, max_targets=2)
            ops.append(
                replace(op, targets=tuple(q + t for t in op.targets), controls=tuple(q + c for c in op.controls))
            )
    return ops


@pytest.mark.parametrize("live", [0b0, 0b1111, 0b1010101, 0b1111110, 0b1111111])
def test_a_split_commutes_loses_nothing_and_changes_only_what_is_live(rng, live):
    for _ in range(10):
        ops = [random_op(rng, 7, max_targets=3) for _ in range(40)]
        first, second = (OpList(part) for part in OpList.of(ops).native.split_live(live))
        assert len(first) + len(second) == len(ops)
        assert not first.native.mixed_mask() & ~live
        state = rng.normal(size=128) + 1j * rng.normal(size=128)
        state /= np.linalg.norm(state)
        assert np.linalg.norm(apply_ops(state, [*first, *second]) - apply_ops(state, ops)) <= tolerance(40)


def test_the_qubit_of_which_least_depends_is_the_latest():
    ops = [Op(Kind.UNITARY, (q, q + 1), CYCLE) for q in (4, 0, 1, 2, 3, 0, 1, 2)]
    # a chain upwards: 5 is reached once, before all others; without it 4 of 8 may not act
    assert OpList.of(ops).native.late_qubits(0b111111, 6)[0] == 5
    assert sorted(OpList.of(ops).native.late_qubits(0b111100, 9)) == [2, 3, 4, 5]
    assert OpList.of(ops).native.late_qubits(0, 3) == []


def test_parts_need_more_and_more_qubits(rng):
    ops = OpList.of(brick(rng, 16, 12))
    ways = late.parts(ops, 16, 2, seconds=1.0)
    assert len(ways) == len(late.WAYS)
    for way, counts in zip(ways, late.WAYS, strict=True):
        assert sum(len(part) for part in way) == len(ops)
        reached = 0
        for part, count in zip(way, counts, strict=False):
            reached |= part.native.mixed_mask()
            assert reached.bit_count() <= 16 - count
    assert late.parts(ops, 16, 2, seconds=0.0) == []


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("moves", [False, True])
def test_plans_in_parts_give_the_state(rng, precision, moves):
    """On a device so slow that every way of planning pays."""
    device = replace(DEVICE, moves_qubits=moves, bandwidth_bytes_per_s=1e5)
    smaller = 0
    for num_qubits in (7, 9, 11, 13):
        ops = brick(rng, num_qubits, int(rng.integers(2, 9)))
        made = plan(ops, num_qubits, device, PlanOptions(precision=precision, from_zero=True))
        whole = plan(ops, num_qubits, device, PlanOptions(precision=precision))
        smaller += made.prediction.seconds < 0.8 * whole.prediction.seconds
        engine = create(2)
        register = engine.allocate(num_qubits, precision)
        for step in made.steps:
            if isinstance(step, TilePass) and step.swaps:
                step = replace(step, ops=(*step.ops, *swap_ops(step.swaps)), swaps=())
            if not isinstance(step, Relabel):
                engine.run_step(register, step)
        index = np.arange(1 << num_qubits)
        place = sum(((index >> q) & 1) << p for q, p in enumerate(made.final_position))
        expected = apply_ops(zero_state(num_qubits), ops)
        assert np.linalg.norm(engine.vector(register)[place] - expected) <= tolerance(len(ops), precision)
    assert smaller


@pytest.mark.parametrize("moves", [False, True])
def test_plans_on_memory_that_holds_no_zeros(rng, moves):
    """As a GPU does it: one amplitude is written, and each pass writes what it does not read."""
    device = replace(H200, tile_qubits=7, moves_qubits=moves, bandwidth_bytes_per_s=1e5)
    alone = 0
    for num_qubits in (13, 14, 15):
        ops = brick(rng, num_qubits, int(rng.integers(2, 7)))
        made = plan(ops, num_qubits, device, PlanOptions(from_zero=True))
        prepare, *passes = (step for step in made.steps if not isinstance(step, Relabel))
        alone += prepare.alone
        if not prepare.alone:
            continue
        state = np.full(1 << num_qubits, np.nan, complex)
        state[0] = prepare.factors[:, 0].prod()
        for step in passes:
            tile = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            state = tile_twin.run(compile_tile(tile, step.ops, num_qubits, "double"), state, "double")
        index = np.arange(1 << num_qubits)
        place = sum(((index >> q) & 1) << p for q, p in enumerate(made.final_position))
        expected = apply_ops(zero_state(num_qubits), ops)
        assert np.linalg.norm(state[place] - expected) <= tolerance(len(ops))
    assert alone


def test_early_passes_of_a_shallow_chain_touch_little():
    """Ten Trotter steps: qubit 29 is reached by its neighbours alone."""
    (ops,) = lower(build("trotter_ising", 30)).body
    made = plan(ops, 30, H200, PlanOptions(from_zero=True))
    whole = plan(ops, 30, H200, PlanOptions())
    passes = [step for step in made.steps if isinstance(step, TilePass)]
    assert made.prediction.passes < 0.5 * whole.prediction.passes
    zeros = [len(step.zero_qubits) for step in passes]
    assert zeros == sorted(zeros, reverse=True)
