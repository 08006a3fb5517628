"""The command line's ``bench``: simulators side by side, and the experiments ``gemm`` and ``hadamard``.

In: arguments. Out: tables on stdout, and files that the arguments name. It may not measure anything itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qsim_ozaki.bench import Experiment, GemmOptions, Report

app = typer.Typer(add_completion=False, help="Measures.")

Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Everything measured.")]
Markdown = Annotated[str | None, typer.Option(metavar="FILE", help="The tables as Markdown.")]
Plot = Annotated[str | None, typer.Option(metavar="FILE.png", help="Times as a picture; needs Matplotlib.")]
Repeats = Annotated[int, typer.Option(min=1, help="Counted runs of each.")]
ThreadsOption = Annotated[int, typer.Option(min=0, help="Of the CPU engine, or every simulator; default all cores.")]
EngineOption = Annotated[str, typer.Option(help="cpu or cuda.")]
QubitsOption = Annotated[int, typer.Option(min=1, help="Of the state.")]


@app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    engine: Annotated[str, typer.Option(help="cpu, or cuda: beside cuStateVec, states on the GPU.")] = "cpu",
    family: Annotated[list[str] | None, typer.Option(help="Family of circuits, or blocks on a GPU; repeat.")] = None,
    qubits: Annotated[
        list[int] | None, typer.Option(help="Width; repeat. Default 20 and 22, on a GPU 10 to 30.")
    ] = None,
    precision: Annotated[list[str] | None, typer.Option(help="double or single; default both.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Simulator to compare with; default all installed.")] = None,
    repeats: Repeats = 5,
    threads: ThreadsOption = 0,
    seconds: Annotated[int, typer.Option(min=0, help="On a GPU: after these no further row begins.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the circuits.")] = 7,
    recorded: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Show a JSON file; run nothing.")
    ] = None,
    json_file: Json = None,
    markdown: Markdown = None,
    plot: Plot = None,
) -> None:
    """Times this package beside the simulators that are installed, in turn, and its predictions beside the times.

    With --from it shows what was measured before. Exit code 2 if two states differ, or this package fails.
    """
    if context.invoked_subcommand is not None:
        return
    from qsim_ozaki.bench import read_report, require_plot, show_progress, show_report, write_report

    if plot:
        require_plot()
    lists = {"families": family, "qubits": qubits, "precisions": precision, "peers": peer}
    chosen = {name: tuple(values) for name, values in lists.items() if values}
    if recorded and chosen:
        raise QsimError("--from shows all that was measured. Leave out --family, --qubits, --precision and --peer.")
    if recorded:
        report = read_report(recorded)
    else:
        numbers = {"repeats": repeats, "threads": threads, "seconds": seconds, "seed": seed}
        report = _measure(engine, chosen, numbers, lambda so_far: show_progress(so_far, json_file))
    write_report(report, json_file, markdown, plot)
    show_report(report)
    if report.disagreements or report.failures:
        raise typer.Exit(2)


def _measure(
    engine: str, chosen: dict[str, Any], numbers: dict[str, int], progress: Callable[[Report], None]
) -> Report:
    """Runs the benchmark of an engine.

    Args:
        engine: ``"cpu"`` or ``"cuda"``.
        chosen: options that are lists, as far as the user gave them.
        numbers: options that are numbers.
        progress: called with the report so far after every row.

    Raises:
        QsimError: the engine is not known, or its benchmark does not have an option that the user gave.
    """
    if engine not in ("cpu", "cuda"):
        raise QsimError(f"engine {engine!r} is not known; there are cpu, cuda")
    not_allowed = {"cpu": ("seconds",), "cuda": ("peers", "threads")}[engine]
    for name in not_allowed:
        if chosen.get(name) or numbers.get(name):
            flag = {"peers": "peer"}.get(name, name)
            raise QsimError(f"--{flag} was given, which --engine {engine} does not have. Leave it out.")
    options: dict[str, Any] = chosen | {name: value for name, value in numbers.items() if name not in not_allowed}
    if engine == "cuda":
        from qsim_ozaki.bench import CudaBenchOptions, measure_gpu

        return measure_gpu(CudaBenchOptions(**options), progress)
    from qsim_ozaki.bench import BenchOptions, measure_circuits

    return measure_circuits(BenchOptions(**options), progress)


@app.command()
def gemm(
    engine: EngineOption = "cpu",
    qubits: QubitsOption = 18,
    size: Annotated[list[int] | None, typer.Option(help="Qubits of the matrix; default 6, 8 and 10.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="native, library, emulated or founding; default all.")] = None,
    repeats: Repeats = 5,
    threads: ThreadsOption = 0,
    seed: Annotated[int, typer.Option(help="Of matrices, targets and state.")] = 7,
    alone: Annotated[bool, typer.Option("--alone", help="Start no other process, as one started so does.")] = False,
    json_file: Json = None,
    markdown: Markdown = None,
    plot: Plot = None,
) -> None:
    """A matrix on k qubits of a state: native, by a library, and by every emulation, with errors and bytes moved."""
    from qsim_ozaki.bench import GemmOptions, measure_gemm

    lists: dict[str, Any] = {"sizes": size, "only": only}
    chosen = {name: tuple(values) for name, values in lists.items() if values}
    options = GemmOptions(engine, qubits, repeats=repeats, threads=threads, seed=seed, others=not alone, **chosen)
    _run_experiment(measure_gemm, options, json_file, markdown, plot)


@app.command()
def hadamard(
    engine: EngineOption = "cpu",
    qubits: QubitsOption = 20,
    size: Annotated[list[int] | None, typer.Option(help="Qubits transformed; default 10 and 14.")] = None,
    repeats: Repeats = 5,
    threads: ThreadsOption = 0,
    seed: Annotated[int, typer.Option(help="Of the state.")] = 7,
    json_file: Json = None,
    markdown: Markdown = None,
    plot: Plot = None,
) -> None:
    """H on m qubits of a state: FP64 fast transform, emulated matrices, FP32 and TF32, with errors and bytes moved."""
    from qsim_ozaki.bench import GemmOptions, measure_hadamard

    options = GemmOptions(engine, qubits, tuple(size or (10, 14)), repeats=repeats, threads=threads, seed=seed)
    _run_experiment(measure_hadamard, options, json_file, markdown, plot)


def _run_experiment(
    measure: Callable[[GemmOptions, Callable[[Experiment], None]], Experiment],
    options: GemmOptions,
    json_file: str | None,
    markdown_file: str | None,
    plot_file: str | None,
) -> None:
    """Runs an experiment, writes its files and prints its table; the JSON file is written again after each size."""
    from qsim_ozaki.bench import require_plot, show_experiment, write_experiment

    if plot_file:
        require_plot()
    experiment = measure(options, lambda so_far: write_experiment(so_far, json_file, None, None))
    write_experiment(experiment, json_file, markdown_file, plot_file)
    show_experiment(experiment)
