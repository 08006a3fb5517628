"""The backend: a Qiskit `BackendV2` that runs circuits as jobs.

In: Qiskit circuits and options. Out: jobs, plans and estimates. It may not choose a step or touch a state.
"""

from __future__ import annotations

import sys
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
from qsim_ozaki.errors import LoweringError, OptionError
from qsim_ozaki.ir import Device, max_qubits
from qsim_ozaki.lowering import SAVES, SaveInstruction, SetStatevector
from qsim_ozaki.planner import MAX_QUBITS, plan_options
from qsim_ozaki.provider.job import OzakiJob
from qsim_ozaki.provider.options import BackendOptions, check_run_arguments, checked
from qsim_ozaki.provider.prepare import Prepared, amplitude_updates, check_capacity, prepare_circuit
from qsim_ozaki.provider.progress import Rows, rows_to_show
from qsim_ozaki.provider.result import OzakiResult
from qsim_ozaki.provider.rows import JobContext, Unit, is_stacked, make_units
from qsim_ozaki.provider.target import build_target, width_for
from qsim_ozaki.provider.user_warnings import warn_user
from qsim_ozaki.provider.workers import run_all
from qsim_ozaki.runtime import ProgramPlan, fresh_seed, plan_program, plan_stack, suggestions

__all__ = ["Estimate", "OzakiBackend"]

SHORT_JOB_UPDATES = 1 << 21  # these take less than a millisecond; starting a thread takes 0.1 ms (EPYC, 2026-11)
SHORT_JOB_SHOTS = 1 << 13

RUN_ARGUMENTS = ("parameter_binds", "executor", "timeout")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The memory and time that a circuit will need.

    Attributes:
        active_qubits: number of qubits that some instruction acts on; the others cost nothing.
        needed_bytes: memory for the state and for the saved results beside it.
        available_bytes: memory that the engine may use now.
        fits: whether the circuit can run.
        max_qubits: number of active qubits of the widest state that fits, in the precision of the options.
        predicted_seconds: time to run every segment once, without sampling.
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
            * ``accuracy``: proved error bound of an emulated matrix, relative to a column's norm; None for the accuracy
              of ``precision``.
            * ``shots``: at least 1, or None: counts are then exact probabilities, of dynamic circuits too.
            * ``seed_simulator``: an integer of at least 0, or None for a fresh one, which the result then names.
            * ``memory``: whether to keep each shot's value.
            * ``initial_state``: a label of ``01+-rl``, a basis state's index, or a vector (NumPy, CuPy, DLPack); its
              qubits are those of the circuit, in order.
            * ``inputs``: values of the circuits' input variables, by name.
            * ``max_memory_bytes``: limit of all states and saved vectors together; 0 for the free memory.
            * ``threads``: number of threads; 0 for all cores.
            * ``progress``: whether `run` shows a bar of rows while you wait for its result; None for one after a second
              if stderr is a terminal, or in a notebook.

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
        """Returns the state without engines and their locks, so that a backend can be sent to another process."""
        return self.__dict__ | {"_engines": SharedEngines()}

    @classmethod
    def _default_options(cls) -> BackendOptions:
        return BackendOptions()

    @property
    def target(self) -> Target:
        """Every instruction that the backend runs, on any qubits, without a coupling map."""
        if self._target is None:
            self._target = build_target()
            for name in SAVES:
                self._target.add_instruction(SaveInstruction, name=name)
            self._target.add_instruction(SetStatevector, name="set_statevector")
        return self._target

    @property
    def num_qubits(self) -> int | None:
        """Largest number of qubits of a circuit, idle qubits included; None for Qiskit's transpiler: any width."""
        return width_for(sys._getframe(1).f_globals.get("__name__", ""))

    @property
    def max_circuits(self) -> None:
        """None: a job may have any number of circuits."""
        return

    def set_options(self, **fields: Any) -> None:
        """Sets options for all later runs.

        Raises:
            OptionError: one is unknown or its value is not allowed; then none is set.
        """
        self._options.update_options(**fields)

    def run(
        self,
        run_input: QuantumCircuit | Iterable[QuantumCircuit] | None = None,
        *,
        parameter_binds: object = None,
        executor: Executor | None = None,
        progress: Callable[[int, int], None] | bool | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> OzakiJob:
        """Starts a job. Every circuit is translated and its memory checked before this returns.

        Args:
            run_input: a circuit, or several. It may be named ``circuits``, as Aer does.
            parameter_binds: rows of parameters; every row makes one result. For each circuit a mapping from parameters
                to values or lists of values, or an array ``(rows, parameters)``. A circuit is translated once.
            executor: runs parts of the rows in threads, processes or an mpi4py pool. A part uses one thread, unless
                ``threads`` says otherwise. The executor is not shut down.
            progress: a function of the number of finished rows and of all rows, called in the job's thread; or whether
                to show a bar; None for the option of the backend.
            timeout: seconds after which the job stops with a `TimeLimitError`.
            options: override the backend's options for this run.

        Returns:
            A running job. Row i draws from a random stream that depends only on the seed and i.

        Raises:
            OptionError: an option is unknown, has a value that is not allowed, or does not suit a circuit.
            LoweringError: a circuit cannot be translated.
            CapacityError: a state does not fit.
        """
        check_run_arguments(executor, progress, timeout)
        circuits = _circuits(run_input, options)
        used = self.merged_options(options, RUN_ARGUMENTS)
        units = make_units(circuits, parameter_binds, used)
        engine, turn = self.engine(used)
        device = engine.device()
        for unit in units:
            check_capacity(unit.prepared, device, used["precision"])
        _warn_unmeasured(units, used["shots"])
        short = executor is None and _is_short(units, used["shots"])
        tell, rows = _progress(used["progress"] if progress is None else progress, units, short)

        def work(check: Callable[[], None], job_id: str) -> Result:
            seed = fresh_seed() if used["seed_simulator"] is None else used["seed_simulator"]
            return self._result(units, JobContext(engine, device, used, seed, check, executor, tell), job_id)

        job = OzakiJob(self, work, turn, timeout, rows)
        job.submit(short)
        return job

    def plan(self, circuit: QuantumCircuit, **options: Any) -> ProgramPlan:
        """Plans ``circuit`` without running it; ``plan(circuit).explain()`` is the plan as a table.

        Args:
            circuit: a circuit with at most 62 active qubits, whether it fits or not.
            options: as for `run`.

        Raises:
            CapacityError: the circuit is wider than any memory; `run` raises the same error.
        """
        prepared, plan, device = self._planned("plan", circuit, options)
        chosen = plan_options(self.merged_options(options))
        return replace(plan, suggestions=suggestions(prepared.code, device, chosen, plan))

    def estimate(self, circuit: QuantumCircuit, **options: Any) -> Estimate:
        """Predicts the memory and time that ``circuit`` needs, and whether it fits; nothing runs.

        Args:
            circuit: a circuit with at most 62 active qubits, whether it fits or not.
            options: as for `run`.

        Raises:
            CapacityError: the circuit is wider than any memory; `run` raises the same error.
        """
        prepared, planned, device = self._planned("estimate", circuit, options)
        return Estimate(
            active_qubits=prepared.code.program.num_qubits,
            needed_bytes=prepared.needed_bytes,
            available_bytes=device.memory_bytes,
            fits=prepared.needed_bytes <= device.memory_bytes,
            max_qubits=max_qubits(device.memory_bytes, self.merged_options(options)["precision"]),
            predicted_seconds=planned.prediction.seconds,
        )

    def merged_options(self, options: dict[str, Any], arguments: Sequence[str] = ()) -> dict[str, Any]:
        """Checks ``options`` and returns the backend's options overridden by them; ``arguments`` as for `checked`."""
        chosen = checked(options, arguments)
        if chosen.get("seed_simulator", 0) is None:  # Qiskit's primitives pass None where their user gave no seed
            del chosen["seed_simulator"]
        return dict(self._options.items()) | chosen

    def _planned(
        self, caller: str, circuit: QuantumCircuit, options: dict[str, Any]
    ) -> tuple[Prepared, ProgramPlan, Device]:
        if not isinstance(circuit, QuantumCircuit):
            raise LoweringError(f"{caller}() takes one QuantumCircuit, not {type(circuit).__name__}.")
        used = self.merged_options(options)
        engine = self.engine(used)[0]
        device = engine.device()
        prepared = prepare_circuit(circuit, used)
        if prepared.code.num_qubits > MAX_QUBITS:
            check_capacity(prepared, device, used["precision"])
        planner = plan_stack if is_stacked(prepared, used, engine, has_slots=False) else plan_program
        return prepared, planner(prepared.code, device, plan_options(used)), device

    def engine(self, options: dict[str, Any]) -> tuple[Engine, threading.Lock]:
        """Returns the engine for ``options`` and the lock that its running job holds; a forked process has new ones."""
        shared = self._engines.shared(options["engine"], options["threads"], options["max_memory_bytes"])
        shared[0].expect(options["precision"])
        return shared

    def results(
        self,
        circuits: list[QuantumCircuit],
        parameter_binds: object,
        options: dict[str, Any],
        *,
        first: int = 0,
        check: Callable[[], None] = lambda: None,
        draws_counts: bool = False,
    ) -> list[ExperimentResult]:
        """Runs the rows in the caller's thread and returns their results: for jobs that consist of several runs.

        Args:
            circuits: as for `run`.
            parameter_binds: as for `run`.
            options: override the backend's options.
            first: index of the first row, for its random stream.
            check: called before every step; an error that it raises ends the run.
            draws_counts: as in `Request`.
        """
        used = self.merged_options(options) | {"draws_counts": draws_counts}
        units = [replace(unit, first=unit.first + first) for unit in make_units(circuits, parameter_binds, used)]
        engine = self.engine(used)[0]
        device = engine.device()
        for unit in units:
            check_capacity(unit.prepared, device, used["precision"])
        return run_all(units, JobContext(engine, device, used, used["seed_simulator"], check))

    def _result(self, units: list[Unit], context: JobContext, job_id: str) -> Result:
        """Runs the rows and collects their results."""
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


def _circuits(run_input: object, options: dict[str, Any]) -> list[QuantumCircuit]:
    """Returns the circuits of a job as a list; removes ``circuits``, Aer's name of the argument, from ``options``.

    Raises:
        OptionError: the circuits are given by both names.
        LoweringError: there are no circuits.
    """
    if "circuits" in options:
        if run_input is not None:
            raise OptionError("run() got circuits twice: as its first argument and by the name circuits. Pass one.")
        run_input = options.pop("circuits")
    if isinstance(run_input, QuantumCircuit):
        return [run_input]
    if not isinstance(run_input, Iterable):
        raise LoweringError(
            f"run() takes QuantumCircuits, not {type(run_input).__name__}. Pass a circuit or a list of them."
        )
    circuits = list(run_input)
    if not circuits:
        raise LoweringError("run() got no circuits. Pass a circuit or a list of at least one.")
    return circuits


def _warn_unmeasured(units: list[Unit], shots: int | None) -> None:
    """Warns of circuits with classical bits that neither measure, store nor save: their counts have 0 in every bit."""
    if shots is None:  # exact probabilities, for people who know what they ask
        return
    names = {unit.prepared.code.program.name for unit in units if unit.prepared.is_unmeasured}
    if names:
        listed = ", ".join(map(repr, sorted(names)))
        warn_user(
            f"nothing is measured in {listed}, so every classical bit is 0 in the counts. The state is in the data; "
            f"add measurements for samples of it."
        )


def _progress(
    progress: Callable[[int, int], None] | bool | None, units: list[Unit], short: bool
) -> tuple[Callable[[int, int], None] | None, Rows | None]:
    """Returns the function that a job calls after every row, and the rows that a bar shows; None for neither."""
    if callable(progress):
        return progress, None
    shown = None if progress is None else bool(progress)
    rows = None if short else rows_to_show(shown, sum(unit.num_rows for unit in units))
    return (None, None) if rows is None else (rows.tell, rows)


def _is_short(units: list[Unit], shots: int | None) -> bool:
    """Whether starting a thread would take longer than the job's work."""
    updates = sum(unit.num_rows * amplitude_updates(unit.prepared) for unit in units)
    samples = (shots or 0) * sum(unit.num_rows for unit in units)
    return updates <= SHORT_JOB_UPDATES and samples <= SHORT_JOB_SHOTS
