"""CUDA expressions for controls, signs and phases that depend on thread or tile bits.

In: masks of qubits, angles per product of bits. Out: text of a straight-line kernel, and the data that it reads. It
may not change an amplitude: the writer's statements do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.codegen.operands import Operands
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError
from qsim_ozaki.engines.cuda.tile.items import angle_words, phases_of
from qsim_ozaki.engines.cuda.tile.layout import Layout
from qsim_ozaki.engines.cuda.tile.schedule import TileFrame
from qsim_ozaki.ir import mask_of

MAX_TILE_PHASES = 30  # two sets of phases fill the 1 KiB that two blocks per processor leave beside their tiles


@dataclass(slots=True, eq=False)
class OuterBits:
    """Writes the expressions of one pass that read outer bits: bits of the thread's or the tile's number.

    Attributes:
        frame: the tile.
        operands: collects the data that the text reads.
        records: angles over the bits of the tile's number; the kernel computes one phase per record and tile.
        layout: the layout of the current stage.
    """

    frame: TileFrame
    operands: Operands
    records: list[dict[int, int]] = field(default_factory=list)
    layout: Layout = field(init=False)

    def tile_bits(self, mask: int) -> int:
        """Returns the part of a mask of qubits that the tile's number holds."""
        return mask & ~mask_of(self.frame.tile)

    def crosses(self, mask: int) -> bool:
        """Returns whether a mask has qubits of the thread's number and of the tile's number."""
        return bool(self.layout.bits(mask) and self.tile_bits(mask))

    def condition(self, mask: int, value: int) -> str:
        """Returns a condition on thread and tile bits as an expression, or an empty string if there is none."""
        parts = []
        threads = self.layout.bits(mask)
        if threads:
            parts.append(f"(threadIdx.x & {threads}u) == {self.layout.bits(value & mask)}u")
        tile = self.tile_bits(mask)
        if tile:
            parts.append(
                f"(tile.base() & {self.operands.mask(tile)}) == {self.operands.mask(self.tile_bits(value & mask))}"
            )
        return " && ".join(parts)

    def bit_value(self, mask: int) -> str:
        """Returns the expression of the value of one outer bit, as an unsigned number."""
        threads = self.layout.bits(mask)
        if threads:
            return f"(threadIdx.x >> {threads.bit_length() - 1} & 1u)"
        return f"(unsigned)((tile.base() & {self.operands.mask(mask)}) != 0)"

    def number(self, qubits: Sequence[int]) -> str:
        """Returns the expression of the number whose bit i is the outer qubit ``qubits[i]``."""
        return " | ".join(f"{self.bit_value(1 << q)} << {i}" for i, q in enumerate(qubits)) or "0u"

    def sign(self, group: dict[int, int]) -> str:
        """Returns the expression of the sign bit that half turns on outer bits give."""
        singles = sum(key for key in group if key.bit_count() == 1)
        parts = []
        if self.layout.bits(singles):
            parts.append(f"parity(threadIdx.x & {self.layout.bits(singles)}u)")
        if self.tile_bits(singles):
            parts.append(f"parity(tile.base() & {self.operands.mask(self.tile_bits(singles))})")
        parts += [f"sign_where({self.condition(key, key)})" for key in sorted(group) if key.bit_count() > 1]
        return " ^ ".join(parts)

    def factor(self, group: dict[int, int]) -> str:
        """Returns the expression of the phase of outer bits: a thread's phase times a tile's times a mixed phase."""
        thread = {key: angle for key, angle in group.items() if not self.tile_bits(key)}
        tile = {key: angle for key, angle in group.items() if self.tile_bits(key) == key}
        both = {key: angle for key, angle in group.items() if self.crosses(key)}
        parts = []
        if thread:
            total = np.zeros(1 << len(self.layout.lanes), np.uint64)
            number = np.arange(len(total))
            for key, angle in thread.items():
                bits = self.layout.bits(key)
                total[number & bits == bits] += np.uint64(angle)  # wraps modulo one turn
            parts.append(
                f"phase_of_thread(tile.tables, {self.operands.put(self.operands.amps(phases_of(total.tolist())))})"
            )
        if tile:
            if len(self.records) == MAX_TILE_PHASES:
                raise NotStraightError(f"more than {MAX_TILE_PHASES} phases of the tile")
            self.records.append(tile)
            parts.append(f"tile.phases[{len(self.records) - 1}]")
        if both:
            words = angle_words(both)
            record = f"{(len(words) - 2) // 4}u, {self.operands.put(np.array(words, np.uint64))}u"
            offsets = self.operands.put(self.layout.offsets(self.frame))
            parts.append(f"phase_of_both(tile.tables, {record}, tile.base(), {offsets}u)")
        product = parts[0]
        for part in parts[1:]:
            product = f"cmul({product}, {part})"
        return product

    def pack_records(self) -> int:
        """Appends the angle sums over the tile's bits to the operands; returns the word at which their index begins."""
        index, data = [], [np.zeros(0, np.uint64)]
        start = self.operands.size + len(self.records) + len(self.records) % 2
        for group in self.records:
            words = angle_words(group)
            index.append(len(words) // 4 | start << 32)
            data.append(np.array(words, np.uint64))
            start += len(words)
        records = self.operands.put(np.array(index, np.uint64))
        self.operands.put(np.concatenate(data))
        return records
