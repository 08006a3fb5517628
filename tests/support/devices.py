"""Devices that no machine has to be: records of `tests/support/devices.json`."""

import json
from dataclasses import replace
from pathlib import Path

from qsim_ozaki.ir import Device

RECORDS = json.loads((Path(__file__).parent / "devices.json").read_text())


DEVICE, H200 = (Device.from_record(RECORDS[name]) for name in ("made up", "NVIDIA H200"))


def with_memory(device, **rates):
    """``device`` with other rates of memory."""
    return replace(device, memory=replace(device.memory, **rates))


def with_abilities(device, **abilities):
    """``device`` with other abilities."""
    return replace(device, abilities=replace(device.abilities, **abilities))
