"""Which other options would do better, by the planner's own predictions.

In: code, a device, options, the plan that they give. Out: sentences. It runs nothing and changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from qsim_ozaki.ir import Device, Stack, format_bytes, format_seconds, max_qubits
from qsim_ozaki.planner import PlanOptions
from qsim_ozaki.runtime.bytecode import Code
from qsim_ozaki.runtime.preview import ProgramPlan, plan_program

WORTH_SAYING = 1.3  # times faster: predictions are about as good as that


def suggestions(code: Code, device: Device, options: PlanOptions, made: ProgramPlan) -> tuple[str, ...]:
    """What to try, the most needed first; empty where nothing is predicted to be better.

    Args:
        code: of the circuit.
        device: what ``made`` was planned for.
        options: what was asked.
        made: the plan under ``options``.
    """
    if any(isinstance(step, Stack) for step in made.steps):
        return ()  # done in the cache and in double precision, whatever the options
    fits = made.memory_bytes <= device.memory_bytes
    found = []
    if options.precision == "double":
        single = plan_program(code, device, replace(options, precision="single", accuracy=None))
        if not fits and single.memory_bytes <= device.memory_bytes:
            found.append(f"precision='single' fits: {format_bytes(single.memory_bytes)}")
        elif fits and made.prediction.seconds > WORTH_SAYING * single.prediction.seconds:
            found.append(f"precision='single' is predicted to take {_times(single, made)}, with errors of about 1e-6")
    if not fits and not found:
        most = max_qubits(device.memory_bytes, options.precision)
        found.append(f"use at most {most} qubits: no option makes {code.num_qubits} fit")
    if options.arithmetic != "auto":
        auto = plan_program(code, device, replace(options, arithmetic="auto"))
        if made.prediction.seconds > WORTH_SAYING * auto.prediction.seconds:
            found.append(f"arithmetic='auto' is predicted to take {_times(auto, made)}")
    return tuple(found)


def _times(other: ProgramPlan, made: ProgramPlan) -> str:
    return f"{format_seconds(other.prediction.seconds)} instead of {format_seconds(made.prediction.seconds)}"
