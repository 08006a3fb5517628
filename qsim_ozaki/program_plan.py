"""The plan of a whole program: one `Plan` per segment, and their totals.

In: `Code`, a `Device`, `PlanOptions`. Out: a `ProgramPlan`. Like the planner it launches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qsim_ozaki.code import Code, Segment
from qsim_ozaki.cost import Device, total
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Prediction, Step
from qsim_ozaki.plan import Plan, PlanOptions, plan

STACKED = (
    "So few qubits that are measured at the end are run without these steps: operator by operator in the cache, "
    "as a stack."
)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramPlan:
    """The plans of a program's segments, in order; where it branches, every arm is planned.

    Attributes:
        num_qubits: width of the state.
        plans: one per segment.
        prediction: totals over the segments, each done once.
        memory_bytes: bytes of one state.
        stacked: whether ``run`` does the operators one by one inside the cache instead, without these steps.
    """

    num_qubits: int
    plans: tuple[Plan, ...]
    prediction: Prediction
    memory_bytes: int
    stacked: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of every segment, in order."""
        return tuple(step for each in self.plans for step in each.steps)

    def explain(self) -> str:
        """Each segment's table; they are numbered where there are several."""
        tables = [each.explain() for each in self.plans]
        if len(tables) > 1:
            tables = [f"segment {index}\n{table}" for index, table in enumerate(tables)]
        return "\n\n".join([*tables, STACKED] if self.stacked else tables)

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        note = f"<p>{STACKED}</p>" if self.stacked else ""
        if len(self.plans) == 1:
            return self.plans[0]._repr_html_() + note
        return "".join(f"<h4>segment {index}</h4>{each._repr_html_()}" for index, each in enumerate(self.plans)) + note


def plan_program(code: Code, device: Device, options: PlanOptions) -> ProgramPlan:
    """Plans every segment of ``code`` without running it."""
    width = code.num_qubits
    position = tuple(range(width))
    segments = code.segments or (Segment(0, OpList()),)
    untouched = not code.items or isinstance(code.items[0], Segment)
    plans: list[Plan] = []
    for index, segment in enumerate(segments):
        mine = replace(options, from_zero=untouched and index == 0, restore_order=segment.restore_order)
        plans.append(plan(segment.ops, width, device, mine, position))
        position = plans[-1].final_position
    prediction = total(each.prediction for each in plans)
    return ProgramPlan(width, tuple(plans), prediction, plans[0].memory_bytes)
