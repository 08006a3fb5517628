"""An engine of the tests' own: the CPU engine, which also moves qubits in tile passes, as only GPUs do otherwise.

It does each exchange of two qubits as an operator at the end of the pass, and keeps the passes that had one.
"""

from dataclasses import replace

import numpy as np
from support.devices import with_abilities
from support.random_ops import swap_ops

from qsim_ozaki.engines.cpu.engine import CpuEngine
from qsim_ozaki.ir import Relabel, TilePass


class ReferenceEngine(CpuEngine):
    """Does every step that a plan for any device may hold; plans for itself move qubits, in tiles of 5 qubits."""

    name = "reference"

    def __init__(self, threads=2, max_memory_bytes=0):
        super().__init__(threads, max_memory_bytes)
        self.moves = []

    def device(self):
        return replace(with_abilities(super().device(), moves_qubits=True), tile_qubits=5, line_qubits=2)

    def run_step(self, state, step):
        if isinstance(step, TilePass) and step.swaps:
            self.moves.append(step)
            step = replace(step, ops=(*step.ops, *swap_ops(step.swaps)), swaps=())
        super().run_step(state, step)

    def host_programs(self, num_qubits, precision, steps):
        """Returns None, so that every step goes through `run_step`."""


def create(threads=0, max_memory_bytes=0):
    """As each module of `qsim_ozaki.engines.base.ENGINES` has it."""
    return ReferenceEngine(threads, max_memory_bytes)


def final_vector(steps, position, start=None, precision="double"):
    """The state that ``steps`` make, in program order.

    Args:
        steps: of a plan.
        position: physical qubit of each program qubit at the end.
        start: the vector before; None for |0...0>.
        precision: of the state.
    """
    engine, num_qubits = ReferenceEngine(), len(position)
    state = engine.allocate(num_qubits, precision) if start is None else engine.load(start, precision)
    for step in steps:
        if not isinstance(step, Relabel):
            engine.run_step(state, step)
    index = np.arange(1 << num_qubits)
    return engine.vector(state)[sum(((index >> q) & 1) << p for q, p in enumerate(position))]
