"""A plan as text.

In: steps with predictions. Out: a table. It decides nothing.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.cost import Device, max_qubits, state_bytes
from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import DenseBlock, HadamardPass, Prediction, Prepare, Relabel, Stack, Step, TilePass

HEADER = ("step", "what", "qubits", "path", "passes", "moved", "time", "bound", "why")


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """The parts of a plan that its explanation shows.

    Attributes:
        num_qubits: width of the state.
        steps: in order.
        totals: prediction of all steps together.
        device: that the plan is for.
        precision: of the state.
        memory_bytes: bytes of the state.
    """

    num_qubits: int
    steps: Sequence[Step]
    totals: Prediction
    device: Device
    precision: str
    memory_bytes: int


def explain_steps(plan: Explained) -> str:
    """The table of the steps with a line of totals and one on memory."""
    rows: list[tuple[str, ...]] = [HEADER, *_step_rows(plan.steps)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *_summary(plan)])


def explain_html(plan: Explained) -> str:
    """The same table as HTML, for notebooks."""
    head = "".join(f"<th>{cell}</th>" for cell in HEADER)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in _step_rows(plan.steps)
    )
    foot = "<br>".join(html.escape(line) for line in _summary(plan))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{foot}</p>"


def _step_rows(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """One row of cells per step."""
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


def _summary(plan: Explained) -> list[str]:
    """Totals, and whether the state fits."""
    totals, device = plan.totals, plan.device
    fits = "fits" if plan.memory_bytes <= device.memory_bytes else "DOES NOT FIT"
    return [
        f"total: {totals.passes:.1f} passes, {format_bytes(totals.bytes)} moved, {totals.flops / 1e9:.3g} Gflop, "
        f"{format_seconds(totals.seconds)} predicted on {device.name}",
        f"state: {plan.num_qubits} qubits, {plan.precision}, {format_bytes(plan.memory_bytes)}; "
        f"{format_bytes(device.memory_bytes)} available ({fits})",
    ]


def describe(step: Step) -> str:
    """What a step does, in a few words."""
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
    """The qubits a step's row names."""
    if isinstance(step, DenseBlock):
        return tuple(sorted(step.op.targets))
    if isinstance(step, Prepare):
        return tuple(range(len(step.factors)))
    if isinstance(step, Relabel):
        return tuple(q for q, p in enumerate(step.permutation) if q != p)
    return step.qubits


def path_of(step: Step) -> str:
    """Which arithmetic a step uses."""
    if isinstance(step, DenseBlock):
        return step.path.value if not step.num_moduli else f"{step.path.value} ({step.num_moduli} moduli)"
    return "none" if isinstance(step, Relabel) else "native"


def format_qubits(qubits: Sequence[int]) -> str:
    """Runs as ranges: 0-3,7."""
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


def format_bytes(count: float) -> str:
    """Bytes with a binary unit, or as a power of two where there is none in use."""
    if count >= 1 << 70:
        return f"2^{math.log2(count):.0f} B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if count < 1024 or unit == "EiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def short_bytes(count: float) -> str:
    """The same without a decimal that says nothing: 16 GiB."""
    return format_bytes(count).replace(".0 ", " ")


def too_wide(num_qubits: int, precision: str, device_name: str, memory_bytes: int) -> str:
    """What a state would need, what there is, and what would fit."""
    most = {each: max_qubits(memory_bytes, each) for each in (precision, "single")}
    single = f", or precision='single' (up to {most['single']} qubits)" if precision == "double" else ""
    return (
        f"{num_qubits} qubits need {short_bytes(state_bytes(num_qubits, precision))} in {precision} precision; "
        f"{device_name} has {short_bytes(memory_bytes)} available. Use at most {most[precision]} qubits{single}."
    )


def format_seconds(seconds: float) -> str:
    """Seconds with a fitting unit."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return "0" if not seconds else f"{seconds * 1e9:.3g} ns"
