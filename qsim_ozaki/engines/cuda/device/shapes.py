"""Sizes of the kernels of tile passes, by precision: tile, registers, lines, amplitudes.

In: nothing. Out: a `Shape` for the interpreter and one for generated kernels. It may not use a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the kernel of one precision; `common/common.cuh` has the same values.

    Attributes:
        tile_qubits: number of qubits of a tile, which lies in shared memory.
        register_qubits: number of qubits that number the amplitudes of a thread.
        line_qubits: number of qubits that number the amplitudes of a line of 128 bytes.
        amp_bytes: bytes of an amplitude.
        least_scale: the least value to which the factor that amplitudes lack may fall.
        padded: whether a tile in shared memory has padding after lines; else its index bits are swizzled.
    """

    tile_qubits: int
    register_qubits: int
    line_qubits: int
    amp_bytes: int
    least_scale: float
    padded: bool = False

    def column_bytes(self, tile_qubits: int) -> int:
        """Returns the bytes of shared memory for one amplitude of every thread, as `tile/straight.cuh` does."""
        plain = self.amp_bytes << (tile_qubits - self.register_qubits)
        if not self.padded:
            return plain
        whole = -self.amp_bytes
        free = sum(plain >> level * self.line_qubits & whole for level in (1, 2, 3))
        return plain + free + self.amp_bytes + 15 & -16


# Sizes of the interpreter.
SHAPES = {"double": Shape(12, 4, 3, 16, 2.0**-500), "single": Shape(13, 5, 4, 8, 2.0**-80)}
# Sizes of generated kernels: with 32 amplitudes per thread, complex64 code would be twice as long and exceed the
# instruction cache.
GENERATED = {"double": SHAPES["double"], "single": replace(SHAPES["single"], register_qubits=4, padded=True)}
