"""The CPU engine: it runs steps with the kernels of the compiled extension, and measures the machine.

It may not plan or choose: every step comes with its tiles and its path.
"""

from qsim_ozaki.engines.cpu.calibrate import processor
from qsim_ozaki.engines.cpu.engine import available_memory_bytes

__all__ = [
    "available_memory_bytes",
    "processor",
]
