"""Sizes of a tile pass's kernels, by precision: tile, registers, lines, amplitudes.

In: nothing. Out: a `Shape` for the interpreter and one for generated kernels. It needs no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one precision's kernel, as `common/common.cuh` has them.

    Attributes:
        tile_qubits: of a tile, which lies in shared memory.
        register_qubits: that number the amplitudes of a thread.
        line_qubits: that number the amplitudes of 128 bytes.
        amp_bytes: of an amplitude.
        least_scale: to which a factor left out may fall.
        padded: whether a tile has free places after lines, rather than bits that mix.
    """

    tile_qubits: int
    register_qubits: int
    line_qubits: int
    amp_bytes: int
    least_scale: float
    padded: bool = False

    def column_bytes(self, tile_qubits: int) -> int:
        """Bytes of shared memory for one amplitude of every thread, as `tile/straight.cuh` has them."""
        plain = self.amp_bytes << (tile_qubits - self.register_qubits)
        if not self.padded:
            return plain
        whole = -self.amp_bytes
        free = sum(plain >> level * self.line_qubits & whole for level in (1, 2, 3))
        return plain + free + self.amp_bytes + 15 & -16


# Of the interpreter.
SHAPES = {"double": Shape(12, 4, 3, 16, 2.0**-500), "single": Shape(13, 5, 4, 8, 2.0**-80)}
# Of generated kernels: 32 amplitudes a thread would make complex64 code twice as long, beyond the instruction cache.
GENERATED = {"double": SHAPES["double"], "single": replace(SHAPES["single"], register_qubits=4, padded=True)}
