"""Presents an experiment: a table on the terminal, Markdown, JSON, a plot.

In: an `Experiment`. Out: text and files. It may not measure anything.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from qsim_ozaki.bench.blocks.experiment import Experiment, Line
from qsim_ozaki.bench.report import NOT_TIMED, markdown_table, require_plot, write_files

HEADER = ("qubits", "variant", "accuracy", "us", "median", "MB moved", "GB/s", "error", "")


def cells(line: Line) -> tuple[str, ...]:
    """Returns one row of the table."""
    name = (str(line.size), line.variant, line.accuracy)
    if not line.seconds:
        return (*name, *[NOT_TIMED] * 5, line.note)
    return (
        *name,
        f"{1e6 * line.least:,.0f}",
        f"+{100 * (line.median / line.least - 1):.0f} %",
        f"{line.bytes / 1e6:,.1f}",
        f"{line.bytes / line.least / 1e9:.1f}",
        NOT_TIMED if line.error is None else f"{line.error:.1e}",
        line.note,
    )


def experiment_caption(experiment: Experiment) -> str:
    """Returns a caption with hardware, date and method."""
    threads = f", {experiment.threads} threads" if experiment.threads else ""
    date = experiment.date[:16].replace("T", " ")
    return (
        f"{experiment.hardware}{threads}; {date}; a state of {experiment.num_qubits} qubits. The least of "
        f"{experiment.repeats} steps in turn, and how far their median is above it; bytes between memory and the chip "
        "as the algorithm counts them; error: the largest of the checked columns over a column's norm, against "
        "extended precision."
    )


def show_experiment(experiment: Experiment, console: Console | None = None) -> None:
    """Prints the table, a caption, and which variant wins and why."""
    console = console or Console()
    if not console.is_terminal:
        console.width = 160  # a file or a pipe cuts nothing off
    table = Table(title=experiment.title, title_justify="left")
    for name in HEADER:
        table.add_column(name, justify="left" if name in ("variant", "accuracy", "") else "right")
    for line in experiment.lines:
        table.add_row(*cells(line))
    console.print(table)
    console.print(experiment_caption(experiment), highlight=False)
    for text in experiment.conclusions():
        console.print(text, highlight=False)


def experiment_markdown(experiment: Experiment) -> str:
    """Returns the whole experiment as Markdown."""
    conclusions = "\n".join(f"- {text}" for text in experiment.conclusions())
    table = markdown_table(HEADER, [cells(line) for line in experiment.lines])
    origin = f"Written by `{experiment.command}`. {experiment_caption(experiment)}"
    return f"# {experiment.title}\n\n{origin}\n\n{table}\n\n{conclusions}\n"


def write_experiment(
    experiment: Experiment, json_file: str | None, markdown_file: str | None, plot_file: str | None
) -> None:
    """Writes the experiment to the files that are not None; raises as `write_files`."""
    write_files(experiment, experiment_markdown, plot_experiment, json_file, markdown_file, plot_file)


def plot_experiment(experiment: Experiment, file: str) -> None:
    """Draws a panel per size, a mark per variant: error across, microseconds up, both logarithmic."""
    require_plot()
    from matplotlib.figure import Figure

    sizes = sorted({line.size for line in experiment.lines if line.seconds})
    names = list(dict.fromkeys(line.variant for line in experiment.lines if line.seconds))
    figure = Figure(figsize=(1.5 + 4.5 * len(sizes), 5.5), layout="constrained")
    axes = figure.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    for panel, size in zip(axes, sizes, strict=True):
        for line in experiment.lines:
            if line.size == size and line.seconds:
                number = names.index(line.variant)
                style = {"marker": "osD^vPX*<>p"[number % 11], "color": f"C{number % 10}"}
                panel.scatter([max(line.error or 0.0, 1e-18)], [1e6 * line.least], label=line.variant, **style)
        panel.set(xscale="log", yscale="log", xlabel="error over a column's norm", title=f"{size} qubits")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds")
    handles = {label: mark for panel in axes for mark, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize="x-small")
    figure.suptitle(f"{experiment.title}: {experiment.hardware}, {experiment.date[:10]}")
    figure.savefig(file, dpi=150)
