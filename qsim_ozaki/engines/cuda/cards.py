"""Rates of common GPUs, which ship with the package: a first run does not wait for a measurement.

In: the name and the properties of a GPU. Out: rates that were measured on such a card, or derived from data sheets. It
may not touch a GPU.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

CARDS_FILE = Path(__file__).with_name("cards.json")


@dataclass(frozen=True, slots=True)
class Card:
    """The peak rates of a GPU in its vendor's data sheet, without sparsity.

    Attributes:
        architecture: compute capability times ten.
        processors: number of streaming multiprocessors.
        clock_hz: their highest clock.
        bandwidth_bytes_per_s: of the memory.
        double_flops_per_s: FP64, without tensor cores.
        double_matrix_flops_per_s: FP64 by tensor cores; without such, as above.
        single_flops_per_s: FP32, without tensor cores.
        int8_ops_per_s: INT8 by tensor cores.
    """

    architecture: int
    processors: int
    clock_hz: float
    bandwidth_bytes_per_s: float
    double_flops_per_s: float
    double_matrix_flops_per_s: float
    single_flops_per_s: float
    int8_ops_per_s: float


@dataclass(frozen=True, slots=True)
class Properties:
    """What a driver says of a GPU.

    Attributes:
        name: the GPU's name.
        architecture: compute capability times ten.
        processors: number of streaming multiprocessors.
        clock_hz: their highest clock; 0 if the driver does not state it.
        bandwidth_bytes_per_s: from clock and width of the memory; 0 if the driver does not state them.
    """

    name: str
    architecture: int
    processors: int
    clock_hz: float = 0.0
    bandwidth_bytes_per_s: float = 0.0


@cache
def data_sheets() -> dict[str, Card]:
    """Returns the cards of the table, by the name that the driver reports."""
    return {name: Card(**row) for name, row in _table()["data_sheets"].items()}


@cache
def measured_cards() -> dict[str, dict[str, Any]]:
    """Returns the shipped measurements by the name of the GPU: ``date``, ``driver`` and ``rates``."""
    measured: dict[str, dict[str, Any]] = _table()["measured"]
    return measured


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(CARDS_FILE.read_text(encoding="utf-8"))
    return table


def shipped_rates(gpu: Properties) -> tuple[dict[str, Any], str]:
    """Returns rates of ``gpu`` by the names that a measurement has, and words that say where they come from."""
    measured = measured_cards().get(gpu.name)
    if measured is not None:
        return measured["rates"], f"measured on another {gpu.name}, {measured['date']}"
    card, nearest = _card(gpu)
    base = _nearest(card, {name: data_sheets()[name] for name in measured_cards()})
    rates = scaled(measured_cards()[base]["rates"], data_sheets()[base], card)
    from_sheet = "its data sheet" if nearest == gpu.name else f"the data sheet of the nearest card known, {nearest}"
    return rates, f"derived from {from_sheet} and a measured {base}"


def _card(gpu: Properties) -> tuple[Card, str]:
    """Returns the peak rates of ``gpu``, and the name of the card of the table from which they come."""
    known = data_sheets().get(gpu.name)
    if known is not None:
        return known, gpu.name
    lacking = Card(gpu.architecture, gpu.processors, gpu.clock_hz, gpu.bandwidth_bytes_per_s, 0, 0, 0, 0)
    name = _nearest(lacking, data_sheets())
    near = data_sheets()[name]
    clock = gpu.clock_hz or near.clock_hz
    size = gpu.processors * clock / (near.processors * near.clock_hz)
    return Card(
        architecture=gpu.architecture,
        processors=gpu.processors,
        clock_hz=clock,
        bandwidth_bytes_per_s=gpu.bandwidth_bytes_per_s or near.bandwidth_bytes_per_s,
        double_flops_per_s=size * near.double_flops_per_s,
        double_matrix_flops_per_s=size * near.double_matrix_flops_per_s,
        single_flops_per_s=size * near.single_flops_per_s,
        int8_ops_per_s=size * near.int8_ops_per_s,
    ), name


def _nearest(card: Card, others: Mapping[str, Card]) -> str:
    """Returns the name of the card of the nearest architecture, and among several the one of the nearest bandwidth."""

    def distance(name: str) -> tuple[int, float]:
        other = others[name]
        ratio = (card.bandwidth_bytes_per_s or other.bandwidth_bytes_per_s) / other.bandwidth_bytes_per_s
        return abs(card.architecture - other.architecture), abs(math.log(ratio))

    return min(others, key=distance)


def scaled(rates: Mapping[str, Any], base: Card, card: Card) -> dict[str, Any]:
    """Returns the rates of ``card`` if it reaches the share of its peaks that ``base`` reached of its own.

    Work in a tile of double precision is bound by FP64, of single precision by FP32. Products of single precision run
    on the tensor cores of TF32, whose peak differs between cards as that of INT8 does. Memory and INT8 share the time
    of an emulated block, so the smaller of both ratios counts; likewise memory and FP64 for a native block.

    Args:
        rates: measured on ``base``.
        base: its data sheet.
        card: the data sheet of the other card.
    """
    ratio = Card(**{field.name: getattr(card, field.name) / getattr(base, field.name) for field in fields(Card)})
    per_processor = ratio.double_flops_per_s / ratio.processors
    native = min(ratio.double_matrix_flops_per_s, ratio.bandwidth_bytes_per_s)
    emulated = min(ratio.int8_ops_per_s, ratio.bandwidth_bytes_per_s)
    factors = {
        "double_flops_per_s": ratio.double_flops_per_s,
        "double_gate_updates_per_s": ratio.double_flops_per_s,
        "double_dense_flops_per_s": ratio.double_matrix_flops_per_s,
        "single_flops_per_s": ratio.single_flops_per_s,
        "single_gate_updates_per_s": ratio.single_flops_per_s,
        "single_dense_flops_per_s": ratio.int8_ops_per_s,
        "bandwidth_bytes_per_s": ratio.bandwidth_bytes_per_s,
        "fill_bytes_per_s": ratio.bandwidth_bytes_per_s,
        "cache_bandwidth_bytes_per_s": ratio.processors * ratio.clock_hz,
        "int8_ops_per_s": ratio.int8_ops_per_s,
        "launch_seconds": 1.0,  # of the driver and the host
        "min_gate_seconds": 1 / min(ratio.clock_hz, per_processor),  # one processor works on a small state
    }
    times = [
        (k, moduli, n, seconds / (emulated if moduli else native)) for k, moduli, n, seconds in rates["dense_times"]
    ]
    return {name: rates[name] * factor for name, factor in factors.items()} | {"dense_times": times}
