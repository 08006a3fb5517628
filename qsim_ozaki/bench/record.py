"""The results of a benchmark, as plain data.

In: seconds, errors, predictions. Out: dataclasses with medians, ratios and shares. It may not measure or print.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

OURS = "qsim_ozaki"
UNSUPPORTED = "not supported"  # prefix of the note of a peer that lacks a gate
FAILED = "failed"  # prefix of the note of a simulator that raised an error
WALL_QUBITS = 20  # up to this width a GPU is timed by the clock, the host's work included, not by device events
SCHEMA = 2  # of the JSON file
# Two states differ if the 2-norm of their difference is larger; rounding is well below, a wrong gate well above.
AGREEMENT = {"double": 1e-9, "single": 1e-3}


@dataclass(frozen=True, slots=True)
class Model:
    """The cost model's predictions for a run, and the measured seconds of its steps.

    Attributes:
        predicted_seconds: of all steps.
        kernel_seconds: median of the steps' sum, without planning, allocation and hand-over.
        passes: over the state, one read and one write each.
        bytes: moved, as the model counts them.
        flops: done, as the model counts them.
        steps: of each step ``what``, ``qubits``, ``bound_by``, ``predicted_seconds``, ``seconds`` (median), ``bytes``
            and ``flops``.
    """

    predicted_seconds: float
    kernel_seconds: float
    passes: float
    bytes: float
    flops: float
    steps: tuple[Mapping[str, Any], ...]

    @property
    def ratio(self) -> float:
        """The predicted over the measured seconds of the steps."""
        return self.predicted_seconds / self.kernel_seconds

    @property
    def bytes_per_s(self) -> float:
        """The achieved bandwidth, bytes per second."""
        return self.bytes / self.kernel_seconds

    @property
    def flops_per_s(self) -> float:
        """The achieved arithmetic, flops per second."""
        return self.flops / self.kernel_seconds


@dataclass(frozen=True, slots=True)
class OnGpu:
    """The further results of a timing on a GPU.

    Attributes:
        pass_seconds: of one read and one write of a state of this width in place, measured in this run.
        host_seconds: median until the host has issued all work; if it is near the whole time, launches bound the run.
        first_run_seconds: of the very first run, before the kernels generated for the plan are compiled.
        compile_seconds: wait for these kernels, for all rows of this width and precision together.
    """

    pass_seconds: float
    host_seconds: float | None = None
    first_run_seconds: float | None = None
    compile_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """The results of one simulator on one circuit.

    Attributes:
        simulator: `OURS`, or a key of `peers.PEERS`.
        precision: ``"double"`` or ``"single"``.
        variant: the simulator's fastest variant.
        seconds: from the converted circuit to the final state as an array, one per counted run; empty if not timed.
        convert_seconds: from Qiskit's circuit to the simulator's own.
        others_share: largest share of the machine that other processes used during a counted run.
        fidelity: with the reference state; None for the reference itself, and if the states were not compared.
        error: 2-norm of the difference from the reference state, global phase removed.
        note: reason why the simulator was not timed or not repeated.
        model: of this package's engine only.
        gpu: of a timing on a GPU only.
    """

    simulator: str
    precision: str
    variant: str = ""
    seconds: tuple[float, ...] = ()
    convert_seconds: float = 0.0
    others_share: float = 0.0
    fidelity: float | None = None
    error: float | None = None
    note: str = ""
    model: Model | None = None
    gpu: OnGpu | None = None

    @property
    def median(self) -> float:
        """The median seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range of the seconds over their median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median

    @property
    def passes(self) -> float | None:
        """The median seconds in units of one pass over the state; None if a pass was not measured."""
        return self.median / self.gpu.pass_seconds if self.gpu and self.seconds else None

    @property
    def agrees(self) -> bool:
        """Whether the state equals the reference up to rounding."""
        return self.error is None or self.error <= AGREEMENT[self.precision]


@dataclass(frozen=True, slots=True)
class Row:
    """The results of all simulators on one circuit.

    Attributes:
        family: name of a family in `qsim_ozaki.circuits`, or of other measured work.
        num_qubits: width.
        num_gates: instructions of Qiskit's circuit.
        timings: one per simulator and precision.
    """

    family: str
    num_qubits: int
    num_gates: int
    timings: tuple[Timing, ...]

    def ours(self, precision: str) -> Timing | None:
        """This package's timing, None if it was not timed."""
        return next((t for t in self._timed(precision) if t.simulator == OURS), None)

    def best_other(self, precision: str) -> Timing | None:
        """The timing of the fastest peer whose state is right, None if there is none."""
        others = [t for t in self._timed(precision) if t.simulator != OURS and t.agrees]
        return min(others, key=lambda t: t.median, default=None)

    def speedup(self, precision: str) -> float | None:
        """The best other's seconds over ours."""
        ours, other = self.ours(precision), self.best_other(precision)
        return other.median / ours.median if ours and other else None

    def has(self, precision: str) -> bool:
        """Whether a simulator was to be timed in ``precision``."""
        return any(t.precision == precision for t in self.timings)

    def _timed(self, precision: str) -> list[Timing]:
        return [t for t in self.timings if t.precision == precision and t.seconds]


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one benchmark run.

    Attributes:
        date: of its start, with the time zone.
        hardware: ``processor``, ``memory_bytes``; ``cores`` of a CPU only.
        threads: of every simulator on a CPU.
        repeats: counted runs of each simulator that is near the best.
        seed: of the circuits.
        ceilings: the calibrated device record of this package's engine, measured at the start of this run.
        versions: of every package that took part.
        command: the command line that repeats the run.
        rows: one per circuit.
    """

    date: str
    hardware: Mapping[str, Any]
    threads: int
    repeats: int
    seed: int
    ceilings: Mapping[str, Any]
    versions: Mapping[str, str]
    command: str
    rows: tuple[Row, ...] = ()

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions of the run, double first."""
        present = {timing.precision for row in self.rows for timing in row.timings}
        return tuple(precision for precision in ("double", "single") if precision in present)

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU was timed."""
        return "cores" not in self.hardware

    @property
    def failures(self) -> tuple[Row, ...]:
        """Rows in which this package failed."""
        return tuple(r for r in self.rows if any(t.simulator == OURS and t.note.startswith(FAILED) for t in r.timings))

    @property
    def disagreements(self) -> tuple[tuple[Row, Timing], ...]:
        """Timings whose state differs from the reference."""
        return tuple((row, timing) for row in self.rows for timing in row.timings if not timing.agrees)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Report:
        """Returns the report of a record that `as_json` wrote; medians and ratios are computed anew.

        Raises:
            KeyError: a field is missing.
            TypeError: the record is not a mapping, or a field has a wrong type.
            ValueError: the record has another schema.
        """
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, not {SCHEMA}")
        rows = tuple(
            Row(**_fields(Row, row) | {"timings": tuple(_timing(timing) for timing in row["timings"])})
            for row in record["rows"]
        )
        return cls(**_fields(cls, record) | {"rows": rows})

    def as_json(self) -> dict[str, Any]:
        """Returns every field, with the medians and ratios."""
        out = {"schema": SCHEMA} | asdict(self)
        for row, record in zip(self.rows, out["rows"], strict=True):
            record["speedup"] = {precision: row.speedup(precision) for precision in self.precisions}
            for timing, entry in zip(row.timings, record["timings"], strict=True):
                entry["median_seconds"] = timing.median if timing.seconds else None
                if timing.gpu:
                    entry["passes"] = timing.passes
                else:
                    del entry["gpu"]
                if timing.model:
                    entry["model"]["predicted_over_measured"] = timing.model.ratio
                    entry["model"]["bytes_per_s"] = timing.model.bytes_per_s
                    entry["model"]["flops_per_s"] = timing.model.flops_per_s
        return out


def _fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of ``record`` that are fields of ``kind``; a field without a default must be present."""
    return {
        field.name: record[field.name] for field in fields(kind) if field.name in record or field.default is MISSING
    }


def _timing(record: Mapping[str, Any]) -> Timing:
    model, gpu = record["model"], record.get("gpu")
    objects = {
        "seconds": tuple(record["seconds"]),
        "model": None if model is None else Model(**_fields(Model, model) | {"steps": tuple(model["steps"])}),
        "gpu": OnGpu(**_fields(OnGpu, gpu)) if gpu else None,
    }
    return Timing(**_fields(Timing, record) | objects)
