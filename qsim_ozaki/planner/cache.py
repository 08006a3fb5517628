"""Plans of what was planned before: the same operators are planned once, and what shows a plan shows the one that runs.

In: what a plan is made of. Out: a `Plan`, the same object for the same. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qsim_ozaki.cache import LruCache
from qsim_ozaki.ir import Device, Op, OpList
from qsim_ozaki.planner.plan_pattern import Patterns
from qsim_ozaki.planner.plans import Plan, PlanOptions, plan

MAX_PLANS = 64
MAX_OPS_BYTES = 4 << 20  # of the operators of a plan that is kept: tens of thousands
MAX_KEPT_BYTES = 32 << 20  # of those of all plans; the plans themselves hold about as much again


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
