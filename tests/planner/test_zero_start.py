"""Operators in parts that need few qubits first: nothing lost, an order that commutes, states that stay small."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from support import tile_twin
from support.devices import DEVICE, H200, with_abilities, with_memory
from support.random_ops import KINDS, SMALL_KINDS, random_op
from support.reference import apply_ops, tolerance, zero_state
from support.reference_engine import final_vector

from qsim_ozaki.circuits import build
from qsim_ozaki.engines.cuda.interpreter import compile_tile
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.ir import Kind, Op, OpList, Relabel, TilePass
from qsim_ozaki.lowering import lower
from qsim_ozaki.planner import PlanOptions, plan, zero_start
from qsim_ozaki.planner.footprint import Footprint
from qsim_ozaki.planner.passes import Passes, TileSearch
from qsim_ozaki.planner.zero_start import LateQubits

CYCLE = np.eye(4, dtype=complex)[[0, 2, 3, 1]]


def brick(rng, num_qubits, layers, kinds=KINDS):
    """A chain of random operators on neighbours: what reaches a qubit grows by one a layer."""
    ops = []
    for layer in range(layers):
        for q in range(layer % 2, num_qubits - 1, 2):
            op = random_op(rng, 2, max_targets=2, kinds=kinds)
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
    assert OpList.of(ops).native.longest_zero_qubits(0b111111, 6)[0] == 5
    assert sorted(OpList.of(ops).native.longest_zero_qubits(0b111100, 9)) == [2, 3, 4, 5]
    assert OpList.of(ops).native.longest_zero_qubits(0, 3) == []


STAGINGS = (*zero_start.STAGINGS, *zero_start.RARE_STAGINGS)


@pytest.mark.parametrize("staging", STAGINGS)
def test_parts_need_more_and_more_qubits(rng, staging):
    ops = OpList.of(brick(rng, 16, 12))
    late = LateQubits(ops, 16, 2, max(staging))
    reached = 0
    split = late.parts(staging)
    assert sum(len(part) for part in split) == len(ops)
    for part, count in zip(split, staging, strict=False):
        reached |= part.native.mixed_mask()
        assert reached.bit_count() <= 16 - count
    assert late.share() == len(late.parts((2,))[0]) / len(ops)


def tile_search(device, num_qubits, ops, precision="double"):
    return TileSearch(num_qubits, [ops], device, PlanOptions(precision), 0.2)


@pytest.mark.parametrize("moves", [False, True])
def test_every_staging_gives_the_same_state(rng, moves):
    device = with_abilities(DEVICE, moves_qubits=moves)
    for num_qubits in (8, 11, 13):
        for ops in (
            OpList.of(brick(rng, num_qubits, int(rng.integers(2, 9)))),
            OpList.of([random_op(rng, num_qubits, max_targets=2) for _ in range(30)]),
        ):
            expected = apply_ops(zero_state(num_qubits), ops)
            for staging in (*STAGINGS, ()):
                split = LateQubits(ops, num_qubits, 2, max(staging, default=0)).parts(staging)
                search = tile_search(device, num_qubits, ops)
                passes = search.passes(search.chain(split, 0), Footprint(num_qubits, "double", 0, pages=0))
                error = np.linalg.norm(final_vector(passes.steps, passes.place) - expected)
                assert error <= tolerance(len(ops)), (num_qubits, staging)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("device", [with_memory(DEVICE, bandwidth_bytes_per_s=1e7), H200], ids=["slow", "H200"])
def test_parts_are_never_predicted_to_take_longer_than_one(rng, device, precision):
    shorter = 0
    for num_qubits, layers in ((16, 4), (20, 8), (27, 8), (30, 12), (30, 8)):
        ops = OpList.of(brick(rng, num_qubits, layers))
        search = tile_search(device, num_qubits, ops, precision)
        used = Footprint(num_qubits, precision, 0, support=0, skips_zeros=device.abilities.skips_zeros)
        whole = search.passes(search.chain([ops], 0), used)
        cheapest = zero_start.cheapest_parts(ops, used, search)
        assert sum(len(part) for part in cheapest.parts) == len(ops)
        seconds = sum(step.prediction.seconds for step in whole.steps)
        assert cheapest.seconds == sum(step.prediction.seconds for step in cheapest.passes.steps) <= seconds
        shorter += cheapest.seconds < seconds
    assert shorter


def test_no_parts_where_planning_them_takes_longer_than_they_may_save(rng):
    ops = OpList.of(brick(rng, 16, 4))
    rates = H200.rates | {"double": replace(H200.rates["double"], gate_updates_per_s=1e20)}
    device = replace(with_memory(H200, bandwidth_bytes_per_s=1e20), rates=rates, launch_seconds=0.0)
    search = tile_search(device, 16, ops)
    cheapest = zero_start.cheapest_parts(ops, Footprint(16, "double", 0, skips_zeros=True), search)
    assert cheapest.parts == [ops]


def test_a_tile_with_room_for_a_line_may_be_followed_by_any():
    """Qubits 0 to 2 first, then 7 to 12: a tile of six holds all of those if the one before held two of them."""
    device = with_abilities(DEVICE, moves_qubits=True)
    first, second = (
        OpList.of([Op(Kind.UNITARY, (q, q + 1), CYCLE) for q in range(low, high)]) for low, high in ((0, 2), (7, 12))
    )
    search = tile_search(device, 13, first)
    (tile,) = search.tiles(first, 0, search.first())
    after = search.end([tile])
    assert after.free
    assert len(search.tiles(second, 0b111, after)) == 1
    assert len(search.tiles(second, 0b111, replace(after, free=False))) == 2
    passes = search.passes(search.chain([first, second], 0), Footprint(13, "double", 0, pages=0))
    assert [len(step.qubits) <= 6 for step in passes.steps] == [True, True]
    assert passes.steps[0].swaps
    expected = apply_ops(zero_state(13), [*first, *second])
    assert np.array_equal(final_vector(passes.steps, passes.place), expected)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("moves", [False, True])
def test_plans_in_parts_give_the_state(rng, precision, moves):
    """On a device so slow that every staging pays."""
    device = with_memory(with_abilities(DEVICE, moves_qubits=moves), bandwidth_bytes_per_s=1e5)
    smaller = 0
    for num_qubits in (7, 9, 11, 13):
        ops = brick(rng, num_qubits, int(rng.integers(2, 9)))
        made = plan(ops, num_qubits, device, PlanOptions(precision=precision, from_zero=True))
        whole = plan(ops, num_qubits, device, PlanOptions(precision=precision))
        smaller += made.prediction.seconds < 0.8 * whole.prediction.seconds
        passes = Passes([step for step in made.steps if not isinstance(step, Relabel)], made.final_position)
        expected = apply_ops(zero_state(num_qubits), ops)
        state = final_vector(passes.steps, passes.place, precision=precision)
        assert np.linalg.norm(state - expected) <= tolerance(len(ops), precision)
    assert smaller


@pytest.mark.parametrize("moves", [False, True])
def test_plans_on_memory_that_holds_no_zeros(moves):
    """As a GPU does it: one amplitude is written, and each pass writes what it does not read."""
    device = with_memory(with_abilities(replace(H200, tile_qubits=7), moves_qubits=moves), bandwidth_bytes_per_s=1e5)
    alone = 0
    rngs = [np.random.default_rng(seed) for seed in (1, 2)]  # few plans write one amplitude; these draws' widest do
    for num_qubits, rng in product((13, 14, 15), rngs):
        ops = brick(rng, num_qubits, int(rng.integers(2, 7)), SMALL_KINDS)
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


@pytest.mark.parametrize("precision", ["double", "single"])
def test_early_passes_of_a_shallow_chain_touch_little(precision):
    """Ten Trotter steps: qubit 29 is reached by its neighbours alone, and one pass is left that works on all."""
    (ops,) = lower(build("trotter_ising", 30)).body
    made = plan(ops, 30, H200, PlanOptions(precision=precision, from_zero=True))
    whole = plan(ops, 30, H200, PlanOptions(precision=precision))
    passes = [step for step in made.steps if isinstance(step, TilePass)]
    assert made.prediction.passes < 0.9
    assert made.prediction.seconds < 0.5 * whole.prediction.seconds
    zeros = [len(step.zero_qubits) for step in passes]
    assert zeros == sorted(zeros, reverse=True)
