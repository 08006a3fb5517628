"""The cache of plans: the same operators are planned once, so that a plan that is shown is the plan that runs.

In: the arguments of `plan`. Out: a `Plan`, the same object for the same arguments. It may not make decisions of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from qsim_ozaki.cache import LruCache
from qsim_ozaki.ir import Device, Op, OpList, Prepare, Step, TilePass
from qsim_ozaki.planner.arithmetic import least_block_qubits
from qsim_ozaki.planner.options import PlanOptions
from qsim_ozaki.planner.plans import Plan, Start, Task, decide, plan, prepare_task

MAX_PLANS = 64
MAX_OPS_BYTES = 4 << 20  # a plan with more bytes of operators, tens of thousands of them, is not cached
MAX_CACHED_BYTES = 32 << 20  # bytes of the operators of all cached plans; the plans need about as much again
MAX_PATTERNS = 64  # number of plans whose decisions serve operators with other numbers
MAX_PATTERN_BYTES = 32 << 20  # bytes of the keys of these plans; the plans need about as much again

StartKey: TypeAlias = tuple[bytes, int, int, tuple[int, ...]]
Key: TypeAlias = tuple[int, Device, PlanOptions, tuple[int, ...], tuple[StartKey, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Pattern:
    """A plan, and the index of the start of its task that it takes."""

    plan: Plan
    start: int


class Patterns:
    """The most recent plans, by the structure of their operators; any thread may use them."""

    def __init__(self) -> None:
        self._patterns: LruCache[_Pattern] = LruCache(MAX_PATTERN_BYTES, MAX_PATTERNS)

    def plan(
        self, ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int]
    ) -> Plan:
        """Returns the plan that `qsim_ozaki.planner.plans.plan` makes.

        If a plan for operators of the same structure exists, its decisions are reused, and its passes are marked as
        those of a further row.
        """
        task = prepare_task(ops, num_qubits, device, options, position)
        key = _key(task)
        if key is None:
            return decide(task)[0]
        pattern = self._patterns.get(key)
        if pattern is not None:
            return _with_numbers(pattern, task)
        new_plan, start = decide(task)
        self._patterns.add(key, _Pattern(new_plan, start), sum(len(structure) for structure, _, _, _ in key[-1]))
        return new_plan


def _key(task: Task) -> Key | None:
    """Returns everything but numbers on which a plan of ``task`` depends.

    Returns None where a matrix is a step of its own, because such a step contains the numbers of its matrix.
    """
    least = least_block_qubits(task.options.arithmetic)
    if any(start.ops.native.large_matrices(least) for start in task.starts):
        return None
    starts = tuple(
        (start.ops.native.structure(), start.used.live, start.used.ones, start.final) for start in task.starts
    )
    device = replace(task.device, memory_bytes=0)
    return task.num_qubits, device, task.options, task.position, starts


def _with_numbers(pattern: _Pattern, task: Task) -> Plan:
    """Returns the plan of ``pattern`` with the numbers of ``task``, whose structure is equal."""
    start = task.starts[pattern.start]
    steps = tuple(_step_with_numbers(step, start) for step in pattern.plan.steps)
    return replace(pattern.plan, steps=steps, device=task.device)


def _step_with_numbers(step: Step, start: Start) -> Step:
    """Returns ``step`` with the numbers of ``start``."""
    if isinstance(step, Prepare):
        assert start.prepare is not None, "plans of equal structure begin in the same way"
        return replace(step, factors=start.prepare.factors)
    if isinstance(step, TilePass):
        assert isinstance(step.ops, OpList), "the planner's passes hold an OpList"
        return replace(step, ops=OpList(step.ops.native.with_data(start.ops.native)), row=True)
    return step


class PlanCache:
    """The most recently used plans; any thread may use them."""

    def __init__(self) -> None:
        self._plans: LruCache[Plan] = LruCache(MAX_CACHED_BYTES, MAX_PLANS)
        self._patterns = Patterns()

    def plan(
        self, ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int]
    ) -> Plan:
        """Returns the plan that `qsim_ozaki.planner.plans.plan` makes, or made before for the same arguments.

        The free memory of the device does not change the steps.
        """
        columns = OpList.of(ops)
        content = columns.content(MAX_OPS_BYTES)
        if content is None:
            return plan(columns, num_qubits, device, options, position)
        key = (content, num_qubits, replace(device, memory_bytes=0), options, tuple(position))
        cached = self._plans.get(key)
        if cached is None:
            new_plan = self._patterns.plan(columns, num_qubits, device, options, position)
            cached = self._plans.add(key, new_plan, len(content))
        return cached if cached.device == device else replace(cached, device=device)


PLANS = PlanCache()
