"""The CPU engine: the compiled extension's kernels, and the measurement of this machine."""

from qsim_ozaki.engines.cpu.calibrate import processor
from qsim_ozaki.engines.cpu.engine import available_memory_bytes

__all__ = [
    "available_memory_bytes",
    "processor",
]
