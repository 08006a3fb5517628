"""Draws counts and states.

In: counts, or amplitudes. Out: a Matplotlib figure, and a file if its name is given. It may not open a window nor use
pyplot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.errors import QsimError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLOCK = 1 << 20  # amplitudes that are looked at together: a picture of a large state needs little memory beside it
NEGLIGIBLE = 1e-12  # a bar of this share of the probability cannot be seen, and the phase of a rounding error is random
# Phases 0, pi/2, pi, 3 pi/2 and again 0: neighbours and opposites differ for colour-blind readers too.
PHASE_COLORS = ("#0072b2", "#009e73", "#e69f00", "#cc4778", "#0072b2")
PHASE_TICKS = ("0", "π/2", "π", "3π/2", "2π")
OTHERS = "others"
OTHERS_COLOR = "tab:gray"
HIGH = 3.0  # a bar of the others that is so many times as high as the highest other one is cut off, with its value


def plot_counts(counts: Mapping[str, int], file: str | None = None, *, top: int = 32) -> Figure:
    """Draws a bar for each of the ``top`` most frequent outcomes, sorted by their bits, and one bar for the others.

    Args:
        counts: maps an outcome to its count, as ``result.get_counts()`` does.
        file: path of the picture, whose ending says the format; None for no file.
        top: number of outcomes with a bar of their own.

    Returns:
        The figure.

    Raises:
        QsimError: Matplotlib is not installed, there are no counts, or ``file`` cannot be written.

    Example:
        >>> plot_counts(backend.run(circuit).result().get_counts(), "counts.png")
    """
    check_picture(file)
    if not counts:
        raise QsimError("There are no counts to plot. Measure the circuit first.")
    shots = sum(counts.values())
    shown = sorted(sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:top])
    rest = shots - sum(count for _, count in shown)
    labels = [bits for bits, _ in shown] + ([OTHERS] if rest else [])
    values = [count for _, count in shown] + ([rest] if rest else [])
    axes = _bars(labels, values, ["tab:blue"] * len(shown) + [OTHERS_COLOR] * (len(labels) - len(shown)))
    axes.set_ylabel(f"counts of {shots} shots")
    return _finished(axes, file)


def plot_state(state: Any, file: str | None = None, *, top: int = 32) -> Figure:
    """Draws a bar for each of the ``top`` most probable basis states, coloured by phase, and one bar for the others.

    The height of a bar is the probability ``|amplitude|**2``. Its colour is the phase of the amplitude as it is: a
    global phase is not removed. Basis states of probability 0 have no bar. Where the bar of the others would make the
    rest too low to read, it is cut off and has its value written on it.

    Args:
        state: ``2**num_qubits`` amplitudes, as an array or a `Statevector`; or a mapping from basis states to
            amplitudes, as `save_statevector_dict` or ``Statevector.to_dict`` give. Bars are named as in Qiskit's
            counts: qubit 0 is the last bit.
        file: path of the picture, whose ending says the format; None for no file.
        top: number of basis states with a bar of their own, at least 1.

    Returns:
        The figure.

    Raises:
        QsimError: Matplotlib is not installed, ``state`` is not a finite state, or ``file`` cannot be written.

    Example:
        >>> plot_state(backend.run(circuit).result().get_statevector(), "state.png")
    """
    check_picture(file)
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
        raise QsimError(f"top={top!r} is not allowed. Use a number of bars of at least 1.")
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    labels, amplitudes = _amplitudes(state)
    shown = _most_probable(amplitudes, int(top))
    map_ = LinearSegmentedColormap.from_list("phase", PHASE_COLORS)
    phases = np.mod(np.angle(amplitudes[shown.indices]), 2 * np.pi) / (2 * np.pi)
    names = [labels[index] if labels else _bits(index, amplitudes.size) for index in shown.indices.tolist()]
    has_rest = shown.rest > NEGLIGIBLE * shown.total
    values = [*shown.probabilities.tolist(), *([shown.rest] if has_rest else [])]
    axes = _bars([*names, *([OTHERS] if has_rest else [])], values, [*map(map_, phases), OTHERS_COLOR][: len(values)])
    axes.set_ylabel("probability")
    highest = float(shown.probabilities.max())
    if shown.rest > HIGH * highest:
        axes.set_ylim(0, 1.2 * highest)
        place = (len(values) - 1, 1.18 * highest)
        axes.annotate(f"{shown.rest:.3g}", place, rotation=90, ha="center", va="top", color="white")
    bar = axes.figure.colorbar(ScalarMappable(Normalize(0, 2 * np.pi), map_), ax=axes, aspect=30, pad=0.02)
    bar.set_ticks(np.linspace(0, 2 * np.pi, len(PHASE_TICKS)).tolist(), labels=PHASE_TICKS)
    bar.set_label("phase")
    return _finished(axes, file)


def check_picture(file: str | None) -> None:
    """Checks that a picture can be drawn and written to ``file``, before the work that it shows is done.

    Raises:
        QsimError: Matplotlib is not installed, does not write files with this ending, or there is no such folder.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise QsimError("A plot needs Matplotlib. Install it by: pip install 'qsim-ozaki[plot]'") from None
    if file is None:
        return
    formats = FigureCanvasBase.get_supported_filetypes()
    path = Path(file)
    ending = path.suffix.removeprefix(".").lower()
    if ending and ending not in formats:
        raise QsimError(f"{file}: pictures of format {ending!r} are not written. Use one of {', '.join(formats)}.")
    if path.is_dir() or not path.parent.is_dir():
        raise QsimError(f"{file}: not a file in a folder that exists. Give another name for the picture.")


def _amplitudes(state: Any) -> tuple[list[str], NDArray[np.complexfloating]]:
    """Returns the names of the basis states, or none if they are all of them in order, and their amplitudes.

    Raises:
        QsimError: ``state`` is not a vector of numbers, or its size is not a power of two.
    """
    if isinstance(state, Mapping):
        rows = sorted(_names_in_bits(list(state), list(state.values())))
        labels, values = [name for name, _ in rows], [value for _, value in rows]
    else:
        labels, values = [], getattr(state, "data", state) if hasattr(state, "dims") else state
    try:
        amplitudes = np.asarray(values)
    except (TypeError, ValueError):
        amplitudes = np.empty((0, 0))
    if amplitudes.ndim != 1 or amplitudes.dtype.kind not in "iufc":
        raise QsimError(
            f"plot_state cannot draw a {type(state).__name__}. Give a vector of amplitudes, a Statevector, or a dict "
            f"of amplitudes by basis state."
        )
    if not labels and (not amplitudes.size or amplitudes.size & (amplitudes.size - 1)):
        raise QsimError(f"plot_state got {amplitudes.size} amplitudes. Give 2**num_qubits of them.")
    return labels, amplitudes


def _names_in_bits(keys: Sequence[Any], values: Sequence[Any]) -> list[tuple[str, Any]]:
    """Returns pairs of a basis state, as bits, and its value; keys are bits, hexadecimal numbers, or integers."""
    if all(isinstance(key, str) and key and not set(key) - set("01") for key in keys) and len(set(map(len, keys))) == 1:
        return list(zip(keys, values, strict=True))
    try:
        numbers = [int(key, 16) if isinstance(key, str) and key.startswith("0x") else key.__index__() for key in keys]
    except (AttributeError, ValueError):
        numbers = []
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise QsimError(
            "plot_state needs a dict with distinct basis states as keys: bits of one length such as '010', or '0x2'."
        )
    width = max(1, max(numbers).bit_length())
    return [(format(number, f"0{width}b"), value) for number, value in zip(numbers, values, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """The most probable basis states of a state.

    Attributes:
        indices: their indices, ascending.
        probabilities: their probabilities.
        rest: probability of all others together.
        total: probability of all basis states.
    """

    indices: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    rest: float
    total: float


def _most_probable(amplitudes: NDArray[np.complexfloating], top: int) -> _Shown:
    """Returns the ``top`` most probable basis states; of equally probable ones, those of the lowest indices.

    Raises:
        QsimError: an amplitude is NaN or infinity, or all are 0.
    """
    indices, values, sums = np.empty(0, np.intp), np.empty(0), []
    for start in range(0, amplitudes.size, BLOCK):
        block = amplitudes[start : start + BLOCK].astype(complex, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # the sum of all tells of them
            probabilities = block.real**2 + block.imag**2
            sums.append(float(probabilities.sum()))
        values = np.concatenate([values, probabilities])
        indices = np.concatenate([indices, np.arange(start, start + block.size)])
        best = _largest(values, top)
        values, indices = values[best], indices[best]
    total = sum(sums)
    if not math.isfinite(total):
        raise QsimError("The state to plot holds NaN or infinity. Give finite amplitudes.")
    if not total:
        raise QsimError("All amplitudes of the state to plot are 0. Give a state of norm 1.")
    visible = values > NEGLIGIBLE * total
    indices, values = indices[visible], values[visible]
    return _Shown(indices, values, max(0.0, total - math.fsum(values.tolist())), total)


def _largest(values: NDArray[np.float64], top: int) -> NDArray[np.intp]:
    """Returns the places of the ``top`` largest values, ascending.

    Values are compared in single precision: of those that differ by rounding errors alone the first ones are taken.
    """
    if values.size <= top:
        return np.arange(values.size)
    with np.errstate(over="ignore"):
        keys = values.astype(np.float32)
    least = np.partition(keys, -top)[-top]
    above, equal = np.flatnonzero(keys > least), np.flatnonzero(keys == least)
    return np.sort(np.concatenate([above, equal[: top - above.size]]))


def _bits(index: int, size: int) -> str:
    """Formats ``index`` with as many bits as the indices of ``size`` amplitudes have; none for a single one."""
    num_qubits = size.bit_length() - 1
    return format(index, f"0{num_qubits}b") if num_qubits else ""


def _bars(labels: Sequence[str], values: Sequence[float], colors: Sequence[Any]) -> Axes:
    """Draws a bar for each label on a new figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 0.35 * len(labels)), 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(len(labels)), values, color=colors)
    axes.set_xticks(range(len(labels)), labels, rotation=60, ha="right", family="monospace")
    return axes


def _finished(axes: Axes, file: str | None) -> Figure:
    """Writes the figure of ``axes`` to ``file``, if there is one, and returns it."""
    figure: Figure = axes.figure  # type: ignore[assignment]
    if file is not None:
        try:
            figure.savefig(file, dpi=150)
        except OSError as error:
            raise QsimError(f"{file}: {error.strerror or error}. Give another name for the picture.") from error
    return figure
