"""The process in which one simulator works while a benchmark runs: orders come as lines of JSON, answers go back so.

In: orders on stdin. Out: seconds, errors, and for this package's own engine the plan and each step's seconds.
It decides nothing: which circuit, variant and repetition comes from `bench`.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qsim_ozaki.bench_process import machine_busy_seconds
from qsim_ozaki.bench_record import OURS
from qsim_ozaki.engine import Engine, State, select
from qsim_ozaki.execute import execute
from qsim_ozaki.explain import describe, format_qubits, step_qubits
from qsim_ozaki.instructions import save_statevector
from qsim_ozaki.options import BackendOptions
from qsim_ozaki.peers import PEERS, Job, Peer, UnsupportedError, Vector
from qsim_ozaki.plan import Plan
from qsim_ozaki.prepare import Prepared, prepare, request
from qsim_ozaki.program_plan import ProgramPlan, plan_program
from qsim_ozaki.steps import Relabel, Step

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

CHUNK = 1 << 20  # amplitudes compared at a time
WARM_SECONDS = (
    0.25  # a run shorter than this comes after one that does not count: idle processors take that long to speed up
)


class TimedEngine:
    """An engine that notes how long each step takes."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        """Everything but `run_step` is the engine's own."""
        return getattr(self.engine, name)

    def run_step(self, state: State, step: Step) -> None:
        """Does ``step`` and notes its seconds."""
        start = time.perf_counter()
        self.engine.run_step(state, step)
        self.seconds.append(time.perf_counter() - start)


class Ours:
    """This package, driven as the backend drives it: planning, memory, steps and hand-over are in `run`."""

    def __init__(self, precision: str, threads: int) -> None:
        self.engine = TimedEngine(select("auto", threads=threads))
        self.options = dict(BackendOptions(precision=precision, threads=threads, shots=1).items())
        self.device = self.engine.device()

    def variants(self, circuit: QuantumCircuit) -> Sequence[str]:
        """One: the planner chooses."""
        return ("default",)

    def convert(self, circuit: QuantumCircuit, variant: str) -> Prepared:
        """Lowered, with a saved state at the end."""
        saving = circuit.copy()
        save_statevector(saving)
        return prepare(saving, self.options)

    def run(self, job: Prepared) -> Vector:
        """The saved state: the engine's own memory, as a view."""
        self.engine.seconds.clear()
        asked = request(job, self.options, 0, 0, self.device)
        done = execute(job.code, cast("Engine", self.engine), asked, lambda: None)
        return cast("Vector", done.saved["statevector"].data)

    def plan(self, job: Prepared) -> ProgramPlan:
        """What `run` does."""
        return plan_program(job.code, self.device, request(job, self.options, 0, 0, self.device).plan_options)


def describe_plan(plan: ProgramPlan | Plan) -> dict[str, Any]:
    """Totals and steps as JSON has them; steps without data to move are left out."""
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


def own_seconds() -> float:
    """CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def difference(state: Vector, reference: Vector) -> tuple[float, float]:
    """(fidelity, 2-norm of state - phase * reference over the reference's), the phase the one that suits best."""
    parts = [slice(start, start + CHUNK) for start in range(0, reference.size, CHUNK)]
    overlap, norm, reference_norm = 0j, 0.0, 0.0
    for part in parts:
        ours, theirs = state[part].astype(complex), reference[part].astype(complex)
        overlap += complex(np.vdot(theirs, ours))
        norm += float(np.vdot(ours, ours).real)
        reference_norm += float(np.vdot(theirs, theirs).real)
    phase = overlap / abs(overlap) if overlap else 1.0
    apart = 0.0
    for part in parts:
        delta = state[part].astype(complex) - phase * reference[part].astype(complex)
        apart += float(np.vdot(delta, delta).real)
    return abs(overlap) ** 2 / (norm * reference_norm), float(np.sqrt(apart / reference_norm))


class Worker:
    """One simulator in one precision, and the circuit it is at."""

    def __init__(self, simulator: str, precision: str, threads: int) -> None:
        self.peer: Peer = Ours(precision, threads) if simulator == OURS else PEERS[simulator].create(precision, threads)
        self.circuit: QuantumCircuit | None = None
        self.jobs: dict[str, Job] = {}
        self.last_seconds: dict[str, float] = {}  # of each variant of the circuit

    def answer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Does one order: ``circuit``, ``convert`` or ``run``; a failure is an answer too."""
        try:
            do = getattr(self, {"circuit": "take", "convert": "convert", "run": "run"}[order.pop("order")])
            answer: dict[str, Any] = do(**order)
            return answer
        except UnsupportedError as error:
            return {"unsupported": str(error)}
        except Exception as error:  # whatever a peer raises is a row of the table, not the end of the run
            return {"failed": f"{type(error).__name__}: {error}"[:300]}

    def take(self, family: str, num_qubits: int, seed: int) -> dict[str, Any]:
        """Builds the circuit and forgets the one before."""
        from qsim_ozaki.circuits import build

        self.jobs.clear()
        self.last_seconds.clear()
        self.circuit = build(family, num_qubits, seed)
        return {"variants": list(self.peer.variants(self.circuit)), "num_gates": len(self.circuit.data)}

    def convert(self, variant: str) -> dict[str, Any]:
        """Converts the circuit; the second time counts, a first one may load or compile."""
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
        """Runs the job once; before it once more where it is short, for it comes after others' work or none.

        Args:
            variant: converted before.
            save: file to save the state in.
            reference: file with the state to compare with.
        """
        gc.collect()
        gc.disable()
        if self.last_seconds.get(variant, WARM_SECONDS) < WARM_SECONDS:
            self.peer.run(self.jobs[variant])
        busy, own = machine_busy_seconds(), own_seconds()
        start = time.perf_counter()
        state = self.peer.run(self.jobs[variant])
        seconds = time.perf_counter() - start
        own, busy = own_seconds() - own, machine_busy_seconds() - busy
        self.last_seconds[variant] = seconds
        gc.enable()
        answer: dict[str, Any] = {"seconds": seconds, "others_cpu_seconds": max(0.0, busy - own)}
        if isinstance(self.peer, Ours):
            answer["step_seconds"] = list(self.peer.engine.seconds)
        if save:
            np.save(save, state)
        if reference:
            answer["fidelity"], answer["error"] = difference(state, np.load(reference, mmap_mode="r"))
        return answer

    def device(self) -> dict[str, Any]:
        """The calibrated record of this package's engine; empty for peers."""
        if not isinstance(self.peer, Ours):
            return {}
        return asdict(self.peer.device)


def main(arguments: Sequence[str]) -> None:
    """Serves orders until stdin ends; what a simulator prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    simulator, precision, threads = arguments
    try:
        worker = Worker(simulator, precision, int(threads))
    except Exception as error:  # a peer that is installed and broken
        answers.write(json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]}) + "\n")
        return
    answers.write(json.dumps({"device": worker.device()}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(worker.answer(json.loads(line))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
