"""Draws the charts of docs/benchmarks/ from the records, and writes their numbers as tables into its index page.

usage: charts.py [FOLDER]   (docs/benchmarks of this checkout if not given)

In: benchmarks/records/*.json. Out: first_screen.svg, cpu.svg, h200.svg, and the tables of index.md between its markers.
Text in the charts stays text, in greys and colours that read on a white and on a dark page; the background is clear.
"""

import json
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "records"
PAGES = ROOT / "docs" / "benchmarks"

OURS = "qsim_ozaki"
INK, FAINT = "#768390", "#76839055"
BLUE, ORANGE, GREY = "#2f81f7", "#e8883a", "#a3adb8"
AGREEMENT = 1e-9  # 2-norm of the difference of two states in double precision: rounding is far below
FIRST_SCREEN = ("efficient_su2", "qft", "trotter_ising", "random_brickwork", "quantum_volume")
CPU = ("grover", "hadamard_layers", "qft", "trotter_ising", "efficient_su2", "ghz", "random_brickwork", "dense5")
CPU += ("quantum_volume",)
H200 = ("qft", "hadamard_layers", "trotter_ising", "efficient_su2", "random_u_cz", "quantum_volume")
TITLES = {
    "dense5": "blocks of 5 qubits",
    "efficient_su2": "EfficientSU2",
    "ghz": "GHZ state",
    "grover": "Grover search",
    "hadamard_layers": "H and RZ layers",
    "qft": "QFT",
    "quantum_volume": "quantum volume",
    "random_brickwork": "random circuit",
    "random_u_cz": "random circuit",
    "trotter_ising": "Trotter, Ising chain",
}
SIMULATORS = {
    "aer": "Aer",
    "custatevec": "cuStateVec",
    "lightning.kokkos": "Lightning Kokkos",
    "lightning.qubit": "Lightning",
    "numpy": "NumPy",
    "qibojit": "qibojit",
    "qulacs": "Qulacs",
}
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 11,
    "svg.fonttype": "none",  # text stays text: searchable, and drawn in the reader's font
    "svg.hashsalt": "qsim_ozaki",  # the same file from the same records
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Comparison:
    """One circuit: seconds of this simulator, of the best other, and of every other that was timed."""

    family: str
    seconds: float
    other: str
    other_seconds: float
    others: dict[str, float]

    @property
    def title(self) -> str:
        """The family's name in words."""
        return TITLES[self.family]

    @property
    def ratio(self) -> float:
        """How many times the best other's seconds are ours."""
        return self.other_seconds / self.seconds


def read(name):
    """A record of `qsim-ozaki bench`."""
    return json.loads((RECORDS / f"{name}.json").read_text())


def compare(record, family, num_qubits, precision="double", start=""):
    """The `Comparison` of one circuit of a record."""
    name = family + start
    rows = [row for row in record["rows"] if (row["family"], row["num_qubits"]) == (name, num_qubits)]
    timed = [t for row in rows for t in row["timings"] if t["precision"] == precision and t["seconds"]]
    if any((t["error"] or 0) > AGREEMENT for t in timed):
        raise ValueError(f"{name} on {num_qubits} qubits: the simulators' states differ")
    medians = {t["simulator"]: statistics.median(t["seconds"]) for t in timed}
    seconds = medians.pop(OURS)
    best = min(medians, key=medians.get)
    return Comparison(family, seconds, best, medians[best], medians)


def first_screen_rows():
    """Five families on a CPU, 24 qubits, double precision."""
    return [compare(read("cpu24"), family, 24) for family in FIRST_SCREEN]


def cpu_rows():
    """Every family of the CPU record at 24 qubits, double precision."""
    return [compare(read("cpu24"), family, 24) for family in CPU]


def h200_rows():
    """Pairs from |0...0> and from an arbitrary state, 30 qubits, double precision."""
    record = read("h200_custatevec")
    return [(compare(record, name, 30, start=" from zero"), compare(record, name, 30)) for name in H200]


def place(record):
    """Hardware and date, for captions."""
    hardware = record["hardware"]
    cores = f", {hardware['cores']} cores, {record['threads']} threads for every simulator" if record["threads"] else ""
    return f"{hardware['processor']}{cores}; {record['date'][:10]}"


def seconds_text(seconds):
    """Three digits with a unit."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s"


def ratio_text(ratio):
    """``34 times``: two digits are enough for a chart, one more below 10."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


def bare(axes):
    """Leaves the names at the left and takes frame and ticks away."""
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)


def headline(figure, title, caption):
    """Title above the chart, caption below it, both from the left edge."""
    figure.text(0.015, 0.985, title, fontsize=14, fontweight="bold", va="top")
    figure.text(0.015, 0.015, caption, fontsize=9, va="bottom", linespacing=1.4)


def draw_first_screen():
    """Two bars per family: the best other above, this below with its ratio."""
    rows = first_screen_rows()
    figure = Figure(figsize=(8, 4))
    axes = figure.add_axes((0.205, 0.075, 0.755, 0.775))
    longest = max(row.other_seconds for row in rows)
    for number, row in enumerate(rows):
        axes.barh(number - 0.19, row.other_seconds, 0.34, color=GREY)
        axes.barh(number + 0.19, row.seconds, 0.34, color=BLUE)
        gap = 0.012 * longest
        other = f"{seconds_text(row.other_seconds)}  {SIMULATORS[row.other]}"
        axes.text(row.other_seconds + gap, number - 0.19, other, va="center", fontsize=10)
        text = axes.text(row.seconds + gap, number + 0.19, seconds_text(row.seconds), va="center", fontsize=10)
        axes.annotate(
            f"{ratio_text(row.ratio)} faster", (1, 0.5), (10, 0), xycoords=text, textcoords="offset points",
            va="center", fontsize=11.5, fontweight="bold", color=BLUE,
        )  # fmt: skip
    bare(axes)
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize=11.5)
    axes.set_xticks([])
    axes.set(ylim=(len(rows) - 0.45, -0.55), xlim=(0, 1.22 * longest))
    key = [Line2D([], [], marker="s", ls="", ms=9, color=color) for color in (BLUE, GREY)]
    names = ["qsim_ozaki", "best of Qulacs, Lightning, qibojit"]
    figure.legend(key, names, loc="upper left", bbox_to_anchor=(0.005, 0.935), ncols=2, handletextpad=0.3)
    caption = f"24 qubits, double precision, circuit to final state. {place(read('cpu24'))}."
    headline(figure, "Time to simulate 24 qubits: shorter is better", caption)
    return figure


def draw_cpu():
    """One line per family on a logarithmic axis: a dot for each simulator, the best other joined with this."""
    rows = cpu_rows()
    markers = {"qibojit": "D", "lightning.kokkos": "s", "qulacs": "^", "numpy": "v"}
    figure = Figure(figsize=(8, 5.2))
    axes = figure.add_axes((0.205, 0.155, 0.75, 0.7))
    for number, row in enumerate(rows):
        axes.plot([row.seconds, row.other_seconds], [number, number], color=FAINT, lw=5, solid_capstyle="round")
        for name, seconds in sorted(row.others.items(), key=lambda item: item[0] == row.other):  # the best on top
            color = ORANGE if name == row.other else GREY
            axes.plot(seconds, number, markers[name], color=color, mec=INK, mew=0.6, ms=8)
        axes.plot(row.seconds, number, "o", color=BLUE, ms=11)
        middle = (row.seconds * row.other_seconds) ** 0.5
        axes.text(middle, number - 0.14, ratio_text(row.ratio), ha="center", fontweight="bold", color=BLUE)
    bare(axes)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row.title for row in rows], fontsize=11.5)
    axes.set_xticks([0.01, 0.1, 1, 10], ["10 ms", "100 ms", "1 s", "10 s"])
    axes.set(ylim=(len(rows) - 0.5, -0.7), xlim=(0.008, 14))
    axes.grid(axis="x", color=FAINT, lw=0.7)
    axes.minorticks_off()
    key = [Line2D([], [], marker="o", ls="", ms=10, color=BLUE)]
    key += [Line2D([], [], marker=marker, ls="", ms=8, color=GREY, mec=INK, mew=0.6) for marker in markers.values()]
    names = ["qsim_ozaki", *(SIMULATORS[name] for name in markers)]
    figure.legend(
        key, names, loc="upper left", bbox_to_anchor=(0.005, 0.935), ncols=5, handletextpad=0.2, columnspacing=1.6
    )
    caption = (
        "24 qubits, double precision, circuit to final state, logarithmic axis. Orange: the best other; the number is "
        f"its time\nover this one's. {place(read('cpu24'))}."
    )
    headline(figure, "On a CPU: this and other simulators", caption)
    return figure


def draw_h200():
    """Two panels, from |0...0> and from an arbitrary state: bars on a linear axis beside cuStateVec's."""
    rows = h200_rows()
    figure = Figure(figsize=(8, 4.8))
    longest = max(row.other_seconds for pair in rows for row in pair)
    panels = (("from |0…0>, as circuits run", 0.2), ("from an arbitrary state", 0.61))
    for side, (title, left) in enumerate(panels):
        axes = figure.add_axes((left, 0.07, 0.38, 0.735))
        for number, pair in enumerate(rows):
            row = pair[side]
            axes.barh(number - 0.19, row.other_seconds, 0.34, color=GREY)
            axes.barh(number + 0.19, row.seconds, 0.34, color=BLUE)
            gap = 0.015 * longest
            axes.text(
                row.other_seconds + gap, number - 0.19, seconds_text(row.other_seconds), va="center", fontsize=9.5
            )
            text = axes.text(row.seconds + gap, number + 0.19, seconds_text(row.seconds), va="center", fontsize=9.5)
            axes.annotate(
                ratio_text(row.ratio), (1, 0.5), (7, 0), xycoords=text, textcoords="offset points", va="center",
                fontweight="bold", color=BLUE,
            )  # fmt: skip
        bare(axes)
        axes.set_yticks(range(len(rows)), [pair[0].title for pair in rows] if not side else [], fontsize=11.5)
        axes.set_xticks([])
        axes.set(ylim=(len(rows) - 0.45, -0.55), xlim=(0, 1.2 * longest))
        axes.set_title(title, loc="left", fontsize=11, color=INK, pad=4)
    key = [Line2D([], [], marker="s", ls="", ms=9, color=color) for color in (BLUE, GREY)]
    figure.legend(
        key, ["qsim_ozaki", "cuStateVec's fusing updater, its best settings"], loc="upper left",
        bbox_to_anchor=(0.005, 0.945), ncols=2, handletextpad=0.3,
    )  # fmt: skip
    record = read("h200_custatevec")
    versions = record["versions"]
    caption = f"30 qubits, double precision, times on the GPU. {place(record)}; cuStateVec {versions['custatevec']}."
    headline(figure, "On an NVIDIA H200: this and cuStateVec", caption)
    return figure


def row_cells(row):
    """Cells of one comparison: this, the other and the ratio."""
    return f"{seconds_text(row.seconds)} | {seconds_text(row.other_seconds)} | {row.ratio:.1f}"


def cpu_table():
    """Numbers of the CPU charts."""
    lines = ["| circuit | this | best other | ratio | which |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {row.title} | {row_cells(row)} | {SIMULATORS[row.other]} |" for row in cpu_rows()]
    return "\n".join(lines)


def h200_table():
    """Numbers of the GPU chart."""
    lines = [
        "| circuit | this, from zero | cuStateVec | ratio | this, from any state | cuStateVec | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {zero.title} | {row_cells(zero)} | {row_cells(other)} |" for zero, other in h200_rows()]
    return "\n".join(lines)


CHARTS = {"first_screen": draw_first_screen, "cpu": draw_cpu, "h200": draw_h200}
TABLES = {"cpu": cpu_table, "h200": h200_table}


def with_tables(text):
    """``text`` with each table between ``<!-- charts.py NAME -->`` and ``<!-- end -->`` written anew."""

    def table(marker):
        return f"{marker[1]}\n\n{TABLES[marker[2]]()}\n\n{marker[3]}"

    return re.sub(r"(<!-- charts\.py (\w+) -->).*?(<!-- end -->)", table, text, flags=re.DOTALL)


def main():
    """Writes the charts and the tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGES
    with mpl.rc_context(STYLE):
        for name, draw in CHARTS.items():
            draw().savefig(folder / f"{name}.svg", metadata={"Date": None})
    page = folder / "index.md"
    page.write_text(with_tables(page.read_text()))


if __name__ == "__main__":
    main()
