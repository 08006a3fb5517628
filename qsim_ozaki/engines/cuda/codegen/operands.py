"""Data of a straight-line tile kernel: constants, masks, words of its tables, tables that outer bits choose from.

In: numbers, one statement's at a time. Out: expressions for their places in the source, and the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import ComplexArray


@dataclass(slots=True, eq=False)
class Operands:
    """The data of one pass.

    Attributes:
        amp_bytes: of an amplitude.
        words: uint64 arrays, uploaded one after the other; ``size`` words so far.
        chosen: bytes of the tables in shared memory.
        masks: uint64 masks over the tile's own bits, arguments of the launch.
        values: real constants, arguments of the launch.
    """

    amp_bytes: int
    words: list[NDArray[np.uint64]] = field(default_factory=list)
    size: int = 0
    chosen: bytes = b""
    masks: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)  # where equal data already is

    def put(self, array: NDArray[np.generic]) -> int:
        """Appends an array on a 16-byte boundary, or finds it; returns its word index."""
        raw = array.tobytes() + bytes(-array.nbytes % 16)
        if raw and raw in self._known:
            return self._known[raw]
        data = np.frombuffer(raw, np.uint64)
        at = self._known[raw] = self.size
        self.words.append(data)
        self.size += data.size
        return at

    def value(self, values: Sequence[float]) -> str:
        """Appends constants."""
        at = len(self.values)
        self.values += values
        return f"args.value + {at}"

    def table(self, values: Sequence[float]) -> str:
        """The same, but equal tables are kept once; tangents and matrices used often would take registers."""
        key = tuple(values)
        if key not in self._known:
            self._known[key] = len(self.values)
            self.values += values
        return f"args.value + {self._known[key]}"

    def mask(self, mask: int) -> str:
        """Appends a mask."""
        self.masks.append(mask)
        return f"args.mask[{len(self.masks) - 1}]"

    def choose(self, values: ComplexArray) -> int:
        """Where a table that outer bits choose from is in shared memory, equal ones once."""
        data = self.amps(values).tobytes()
        data += bytes(-len(data) % 16)
        key = ("chosen", data)
        if key not in self._known:
            self._known[key] = len(self.chosen)
            self.chosen += data
        return self._known[key]

    def amps(self, values: ComplexArray) -> ComplexArray:
        """``values`` as the kernel's amplitudes are."""
        return values.astype(np.complex128 if self.amp_bytes == 16 else np.complex64)
