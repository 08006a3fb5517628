"""Devices that no machine has to be: records of `benchmarks/devices.json`."""

import json
from pathlib import Path

from qsim_ozaki.cost import Device

RECORDS = json.loads((Path(__file__).parents[1] / "benchmarks" / "devices.json").read_text())


def device_of(record):
    """The device of a record that came through JSON."""
    return Device(**{**record, "blocks": tuple(map(tuple, record.get("blocks", ())))})


DEVICE, H200 = (device_of(RECORDS[name]) for name in ("made up", "NVIDIA H200"))
