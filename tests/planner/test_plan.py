"""Planning on made-up devices: coverage, predictions, choices, and the text that explains them."""

from dataclasses import replace

import numpy as np
import pytest
from support.block_plans import block_steps, plan_of_block
from support.devices import DEVICE, with_abilities, with_memory
from support.random_ops import random_op, random_state, random_unitary
from support.reference import apply_op, tolerance
from support.reference_engine import final_vector

from qsim_ozaki.engines.cpu.engine import create
from qsim_ozaki.errors import CapacityError, OptionError
from qsim_ozaki.ir import (
    EMPTY,
    PAGE_BYTES,
    DenseBlock,
    HadamardPass,
    Kind,
    Op,
    OpList,
    Path,
    Prepare,
    Relabel,
    TilePass,
    state_bytes,
    tile_work,
)
from qsim_ozaki.planner import PlanOptions, plan
from qsim_ozaki.planner.arithmetic import dense_block
from qsim_ozaki.planner.cost import predict_tile
from qsim_ozaki.planner.cost_dense import predict_emulated
from qsim_ozaki.planner.footprint import Extent, Footprint
from qsim_ozaki.planner.fuse import absorb_product
from qsim_ozaki.planner.plans import order_swaps


def run_plan(made, state):
    return final_vector(made.steps, made.final_position, None if made.options.from_zero else state)


def test_a_block_is_emulated_from_its_predicted_crossing_on():
    fast = replace(DEVICE, int8_ops_per_s=2e13, tile_overlap=1.0)
    paths = []
    for k in range(7, 11):
        (step,) = block_steps(k, 20, fast)
        emulated = predict_emulated(step.op, 16, 2.0**20, 20, "double", fast)
        (native,) = (other.prediction for other in block_steps(k, 20, fast, arithmetic="native"))
        assert (step.path is Path.OZAKI) == (emulated.seconds < native.seconds)
        assert step.prediction == min(emulated, native, key=lambda p: p.seconds)
        paths.append(step.path)
    assert paths[0] is Path.NATIVE
    assert "128 x 128 matrix product; emulated with 16 moduli " in plan_of_block(7, 20, fast).explain()
    assert paths[-1] is Path.OZAKI
    # fewer moduli for less accuracy make emulation pay earlier
    assert block_steps(7, 20, fast, accuracy=1e-5)[0].num_moduli < 9
    assert block_steps(10, 20, fast, arithmetic="native")[0].path is Path.NATIVE
    assert block_steps(10, 20, DEVICE)[0].path is Path.NATIVE  # no INT8 rate


def test_an_emulated_block_says_its_moduli_and_its_bound():
    (step,) = block_steps(3, 6, arithmetic="emulated")
    assert (step.path, step.num_moduli) == (Path.OZAKI, 15)
    assert step.error_bound == pytest.approx(6.1e-16, rel=0.01)
    made = plan([step.op], 6, DEVICE, PlanOptions(arithmetic="emulated", accuracy=1e-9))
    assert "ozaki (9 moduli)" in made.explain()
    assert "8 x 8 matrix product, error <= 3.5e-10 of a column's norm, each column checked; native " in made.explain()
    assert not block_steps(2, 6, arithmetic="emulated")


def test_an_accuracy_that_no_moduli_reach_is_refused_with_the_way_out():
    with pytest.raises(
        OptionError, match=r"accuracy=1e-17: the least proved bound for a matrix on 3 qubits is 4.49e-16"
    ):
        block_steps(3, 6, arithmetic="emulated", accuracy=1e-17)
    wide = DenseBlock(Op(Kind.UNITARY, tuple(range(14)), EMPTY))
    with pytest.raises(OptionError, match=r"on 14 qubits was asked for; the limit is 13 qubits"):
        dense_block(wide, 2.0**14, 14, PlanOptions(arithmetic="emulated"), DEVICE)
    assert block_steps(8, 10, accuracy=1e-17)[0].path is Path.NATIVE


@pytest.mark.parametrize("tile_qubits", [3, 5, 8, 12])
@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("restore_order", [False, True])
def test_a_plan_does_what_its_ops_say(rng, tile_qubits, from_zero, restore_order):
    for _ in range(12):
        num_qubits = int(rng.integers(1, 10))
        ops = [random_op(rng, num_qubits, max_targets=min(3, tile_qubits)) for _ in range(int(rng.integers(1, 50)))]
        options = PlanOptions(from_zero=from_zero, restore_order=restore_order)
        made = plan(ops, num_qubits, replace(DEVICE, tile_qubits=tile_qubits), options)
        state = np.eye(1, 1 << num_qubits, dtype=complex)[0] if from_zero else random_state(rng, num_qubits)
        expected = state
        for op in ops:
            expected = apply_op(expected, op)
        if restore_order:
            assert made.final_position == tuple(range(num_qubits))
        assert np.linalg.norm(run_plan(made, state) - expected) <= tolerance(4 * len(ops) + 8)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_sparse_states_of_several_pages(rng, precision):
    """Qubits that stay |0> or |1>, pages never written and empty tiles are left alone."""
    num_qubits, device = 20, replace(DEVICE, tile_qubits=10, line_qubits=3)
    for _ in range(4):
        ones = rng.permutation(num_qubits)[: rng.integers(1, 8)]
        ops = [Op(Kind.PERMUTATION, (int(q),), np.ones(2, complex), permutation=np.array([1, 0])) for q in ones]
        ops += [random_op(rng, num_qubits, max_targets=2) for _ in range(12)]
        made = plan(ops, num_qubits, device, PlanOptions(precision=precision, from_zero=True))
        engine = create(2)
        register = engine.allocate(num_qubits, precision)
        for step in made.steps:
            if not isinstance(step, Relabel):
                engine.run_step(register, step)
        expected = np.zeros(1 << num_qubits, complex)
        expected[0] = 1
        for op in ops:
            expected = apply_op(expected, op)
        index = np.arange(1 << num_qubits)
        got = engine.vector(register)[sum(((index >> q) & 1) << p for q, p in enumerate(made.final_position))]
        assert np.linalg.norm(got - expected) <= tolerance(80, precision)


def test_a_footprint_never_says_less_than_there_is(rng):
    for _ in range(20):
        ops = [random_op(rng, 7, max_targets=2) for _ in range(6)]
        prepare, left, live, ones = absorb_product(ops, 7)
        used = Footprint(7, "double", live, ones, live.bit_count(), pages=0)
        state = np.ones(1, complex)
        for factor in prepare.factors:
            state = np.kron(factor, state)
        for op in left:
            state = apply_op(state, op)
            columns = OpList.of([op])
            used.mix(columns.native.mixed_mask(), columns.native.spread())
            occupied = np.flatnonzero(np.abs(state) > 1e-12)
            assert len(occupied) <= 1 << used.support
            for q in range(7):
                if not used.live >> q & 1:
                    assert np.all((occupied >> q) & 1 == used.ones >> q & 1)


def test_what_is_touched_is_counted_once():
    used = Footprint(20, "double", live=0b111, support=3, pages=0)  # 8 pages of 2**17 amplitudes
    assert used.extent(0) == Extent(0, 8, PAGE_BYTES)
    assert used.extent((1 << 18) - 1) == Extent(2**17, 2**18, PAGE_BYTES)  # the second page is zeroed first
    used.mix(1 << 19, 1)
    assert used.extent(0b111) == Extent(2**4, 2**4, 0)
    used.pages = None
    assert used.extent(0b1111).fresh_bytes == 0


def test_every_tile_holds_what_its_ops_mix_and_the_lowest_qubits(rng):
    ops = [random_op(rng, 12, max_targets=3) for _ in range(120)]
    for step in plan(ops, 12, DEVICE, PlanOptions()).steps:
        if isinstance(step, TilePass):
            assert {0, 1} <= set(step.qubits)
            assert len(step.qubits) <= 6
            assert all(set(op.mixed_qubits) <= set(step.qubits) for op in step.ops)


def test_a_plan_is_a_pure_function(rng):
    ops = [random_op(rng, 9, max_targets=2) for _ in range(60)]
    made = [plan(ops, 9, DEVICE, PlanOptions()).explain() for _ in range(2)]
    assert made[0] == made[1]


def test_a_state_wider_than_a_mask_is_refused_with_the_limit():
    with pytest.raises(
        CapacityError,
        match=r"63 qubits need 128 EiB in double .* has 16 GiB available. Use at most 30 qubits",
    ):
        plan([], 63, DEVICE, PlanOptions())


def test_swaps_move_no_data(rng):
    swap = Op(Kind.PERMUTATION, (0, 3), np.ones(4, complex), permutation=np.array([0, 2, 1, 3]), name="swap")
    made = plan([swap], 4, DEVICE, PlanOptions())
    assert [type(step) for step in made.steps] == [Relabel]
    assert made.final_position == (3, 1, 2, 0)
    assert made.prediction.bytes == 0


def test_order_swaps_undo_any_permutation(rng):
    final = [int(p) for p in rng.permutation(8)]
    holder = {p: q for q, p in enumerate(final)}
    for op in order_swaps(final):
        a, b = op.targets
        holder[a], holder[b] = holder[b], holder[a]
    assert holder == {q: q for q in range(8)}


def test_a_layer_of_hadamards_on_zero_is_one_write():
    ops = [Op(Kind.HADAMARD, tuple(range(10)), EMPTY)]
    made = plan(ops, 10, DEVICE, PlanOptions(from_zero=True))
    assert [type(step) for step in made.steps] == [Prepare]
    assert made.prediction.passes == 0.5


def test_hadamards_on_any_state_take_the_fewest_passes():
    ops = [Op(Kind.HADAMARD, tuple(range(10)), EMPTY)]
    made = plan(ops, 10, DEVICE, PlanOptions())
    assert [type(step) for step in made.steps] == [HadamardPass, HadamardPass]  # ceil((10 - 2) / (6 - 2))
    assert {q for step in made.steps for q in step.qubits} == set(range(10))


def test_diagonals_of_any_width_share_a_pass_with_one_layer(rng):
    ops = [Op(Kind.DIAGONAL, (q, (q + 5) % 10), np.exp(1j * rng.uniform(0, 6, 4))) for q in range(10)]
    made = plan(ops, 10, DEVICE, PlanOptions())
    assert len(made.steps) == 1
    assert tile_work(made.steps[0].ops).phase_layers == 1


def test_a_large_matrix_is_a_step_of_its_own(rng):
    op = Op(Kind.UNITARY, tuple(range(7)), random_unitary(rng, 128))
    made = plan([op], 10, replace(DEVICE, tile_qubits=8), PlanOptions())
    assert [type(step) for step in made.steps] == [DenseBlock]


def test_the_bound_flips_where_the_numbers_say(rng):
    op = Op(Kind.UNITARY, (0, 1), random_unitary(rng, 4))
    amps = 2.0**20
    memory = 32 * amps / DEVICE.memory.bandwidth_bytes_per_s
    arithmetic = 32 * amps / DEVICE.rates["double"].flops_per_s  # 8 flops for each of a row's 4 entries
    crossing = int(memory / arithmetic)
    for count, bound in ((crossing - 1, "memory"), (crossing + 2, "arithmetic")):
        prediction = predict_tile(
            [op] * count, Extent.whole(20), 20, "double", with_memory(DEVICE, cache_bandwidth_bytes_per_s=1e15)
        )
        assert prediction.bound_by == bound
        assert prediction.seconds == pytest.approx(memory + count * arithmetic + 1e-6, rel=1e-6)


def test_explain_names_steps_totals_and_memory(rng):
    ops = [Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in range(8)]
    ops += [Op(Kind.PERMUTATION, (q + 1,), np.ones(2, complex), (q,), 1, np.array([1, 0]), "cx") for q in range(7)]
    made = plan(ops, 8, DEVICE, PlanOptions(from_zero=True))
    text = made.explain()
    for part in ("Prepare product state", "TilePass", " cx", "total:", "made up", "4.0 KiB; 16.0 GiB available (fits)"):
        assert part in text
    assert made.memory_bytes == state_bytes(8, "double") == 4096
    tight = plan(ops, 8, replace(DEVICE, memory_bytes=1000), PlanOptions())
    assert "DOES NOT FIT" in tight.explain()


def brick(rng, num_qubits, layers):
    """Layers of one-qubit unitaries and CZ between neighbours."""
    for layer in range(layers):
        yield from (Op(Kind.UNITARY, (q,), random_unitary(rng, 2)) for q in range(num_qubits))
        pairs = ((q, q + 1) for q in range(layer % 2, num_qubits - 1, 2))
        yield from (Op(Kind.DIAGONAL, pair, np.array([1, 1, 1, -1], complex)) for pair in pairs)


@pytest.mark.parametrize("from_zero", [False, True])
def test_passes_that_move_qubits_do_what_their_ops_do(rng, from_zero):
    n, device = 11, with_abilities(DEVICE, moves_qubits=True)
    moved = 0
    for layers in range(6):
        ops = [*brick(rng, n, layers), *(random_op(rng, n, max_targets=2) for _ in range(20 - 3 * layers))]
        made = plan(ops, n, device, PlanOptions(from_zero=from_zero))
        state = np.eye(1, 1 << n, 0, complex)[0] if from_zero else random_state(rng, n)
        want = state
        for op in ops:
            want = apply_op(want, op)
        assert np.linalg.norm(run_plan(made, state) - want) <= tolerance(len(ops))
        passes = [step for step in made.steps if isinstance(step, TilePass)]
        moved += sum(bool(step.swaps) for step in passes)
        for step in passes:
            assert {0, 1} <= set(step.qubits)
            assert set(sum(step.swaps, ())) <= set(step.qubits)
    assert moved


def test_moves_save_passes_and_are_explained(rng):
    ops, options = list(brick(rng, 20, 12)), PlanOptions()
    still = plan(ops, 20, DEVICE, options)
    moving = plan(ops, 20, with_abilities(DEVICE, moves_qubits=True), options)
    assert moving.prediction.passes < still.prediction.passes
    assert "lowest" in moving.explain()
    ordered = plan(ops, 20, with_abilities(DEVICE, moves_qubits=True), PlanOptions(restore_order=True))
    assert ordered.final_position == tuple(range(20))


def test_a_longer_search_follows_only_where_a_pass_takes_long(rng):
    """Fewer passes where the state is large; the same plan as before where planning would cost more than it saves."""
    native = OpList.of(list(brick(rng, 24, 14))).native
    quick, short, long = (native.search_tiles(24, 9, 7, seconds) for seconds in (0.0, 1e-9, 1.0))
    assert [(tile, len(members)) for tile, _, members in quick] == [(tile, len(m)) for tile, _, m in short]
    assert len(long) < len(quick)
    for found in (quick, long):
        assert sum(len(members) for _, _, members in found) == len(native)
        assert all(tile & 7 == 7 and tile.bit_count() <= 9 for tile, _, _ in found)
