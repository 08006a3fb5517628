"""Collects the data of a straight-line tile kernel: constants, masks, tables, and tables that outer bits choose from.

In: the numbers of one statement at a time. Out: CUDA expressions that read them, and the arrays. It may not write
statements.
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
        amp_bytes: bytes of an amplitude.
        words: uint64 arrays, uploaded one after the other.
        size: total number of words so far.
        chosen: bytes of the tables in shared memory that outer bits choose from.
        masks: uint64 masks over the bits of the tile's number, arguments of the launch.
        values: real constants, arguments of the launch.
    """

    amp_bytes: int
    words: list[NDArray[np.uint64]] = field(default_factory=list)
    size: int = 0
    chosen: bytes = b""
    masks: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)  # index of data that was put before, by its contents

    def put(self, array: NDArray[np.generic]) -> int:
        """Appends an array on a 16-byte boundary unless an equal one is there; returns its word index."""
        raw = array.tobytes() + bytes(-array.nbytes % 16)
        if raw and raw in self._known:
            return self._known[raw]
        data = np.frombuffer(raw, np.uint64)
        start = self.size
        self._known[raw] = start
        self.words.append(data)
        self.size += data.size
        return start

    def value(self, values: Sequence[float]) -> str:
        """Appends constants; returns the expression of their address."""
        start = len(self.values)
        self.values += values
        return f"args.value + {start}"

    def table(self, values: Sequence[float]) -> str:
        """Appends the constants of a table unless an equal one is there; returns the expression of their address.

        Tangents and matrices are not shared in this way: the compiler would keep those used often in registers.
        """
        key = tuple(values)
        if key not in self._known:
            self._known[key] = len(self.values)
            self.values += values
        return f"args.value + {self._known[key]}"

    def mask(self, mask: int) -> str:
        """Appends a mask; returns its expression."""
        self.masks.append(mask)
        return f"args.mask[{len(self.masks) - 1}]"

    def choose(self, values: ComplexArray) -> int:
        """Appends a table that outer bits choose from unless an equal one is there; returns its offset in bytes."""
        data = self.amps(values).tobytes()
        data += bytes(-len(data) % 16)
        key = ("chosen", data)
        if key not in self._known:
            self._known[key] = len(self.chosen)
            self.chosen += data
        return self._known[key]

    def amps(self, values: ComplexArray) -> ComplexArray:
        """Returns ``values`` in the data type of the kernel's amplitudes."""
        return values.astype(np.complex128 if self.amp_bytes == 16 else np.complex64)
