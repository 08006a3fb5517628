"""Presents a benchmark's report: tables on the terminal, Markdown, JSON, a plot.

In: a `Report`. Out: text and files. It may not measure anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.table import Table

from qsim_ozaki.bench.record import OURS, UNSUPPORTED, WALL_QUBITS, Report, Row, Timing
from qsim_ozaki.errors import QsimError
from qsim_ozaki.ir import Device

SUMMARY = ("family", "qubits", "precision", "this, ms", "best other, ms", "ratio", "error")
MODEL = (
    *("family", "qubits", "precision", "steps, ms", "pred / meas", "passes"),
    *("GB/s", "of peak", "Gflop/s", "of peak", "bound by"),
)
GPU = ("measured", "other's", "host", "first run, ms")  # further columns of the model's table for a GPU
NOT_TIMED = "-"
CPU_METHOD = "from the converted circuit to the final state as an array, memory and (here) planning included"
GPU_METHOD = (
    f"by device events, to {WALL_QUBITS} qubits by the clock; from a state on the GPU, random where it does not say "
    "zero, to one there, planned and compiled before. custatevec: its Ex updater at its best over widths of fusion and "
    "forms of gates, SWAPs as names as here, making |0...0> not counted; of blocks its apply_matrix"
)
CPU_NOTES = (
    "`error` is the 2-norm of the difference from the first peer's state in double precision, global phase apart. "
    "`*`: run once, for it was far from the best; `~`: others used the machine meanwhile.",
    "`steps` is the time inside the engine's steps, `pred / meas` the model's seconds over these; bytes and flops "
    "are those that the model counts; `bound by` is the model's word for the longest step.",
)
GPU_NOTES = (
    "`error` is the 2-norm of the difference of both final states from the same start, relative.",
    "`steps` is the time of the whole plan by device events, `pred / meas` the model's seconds over it; `passes` are "
    "those that were planned, `measured` is the time in passes, each the time of one read and one write of such a "
    "state in place, `other's` the peer's; `host` is the share of the time after which the host had issued all of it; "
    "`first run` is that before kernels written for the plan are compiled; bytes and flops are as the model counts.",
)


class Measured(Protocol):
    """Results that can be written to a file."""

    def as_json(self) -> dict[str, Any]:
        """Returns every number."""


Results = TypeVar("Results", bound=Measured)


def milliseconds(seconds: float) -> str:
    """Formats seconds as milliseconds with three digits."""
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def time_text(timing: Timing) -> str:
    """Formats a time as ``123 ±2 %``.

    A ``*`` marks a single run, a ``~`` runs during which other processes used the machine.
    """
    if not timing.seconds:
        return NOT_TIMED
    text = milliseconds(timing.median)
    text += "*" if len(timing.seconds) == 1 else f" ±{100 * timing.spread:.0f} %"
    text += "~" if timing.others_share else ""
    return text if timing.agrees else f"{text} WRONG"


def report_caption(report: Report) -> str:
    """Returns a caption with hardware, date, method and ceilings."""
    ceilings = Device.from_record(report.ceilings)
    memory = report.hardware["memory_bytes"] / 2**30
    cores = "" if report.on_gpu else f", {report.hardware['cores']} cores"
    threads = "" if report.on_gpu else f", {report.threads} threads for every simulator"
    where = f"{report.hardware['processor']}{cores}, {memory:.0f} GiB free{threads}"
    double, single = (ceilings.rates[precision].flops_per_s / 1e9 for precision in ("double", "single"))
    limits = f"in-place pass {ceilings.memory.bandwidth_bytes_per_s / 1e9:.1f} GB/s, FMA {double:.0f} Gflop/s"
    limits += f" double and {single:.0f} single"
    return (
        f"{where}; {report.date[:16].replace('T', ' ')}. Median of {report.repeats} runs in turn, ± half their range; "
        f"{GPU_METHOD if report.on_gpu else CPU_METHOD}. Measured peaks: {limits}."
    )


def summary_rows(report: Report) -> list[tuple[str, ...]]:
    """Returns the time of this package, that of the best other and their ratio, per circuit and precision."""
    rows: list[tuple[str, ...]] = []
    for precision in report.precisions:
        for row in report.rows:
            ours, other, speedup = row.ours(precision), row.best_other(precision), row.speedup(precision)
            if ours is not None:
                best = f"{time_text(other)} {other.simulator}" if other else NOT_TIMED
                ratio = f"{speedup:.1f}" if speedup else NOT_TIMED
                rows.append(
                    (row.family, str(row.num_qubits), precision, time_text(ours), best, ratio, error_text(ours))
                )
    return rows


def error_text(timing: Timing) -> str:
    """Formats the 2-norm error, if the state was compared."""
    return NOT_TIMED if timing.error is None else f"{timing.error:.0e}"


def model_rows(report: Report) -> list[tuple[str, ...]]:
    """Returns predicted over measured seconds, passes, rates and their shares of the peaks, as `model_header` says.

    There is a row per circuit and precision.
    """
    rows: list[tuple[str, ...]] = []
    peaks = Device.from_record(report.ceilings)
    for precision in report.precisions:
        peak = peaks.rates[precision].flops_per_s
        for row in report.rows:
            ours = row.ours(precision)
            if ours is None or ours.model is None:
                continue
            model = ours.model
            longest = max(model.steps, key=lambda step: float(step["seconds"]), default={"bound_by": NOT_TIMED})
            rows.append(
                (
                    row.family,
                    str(row.num_qubits),
                    precision,
                    milliseconds(model.kernel_seconds),
                    f"{model.ratio:.2f}",
                    f"{model.passes:.1f}",
                    f"{model.bytes_per_s / 1e9:.1f}",
                    _percent(model.bytes_per_s / peaks.memory.bandwidth_bytes_per_s),
                    f"{model.flops_per_s / 1e9:.1f}",
                    _percent(model.flops_per_s / peak),
                    str(longest["bound_by"]),
                    *(gpu_cells(ours, row.best_other(precision)) if report.on_gpu else ()),
                )
            )
    return rows


def gpu_cells(ours: Timing, other: Timing | None) -> tuple[str, ...]:
    """Returns the cells of the columns `GPU`."""
    gpu = ours.gpu
    if gpu is None or gpu.host_seconds is None or gpu.first_run_seconds is None:
        return (NOT_TIMED,) * len(GPU)
    theirs = f"{other.passes:.2f}" if other and other.passes else NOT_TIMED
    host = _percent(min(gpu.host_seconds / ours.median, 1))
    return f"{ours.passes:.2f}", theirs, host, milliseconds(gpu.first_run_seconds)


def model_header(report: Report) -> tuple[str, ...]:
    """Returns the header of `model_rows`; a GPU has further columns."""
    return (*MODEL, *GPU) if report.on_gpu else MODEL


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def simulators(report: Report) -> list[tuple[str, str]]:
    """Returns (simulator, precision) of every column: double precision first, this package first in each."""
    columns = dict.fromkeys((t.simulator, t.precision) for row in report.rows for t in row.timings)
    return sorted(columns, key=lambda column: (column[1] != "double", column[0] != OURS))


def every_time(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns header and rows of the table with the time of every simulator."""
    columns = simulators(report)
    header = ("family", "qubits", *(name if p == "double" else f"{name} single" for name, p in columns))
    timings: dict[tuple[str, int], dict[tuple[str, str], Timing]] = {}
    for row in report.rows:
        of_circuit = timings.setdefault((row.family, row.num_qubits), {})
        of_circuit |= {(timing.simulator, timing.precision): timing for timing in row.timings}
    rows = []
    for (family, num_qubits), of_circuit in timings.items():
        cells = [time_text(of_circuit[column]) if column in of_circuit else NOT_TIMED for column in columns]
        rows.append((family, str(num_qubits), *cells))
    return header, rows


def show_report(report: Report, console: Console | None = None) -> None:
    """Prints the tables of times and of the cost model, a caption and notes."""
    console = console or Console()
    if not console.is_terminal:
        console.width = 180 if report.on_gpu else 140  # a file or a pipe cuts nothing off
    for title, header, rows in (
        ("Time", SUMMARY, summary_rows(report)),
        ("Cost model", model_header(report), model_rows(report)),
    ):
        table = Table(title=title, title_justify="left")
        for name in header:
            table.add_column(name, justify="left" if name in ("family", "precision") else "right")
        for cells in rows:
            table.add_row(*cells)
        console.print(table)
    console.print(report_caption(report), highlight=False)
    for line in notes(report):
        console.print(line, highlight=False)


def notes(report: Report) -> list[str]:
    """Returns the notes of a report, one line each.

    They say which simulators were not timed and why, once for each reason, repeat the notes of this package, and name
    the states that differ from the reference.
    """
    circuits: dict[tuple[str, str], list[str]] = {}  # by simulator and note
    for row in report.rows:
        for timing in row.timings:
            concerns_reader = not timing.seconds or timing.simulator == OURS
            if timing.note and concerns_reader and not timing.note.startswith(UNSUPPORTED):
                key = (f"{timing.simulator} ({timing.precision})", timing.note)
                circuits.setdefault(key, []).append(f"{row.family} {row.num_qubits}")
    lines = []
    for (name, note), titles in circuits.items():
        more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
        lines.append(f"{titles[0]}{more}: {name}: {note}")
    for row, timing in report.disagreements:
        lines.append(
            f"{row.family} {row.num_qubits}: {timing.simulator} ({timing.precision}) differs from the reference state: "
            f"error {timing.error:.1e}, fidelity {timing.fidelity}"
        )
    return lines


def report_markdown(report: Report) -> str:
    """Returns the whole report as Markdown."""
    header, rows = every_time(report)
    versions = ", ".join(f"{name} {number}" for name, number in report.versions.items())
    error_note, model_note = GPU_NOTES if report.on_gpu else CPU_NOTES
    parts = [
        f"# State-vector simulators on a {'GPU' if report.on_gpu else 'CPU'}",
        f"Written by `{report.command}`. {report_caption(report)}",
        f"Versions: {versions}.",
        "## This and the best other",
        markdown_table(SUMMARY, summary_rows(report)),
        error_note,
        "## Cost model",
        markdown_table(model_header(report), model_rows(report)),
        model_note,
        "## Every simulator, ms",
        markdown_table(header, rows),
        f"`{NOT_TIMED}`: no such gate, or left out: far behind the best at a smaller size, or no time left; "
        "the JSON file says which.",
    ]
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def write_report(report: Report, json_file: str | None, markdown_file: str | None, plot_file: str | None) -> None:
    """Writes the report to the files that are not None; raises as `write_files`."""
    write_files(report, report_markdown, plot_report, json_file, markdown_file, plot_file)


def write_files(
    results: Results,
    markdown: Callable[[Results], str],
    plot: Callable[[Results, str], None],
    json_file: str | None,
    markdown_file: str | None,
    plot_file: str | None,
) -> None:
    """Writes results as JSON, as Markdown and as a picture, to the files that are not None.

    Args:
        results: of a benchmark or an experiment.
        markdown: returns the results as Markdown.
        plot: writes a picture of the results to a file.
        json_file: path of the JSON file.
        markdown_file: path of the Markdown file.
        plot_file: path of the picture.

    Raises:
        QsimError: a file cannot be written, or a picture is to be drawn without Matplotlib.
    """
    try:
        if json_file:
            Path(json_file).write_text(json.dumps(results.as_json(), indent=1) + "\n", encoding="utf-8")
        if markdown_file:
            Path(markdown_file).write_text(markdown(results), encoding="utf-8")
        if plot_file:
            plot(results, plot_file)
    except OSError as error:
        raise QsimError(f"cannot write {error.filename}: {error.strerror}") from error


def read_report(file: str) -> Report:
    """Returns the report of a JSON file that `write_report` wrote.

    Raises:
        QsimError: the file cannot be read, or is not a report.
    """
    try:
        return Report.from_json(json.loads(Path(file).read_text(encoding="utf-8")))
    except OSError as error:
        raise QsimError(f"cannot read {file}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise QsimError(f"{file} is not what qsim-ozaki bench --json writes: {error!r}") from error


def show_progress(report: Report, json_file: str | None) -> None:
    """Prints the last row on stderr, and writes the JSON file so far: an interrupted run keeps its rows."""
    row = report.rows[-1]
    parts = []
    for precision in dict.fromkeys(timing.precision for timing in row.timings):
        ours, other = row.ours(precision), row.best_other(precision)
        best = f"{other.simulator} {time_text(other)}" if other else "no peer"
        note = next((t.note for t in row.timings if t.simulator == OURS and t.precision == precision), "")
        parts.append(f"{precision} {time_text(ours)} ms, {best}" if ours else f"{precision} {note or NOT_TIMED}")
    Console(stderr=True).print(f"{row.family} {row.num_qubits}: {'; '.join(parts)}", highlight=False, soft_wrap=True)
    write_report(report, json_file, None, None)


def require_plot() -> None:
    """Raises QsimError if Matplotlib is not installed; call it before an hour of timing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise QsimError("--plot needs Matplotlib. Install it by: pip install 'qsim-ozaki[plot]'") from None


def plot_report(report: Report, file: str) -> None:
    """Draws a panel per precision and width: families across, milliseconds up (log), a mark per simulator."""
    require_plot()
    from matplotlib.figure import Figure

    widths = sorted({row.num_qubits for row in report.rows})
    size = (1.5 + 5.5 * len(report.precisions), 3.6 * len(widths))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(widths), len(report.precisions), squeeze=False)
    for line, num_qubits in enumerate(widths):
        for column, precision in enumerate(report.precisions):
            rows = [row for row in report.rows if row.num_qubits == num_qubits and row.has(precision)]
            _panel(axes[line][column], rows, precision)
            axes[line][column].set_title(f"{num_qubits} qubits, {precision} precision")
    threads = "" if report.on_gpu else f", {report.threads} threads"
    figure.suptitle(f"{report.hardware['processor']}{threads}, {report.date[:10]}")
    figure.savefig(file, dpi=150)


def _panel(axes: Any, rows: Sequence[Row], precision: str) -> None:
    """Draws a mark per simulator and family; the filled one is this package's."""
    names = dict.fromkeys(t.simulator for row in rows for t in row.timings if t.precision == precision and t.seconds)
    for number, name in enumerate(sorted(names, key=lambda name: name != OURS)):
        points = [
            (place, 1e3 * timing.median)
            for place, row in enumerate(rows)
            for timing in row.timings
            if timing.simulator == name and timing.precision == precision and timing.seconds
        ]
        style = {"marker": "o", "s": 60, "zorder": 3} if name == OURS else {"marker": "x+1234sd"[number % 8], "s": 45}
        axes.scatter([x for x, _ in points], [y for _, y in points], label=name, **style)
    axes.set_yscale("log")
    axes.set_ylabel("ms")
    axes.set_xticks(range(len(rows)), [row.family for row in rows], rotation=40, ha="right")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize="x-small")
