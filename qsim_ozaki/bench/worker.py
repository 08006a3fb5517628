"""The process of one simulator during a benchmark: it reads orders and writes answers, as lines of JSON.

In: orders on stdin. Out: seconds, errors, and for this package's engine the plan and each step's seconds.
It may not choose circuits, variants or repetitions: `bench` does.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qsim_ozaki.bench.peers import PEERS, Job, Peer, UnsupportedError, Vector
from qsim_ozaki.bench.process import machine_busy_seconds
from qsim_ozaki.bench.record import OURS
from qsim_ozaki.engines import Engine, State, select
from qsim_ozaki.ir import Relabel, Step
from qsim_ozaki.lowering import save_statevector
from qsim_ozaki.planner import Plan, describe, format_qubits, step_qubits
from qsim_ozaki.provider import BackendOptions, Prepared, prepare_circuit, request
from qsim_ozaki.runtime import ProgramPlan, execute, plan_program

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

CHUNK = 1 << 20  # amplitudes that are compared at a time
# A run shorter than this is preceded by an uncounted one: an idle processor takes this long to reach full speed.
WARM_SECONDS = 0.25


class TimedEngine:
    """An engine that records the seconds of each step."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the engine: only `run_step` is replaced."""
        return getattr(self.engine, name)

    def run_step(self, state: State, step: Step) -> None:
        """Runs ``step`` and records its seconds."""
        start = time.perf_counter()
        self.engine.run_step(state, step)
        self.seconds.append(time.perf_counter() - start)


class Ours:
    """This package, used as the backend uses it: `run` plans, allocates memory, runs the steps and gives the state."""

    def __init__(self, precision: str, threads: int) -> None:
        self.engine = TimedEngine(select("auto", threads=threads))
        self.options = dict(BackendOptions(precision=precision, threads=threads, shots=1).items())
        self.device = self.engine.device()

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """Returns one variant: the planner chooses."""
        return ("default",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Prepared:
        """Lowers the circuit, with a saved state at the end."""
        saving = circuit.copy()
        save_statevector(saving)
        return prepare_circuit(saving, self.options)

    def run(self, job: Prepared) -> Vector:
        """Runs the job; returns the saved state, as a view of the engine's memory."""
        self.engine.seconds.clear()
        run_request = request(job, self.options, 0, 0, self.device)
        execution = execute(job.code, cast("Engine", self.engine), run_request, lambda: None)
        return cast("Vector", execution.saved["statevector"].data)

    def plan(self, job: Prepared) -> ProgramPlan:
        """Returns the plan of `run`."""
        return plan_program(job.code, self.device, request(job, self.options, 0, 0, self.device).plan_options)


def describe_plan(plan: ProgramPlan | Plan) -> dict[str, Any]:
    """Returns totals and steps for JSON; steps that move no data are left out."""
    steps = [
        {
            "what": describe(step),
            "qubits": format_qubits(step_qubits(step)),
            "bound_by": step.prediction.bound_by,
            "predicted_seconds": step.prediction.seconds,
            "bytes": step.prediction.bytes,
            "flops": step.prediction.flops,
        }
        for step in plan.steps
        if not isinstance(step, Relabel)
    ]
    total = plan.prediction
    return {
        "predicted_seconds": total.seconds,
        "passes": total.passes,
        "bytes": total.bytes,
        "flops": total.flops,
        "steps": steps,
    }


def process_cpu_seconds() -> float:
    """CPU seconds that this process has used."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def difference(state: Vector, reference: Vector) -> tuple[float, float]:
    """Compares two states of ``(2**num_qubits,)`` amplitudes.

    Returns:
        The fidelity, and the 2-norm of (state - phase * reference) over the norm of the reference, with the phase that
        makes this least.
    """
    parts = [slice(start, start + CHUNK) for start in range(0, reference.size, CHUNK)]
    overlap, norm, reference_norm = 0j, 0.0, 0.0
    for part in parts:
        ours, theirs = state[part].astype(complex), reference[part].astype(complex)
        overlap += complex(np.vdot(theirs, ours))
        norm += float(np.vdot(ours, ours).real)
        reference_norm += float(np.vdot(theirs, theirs).real)
    phase = overlap / abs(overlap) if overlap else 1.0
    squared_difference = 0.0
    for part in parts:
        delta = state[part].astype(complex) - phase * reference[part].astype(complex)
        squared_difference += float(np.vdot(delta, delta).real)
    return abs(overlap) ** 2 / (norm * reference_norm), float(np.sqrt(squared_difference / reference_norm))


class Worker:
    """One simulator in one precision, and its current circuit."""

    def __init__(self, simulator: str, precision: str, threads: int) -> None:
        self.peer: Peer = Ours(precision, threads) if simulator == OURS else PEERS[simulator].create(precision, threads)
        self.circuit: QuantumCircuit | None = None
        self.jobs: dict[str, Job] = {}
        self.last_seconds: dict[str, float] = {}  # of the last run of each variant of the circuit

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Follows one order, ``circuit``, ``convert`` or ``run``; a failure is an answer too."""
        methods: dict[str, Callable[..., dict[str, Any]]]
        methods = {"circuit": self.take, "convert": self.convert, "run": self.run}
        try:
            method = methods[order.pop("order")]
            return method(**order)
        except UnsupportedError as error:
            return {"unsupported": str(error)}
        except Exception as error:  # an error of a peer is noted in its row and does not end the benchmark
            return {"failed": f"{type(error).__name__}: {error}"[:300]}

    def take(self, family: str, num_qubits: int, seed: int) -> dict[str, Any]:
        """Builds the circuit, which replaces the one before."""
        from qsim_ozaki.circuits import build

        self.jobs.clear()
        self.last_seconds.clear()
        self.circuit = build(family, num_qubits, seed)
        return {"variants": list(self.peer.variants(self.circuit)), "num_gates": len(self.circuit.data)}

    def convert(self, variant: str) -> dict[str, Any]:
        """Converts the circuit twice and times the second conversion: the first one may load or compile code."""
        assert self.circuit is not None
        seconds = 0.0
        for _ in range(2):
            start = time.perf_counter()
            self.jobs[variant] = self.peer.convert(self.circuit, variant)
            seconds = time.perf_counter() - start
        answer: dict[str, Any] = {"seconds": seconds}
        if isinstance(self.peer, Ours):
            answer["plan"] = describe_plan(self.peer.plan(self.jobs[variant]))
        return answer

    def run(self, variant: str, save: str = "", reference: str = "") -> dict[str, Any]:
        """Times one run of the job; a short job is run once before, so that the processor is at full speed.

        Args:
            variant: one that was converted before.
            save: file to save the state in.
            reference: file with the state to compare with.
        """
        gc.collect()
        gc.disable()
        if self.last_seconds.get(variant, WARM_SECONDS) < WARM_SECONDS:
            self.peer.run(self.jobs[variant])
        busy_before, used_before = machine_busy_seconds(), process_cpu_seconds()
        start = time.perf_counter()
        state = self.peer.run(self.jobs[variant])
        seconds = time.perf_counter() - start
        used = process_cpu_seconds() - used_before
        busy = machine_busy_seconds() - busy_before
        self.last_seconds[variant] = seconds
        gc.enable()
        answer: dict[str, Any] = {"seconds": seconds, "others_cpu_seconds": max(0.0, busy - used)}
        if isinstance(self.peer, Ours):
            answer["step_seconds"] = list(self.peer.engine.seconds)
        if save:
            np.save(save, state)
        if reference:
            answer["fidelity"], answer["error"] = difference(state, np.load(reference, mmap_mode="r"))
        return answer

    def device(self) -> dict[str, Any]:
        """Returns the calibrated device record of this package's engine; empty for peers."""
        if not isinstance(self.peer, Ours):
            return {}
        return asdict(self.peer.device)


def main(arguments: Sequence[str]) -> None:
    """Follows orders until stdin ends; the output of a simulator goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    simulator, precision, threads = arguments
    try:
        worker = Worker(simulator, precision, int(threads))
    except Exception as error:  # a peer that is installed but broken
        answers.write(json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}) + "\n")
        return
    answers.write(json.dumps({"device": worker.device()}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(worker.answer(json.loads(line))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
