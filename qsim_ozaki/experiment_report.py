"""An experiment for readers: a table for the terminal, Markdown, JSON, a plot.

In: an `Experiment`. Out: text and files. It measures nothing.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from qsim_ozaki.bench_report import NOT_TIMED, markdown_table, require_plot, write_files
from qsim_ozaki.experiment import Experiment, Line

HEADER = ("qubits", "variant", "accuracy", "us", "median", "MB moved", "GB/s", "error", "")


def cells(line: Line) -> tuple[str, ...]:
    """One row of the table."""
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


def caption(found: Experiment) -> str:
    """Hardware, date, method."""
    threads = f", {found.threads} threads" if found.threads else ""
    return (
        f"{found.hardware}{threads}; {found.date[:16].replace('T', ' ')}; a state of {found.num_qubits} qubits. "
        f"The least of {found.repeats} steps in turn, and how far their median is above it; bytes between memory and "
        "the chip as the algorithm counts them; error: the largest of the checked columns over a column's norm, "
        "against extended precision."
    )


def show(found: Experiment, console: Console | None = None) -> None:
    """Prints the table, and which variant wins and why."""
    console = console or Console()
    if not console.is_terminal:
        console.width = 160  # a file or a pipe cuts nothing off
    table = Table(title=found.title, title_justify="left")
    for name in HEADER:
        table.add_column(name, justify="left" if name in ("variant", "accuracy", "") else "right")
    for line in found.lines:
        table.add_row(*cells(line))
    console.print(table)
    console.print(caption(found), highlight=False)
    for text in found.conclusions():
        console.print(text, highlight=False)


def markdown(found: Experiment) -> str:
    """The whole as Markdown."""
    conclusions = "\n".join(f"- {text}" for text in found.conclusions())
    table = markdown_table(HEADER, [cells(line) for line in found.lines])
    return f"# {found.title}\n\nWritten by `{found.command}`. {caption(found)}\n\n{table}\n\n{conclusions}\n"


def write(found: Experiment, json_file: str | None, markdown_file: str | None, plot_file: str | None) -> None:
    """Writes the files that were asked for; raises as `write_files`."""
    write_files(found, markdown, plot, (json_file, markdown_file, plot_file))


def plot(found: Experiment, file: str) -> None:
    """Error across, microseconds up, both logarithmic: a panel per size, a mark per variant."""
    require_plot()
    from matplotlib.figure import Figure

    sizes = sorted({line.size for line in found.lines if line.seconds})
    names = list(dict.fromkeys(line.variant for line in found.lines if line.seconds))
    figure = Figure(figsize=(1.5 + 4.5 * len(sizes), 5.5), layout="constrained")
    axes = figure.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
    for panel, size in zip(axes, sizes, strict=True):
        for line in found.lines:
            if line.size == size and line.seconds:
                number = names.index(line.variant)
                style = {"marker": "osD^vPX*<>p"[number % 11], "color": f"C{number % 10}"}
                panel.scatter([max(line.error or 0.0, 1e-18)], [1e6 * line.least], label=line.variant, **style)
        panel.set(xscale="log", yscale="log", xlabel="error over a column's norm", title=f"{size} qubits")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("microseconds")
    handles = {label: mark for panel in axes for mark, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2, fontsize="x-small")
    figure.suptitle(f"{found.title}: {found.hardware}, {found.date[:10]}")
    figure.savefig(file, dpi=150)
