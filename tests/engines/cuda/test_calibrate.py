"""Calibration of a GPU whose clock is a model: what it measures is what the model was made of."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.devices import H200

from qsim_ozaki.cache import DeviceRecords
from qsim_ozaki.engines.cuda import calibrate
from qsim_ozaki.ir import MEASURED_HERE, DenseBlock, MemoryRates, Path, Prepare, Rates
from qsim_ozaki.planner.cost import predict_prepare, predict_tile
from qsim_ozaki.planner.cost_dense import predict_matrix
from qsim_ozaki.planner.footprint import Extent

# a thousandth of a card, so that states of a mebibyte take as long as those of a gibibyte
TRUTH = replace(
    H200,
    memory=MemoryRates(
        **{name: value / 1e3 for name, value in asdict(H200.memory).items()} | {"fill_bytes_per_s": 4e9}
    ),
    rates={
        precision: Rates(**{name: value / 1e3 for name, value in asdict(rates).items()})
        for precision, rates in H200.rates.items()
    },
    int8_ops_per_s=H200.int8_ops_per_s / 1e3,
    dense_times=(),
    launch_seconds=1e-6,
    min_gate_seconds=1e-5,
)
MOST = 17  # qubits


class Event:
    """A point on the model's clock."""

    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.at = self.gpu.now

    def synchronize(self):
        pass


class Gpu:
    """An engine that does nothing and knows how long it took."""

    device_name, architecture, num_processors = "modelled", 90, 4  # of the launcher, which it is itself

    def __init__(self):
        self.now, self.measured, self.launcher, self.device_id = 0.0, 0, self, 0
        self.compiler = SimpleNamespace(finish=lambda: None)
        cuda = SimpleNamespace(
            Event=lambda: Event(self),
            Device=lambda number: SimpleNamespace(compute_capability="90", attributes={}),
            get_elapsed_time=lambda start, end: 1e3 * (end.at - start.at),
            runtime=SimpleNamespace(driverGetVersion=lambda: 13000),
        )
        random = SimpleNamespace(standard_normal=lambda size, dtype: np.ones(size, dtype))
        self.cupy = SimpleNamespace(cuda=cuda, random=random, empty=np.empty)

    def free_bytes(self):
        return 4 * 16 << MOST

    available_bytes = free_bytes

    def allocate(self, qubits, precision):
        self.measured += 1
        amps = np.zeros(1 << qubits, np.complex128 if precision == "double" else np.complex64)
        return SimpleNamespace(num_qubits=qubits, precision=precision, amps=amps)

    def run_step(self, state, step):
        n, precision = state.num_qubits, state.precision
        if isinstance(step, Prepare):
            self.now += predict_prepare(n, n, precision, TRUTH, 0).seconds
        elif isinstance(step, DenseBlock) and step.path is Path.OZAKI:
            self.now += emulated_seconds(1 << len(step.op.targets), step.num_moduli, state.amps.size)
        elif isinstance(step, DenseBlock):
            self.now += predict_matrix(step.op, Extent.whole(n), n, precision, TRUTH).seconds
        else:
            self.now += predict_tile(step.ops, Extent.whole(n), n, precision, TRUTH).seconds

    def forget(self):
        pass

    def launch(self, name, instance, blocks, threads, args):
        assert name == "rate_int8"
        self.now += 2 * 8192 * 8 * 8 * 2000 * self.num_processors / TRUTH.int8_ops_per_s


def emulated_seconds(size, num_moduli, amps):
    """Of a block by emulation, as the model has it."""
    return 1e-4 + 1e-12 * num_moduli * size * amps


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(calibrate, "SUSTAINED", {"double": 1.0, "single": 1.0})  # the model has no power
    monkeypatch.setattr(calibrate.nvrtc, "cache_all", lambda wanted, architecture: list(wanted))
    monkeypatch.setattr(calibrate, "RECORDS", DeviceRecords("cuda-devices.json"))
    monkeypatch.setattr(calibrate, "_shipped", {})
    return Gpu()


def test_the_model_is_found_again(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    assert set(calibrate.measure(gpu)) == calibrate.FIELDS
    calibrate.calibrate(gpu)
    device = calibrate.cuda_device(gpu)
    for name in ("bandwidth_bytes_per_s", "fill_bytes_per_s"):
        assert getattr(device.memory, name) == pytest.approx(getattr(TRUTH.memory, name), rel=0.05), name
    for precision, truth in TRUTH.rates.items():
        for name in ("gate_updates_per_s", "dense_flops_per_s"):
            assert getattr(device.rates[precision], name) == pytest.approx(getattr(truth, name), rel=0.05), name
    for name in ("int8_ops_per_s", "min_gate_seconds"):
        assert getattr(device, name) == pytest.approx(getattr(TRUTH, name), rel=0.05), name
    nothing = 32 * 4096 / TRUTH.memory.bandwidth_bytes_per_s  # on the tiny state
    assert device.launch_seconds == pytest.approx(TRUTH.launch_seconds + nothing)
    for k, moduli, n, seconds in device.dense_times:
        if moduli:
            assert seconds == pytest.approx(emulated_seconds(1 << k, moduli, 1 << n))
        else:
            assert seconds > 8 * 2.0 ** (n + k) / TRUTH.rates["double"].dense_flops_per_s
    rows = [row[:3] for row in device.dense_times]
    assert rows == [(k, moduli, n) for k in (8, 9, 10, 11) for moduli in (0, 9, 16) for n in (11, 13, 15, 17)]


def test_a_measurement_takes_the_place_of_shipped_rates_but_not_one_of_another_version(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    shipped = calibrate.cuda_device(gpu)
    assert shipped.source.startswith("derived from")
    assert gpu.measured == 0
    assert not list(tmp_path.rglob("cuda-devices.json"))
    calibrate.calibrate(gpu)
    count = gpu.measured
    first = calibrate.cuda_device(gpu)
    assert first.source == MEASURED_HERE
    assert first.memory != shipped.memory
    for _ in range(2):
        monkeypatch.setattr(calibrate, "RECORDS", DeviceRecords("cuda-devices.json"))
        assert calibrate.cuda_device(gpu) == first
    assert gpu.measured == count
    (file,) = tmp_path.rglob("cuda-devices.json")
    record = json.loads(file.read_text())
    (name,) = record
    record[name]["mixes_per_s"] = record[name].pop("double_gate_updates_per_s")  # as an older version called it
    file.write_text(json.dumps(record))
    monkeypatch.setattr(calibrate, "RECORDS", DeviceRecords("cuda-devices.json"))
    assert calibrate.cuda_device(gpu) == shipped
    assert gpu.measured == count
