"""Plans as text: a table of the steps with their predictions.

In: steps with predictions. Out: a table as text. It may not decide anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.ir import (
    DenseBlock,
    Device,
    HadamardPass,
    OpList,
    Prediction,
    Prepare,
    Relabel,
    Stack,
    Step,
    TilePass,
    format_bytes,
    format_seconds,
)

HEADER = ("step", "what", "qubits", "path", "passes", "moved", "time", "bound", "why")


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The parts of a plan that its explanation shows.

    Attributes:
        num_qubits: number of qubits of the state.
        steps: steps in order.
        totals: prediction of all steps together.
        device: device that the plan is for.
        precision: precision of the state.
        memory_bytes: bytes of the state.
    """

    num_qubits: int
    steps: Sequence[Step]
    totals: Prediction
    device: Device
    precision: str
    memory_bytes: int


def explain_steps(plan: Explained) -> str:
    """Returns the table of the steps, followed by one line of totals and one line on memory."""
    rows: list[tuple[str, ...]] = [HEADER, *step_rows(plan.steps)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *summary(plan)])


def step_rows(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """Returns one row of cells per step."""
    rows: list[tuple[str, ...]] = []
    for number, step in enumerate(steps, 1):
        p = step.prediction
        rows.append(
            (
                str(number),
                describe(step),
                format_qubits(step_qubits(step)),
                path_of(step),
                f"{p.passes:.1f}",
                format_bytes(p.bytes),
                format_seconds(p.seconds),
                p.bound_by if p.seconds else "-",
                step.reason,
            )
        )
    return rows


def summary(plan: Explained) -> list[str]:
    """Returns a line of totals, and a line that says whether the state fits in memory."""
    totals, device = plan.totals, plan.device
    fits = "fits" if plan.memory_bytes <= device.memory_bytes else "DOES NOT FIT"
    return [
        f"total: {totals.passes:.1f} passes, {format_bytes(totals.bytes)} moved, {totals.flops / 1e9:.3g} Gflop, "
        f"{format_seconds(totals.seconds)} predicted on {device.name}",
        f"state: {plan.num_qubits} qubits, {plan.precision}, {format_bytes(plan.memory_bytes)}; "
        f"{format_bytes(device.memory_bytes)} available ({fits})",
    ]


def describe(step: Step) -> str:
    """Returns the work of a step in a few words."""
    if isinstance(step, (TilePass, Stack)):
        names = Counter(OpList.of(step.ops).native.name_counts())
        return f"{type(step).__name__} " + ", ".join(
            f"{count} {name or 'gate'}" for name, count in names.most_common(4)
        )
    if isinstance(step, HadamardPass):
        return f"HadamardPass of {len(step.qubits)}"
    if isinstance(step, DenseBlock):
        return f"DenseBlock k={len(step.op.targets)}"
    if isinstance(step, Prepare):
        return "Prepare product state"
    return "Relabel"


def step_qubits(step: Step) -> tuple[int, ...]:
    """Returns the qubits that the row of a step names."""
    if isinstance(step, DenseBlock):
        return tuple(sorted(step.op.targets))
    if isinstance(step, Prepare):
        return tuple(range(len(step.factors)))
    if isinstance(step, Relabel):
        return tuple(q for q, p in enumerate(step.permutation) if q != p)
    return step.qubits


def path_of(step: Step) -> str:
    """Returns the name of the arithmetic that a step uses."""
    if isinstance(step, DenseBlock):
        return step.path.value if not step.num_moduli else f"{step.path.value} ({step.num_moduli} moduli)"
    return "none" if isinstance(step, Relabel) else "native"


def format_qubits(qubits: Sequence[int]) -> str:
    """Returns ascending qubits as text, runs of neighbours as ranges: 0-3,7."""
    parts: list[str] = []
    start = previous = None
    for q in [*qubits, None]:
        if previous is not None and q == previous + 1:
            previous = q
            continue
        if start is not None:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = q
    return ",".join(parts) or "-"
