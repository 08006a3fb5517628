"""Rates that ship with the package: measured ones as they are, others in the ratio of data sheets."""

from dataclasses import asdict, fields, replace

import pytest

from qsim_ozaki.engines.cuda import calibrate
from qsim_ozaki.engines.cuda.cards import Card, Properties, data_sheets, measured_cards, scaled, shipped_rates

H200 = "NVIDIA H200"
PEAKS = {  # rate: the peak of the data sheet that bounds it
    "bandwidth_bytes_per_s": "bandwidth_bytes_per_s",
    "double_dense_flops_per_s": "double_matrix_flops_per_s",
    "single_flops_per_s": "single_flops_per_s",
    "int8_ops_per_s": "int8_ops_per_s",
}


def properties(name):
    card = data_sheets()[name]
    return Properties(name, card.architecture, card.processors, card.clock_hz, card.bandwidth_bytes_per_s)


def test_a_measured_card_has_its_measured_rates():
    rates, source = shipped_rates(properties(H200))
    assert rates == measured_cards()[H200]["rates"]
    assert set(rates) == calibrate.FIELDS
    assert source == f"measured on another NVIDIA H200, {measured_cards()[H200]['date']}"


def test_a_card_scaled_to_itself_does_not_change():
    rates, card = measured_cards()[H200]["rates"], data_sheets()[H200]
    same = scaled(rates, card, card)
    assert same | {"dense_times": [list(row) for row in same["dense_times"]]} == rates


@pytest.mark.parametrize("name", sorted(set(data_sheets()) - {H200}))
def test_a_card_of_the_table_stays_below_its_peaks(name):
    rates, source = shipped_rates(properties(name))
    card, base = data_sheets()[name], data_sheets()[H200]
    assert source == "derived from its data sheet and a measured NVIDIA H200"
    assert set(rates) == calibrate.FIELDS
    for rate, peak in PEAKS.items():
        ratio = getattr(card, peak) / getattr(base, peak)
        assert rates[rate] == pytest.approx(ratio * measured_cards()[H200]["rates"][rate])
        assert rates[rate] <= getattr(card, peak)
    shapes = [row[:3] for row in measured_cards()[H200]["rates"]["dense_times"]]
    assert [list(row[:3]) for row in rates["dense_times"]] == shapes
    for k, moduli, n, seconds in rates["dense_times"]:
        assert n < 24 or seconds > 32 * 2.0**n / card.bandwidth_bytes_per_s, "faster than memory"
        if not moduli:
            assert seconds > 6 * 2.0 ** (n + k) / card.double_matrix_flops_per_s, "faster than FP64"


def test_an_unknown_card_is_the_nearest_one_at_its_own_size():
    near = data_sheets()["NVIDIA L40S"]
    gpu = Properties("NVIDIA L40", 89, near.processors // 2, near.clock_hz, near.bandwidth_bytes_per_s)
    rates, source = shipped_rates(gpu)
    assert source == "derived from the data sheet of the nearest card known, NVIDIA L40S and a measured NVIDIA H200"
    known, _ = shipped_rates(properties("NVIDIA L40S"))
    assert rates["int8_ops_per_s"] == pytest.approx(known["int8_ops_per_s"] / 2)
    assert rates["double_flops_per_s"] == pytest.approx(known["double_flops_per_s"] / 2)
    assert rates["bandwidth_bytes_per_s"] == known["bandwidth_bytes_per_s"]
    assert rates["min_gate_seconds"] == pytest.approx(known["min_gate_seconds"])  # of one processor


def test_a_driver_that_states_no_clocks_is_enough():
    rates, source = shipped_rates(Properties("NVIDIA Something New", 120, 170))
    assert "nearest card known, NVIDIA B200" in source
    known, _ = shipped_rates(properties("NVIDIA B200"))
    assert rates["bandwidth_bytes_per_s"] == known["bandwidth_bytes_per_s"]
    assert rates["int8_ops_per_s"] == pytest.approx(known["int8_ops_per_s"] * 170 / 148)


def test_every_peak_of_a_card_matters():
    rates, base = measured_cards()[H200]["rates"], data_sheets()[H200]
    for field in fields(Card):
        if field.name != "architecture":
            better = scaled(rates, base, replace(base, **{field.name: 2 * asdict(base)[field.name]}))
            assert better != scaled(rates, base, base), field.name
