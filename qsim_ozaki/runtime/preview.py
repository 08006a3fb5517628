"""Plans a whole program: one `Plan` per segment and per boundary that moves the state, and their totals.

In: an `Executable`, a `Device` and `PlanOptions`. Out: a `ProgramPlan`, and sentences about options that are predicted
to be better. Like the planner, it may not launch anything.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, replace

from qsim_ozaki.ir import (
    Device,
    Initialize,
    Measure,
    OpList,
    Prediction,
    Reset,
    Save,
    Stack,
    Step,
    format_bytes,
    format_seconds,
    max_qubits,
    state_bytes,
)
from qsim_ozaki.planner import MAX_ROWS, PLANS, Plan, PlanOptions, predict_stack, total
from qsim_ozaki.runtime.bytecode import CodeItem, Executable, Segment
from qsim_ozaki.runtime.placement import Part, Placement
from qsim_ozaki.runtime.saved import WHOLE_STATES

MIN_SPEEDUP = 1.3  # of a suggestion: predictions are about as exact as that


@dataclass(frozen=True, slots=True, eq=False)
class ProgramPlan:
    """The plans of a program's parts, in order; where it branches, every arm is planned.

    Attributes:
        num_qubits: the width of the state.
        plans: one per part: a segment of operators, a vector that is written, or the reordering for a saved state.
        titles: one per part.
        prediction: the totals over all parts, where every part runs once.
        memory_bytes: bytes of one state.
        suggestions: other options that are predicted to be better.
    """

    num_qubits: int
    plans: tuple[Plan, ...]
    titles: tuple[str, ...]
    prediction: Prediction
    memory_bytes: int
    suggestions: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of every part, in order."""
        return tuple(step for plan in self.plans for step in plan.steps)

    def explain(self) -> str:
        """The table of every part, with titles where there are several parts."""
        parts = [plan.explain() for plan in self.plans]
        if len(parts) > 1:
            parts = [f"{title}\n{text}" for title, text in zip(self.titles, parts, strict=True)]
        return "\n".join(["\n\n".join(parts), *(f"suggestion: {text}" for text in self.suggestions)])

    def _repr_html_(self) -> str:
        """Timelines and the tables of `explain` as HTML, for notebooks; of a long program only the first parts."""
        parts: list[str] = []
        start, room = 0.0, MAX_ROWS
        for title, plan in zip(self.titles, self.plans, strict=True):
            if room <= 0:
                parts.append(f"<p>{len(self.plans) - len(parts)} more parts: print(plan.explain()) shows them all</p>")
                break
            heading = f"<h4>{html.escape(title)}</h4>" if len(self.plans) > 1 else ""
            parts.append(heading + plan.html(start, self.prediction.seconds, room))
            start += plan.prediction.seconds
            room -= max(1, len(plan.steps))
        return "".join([*parts, *(f"<p>suggestion: {html.escape(text)}</p>" for text in self.suggestions)])


def plan_program(code: Executable, device: Device, options: PlanOptions) -> ProgramPlan:
    """Plans every part of ``code`` without running it."""
    planner = _Planner(code, device, options)
    for index, item in enumerate(code.items):
        planner.add(index, item)
    if not planner.plans:
        planner.add(0, Segment(0, OpList()))
    plans = tuple(planner.plans)
    prediction = total(plan.prediction for plan in plans)
    return ProgramPlan(code.num_qubits, plans, tuple(planner.titles), prediction, plans[0].memory_bytes)


def plan_stack(code: Executable, device: Device, options: PlanOptions) -> ProgramPlan:
    """The plan of ``code``, which runs as a stack."""
    ops, num_qubits = code.joined_ops(), code.num_qubits
    prediction, memory = predict_stack(len(ops), num_qubits, device), state_bytes(num_qubits, options.precision)
    qubits = tuple(range(num_qubits))
    step = Stack(qubits, ops, prediction, "few qubits, measured at the end: a state in the cache needs no passes")
    whole = Plan(num_qubits, (step,), qubits, device, options, prediction, memory)
    return ProgramPlan(num_qubits, (whole,), ("stack",), prediction, memory)


class _Planner:
    """Plans the parts of a program one after the other."""

    def __init__(self, code: Executable, device: Device, options: PlanOptions) -> None:
        self.code = code
        self.device = device
        self.options = options
        self.placement = Placement(code.num_qubits)
        self.plans: list[Plan] = []
        self.titles: list[str] = []

    def add(self, index: int, item: CodeItem) -> None:
        if isinstance(item, Segment):
            self.plan(self.placement.segment(item))
        elif isinstance(item, Initialize):
            self.initialize(item, index)
        elif isinstance(item, Save):
            self.placement.touch()
            part = self.placement.save(item) if item.what in WHOLE_STATES else None
            if part is not None:
                self.plan(part)
        elif isinstance(item, (Measure, Reset)):
            self.placement.touch()

    def plan(self, part: Part) -> None:
        options = part.options(self.options)
        plan = PLANS.plan(part.ops, self.code.num_qubits, self.device, options, part.position)
        self.plans.append(plan)
        self.titles.append(part.title)
        self.placement.done(part, plan.final_position)

    def initialize(self, item: Initialize, index: int) -> None:
        whole = self.placement.begin_initialize(item)
        if index not in self.code.fresh:
            self.placement.touch()
        part = self.placement.initialize(item, index)
        if part is not None:
            self.plan(part)
        elif whole:
            self.placement.load(item)
        else:
            self.placement.touch()


def suggestions(code: Executable, device: Device, options: PlanOptions, plan: ProgramPlan) -> tuple[str, ...]:
    """Suggestions to the user, the most needed first; empty where no option is predicted to be better.

    Args:
        code: the circuit's code.
        device: the device that ``plan`` is for.
        options: the options of ``plan``.
        plan: the plan of ``code``.
    """
    if any(isinstance(step, Stack) for step in plan.steps):
        return ()  # a stack runs in the cache and in double precision, whatever the options
    fits = plan.memory_bytes <= device.memory_bytes
    texts = []
    if options.precision == "double":
        single = plan_program(code, device, replace(options, precision="single", accuracy=None))
        if not fits and single.memory_bytes <= device.memory_bytes:
            texts.append(f"precision='single' fits: {format_bytes(single.memory_bytes)}")
        elif fits and plan.prediction.seconds > MIN_SPEEDUP * single.prediction.seconds:
            texts.append(f"precision='single' is predicted to take {_times(single, plan)}, with errors of about 1e-6")
    if not fits and not texts:
        most = max_qubits(device.memory_bytes, options.precision)
        texts.append(f"use at most {most} qubits: no option makes {code.num_qubits} fit")
    if options.arithmetic != "auto":
        auto = plan_program(code, device, replace(options, arithmetic="auto"))
        if plan.prediction.seconds > MIN_SPEEDUP * auto.prediction.seconds:
            texts.append(f"arithmetic='auto' is predicted to take {_times(auto, plan)}")
    return tuple(texts)


def _times(other: ProgramPlan, plan: ProgramPlan) -> str:
    return f"{format_seconds(other.prediction.seconds)} instead of {format_seconds(plan.prediction.seconds)}"
