"""Devices that no machine has to be: records of `benchmarks/devices.json`."""

import json
from pathlib import Path

from qsim_ozaki.cost import Device

RECORDS = json.loads((Path(__file__).parents[1] / "benchmarks" / "devices.json").read_text())


DEVICE, H200 = (Device(**RECORDS[name]) for name in ("made up", "NVIDIA H200"))
