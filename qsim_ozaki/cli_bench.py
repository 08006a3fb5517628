"""The command line's ``bench``: simulators side by side, and the experiments ``gemm`` and ``hadamard``.

In: arguments. Out: tables on stdout, files where asked. It measures nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from qsim_ozaki.bench_gemm import GemmOptions
    from qsim_ozaki.bench_record import Report
    from qsim_ozaki.experiment import Experiment

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
    from qsim_ozaki import bench_report

    if plot:
        bench_report.require_plot()
    given = {"families": family, "qubits": qubits, "precisions": precision, "peers": peer}
    chosen = {name: tuple(values) for name, values in given.items() if values}
    if recorded and chosen:
        raise QsimError("--from shows all that was measured. Leave out --family, --qubits, --precision and --peer.")
    if recorded:
        report = bench_report.read(recorded)
    else:
        numbers = {"repeats": repeats, "threads": threads, "seconds": seconds, "seed": seed}
        report = _measured(engine, chosen, numbers, lambda so_far: bench_report.progress(so_far, json_file))
    bench_report.write(report, json_file, markdown, plot)
    bench_report.show(report)
    if report.disagreements or report.failures:
        raise typer.Exit(2)


def _measured(
    engine: str, chosen: dict[str, Any], numbers: dict[str, int], progress: Callable[[Report], None]
) -> Report:
    """The benchmark of an engine; raises QsimError where it has no such option."""
    if engine not in ("cpu", "cuda"):
        raise QsimError(f"engine {engine!r} is not known; there are cpu, cuda")
    other = {"cpu": ("seconds",), "cuda": ("peers", "threads")}[engine]
    for name in other:
        if chosen.get(name) or numbers.get(name):
            flag = {"peers": "peer"}.get(name, name)
            raise QsimError(f"--{flag} was given, which --engine {engine} does not have. Leave it out.")
    own: dict[str, Any] = chosen | {name: value for name, value in numbers.items() if name not in other}
    if engine == "cuda":
        from qsim_ozaki import bench_cuda

        return bench_cuda.measure(bench_cuda.CudaBenchOptions(**own), progress)
    from qsim_ozaki import bench

    return bench.measure(bench.BenchOptions(**own), progress)


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
    from qsim_ozaki import bench_gemm

    given: dict[str, Any] = {"sizes": tuple(size or ()), "only": tuple(only or ())}
    options = bench_gemm.GemmOptions(
        engine, qubits, repeats=repeats, threads=threads, seed=seed, others=not alone, **_chosen(given)
    )
    _experiment(bench_gemm.measure_gemm, options, (json_file, markdown, plot))


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
    from qsim_ozaki import bench_hadamard
    from qsim_ozaki.bench_gemm import GemmOptions

    options = GemmOptions(engine, qubits, tuple(size or (10, 14)), repeats=repeats, threads=threads, seed=seed)
    _experiment(bench_hadamard.measure_hadamard, options, (json_file, markdown, plot))


def _chosen(given: dict[str, Any]) -> dict[str, Any]:
    """What was given at all."""
    return {name: value for name, value in given.items() if value}


def _experiment(
    measure: Callable[[GemmOptions, Callable[[Experiment], None]], Experiment],
    options: GemmOptions,
    files: tuple[str | None, str | None, str | None],
) -> None:
    """Runs an experiment, writes its files, prints its table; the JSON file grows as sizes are done."""
    from qsim_ozaki import bench_report, experiment_report

    if files[2]:
        bench_report.require_plot()
    found = measure(options, lambda so_far: experiment_report.write(so_far, files[0], None, None))
    experiment_report.write(found, *files)
    experiment_report.show(found)
