"""Qiskit's `Result` with counts that are formatted faster, and only when they are read.

In: the arguments of `Result`, or outcomes as numbers. Out: the same answers as Qiskit's. It may not change a number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from qiskit.result import Counts, Result
from qiskit.result.models import ExperimentResult, ExperimentResultData

from qsim_ozaki.runtime import MAX_TABLE_BITS, Drawn


class RowResult(ExperimentResult):  # type: ignore[misc]
    """One row of a `Result`; its header is copied when it is first read, so that a change of it changes no other row.

    Args:
        shared_header: header of all rows of the circuit.
        fields: as for `ExperimentResult`.
    """

    def __init__(self, shared_header: dict[str, Any], **fields: Any) -> None:
        super().__init__(**fields)
        self.shared_header = shared_header

    def __getattr__(self, name: str) -> Any:
        if name != "header" or "shared_header" not in self.__dict__:
            return super().__getattr__(name)
        self.header = _copied_header(self.shared_header)
        return self.header


def _copied_header(header: dict[str, Any]) -> dict[str, Any]:
    """Returns a copy of ``header``; the values of a circuit's metadata stay the user's objects."""
    copied = header.copy()
    for name, value in header.items():
        if isinstance(value, list):
            copied[name] = [entry.copy() for entry in value]
        elif isinstance(value, dict):
            copied[name] = value.copy()
    return copied


def _header(row: ExperimentResult) -> dict[str, Any]:
    """Returns the header of ``row`` to read, without a copy."""
    shared = isinstance(row, RowResult) and "header" not in row.__dict__
    header: dict[str, Any] = row.shared_header if shared else row.header
    return header


class RowData(ExperimentResultData):  # type: ignore[misc]
    """The data of a row; an entry that is deleted is no longer part of it."""

    def __delattr__(self, name: str) -> None:
        """Deletes an entry, as `marginal_counts` does with the memory; Qiskit's class would still list its name."""
        if name not in self._data_attributes:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        self._data_attributes.remove(name)
        self.__dict__.pop(name, None)  # counts and memory are not there before they are first read


class DrawnData(RowData):
    """The data of a row; its counts and memory are formatted when they are first read.

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
    """`Counts` with hexadecimal and integer forms that are made when they are first read.

    Args:
        drawn: the outcomes.
        header: header of the row's result.
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
    """A `Result` with a faster ``get_counts``, which formats each value once, not once for every register and step."""

    def get_counts(self, experiment: Any = None) -> Any:
        """Returns the counts as `Result.get_counts` does: one `Counts`, or a list of them if the job had several rows.

        Args:
            experiment: number, name or circuit of a row; None for all rows.
        """
        keys = range(len(self.results)) if experiment is None else [experiment]
        counts = []
        for key in keys:
            row = self._get_experiment(key)
            known = "counts" in row.data._data_attributes and {"creg_sizes", "memory_slots"} <= _header(row).keys()
            if known or _is_empty(row):
                counts.append(counts_of(row))
            else:
                counts.append(super().get_counts(key))
        return counts[0] if len(counts) == 1 else counts


def counts_of(result: ExperimentResult) -> Counts:
    """Returns the `Counts` of one row of this package that has counts, or whose circuit has neither qubits nor bits."""
    if _is_empty(result):
        return Counts({"": result.shots})
    # Counts in `__dict__` were read before, and the user may have changed them.
    if isinstance(result.data, DrawnData) and "counts" not in result.data.__dict__:
        return DrawnCounts(result.data.drawn, _header(result))
    return _formatted(result.data.counts, _header(result))


def _is_empty(row: ExperimentResult) -> bool:
    """Whether the circuit of ``row`` has neither qubits nor classical bits; Qiskit cannot read its state."""
    header = _header(row)
    return bool(header.get("n_qubits") == header.get("memory_slots") == 0)


@cache
def _all_bit_strings(width: int) -> list[str]:
    return [format(value, f"0{width}b") for value in range(1 << width)]


def _bit_strings(width: int, values: list[int]) -> list[str]:
    """Formats each value with ``width`` bits."""
    if width > MAX_TABLE_BITS:
        return [format(value, f"0{width}b") for value in values]
    table = _all_bit_strings(width)
    return [table[value] for value in values]


def _formatted(counts: dict[str, Any], header: dict[str, Any]) -> Counts:
    """Returns the `Counts` that Qiskit makes from hexadecimal keys."""
    slots, sizes = header["memory_slots"], header["creg_sizes"]
    formatted = Counts({}, time_taken=header.get("time_taken"), creg_sizes=sizes, memory_slots=slots)
    values = [int(key, 16) for key in counts]
    bits = _bit_strings(slots, values)
    if len(sizes) > 1:
        ends, start = [], 0
        for _, size in reversed(sizes):
            ends.append(slice(start, start + size))
            start += size
        bits = [" ".join([value[end] for end in ends]) for value in bits]
    formatted.hex_raw = dict(counts)
    formatted.int_raw = dict(zip(values, counts.values(), strict=True))
    formatted.update(zip(bits, counts.values(), strict=True))
    return formatted
