"""Plans as HTML for notebooks: a timeline of the steps, and the table of the plan's explanation.

In: steps with predictions. Out: HTML with inline styles alone: no script and no other file. It may not decide anything.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from qsim_ozaki.ir import DenseBlock, HadamardPass, Path, Prepare, Relabel, Stack, Step, TilePass, format_seconds
from qsim_ozaki.planner.explain import (
    HEADER,
    Explained,
    describe,
    format_qubits,
    path_of,
    step_qubits,
    step_rows,
    summary,
)

MAX_BLOCKS = 200  # of a timeline; neighbours share a block where there are more steps
MAX_ROWS = 200  # of the tables of one page
LEAST_GAP = 0.4  # per cent of the width: a narrower block has no gap to the next one
LEAST_NUMBER = 2.0  # per cent of the width: a narrower block has no number on it
LEAST_TEXT = 8.0  # per cent of the width: a narrower block does not name its kind
SHORT_NAMES = {TilePass: "tile pass", HadamardPass: "Hadamards", Prepare: "prepare", Relabel: "relabel", Stack: "stack"}
# Dark enough for white text, and apart for colour-blind readers too.
COLORS = {
    "prepare": "#6f6f6f",
    "tile pass": "#2f6db3",
    "Hadamards": "#1b7f6b",
    "native block": "#b35c1e",
    "emulated block": "#8a3f8f",
    "stack": "#4a5fa5",
    "relabel": "#9a9a9a",
}
STRIP = "display:flex;height:2.2em;overflow:hidden;border-radius:3px"
BLOCK = (
    "box-sizing:border-box;flex:none;overflow:hidden;white-space:nowrap;line-height:2.2em;"
    "font-size:0.85em;text-align:center;color:#fff"
)
SQUARE = "display:inline-block;width:0.8em;height:0.8em;margin:0 0.3em 0 0;border-radius:2px"


def plan_html(plan: Explained, start: float = 0.0, whole: float = 0.0, max_rows: int = MAX_ROWS) -> str:
    """Returns the timeline of a plan and its table below.

    Args:
        plan: the plan, or one part of a program.
        start: predicted seconds of the parts before this one.
        whole: predicted seconds of all parts, to which the timeline is scaled; 0 if there is only this one.
        max_rows: number of steps that the table shows.
    """
    return timeline_html(plan.steps, start, whole) + table_html(plan, max_rows)


def timeline_html(steps: Sequence[Step], start: float = 0.0, whole: float = 0.0) -> str:
    """Returns a strip with a block for each step, as wide as its share of the predicted time, and a legend.

    Steps that take no time have no block. Of more than `MAX_BLOCKS` steps, neighbours share a block, which has the
    colour of the kind that takes most of its time. The text of a step is shown when the pointer is on its block.
    """
    seconds = sum(step.prediction.seconds for step in steps)
    if not seconds > 0:
        return ""
    whole = max(whole, start + seconds)
    size = -(-len(steps) // MAX_BLOCKS)
    groups = [_Group(first + 1, steps[first : first + size]) for first in range(0, len(steps), size)]
    blocks = "".join(group.html(seconds, whole) for group in groups if group.seconds > 0)
    legend = " &nbsp; ".join(
        f'<span style="{SQUARE};background:{COLORS[kind]}"></span>{kind} {format_seconds(time)}'
        for kind, time in _seconds_by_kind(steps)
    )
    place = f"margin:0.5em 0 0.2em {100 * start / whole:.4f}%;width:{100 * seconds / whole:.4f}%"
    return f'<div style="{STRIP};{place}">{blocks}</div><div style="font-size:0.85em">{legend}</div>'


def table_html(plan: Explained, max_rows: int = MAX_ROWS) -> str:
    """Returns the table and the lines of `explain_steps`; of more steps than ``max_rows`` only the first ones."""
    head = "".join(f"<th>{cell}</th>" for cell in HEADER)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in step_rows(plan.steps[:max_rows])
    )
    lines = summary(plan)
    if len(plan.steps) > max_rows:
        lines.insert(0, f"{len(plan.steps) - max_rows} more steps: print(plan.explain()) shows them all")
    foot = "<br>".join(html.escape(line) for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{foot}</p>"


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring steps that share a block.

    Attributes:
        number: number of the first step in the plan, counted from 1.
        steps: one step or more.
    """

    number: int
    steps: Sequence[Step]

    @property
    def seconds(self) -> float:
        """Predicted time of the steps."""
        return sum(step.prediction.seconds for step in self.steps)

    def html(self, strip: float, whole: float) -> str:
        """Returns the block, in a strip of ``strip`` seconds on a page of ``whole`` seconds."""
        kind = _seconds_by_kind(self.steps)[0][0]
        style = f"width:{100 * self.seconds / strip:.4f}%;background:{COLORS[kind]};{BLOCK}"
        share = 100 * self.seconds / whole
        if share > LEAST_GAP:
            style += ";border-right:1px solid #fff"
        text = f"{self.number} {kind}" if share > LEAST_TEXT else str(self.number) if share > LEAST_NUMBER else ""
        return f'<div style="{style}" title="{html.escape(self.title())}">{text}</div>'

    def title(self) -> str:
        """Returns the text that is shown when the pointer is on the block."""
        time = format_seconds(self.seconds)
        if len(self.steps) > 1:
            kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(map(kind_of, self.steps)).most_common())
            return f"steps {self.number}-{self.number + len(self.steps) - 1}: {kinds}; {time}"
        (step,) = self.steps
        place = f"qubits {format_qubits(step_qubits(step))}; {path_of(step)}"
        cost = f"{time}, bound by {step.prediction.bound_by}"
        return f"step {self.number}: {describe(step)}; {place}; {cost}; {step.reason}"


def kind_of(step: Step) -> str:
    """Returns the kind of a step, which has a colour of its own."""
    if isinstance(step, DenseBlock):
        return "emulated block" if step.path is Path.OZAKI else "native block"
    return SHORT_NAMES[type(step)]


def _seconds_by_kind(steps: Sequence[Step]) -> list[tuple[str, float]]:
    """Returns the kinds of the steps that take time, with their predicted seconds, the longest first."""
    times: dict[str, float] = {}
    for step in steps:
        if step.prediction.seconds > 0:
            kind = kind_of(step)
            times[kind] = times.get(kind, 0.0) + step.prediction.seconds
    return sorted(times.items(), key=lambda row: -row[1])
