"""Draws counts.

In: counts. Out: a Matplotlib figure, and a file if its name is given. It may not open a window nor use pyplot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_counts(counts: Mapping[str, int], file: str | None = None, *, top: int = 32) -> Figure:
    """Draws a bar for each of the ``top`` most frequent outcomes, sorted by their bits, and one bar for the others.

    Args:
        counts: maps an outcome to its count, as ``result.get_counts()`` does.
        file: path of the picture, whose ending says the format; None for no file.
        top: number of outcomes with a bar of their own.

    Returns:
        The figure.

    Raises:
        QsimError: Matplotlib is not installed, or there are no counts.

    Example:
        >>> plot_counts(backend.run(circuit).result().get_counts(), "counts.png")
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise QsimError("A plot needs Matplotlib. Install it by: pip install 'qsim-ozaki[plot]'") from None
    if not counts:
        raise QsimError("There are no counts to plot. Measure the circuit first.")
    shots = sum(counts.values())
    shown = sorted(sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:top])
    rest = shots - sum(count for _, count in shown)
    labels = [bits for bits, _ in shown] + (["others"] if rest else [])
    values = [count for _, count in shown] + ([rest] if rest else [])
    figure = Figure(figsize=(max(4.0, 0.35 * len(labels)), 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(len(labels)), values, color=["tab:blue"] * len(shown) + ["tab:gray"] * (len(labels) - len(shown)))
    axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", family="monospace")
    axes.set_ylabel(f"counts of {shots} shots")
    if file is not None:
        figure.savefig(file, dpi=150)
    return figure
