"""What steps are predicted to take on a GPU: terms, limits, and measured times of an H200."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.devices import DEVICE
from support.random_ops import random_unitary

from qsim_ozaki.engines.probes import fourier, mixing_layers, rotations
from qsim_ozaki.ir import EMPTY, DenseBlock, DenseTime, Device, Kind, Op, OpList, tile_work
from qsim_ozaki.ir import Path as Arithmetic
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.planner.arithmetic import NATIVE_BLOCK_QUBITS, dense_block
from qsim_ozaki.planner.cost import predict_tile
from qsim_ozaki.planner.cost_dense import predict_emulated, predict_matrix, predict_pass
from qsim_ozaki.planner.footprint import Extent

RATES = {
    "double": replace(DEVICE.rates["double"], gate_updates_per_s=1e12, dense_flops_per_s=1e13),
    "single": replace(DEVICE.rates["single"], gate_updates_per_s=2e12, dense_flops_per_s=2e13),
}
GPU = replace(
    DEVICE, rates=RATES, tile_overlap=0.25, min_gate_seconds=1e-7, dense_overlap=0.5, int8_ops_per_s=1e15,
    min_compiled_qubits=12,
)  # fmt: skip
CX = Op(Kind.PERMUTATION, (1,), np.ones(2, complex), (0,), 1, np.array([1, 0]), "cx")


def unitary(rng, k, controls=()):
    return Op(Kind.UNITARY, tuple(range(k)), random_unitary(rng, 1 << k), controls, (1 << len(controls)) - 1)


def test_operators_that_mix_are_counted_by_the_amplitudes_they_act_on(rng):
    assert tile_work(rotations(range(5), 3)).gate_updates == 15
    assert tile_work([Op(Kind.HADAMARD, (0, 1, 2), EMPTY)]).gate_updates == 3
    assert tile_work([CX, CX]).gate_updates == 1
    assert tile_work([unitary(rng, 2)] * 5).gate_updates == 20
    assert tile_work(mixing_layers(range(8), 2)).gate_updates == 2 * (8 + 8 + 8 + 4)
    assert tile_work([Op(Kind.DIAGONAL, (0, 1), np.array([1, 1, 1, -1], complex))]).gate_updates == 0
    wide = tile_work([unitary(rng, 3), unitary(rng, 4, (4, 5))])
    assert (wide.gate_updates, wide.wide_matrices, wide.wide_flops) == (0, 2, 64 + 128 / 4)


def test_measured_operators_are_unitary():
    for op in mixing_layers(range(6), 2):
        matrix = op.matrix()
        assert np.allclose(matrix @ matrix.conj().T, np.eye(len(matrix)), atol=1e-14)
    assert np.allclose(fourier(5) @ fourier(5).conj().T, np.eye(32), atol=1e-14)
    assert np.allclose(fourier(3)[1], np.exp(2j * np.pi * np.arange(8) / 8) / 8**0.5)


@pytest.mark.parametrize(("precision", "rate"), [("double", 1e12), ("single", 2e12)])
def test_memory_and_operators_of_a_pass_add_up_but_for_what_overlaps(precision, rate):
    amps = 2.0**24
    memory = (32 if precision == "double" else 16) * amps / GPU.memory.bandwidth_bytes_per_s
    for layers in (0, 1, 40):
        ops = rotations(range(6), layers) or [Op(Kind.DIAGONAL, (0,), np.array([1, 1j]))]
        found = predict_tile(ops, Extent.whole(24), 24, precision, GPU)
        inside = 6 * layers * amps / rate
        assert found.seconds == pytest.approx(max(memory, 0.75 * memory + inside) + GPU.launch_seconds)
        assert found.bound_by == ("arithmetic" if inside > memory else "memory")


@pytest.mark.parametrize(("num_qubits", "seconds"), [(10, 1e-7), (11, 1e-7), (12, 2.0**12 / 1e12)])
def test_an_operator_on_few_amplitudes_takes_its_latency_where_it_is_interpreted(num_qubits, seconds):
    memory = 32 * 2.0**num_qubits / GPU.memory.bandwidth_bytes_per_s
    found = predict_tile(rotations(range(6), 100), Extent.whole(num_qubits), num_qubits, "double", GPU)
    assert found.seconds == pytest.approx(600 * seconds + 0.75 * memory + GPU.launch_seconds)


def test_wide_matrices_of_a_pass_are_passes_of_their_own(rng):
    whole, wide, narrow = Extent.whole(20), unitary(rng, 4), unitary(rng, 1)
    alone = predict_pass(OpList.of([wide]), whole, 20, "double", GPU)
    assert alone == predict_matrix(wide, whole, 20, "double", GPU)
    assert alone.passes == 1
    both = predict_pass(OpList.of([narrow, wide]), whole, 20, "double", GPU)
    assert both.seconds == pytest.approx(alone.seconds + predict_tile([narrow], whole, 20, "double", GPU).seconds)
    assert both.passes == 2


def test_a_matrix_takes_no_less_than_memory_and_launches():
    memory, extent = 32 * 2.0**20 / GPU.memory.bandwidth_bytes_per_s, Extent.whole(20)
    for k in (3, 6, 9):
        inside = 8 * 2.0 ** (20 + k) / RATES["double"].dense_flops_per_s
        found = predict_matrix(Op(Kind.UNITARY, tuple(range(k)), EMPTY), extent, 20, "double", GPU)
        assert found.seconds == pytest.approx(max(memory, memory / 2 + inside) + GPU.launch_seconds)
    controlled = Op(Kind.UNITARY, tuple(range(9)), EMPTY, (9, 10), 3)
    assert predict_matrix(controlled, extent, 20, "double", GPU).flops == 8 * 2.0 ** (20 + 9 - 2)


def test_blocks_follow_their_measured_times():
    emulated = ((8, 9, 20, 2e-4), (8, 9, 22, 3e-4), (8, 9, 24, 8e-4), (8, 16, 20, 2e-4), (8, 16, 24, 15e-4))
    native = ((8, 0, 20, 1e-4), (8, 0, 24, 9e-4))
    device = replace(GPU, dense_times=tuple(DenseTime(*row) for row in native + emulated))

    def seconds(k, moduli, amps, device=device, precision="double"):
        op = Op(Kind.UNITARY, tuple(range(k)), EMPTY)
        if not moduli:
            return predict_matrix(op, Extent(amps, amps), 24, precision, device).seconds
        return predict_emulated(op, moduli, amps, 24, precision, device).seconds

    for k, moduli, n, measured in device.dense_times:
        assert seconds(k, moduli, 2.0**n) == pytest.approx(measured)
    assert seconds(8, 9, 2.0**10) == seconds(7, 9, 2.0**20) == 2e-4  # launches
    assert seconds(8, 9, 2.0**23) == pytest.approx(3e-4 + 5e-4 / 3)
    assert seconds(8, 9, 2.0**25) == pytest.approx(8e-4 + 5e-4 * 4 / 3)
    assert seconds(8, 12.5, 2.0**24) == pytest.approx(11.5e-4)
    rest = (1024 - 256) * 2.0**24
    assert seconds(10, 9, 2.0**24) == pytest.approx(8e-4 + 4 * 9 * rest / GPU.int8_ops_per_s)
    assert seconds(10, 0, 2.0**24) == pytest.approx(9e-4 + 8 * rest / RATES["double"].dense_flops_per_s)
    for k, precision in ((7, "double"), (8, "single")):
        assert seconds(k, 0, 2.0**24, precision=precision) == seconds(k, 0, 2.0**24, GPU, precision)


def test_an_h200_takes_the_faster_arithmetic_at_every_measured_size():
    """Times of `emulated_session.py`, part auto, and the device beside them."""
    rows = json.loads((Path(__file__).parents[2] / "benchmarks" / "records" / "auto_h200.json").read_text())["rows"]
    device = Device.from_record(next(row["device"] for row in rows if "device" in row))
    compared = 0
    for row in rows:
        if "moduli" not in row or row["k"] < NATIVE_BLOCK_QUBITS:
            continue
        op, n = Op(Kind.UNITARY, tuple(range(row["k"])), EMPTY), row["n"]
        native = DenseBlock(op, prediction=predict_matrix(op, Extent.whole(n), n, "double", device))
        options = PlanOptions(accuracy={"parity": None, "34 bits": 4e-9}[row["accuracy"]])
        chosen = dense_block(native, 2.0**n, n, options, device)
        taken = "emulated_ms" if chosen.path is Arithmetic.OZAKI else "native_ms"
        assert row[taken] <= 1.05 * min(row["native_ms"], row["emulated_ms"]), row
        assert 0.6 < 1e3 * chosen.prediction.seconds / row[taken] < 1.5, row
        compared += 1
    assert compared == 5 * 6 * 2
