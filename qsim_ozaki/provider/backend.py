"""Qiskit's face: a `BackendV2` that runs circuits as jobs.

In: Qiskit circuits and options. Out: jobs, plans, estimates. It chooses no step and touches no state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from qiskit import QuantumCircuit
from qiskit.providers import BackendV2
from qiskit.result import Result
from qiskit.result.models import ExperimentResult
from qiskit.transpiler import Target

from qsim_ozaki.engines import Engine, SharedEngines
from qsim_ozaki.errors import LoweringError
from qsim_ozaki.ir import Device, max_qubits
from qsim_ozaki.lowering import SAVES, SaveInstruction, SetStatevector
from qsim_ozaki.planner import MAX_QUBITS, plan_options
from qsim_ozaki.provider.job import OzakiJob
from qsim_ozaki.provider.options import BackendOptions, check_run_arguments, checked
from qsim_ozaki.provider.prepare import Prepared, amplitude_updates, check_capacity, prepare_circuit
from qsim_ozaki.provider.result import OzakiResult
from qsim_ozaki.provider.rows import JobContext, Unit, is_stacked, make_units
from qsim_ozaki.provider.target import build_target
from qsim_ozaki.provider.workers import run_all
from qsim_ozaki.runtime import ProgramPlan, fresh_seed, plan_program, plan_stack, suggestions

__all__ = ["Estimate", "OzakiBackend"]

SHORT_JOB_UPDATES = 1 << 21  # less than a millisecond; a thread costs a tenth of one (EPYC, 2026-11)
SHORT_JOB_SHOTS = 1 << 13

RUN_ARGUMENTS = ("parameter_binds", "executor", "progress", "timeout")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a circuit will need.

    Attributes:
        active_qubits: qubits that some instruction touches; the others cost nothing.
        needed_bytes: the state and what is saved beside it.
        available_bytes: what the engine may use now.
        fits: whether it runs.
        max_qubits: active qubits of the widest state that fits, in the precision asked for.
        predicted_seconds: of all segments, each done once; sampling not included.
    """

    active_qubits: int
    needed_bytes: int
    available_bytes: int
    fits: bool
    max_qubits: int
    predicted_seconds: float


class OzakiBackend(BackendV2):  # type: ignore[misc]
    """A state-vector simulator.

    Circuits that measure give counts (and memory, if asked); circuits that neither measure nor save give their final
    ``statevector``, in the order of the circuit's qubits before transpilation moved them.

    Args:
        options: the options below, as the defaults of `run`; each is checked when it is set, here or later.

            * ``engine``: ``"auto"`` or an engine's name.
            * ``precision``: ``"double"`` or ``"single"``.
            * ``arithmetic``: of matrices: ``"auto"``, ``"native"``, or ``"emulated"`` (INT8 products, 3 qubits up).
            * ``accuracy``: proved error bound of an emulated matrix, over a column's norm; None for parity with
              ``precision``.
            * ``shots``: at least 1, or None: counts are then exact probabilities, of dynamic circuits too.
            * ``seed_simulator``: an integer of at least 0, None for a fresh one, which the result then tells.
            * ``memory``: whether to keep each shot's value.
            * ``initial_state``: a label of ``01+-rl``, a basis state's index, or a vector (NumPy, CuPy, DLPack); on the
              circuit's own qubits.
            * ``inputs``: values of circuits' input variables, by name.
            * ``max_memory_bytes``: limit of all states and saved vectors, 0 for what is free.
            * ``threads``: 0 for all cores.

    Raises:
        OptionError: an option is unknown or its value is not allowed.

    Example:
        >>> backend = OzakiBackend(seed_simulator=7)
        >>> backend.run(circuit, shots=1000).result().get_counts()
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            name="qsim_ozaki",
            description="State-vector simulator: few passes over memory, a plan to read before it runs",
            backend_version=version("qsim-ozaki"),
        )
        self._options.update_options(**options)
        self._target: Target | None = None
        self._engines = SharedEngines()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but engines and their locks, so that a backend can be sent to another process."""
        return self.__dict__ | {"_engines": SharedEngines()}

    @classmethod
    def _default_options(cls) -> BackendOptions:
        return BackendOptions()

    @property
    def target(self) -> Target:
        """Every gate of the table on any number of qubits, without a coupling map."""
        if self._target is None:
            self._target = build_target()
            for name in SAVES:
                self._target.add_instruction(SaveInstruction, name=name)
            self._target.add_instruction(SetStatevector, name="set_statevector")
        return self._target

    @property
    def max_circuits(self) -> None:
        """No limit."""
        return

    def set_options(self, **fields: Any) -> None:
        """Sets options for all later runs.

        Raises:
            OptionError: one is unknown or its value is not allowed; then none is set.
        """
        self._options.update_options(**fields)

    def run(
        self,
        run_input: QuantumCircuit | Iterable[QuantumCircuit],
        *,
        parameter_binds: object = None,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> OzakiJob:
        """Starts a job. Every circuit is translated and its memory checked before this returns.

        Args:
            run_input: a circuit, or several.
            parameter_binds: rows of parameters, each of which makes one result: per circuit a mapping from parameters
                to values or lists of values, or an array ``(rows, parameters)``. The circuit is translated once.
            executor: runs parts of the rows: threads, processes, an mpi4py pool. Each part has one thread, unless
                ``threads`` says otherwise. It is not shut down.
            progress: called with the rows done and all rows, in the job's thread.
            timeout: seconds after which the job stops with a `TimeLimitError`.
            options: override the backend's options for this run.

        Returns:
            A running job. Row i draws from a random stream that depends on the seed and i alone.

        Raises:
            OptionError: an option is unknown, not allowed, or does not suit a circuit.
            LoweringError: a circuit cannot be translated.
            CapacityError: a state does not fit.
        """
        check_run_arguments(executor, progress, timeout)
        used = self.merged_options(options, RUN_ARGUMENTS)
        circuits = [run_input] if isinstance(run_input, QuantumCircuit) else list(run_input)
        if not circuits:
            raise LoweringError("run() got no circuits. Pass a circuit or a list of at least one.")
        units = make_units(circuits, parameter_binds, used)
        engine, turn = self.engine(used)
        device = engine.device()
        for unit in units:
            check_capacity(unit.prepared, device, used["precision"])

        def work(check: Callable[[], None], job_id: str) -> Result:
            given = used["seed_simulator"]
            seed = fresh_seed() if given is None else given
            return self._result(units, JobContext(engine, device, used, seed, check, executor, progress), job_id)

        job = OzakiJob(self, work, turn, timeout)
        job.submit(short=executor is None and _is_short(units, used["shots"]))
        return job

    def plan(self, circuit: QuantumCircuit, **options: Any) -> ProgramPlan:
        """How ``circuit`` would run; ``plan(circuit).explain()`` is the table. Nothing runs and no memory is taken.

        Args:
            circuit: of at most 62 active qubits, whether it fits or not.
            options: as for `run`.

        Raises:
            CapacityError: it is wider than any memory; the same as `run` raises.
        """
        prepared, made, device = self._planned(circuit, options)
        asked = plan_options(self.merged_options(options))
        return replace(made, suggestions=suggestions(prepared.code, device, asked, made))

    def estimate(self, circuit: QuantumCircuit, **options: Any) -> Estimate:
        """What ``circuit`` would need, and whether it fits.

        Args:
            circuit: of at most 62 active qubits, whether it fits or not.
            options: as for `run`.

        Raises:
            CapacityError: it is wider than any memory; the same as `run` raises.
        """
        prepared, planned, device = self._planned(circuit, options)
        return Estimate(
            active_qubits=prepared.code.program.num_qubits,
            needed_bytes=prepared.needed_bytes,
            available_bytes=device.memory_bytes,
            fits=prepared.needed_bytes <= device.memory_bytes,
            max_qubits=max_qubits(device.memory_bytes, self.merged_options(options)["precision"]),
            predicted_seconds=planned.prediction.seconds,
        )

    def merged_options(self, options: dict[str, Any], arguments: Sequence[str] = ()) -> dict[str, Any]:
        """The backend's options, overridden by ``options``, which are checked; ``arguments`` as for `checked`."""
        return dict(self._options.items()) | checked(options, arguments)

    def _planned(self, circuit: QuantumCircuit, options: dict[str, Any]) -> tuple[Prepared, ProgramPlan, Device]:
        used = self.merged_options(options)
        engine = self.engine(used)[0]
        device = engine.device()
        prepared = prepare_circuit(circuit, used)
        if prepared.code.num_qubits > MAX_QUBITS:
            check_capacity(prepared, device, used["precision"])
        make = plan_stack if is_stacked(prepared, used, engine, has_slots=False) else plan_program
        return prepared, make(prepared.code, device, plan_options(used)), device

    def engine(self, options: dict[str, Any]) -> tuple[Engine, threading.Lock]:
        """The engine for ``options``, and the lock by which its jobs take turns; a forked process makes its own."""
        return self._engines.shared(options["engine"], options["threads"], options["max_memory_bytes"])

    def results(
        self,
        circuits: list[QuantumCircuit],
        parameter_binds: object,
        options: dict[str, Any],
        *,
        first: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> list[ExperimentResult]:
        """The result of every row, in the caller's thread: for jobs that are made of several runs.

        Args:
            circuits: as for `run`.
            parameter_binds: as for `run`.
            options: override the backend's.
            first: index of the first row, for its random stream.
            check: called now and then; what it raises ends the run.
        """
        used = self.merged_options(options)
        units = [replace(unit, first=unit.first + first) for unit in make_units(circuits, parameter_binds, used)]
        engine = self.engine(used)[0]
        device = engine.device()
        for unit in units:
            check_capacity(unit.prepared, device, used["precision"])
        return run_all(units, JobContext(engine, device, used, used["seed_simulator"], check))

    def _result(self, units: list[Unit], context: JobContext, job_id: str) -> Result:
        """Runs the rows."""
        start = datetime.now(UTC)
        results = run_all(units, context)
        end = datetime.now(UTC)
        return OzakiResult(
            backend_name=self.name,
            backend_version=self.backend_version,
            job_id=job_id,
            success=True,
            results=results,
            date=end.isoformat(),
            status="COMPLETED",
            header={},
            time_taken=(end - start).total_seconds(),
        )


def _is_short(units: list[Unit], shots: int | None) -> bool:
    """Whether a thread would cost more than the job's own work."""
    updates = sum(unit.num_rows * amplitude_updates(unit.prepared) for unit in units)
    samples = (shots or 0) * sum(unit.num_rows for unit in units)
    return updates <= SHORT_JOB_UPDATES and samples <= SHORT_JOB_SHOTS
