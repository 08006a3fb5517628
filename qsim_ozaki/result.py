"""Qiskit's `Result`, whose counts are written out faster, and only when they are asked for.

In: what `Result` takes, or outcomes as numbers. Out: the same answers. It changes no number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from qiskit.result import Counts, Result
from qiskit.result.models import ExperimentResult, ExperimentResultData

from qsim_ozaki.sampling import MAX_TABLE_BITS, Drawn


class DrawnData(ExperimentResultData):  # type: ignore[misc]
    """The data of a row whose counts and memory are written when they are first read.

    Args:
        drawn: the outcomes.
        saved: results by label.
    """

    def __init__(self, drawn: Drawn, saved: dict[str, Any]) -> None:
        super().__init__(**saved)
        self.drawn = drawn
        self._data_attributes += ["counts"] if drawn.order is None else ["counts", "memory"]

    def __getattr__(self, name: str) -> Any:
        if name not in ("counts", "memory") or name not in self._data_attributes:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        value = self.drawn.hexadecimal() if name == "counts" else self.drawn.memory()
        setattr(self, name, value)
        return value


class DrawnCounts(Counts):  # type: ignore[misc]
    """`Counts` whose hexadecimal and integer forms are written when they are first read.

    Args:
        drawn: the outcomes.
        header: of the row's result.
    """

    def __init__(self, drawn: Drawn, header: dict[str, Any]) -> None:
        sizes = header["creg_sizes"]
        super().__init__({}, header.get("time_taken"), sizes, header["memory_slots"])
        del self.hex_raw, self.int_raw
        self.drawn = drawn
        drawn.count_bits(self, tuple([size for _, size in sizes]))

    def __getattr__(self, name: str) -> Any:
        if name not in ("hex_raw", "int_raw"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        value = self.drawn.hexadecimal() if name == "hex_raw" else self.drawn.integers()
        setattr(self, name, value)
        return value


class OzakiResult(Result):  # type: ignore[misc]
    """A `Result`; ``get_counts`` formats each value once instead of once for every register and step."""

    def get_counts(self, experiment: Any = None) -> Any:
        """As `Result.get_counts`: one `Counts`, or a list of them where the job had several rows.

        Args:
            experiment: number, name or circuit; None for all.
        """
        keys = range(len(self.results)) if experiment is None else [experiment]
        found = []
        for key in keys:
            each = self._get_experiment(key)
            known = "counts" in each.data._data_attributes and {"creg_sizes", "memory_slots"} <= each.header.keys()
            if known:
                found.append(counts_of(each))
            else:
                found.append(super().get_counts(key))
        return found[0] if len(found) == 1 else found


def counts_of(result: ExperimentResult) -> Counts:
    """The `Counts` of one row that this package made and that has counts."""
    if isinstance(result.data, DrawnData) and "counts" not in result.data.__dict__:  # where they may have been changed
        return DrawnCounts(result.data.drawn, result.header)
    return _formatted(result.data.counts, result.header)


@cache
def _all_bit_strings(width: int) -> list[str]:
    return [format(value, f"0{width}b") for value in range(1 << width)]


def _bit_strings(width: int, values: list[int]) -> list[str]:
    """Each value in ``width`` digits."""
    if width > MAX_TABLE_BITS:
        return [format(value, f"0{width}b") for value in values]
    table = _all_bit_strings(width)
    return [table[value] for value in values]


def _formatted(counts: dict[str, Any], header: dict[str, Any]) -> Counts:
    """The `Counts` that Qiskit makes of hexadecimal keys."""
    slots, sizes = header["memory_slots"], header["creg_sizes"]
    made = Counts({}, time_taken=header.get("time_taken"), creg_sizes=sizes, memory_slots=slots)
    values = [int(key, 16) for key in counts]
    bits = _bit_strings(slots, values)
    if len(sizes) > 1:
        ends, start = [], 0
        for _, size in reversed(sizes):
            ends.append(slice(start, start + size))
            start += size
        bits = [" ".join([value[end] for end in ends]) for value in bits]
    made.hex_raw = dict(counts)
    made.int_raw = dict(zip(values, counts.values(), strict=True))
    made.update(zip(bits, counts.values(), strict=True))
    return made
