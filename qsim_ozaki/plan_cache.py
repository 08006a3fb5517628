"""Plans of what was planned before: the same operators are planned once, and what shows a plan shows the one that runs.

In: what a plan is made of. Out: a `Plan`, the same object for the same. It decides nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from qsim_ozaki.cost import Device
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Op
from qsim_ozaki.plan import Plan, PlanOptions, plan

MAX_PLANS = 64
MAX_OPS_BYTES = 4 << 20  # of the operators of a plan that is kept: tens of thousands
MAX_KEPT_BYTES = 32 << 20  # of those of all plans; the plans themselves hold about as much again


_Key = tuple[bytes, int, Device, PlanOptions, tuple[int, ...]]


class PlanCache:
    """The plans that were asked for last, for any thread."""

    def __init__(self) -> None:
        self._plans: OrderedDict[_Key, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def plan(
        self, ops: Sequence[Op], num_qubits: int, device: Device, options: PlanOptions, position: Sequence[int]
    ) -> Plan:
        """As `qsim_ozaki.plan.plan` makes it, or made it: the same steps, whatever memory is free now."""
        columns = OpList.of(ops)
        content = columns.content(MAX_OPS_BYTES)
        if content is None:
            return plan(columns, num_qubits, device, options, position)
        key = (content, num_qubits, replace(device, memory_bytes=0), options, tuple(position))
        with self._lock:
            kept = self._plans.get(key)
            if kept is not None:
                self._plans.move_to_end(key)
        if kept is None:
            made = plan(columns, num_qubits, device, options, position)
            with self._lock:
                kept = self._plans.setdefault(key, made)  # another thread's, where it was first
                while len(self._plans) > MAX_PLANS or sum(len(each[0]) for each in self._plans) > MAX_KEPT_BYTES:
                    self._plans.popitem(last=False)
        return kept if kept.device == device else replace(kept, device=device)


PLANS = PlanCache()
