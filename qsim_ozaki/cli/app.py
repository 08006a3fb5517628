"""The command line: ``qsim-ozaki run, plan, compare, batch, bench, doctor``.

In: arguments. Out: text on stdout; after an error one line on stderr and exit code 1.
It may not compute: it calls the public names and prints their results.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qsim_ozaki.cli import bench
from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qiskit import QuantumCircuit
    from qiskit.providers import JobV1
    from qiskit.result import Result

    from qsim_ozaki.cli.compare import Comparison
    from qsim_ozaki.provider import OzakiBackend

LONG_RUN_SECONDS = 1.0  # a shorter run has no progress bar, which would only flicker

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Quantum state-vector simulator for Qiskit circuits.",
)
app.add_typer(bench.app, name="bench")

Source = Annotated[str, typer.Argument(metavar="FILE", help="OpenQASM 2 or 3 file, or family:num_qubits as qft:20.")]
EngineOption = Annotated[str | None, typer.Option(help="cpu, cuda, or auto, which is cpu.")]
Precision = Annotated[str | None, typer.Option(help="double (complex128) or single (complex64).")]
Arithmetic = Annotated[str | None, typer.Option(help="auto, native or emulated, for dense blocks.")]
ThreadsOption = Annotated[int | None, typer.Option(help="Worker threads; default all cores.")]
PlotOption = Annotated[
    str | None, typer.Option(metavar="FILE.png", help="A picture: the counts, or the state where nothing is measured.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@app.command()
def run(
    file: Source,
    shots: Annotated[int, typer.Option(help="Samples to draw.")] = 1024,
    seed: Annotated[int | None, typer.Option(help="Seed of the samples; the same seed gives the same counts.")] = None,
    engine: EngineOption = None,
    precision: Precision = None,
    arithmetic: Arithmetic = None,
    threads: ThreadsOption = None,
    top: Annotated[int, typer.Option(help="Outcomes to show.")] = 16,
    plot: PlotOption = None,
    as_json: AsJson = False,
) -> None:
    """Runs a circuit and shows a histogram of its outcomes."""
    from qsim_ozaki.cli import picture
    from qsim_ozaki.cli.load import with_measurements

    circuit = _load(file)
    backend = _backend(engine=engine, precision=precision, arithmetic=arithmetic, threads=threads)
    if plot is not None:
        picture.check(circuit, plot)
        circuit = picture.with_state(circuit, backend, shots)
    circuit, note = with_measurements(circuit)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "nothing is measured", UserWarning)  # the note says it
        job = backend.run(circuit, shots=shots, seed_simulator=seed)
    result = _wait(job, backend, circuit)
    seconds = time.perf_counter() - start
    counts = result.get_counts()
    metadata = getattr(result.results[0], "metadata", {}) or {}
    if plot is not None:
        picture.draw(result, plot)
    if as_json:
        record = {"circuit": circuit.name, "num_qubits": circuit.num_qubits, "shots": shots, "seed": seed}
        _print_json(record | {"seconds": seconds, "counts": dict(counts), "metadata": dict(metadata)})
        return
    size = f"{circuit.num_qubits} qubits, {circuit.size()} instructions, {shots} shots"
    typer.echo(f"{circuit.name}: {size}, {_duration(seconds)}{_engine_of(metadata)}")
    if note:
        typer.echo(note)
    typer.echo(histogram(counts, top))


@app.command()
def plan(
    file: Source,
    engine: EngineOption = None,
    precision: Precision = None,
    arithmetic: Arithmetic = None,
    threads: ThreadsOption = None,
) -> None:
    """Shows how a circuit would run, step by step, without running it."""
    backend = _backend(engine=engine, precision=precision, arithmetic=arithmetic, threads=threads)
    typer.echo(backend.plan(_load(file)).explain())


@app.command()
def compare(
    file: Source,
    engine: EngineOption = None,
    precision: Precision = None,
    arithmetic: Arithmetic = None,
    threads: ThreadsOption = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Difference that counts as equal; default 1e-10, single 1e-4.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compares the final state with Aer's, or with Qiskit's Statevector where Aer is not installed.

    Exit code 2 if the states differ.
    """
    from qsim_ozaki.cli.compare import compare as compare_states

    circuit = _load(file)
    if not circuit.num_qubits:
        raise QsimError(f"{circuit.name} has no qubits, so there is no state to compare.")
    backend = _backend(engine=engine, precision=precision, arithmetic=arithmetic, threads=threads)
    if tolerance is None:
        tolerance = 1e-4 if precision == "single" else 1e-10
    comparison = compare_states(circuit, backend, tolerance)
    if as_json:
        from dataclasses import asdict

        _print_json({"circuit": circuit.name} | asdict(comparison))
    else:
        typer.echo(comparison_text(circuit.name, comparison))
    if comparison.divergence is not None or not comparison.largest_difference <= tolerance:
        raise typer.Exit(2)


@app.command()
def batch(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="As for run, or QPY with free parameters.")],
    output: Annotated[str, typer.Option(metavar="FILE", help="JSON lines, one per row; or .parquet, with pyarrow.")],
    grid: Annotated[list[str] | None, typer.Option(help="name=first:last:count, or name=values; repeatable.")] = None,
    parameters: Annotated[str | None, typer.Option(metavar="FILE", help="Rows: .csv with names, or .json.")] = None,
    shots: Annotated[int, typer.Option(help="Samples to draw of each row.")] = 1024,
    seed: Annotated[int | None, typer.Option(help="Seed of all rows; a resumed batch keeps its own.")] = None,
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0 for none.")] = 0,
    engine: EngineOption = None,
    precision: Precision = None,
    threads: ThreadsOption = None,
) -> None:
    """Runs every circuit at every row of parameters and writes each result as it comes.

    Run the same command again after a break: rows that the output holds are kept, the others follow.
    """
    from qsim_ozaki.cli import batch as sweep
    from qsim_ozaki.cli.load import with_measurements

    circuits = [with_measurements(_load(file))[0] for file in files]
    rows = sweep.read_rows(Path(parameters)) if parameters else sweep.grid_rows(grid or [])
    backend = _backend(engine=engine, precision=precision, threads=threads, shots=shots, seed_simulator=seed)
    with _progress("rows") as progress:
        count = sweep.run_sweep(sweep.make_sweep(circuits, rows), Path(output), backend, processes, progress)
    typer.echo(f"{output}: {count} rows run")


@app.command()
def doctor(
    as_json: AsJson = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure the hardware first, for better plans.")
    ] = False,
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile all GPU kernels first, so that no run waits for them.")
    ] = False,
    architecture: Annotated[
        list[int] | None,
        typer.Option(metavar="90", help="With --warm: for GPUs of this compute capability times ten; repeatable."),
    ] = None,
) -> None:
    """Shows what there is to run on, checks every engine and path, and says what to do where something is missing.

    Exit code 2 if a check fails.
    """
    from dataclasses import asdict
    from itertools import chain

    from qsim_ozaki.cli import doctor as checks

    if architecture and not warm:
        raise QsimError("--architecture says for which GPUs to compile. Use it with --warm.")
    with _progress("kernels") if warm else nullcontext() as tell:
        warmed = list(checks.warm(architecture or (), tell)) if tell is not None else []
    checked = chain(warmed, checks.calibrate() if calibrate else (), checks.examine())
    if as_json:
        findings = list(checked)
        _print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table("what", "state", "found", "what to do", box=None, pad_edge=False)
        findings = []
        for finding in checked:
            findings.append(finding)
            color = {"ok": "green", "absent": "yellow"}.get(finding.state, "red")
            table.add_row(finding.what, f"[{color}]{finding.state}[/]", escape(finding.detail), escape(finding.remedy))
        console = Console()
        if not console.is_terminal:
            console.width = 160  # wide enough that no text is cut off in a file or a pipe
        console.print(table)
    if any(finding.state == checks.FAILED for finding in findings):
        raise typer.Exit(2)


def histogram(counts: Mapping[str, int], top: int = 16, width: int = 40) -> str:
    """Returns a line for each of the ``top`` most frequent outcomes: bits, count, share, bar.

    The longest bar has ``width`` characters.
    """
    shots = sum(counts.values())
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    lines = []
    for bits, count in rows[:top]:
        # The bar is drawn in eighths of a character, at least one: 1 shot in a million is still visible.
        eighths = max(1, round(8 * width * count / rows[0][1]))
        bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
        lines.append(f"{bits}  {count:>{len(str(rows[0][1]))}}  {100 * count / shots:5.1f} %  {bar}")
    if len(rows) > top:
        rest = sum(count for _, count in rows[top:])
        lines.append(f"... {len(rows) - top} more outcomes, {rest} shots, {100 * rest / shots:.1f} %")
    return "\n".join(lines)


def comparison_text(name: str, comparison: Comparison) -> str:
    """Formats a `Comparison` as text."""
    n = comparison.num_qubits
    lines = [f"{name}: {n} qubits, compared with {comparison.reference}"]
    width = max(n, len("basis state"))
    lines.append(f"{'basis state':>{width}}  {'this':^27}  {'reference':^27}")
    for index, ours, theirs in comparison.amplitudes:
        bits = format(index, f"0{n}b").rjust(width)
        lines.append(f"{bits}  {_complex(ours)}  {_complex(theirs)}")
    lines.append(f"largest difference  {comparison.largest_difference:.3e} at {comparison.at:0{n}b}")
    lines.append(f"1 - fidelity        {1 - comparison.fidelity:.3e}")
    divergence = comparison.divergence
    if divergence is None:
        lines.append("first diverging gate  none")
    else:
        qubits = ", ".join(map(str, divergence.qubits))
        place = f"instruction {divergence.position}, {divergence.gate} on {qubits}"
        lines.append(f"first diverging gate  {place}: difference {divergence.difference:.3e}")
    lines.append(f"time  this {_duration(comparison.seconds)}, reference {_duration(comparison.reference_seconds)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs a command; an error of this package becomes one line on stderr and exit code 1."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="qsim-ozaki")
    except QsimError as error:
        if os.environ.get("QSIM_OZAKI_DEBUG"):
            raise
        typer.echo(f"error: {' '.join(str(error).split())}", err=True)
        sys.exit(1)


def _load(file: str) -> QuantumCircuit:
    from qsim_ozaki.cli.load import load_circuit

    return load_circuit(file)


def _backend(**options: Any) -> OzakiBackend:
    """Returns a backend with the options that are not None; the backend validates them."""
    from qsim_ozaki.provider import OzakiBackend

    return OzakiBackend(**{name: value for name, value in options.items() if value is not None})


def _wait(job: JobV1, backend: OzakiBackend, circuit: QuantumCircuit) -> Result:
    """Waits for the job's result; a long run shows a progress bar, and Ctrl-C cancels the job."""
    started, pause = time.perf_counter(), 0.001
    try:
        while not job.in_final_state() and time.perf_counter() - started < LONG_RUN_SECONDS:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        if not job.in_final_state():
            _show_progress(job, backend.plan(circuit).prediction.seconds, started)
    except KeyboardInterrupt:
        job.cancel()
        typer.echo("cancelled", err=True)
        raise typer.Exit(130) from None
    return job.result()


def _show_progress(job: JobV1, predicted_seconds: float, started: float) -> None:
    """Shows a bar of elapsed over predicted seconds on stderr until the job ends."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn(f"of about {_duration(predicted_seconds)} predicted")
    columns = (TextColumn("running"), BarColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("run", total=predicted_seconds)
        while not job.in_final_state():
            # The bar is not full before the end, even if the prediction is wrong.
            progress.update(task, completed=min(time.perf_counter() - started, 0.99 * predicted_seconds))
            time.sleep(0.1)


@contextmanager
def _progress(things: str) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar on stderr; yields the function that updates it from the numbers of finished things and of all."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(things), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(things, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _engine_of(metadata: Mapping[str, Any]) -> str:
    """Returns `` on the cpu engine``, or no text if the result does not name its engine."""
    return f" on the {metadata['engine']} engine" if "engine" in metadata else ""


def _duration(seconds: float) -> str:
    """Formats ``seconds`` with three digits and a suitable unit."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def _complex(value: complex) -> str:
    """Formats ``value`` in 27 characters."""
    return f"{value.real:+.8f} {value.imag:+.8f}i".rjust(27)


def _print_json(record: Mapping[str, Any]) -> None:
    """Prints ``record`` as JSON: a complex number as [real, imaginary], a value of unknown type as its text."""
    from qsim_ozaki.provider import to_jsonable

    typer.echo(json.dumps(to_jsonable(record), indent=2))


if __name__ == "__main__":
    main()
