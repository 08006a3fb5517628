"""The planner: it turns operators into the steps of least predicted cost for a device.

A plan is a pure function of operators, device and options; the planner may not run a step or measure anything.
"""

from qsim_ozaki.planner.cache import PLANS
from qsim_ozaki.planner.cost import predict_stack, total
from qsim_ozaki.planner.explain import describe, format_qubits, step_qubits
from qsim_ozaki.planner.fuse import relabel_swaps
from qsim_ozaki.planner.notebook import MAX_ROWS
from qsim_ozaki.planner.options import PlanOptions, plan_options
from qsim_ozaki.planner.plans import MAX_QUBITS, Plan, plan

__all__ = [
    "MAX_QUBITS",
    "MAX_ROWS",
    "PLANS",
    "Plan",
    "PlanOptions",
    "describe",
    "format_qubits",
    "plan",
    "plan_options",
    "predict_stack",
    "relabel_swaps",
    "step_qubits",
    "total",
]
