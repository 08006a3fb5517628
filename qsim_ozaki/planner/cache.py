"""Plans of what was planned before: the same operators are planned once, and what shows a plan shows the one that runs.

In: what a plan is made of. Out: a `Plan`, the same object for the same. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from qsim_ozaki.cache import LruCache
from qsim_ozaki.ir import Device, Op, OpList, Prepare, Step, TilePass
from qsim_ozaki.planner.arithmetic import least_block_qubits
from qsim_ozaki.planner.plans import Plan, PlanOptions, Start, Task, decide, plan, prepare_task

MAX_PLANS = 64
MAX_OPS_BYTES = 4 << 20  # of the operators of a plan that is kept: tens of thousands
MAX_KEPT_BYTES = 32 << 20  # of those of all plans; the plans themselves hold about as much again
MAX_PATTERNS = 64  # plans whose choices serve other numbers
MAX_PATTERN_BYTES = 32 << 20  # of their keys; the plans themselves hold about as much again

Key: TypeAlias = tuple[int, Device, PlanOptions, tuple[int, ...], tuple[int, ...], tuple[tuple[bytes, int, int], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Pattern:
    """A plan, and which of its task's starts it takes."""

    plan: Plan
    start: int


class Patterns:
    """The plans that were made last, by all that they depend on; for any thread."""

    def __init__(self) -> None:
        self._kept: LruCache[_Pattern] = LruCache(MAX_PATTERN_BYTES, MAX_PATTERNS)

    def plan(
        self, ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int]
    ) -> Plan:
        """As `qsim_ozaki.planner.plans.plan` makes it, but that passes know that they are of a further row."""
        task = prepare_task(ops, num_qubits, device, options, position)
        key = _key(task)
        if key is None:
            return decide(task)[0]
        found = self._kept.get(key)
        if found is not None:
            return _with_numbers(found, task)
        made, start = decide(task)
        self._kept.add(key, _Pattern(made, start), sum(len(structure) for structure, _, _ in key[-1]))
        return made


def _key(task: Task) -> Key | None:
    """All that a plan of ``task`` depends on but numbers; None where a matrix has steps of its own, as they have it."""
    least = least_block_qubits(task.options.arithmetic)
    if any(start.ops.native.large_matrices(least) for start in task.starts):
        return None
    starts = tuple((start.ops.native.structure(), start.used.live, start.used.ones) for start in task.starts)
    device = replace(task.device, memory_bytes=0)
    return task.num_qubits, device, task.options, task.position, task.final, starts


def _with_numbers(found: _Pattern, task: Task) -> Plan:
    """The plan of ``task`` as the earlier one of equal structure."""
    start = task.starts[found.start]
    steps = tuple(_step(step, start) for step in found.plan.steps)
    return replace(found.plan, steps=steps, device=task.device)


def _step(step: Step, start: Start) -> Step:
    if isinstance(step, Prepare):
        assert start.prepare is not None, "equal structures begin alike"
        return replace(step, factors=start.prepare.factors)
    if isinstance(step, TilePass):
        assert isinstance(step.ops, OpList), "the planner's passes hold columns"
        return replace(step, ops=OpList(step.ops.native.with_data(start.ops.native)), row=True)
    return step


class PlanCache:
    """The plans that were asked for last, for any thread."""

    def __init__(self) -> None:
        self._plans: LruCache[Plan] = LruCache(MAX_KEPT_BYTES, MAX_PLANS)
        self._patterns = Patterns()

    def plan(
        self, ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int]
    ) -> Plan:
        """As `qsim_ozaki.planner.plans.plan` makes it, or made it: the same steps, whatever memory is free now."""
        columns = OpList.of(ops)
        content = columns.content(MAX_OPS_BYTES)
        if content is None:
            return plan(columns, num_qubits, device, options, position)
        key = (content, num_qubits, replace(device, memory_bytes=0), options, tuple(position))
        kept = self._plans.get(key)
        if kept is None:
            made = self._patterns.plan(columns, num_qubits, device, options, position)
            kept = self._plans.add(key, made, len(content))
        return kept if kept.device == device else replace(kept, device=device)


PLANS = PlanCache()
