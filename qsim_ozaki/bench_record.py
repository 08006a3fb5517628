"""What a benchmark found, as plain data.

In: seconds, errors, predictions. Out: dataclasses with medians, ratios and shares. It measures and prints nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

OURS = "qsim_ozaki"
UNSUPPORTED = "not supported"  # how the note of a peer without such a gate begins
FAILED = "failed"  # and that of a simulator that raised an error
WALL_QUBITS = 20  # on a GPU, up to here the host's part counts: wall time, not device events
SCHEMA = 2  # of the JSON file
# 2-norm error above which two states are not the same: rounding is well below, a wrong gate well above
AGREEMENT = {"double": 1e-9, "single": 1e-3}


@dataclass(frozen=True, slots=True)
class Model:
    """What the cost model said of a run, and what its steps took.

    Attributes:
        predicted_seconds: of all steps.
        kernel_seconds: median of the steps' sum; planning, memory and hand-over are not in it.
        passes: over the state, one read and one write each.
        bytes: moved, as the model counts.
        flops: done, as the model counts.
        steps: per step ``what``, ``qubits``, ``bound_by``, ``predicted_seconds``, ``seconds`` (median), ``bytes`` and
            ``flops``.
    """

    predicted_seconds: float
    kernel_seconds: float
    passes: float
    bytes: float
    flops: float
    steps: tuple[Mapping[str, Any], ...]

    @property
    def ratio(self) -> float:
        """Predicted over measured seconds of the steps."""
        return self.predicted_seconds / self.kernel_seconds

    @property
    def bytes_per_s(self) -> float:
        """Achieved bandwidth."""
        return self.bytes / self.kernel_seconds

    @property
    def flops_per_s(self) -> float:
        """Achieved arithmetic."""
        return self.flops / self.kernel_seconds


@dataclass(frozen=True, slots=True)
class OnGpu:
    """What only a timing on a GPU has.

    Attributes:
        pass_seconds: of one read and one write of such a state in place, measured in this run.
        host_seconds: median until the host had issued everything; near the whole time, launches bound it.
        first_run_seconds: of the first run of all, before the kernels written for the plan are compiled.
        compile_seconds: waited for these kernels, those of all rows of this width and precision together.
    """

    pass_seconds: float
    host_seconds: float | None = None
    first_run_seconds: float | None = None
    compile_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """One simulator on one circuit.

    Attributes:
        simulator: `OURS`, or a key of `peers.PEERS`.
        precision: ``"double"`` or ``"single"``.
        variant: the fastest of its ways to run.
        seconds: from the converted circuit to the final state as an array, one per counted run; empty: not timed.
        convert_seconds: from Qiskit's circuit to its own.
        others_share: largest share of the machine that other processes used during a counted run.
        fidelity: with the reference state; None: it is the reference, or was not compared.
        error: 2-norm of the difference from the reference state, global phase apart.
        note: why it was not timed or not repeated.
        model: of this package's engine only.
        gpu: where it was timed on a GPU.
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
        """Seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half of the range over the median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median

    @property
    def passes(self) -> float | None:
        """Seconds in passes over the state, where the time of one was measured."""
        return self.median / self.gpu.pass_seconds if self.gpu and self.seconds else None

    @property
    def agrees(self) -> bool:
        """Whether its state is the reference's but for rounding."""
        return self.error is None or self.error <= AGREEMENT[self.precision]


@dataclass(frozen=True, slots=True)
class Row:
    """One circuit.

    Attributes:
        family: of `qsim_ozaki.circuits`, or what else was done.
        num_qubits: width.
        num_gates: instructions of Qiskit's circuit.
        timings: one per simulator and precision.
    """

    family: str
    num_qubits: int
    num_gates: int
    timings: tuple[Timing, ...]

    def ours(self, precision: str) -> Timing | None:
        """This package, where it was timed."""
        return next((t for t in self._timed(precision) if t.simulator == OURS), None)

    def best_other(self, precision: str) -> Timing | None:
        """The fastest peer whose answer is right."""
        others = [t for t in self._timed(precision) if t.simulator != OURS and t.agrees]
        return min(others, key=lambda t: t.median, default=None)

    def speedup(self, precision: str) -> float | None:
        """The best other's seconds over ours."""
        ours, other = self.ours(precision), self.best_other(precision)
        return other.median / ours.median if ours and other else None

    def has(self, precision: str) -> bool:
        """Whether anybody was to be timed in ``precision``."""
        return any(t.precision == precision for t in self.timings)

    def _timed(self, precision: str) -> list[Timing]:
        return [t for t in self.timings if t.precision == precision and t.seconds]


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark run.

    Attributes:
        date: when it began, with its zone.
        hardware: ``processor``, ``memory_bytes``; ``cores`` of a CPU only.
        threads: of every simulator on a CPU.
        repeats: counted runs of each simulator that is near the best.
        seed: of the circuits.
        ceilings: the calibrated record of this package's engine, measured at the start of this run.
        versions: of every package that took part.
        command: that repeats it.
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
        """Those that were run, double first."""
        found = {timing.precision for row in self.rows for timing in row.timings}
        return tuple(precision for precision in ("double", "single") if precision in found)

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
        """Timings whose state is not the reference's."""
        return tuple((row, timing) for row in self.rows for timing in row.timings if not timing.agrees)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Report:
        """What `as_json` wrote; its medians and ratios are computed anew.

        Raises:
            KeyError, TypeError, ValueError: it is no such record.
        """
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']}, not {SCHEMA}")
        rows = tuple(
            Row(**_fields(Row, row) | {"timings": tuple(_timing(timing) for timing in row["timings"])})
            for row in record["rows"]
        )
        return cls(**_fields(cls, record) | {"rows": rows})

    def as_json(self) -> dict[str, Any]:
        """Every field, and beside them the medians and ratios that a reader wants."""
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
    """The entries of ``record`` that are fields of ``kind``, all that have no default."""
    return {
        field.name: record[field.name] for field in fields(kind) if field.name in record or field.default is MISSING
    }


def _timing(record: Mapping[str, Any]) -> Timing:
    model, gpu = record["model"], record.get("gpu")
    made = None if model is None else Model(**_fields(Model, model) | {"steps": tuple(model["steps"])})
    more = {"seconds": tuple(record["seconds"]), "model": made, "gpu": gpu and OnGpu(**_fields(OnGpu, gpu))}
    return Timing(**_fields(Timing, record) | more)
