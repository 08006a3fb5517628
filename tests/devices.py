"""Devices that no machine has to be: records of `tests/support/devices.json`."""

import json
from pathlib import Path

from qsim_ozaki.cost import Device

RECORDS = json.loads((Path(__file__).parents[1] / "tests" / "support" / "devices.json").read_text())


DEVICE, H200 = (Device(**RECORDS[name]) for name in ("made up", "NVIDIA H200"))
