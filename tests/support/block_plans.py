"""Plans of one matrix on the lowest qubits."""

import numpy as np
from support.devices import DEVICE

from qsim_ozaki.ir import DenseBlock, Kind, Op
from qsim_ozaki.planner import PlanOptions, plan


def plan_of_block(k, num_qubits, device=DEVICE, **options):
    op = Op(Kind.UNITARY, tuple(range(k)), np.roll(np.eye(1 << k, dtype=complex), 1, axis=0))
    return plan([op], num_qubits, device, PlanOptions(**options))


def block_steps(k, num_qubits, device=DEVICE, **options):
    return [step for step in plan_of_block(k, num_qubits, device, **options).steps if isinstance(step, DenseBlock)]
