"""Runs flattened programs: planned segments, histories of outcomes, classical values, saved results and samples."""

from qsim_ozaki.runtime.bytecode import Executable, Jump, Segment
from qsim_ozaki.runtime.executor import Execution, execute
from qsim_ozaki.runtime.flattening import check_saves, flatten
from qsim_ozaki.runtime.preview import ProgramPlan, plan_program, plan_stack, suggestions
from qsim_ozaki.runtime.readout import Request
from qsim_ozaki.runtime.sampling import (
    MAX_TABLE_BITS,
    SHOTS_PER_BLOCK,
    Drawn,
    check_seed,
    draw_counts,
    draws_counts,
    fresh_seed,
    stream,
)
from qsim_ozaki.runtime.saved import Result, saved_bytes
from qsim_ozaki.runtime.stack import (
    STACK_NUMBERS,
    Reads,
    StackRows,
    is_stackable,
    is_unplanned,
    num_threads,
    pieces,
    run_stack,
    sample_stacks,
    stack_program,
    updates,
)
from qsim_ozaki.runtime.tally import Tally
from qsim_ozaki.runtime.vectors import reordered

__all__ = [
    "MAX_TABLE_BITS",
    "SHOTS_PER_BLOCK",
    "STACK_NUMBERS",
    "Drawn",
    "Executable",
    "Execution",
    "Jump",
    "ProgramPlan",
    "Reads",
    "Request",
    "Result",
    "Segment",
    "StackRows",
    "Tally",
    "check_saves",
    "check_seed",
    "draw_counts",
    "draws_counts",
    "execute",
    "flatten",
    "fresh_seed",
    "is_stackable",
    "is_unplanned",
    "num_threads",
    "pieces",
    "plan_program",
    "plan_stack",
    "reordered",
    "run_stack",
    "sample_stacks",
    "saved_bytes",
    "stack_program",
    "stream",
    "suggestions",
    "updates",
]
