"""The file of a CPU's measured rates: read where it has today's names, measured anew where it has others."""

import json

import pytest

from qsim_ozaki.engines.cpu import calibrate
from qsim_ozaki.ir import MemoryRates, Rates

OLD_NAMES = {"first_touch_bytes_per_s": "touch_bytes_per_s", "double_flops_per_s": "fp64_flops_per_s"} | {
    "single_flops_per_s": "fp32_flops_per_s"
}


@pytest.fixture
def device(monkeypatch, tmp_path):
    """The device for a number of threads, and how often it was measured; ``stored`` is in the file before."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    measured, numbers = [], {name: 10.0 + number for number, name in enumerate(calibrate.RATES)}

    def measure(name, threads):
        measured.append(name)
        return numbers[name]

    rates = {name: lambda threads, name=name: measure(name, threads) for name in numbers}
    monkeypatch.setattr(calibrate, "RATES", rates)
    monkeypatch.setattr(calibrate, "version", lambda package: "0")

    def with_stored(threads, stored):
        file = tmp_path / "qsim-ozaki" / "devices.json"
        file.parent.mkdir(exist_ok=True)
        name = f"{calibrate.processor()} {calibrate._native.isa()} {threads} threads 0"
        file.write_text(json.dumps({name: stored}))
        made = calibrate.cpu_device(threads, 1 << 30)
        return made, measured, json.loads(file.read_text())[name]

    return with_stored


def test_a_record_in_the_file_is_taken_as_it_is(device):
    stored = {name: 1.0 + number for number, name in enumerate(sorted(calibrate.RATES))}
    record, measured, after = device(1001, stored)
    assert not measured
    assert after == stored
    assert record.memory == MemoryRates(
        stored["bandwidth_bytes_per_s"],
        stored["cache_bandwidth_bytes_per_s"],
        stored["fill_bytes_per_s"],
        stored["first_touch_bytes_per_s"],
    )
    assert record.rates == {name: Rates(stored[f"{name}_flops_per_s"]) for name in ("double", "single")}
    assert (record.launch_seconds, record.memory_bytes) == (stored["launch_seconds"], 1 << 30)


def test_a_record_with_the_names_of_an_older_version_is_measured_anew(device):
    record, measured, after = device(1002, {OLD_NAMES.get(name, name): 1.0 for name in calibrate.RATES})
    assert measured == [*calibrate.RATES]
    assert set(after) == {*calibrate.RATES}
    assert record.launch_seconds == after["launch_seconds"] >= 10
