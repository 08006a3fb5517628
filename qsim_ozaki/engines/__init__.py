"""The engines: each does exactly the steps it is given, on its own hardware.

The module of an engine is imported when the engine is selected.
"""

from qsim_ozaki.engines.base import (
    ENGINES,
    ColumnChecks,
    Engine,
    HostProgram,
    SharedEngines,
    StackWork,
    State,
    available_threads,
    select,
)
from qsim_ozaki.engines.probes import PART_QUBITS, fill, haar

__all__ = [
    "ENGINES",
    "PART_QUBITS",
    "ColumnChecks",
    "Engine",
    "HostProgram",
    "SharedEngines",
    "StackWork",
    "State",
    "available_threads",
    "fill",
    "haar",
    "select",
]
