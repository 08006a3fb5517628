"""The heaviest generated kernel of every circuit family, planned for a large GPU, compiles without spills."""

import pytest
from support.devices import H200
from support.lowered import one_by_one

from qsim_ozaki.circuits import FAMILIES, build
from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError
from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.ir import TilePass
from qsim_ozaki.lowering import lower
from qsim_ozaki.planner import PlanOptions, plan

NUM_QUBITS = 28
WIDE = {"dense5", "dense8", "dense10"}  # blocks of their own, no tiles
# each family in both precisions, on two architectures of different memory
ROWS = [
    pytest.param(name, precision, architecture, id=f"{name}-{precision}-sm_{architecture}")
    for number, name in enumerate(sorted(FAMILIES.keys() - WIDE))
    for precision, architecture in (("double", (90, 80)[number % 2]), ("single", (80, 90)[number % 2]))
]


def heaviest(name, precision, architecture):
    """The longest program of the family's plan, None where only the interpreter knows its operators."""
    circuit = build(name, NUM_QUBITS).remove_final_measurements(inplace=False)
    ops = one_by_one(lower(circuit).body)
    programs = []
    for step in plan(ops, NUM_QUBITS, H200, PlanOptions(precision=precision)).steps:
        if isinstance(step, TilePass):
            tile = Tile(step.qubits, step.zero_qubits, step.swaps, step.fresh_qubits)
            try:
                pairs = straight.has_pairs(architecture)
                programs += straight.straight(tile, step.ops, NUM_QUBITS, precision, pairs)
            except NotStraightError:
                continue
    return max(programs, key=lambda program: len(program.source), default=None)


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(("name", "precision", "architecture"), ROWS)
def test_the_heaviest_kernel_compiles_without_spills(name, precision, architecture):
    program = heaviest(name, precision, architecture)
    if program is None:
        assert name in {"grover", "bernstein_vazirani", "hadamard"}, f"{name} has no straight-line kernel"
        return
    options = nvrtc.nvrtc_options(kernels.STRAIGHT, straight.instance(architecture, precision), architecture)
    log = nvrtc.compile_generated(program.source, options).log
    assert nvrtc.spilled_bytes(log) == 0, log
