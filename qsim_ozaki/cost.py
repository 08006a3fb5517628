"""The device record and the cost model: predicted bytes, operations and seconds of a step.

In: a `Device` and a step's ops. Out: a `Prediction`. It measures nothing and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from qsim_ozaki.op_list import OpList
from qsim_ozaki.ops import Op, Prediction

PAGE_BYTES = 1 << 21  # in which an operating system hands out the memory of a large state


@dataclass(frozen=True, slots=True)
class Device:
    """Measured abilities of the hardware behind an engine; tests make one up.

    Attributes:
        name: the hardware, as its vendor calls it.
        memory_bytes: bytes a state may use.
        bandwidth_bytes_per_s: read plus write rate of an in-place pass over a large state.
        fp64_flops_per_s: multiply and add each counted, complex128 kernels.
        fp32_flops_per_s: the same for complex64 kernels.
        int8_ops_per_s: INT8 product operations, 0 where there is no such unit.
        cache_bandwidth_bytes_per_s: read plus write rate of a sweep over a cache-resident tile.
        launch_seconds: fixed cost of one step.
        tile_qubits: qubits of the largest tile that stays in the fast memory, complex128.
        line_qubits: lowest qubits that make one memory transaction, complex128; always in a tile.
        overlap: share of a tile pass's memory time that hides behind its arithmetic: 0 where a core gathers, computes
            and scatters in turn, 1 where other blocks compute meanwhile.
        moves_qubits: whether a tile pass may store qubits of its tile at each other's places.
        skips_zeros: whether tile passes read nothing that is known to be 0: a state then needs no zeros at the start.
        splits_pairs: whether dense two-qubit unitaries are cheaper as rotations and cores (`pairs.py`).
        fill_bytes_per_s: rate at which a product state is written; 0: as ``bandwidth_bytes_per_s``.
        touch_bytes_per_s: rate at which memory is zeroed or handed out when first touched; 0: at once.
        mixes_per_s: operators on one or two qubits, times amplitudes, that complex128 tile passes do in a second, their
            phases and exchanges included; 0: what is in a tile costs flops and sweeps.
        mixes_fp32_per_s: the same of complex64 passes.
        mix_seconds: what such an operator takes at least on a state of fewer than ``interpreted_qubits``, for which no
            kernels are generated.
        interpreted_qubits: of the widest such states and one more.
        block_flops_per_s: rate of a `DenseBlock` in double precision; 0: as in a tile.
        block_fp32_flops_per_s: the same in single precision.
        block_overlap: share of a `DenseBlock`'s memory time that hides behind its arithmetic.
        blocks: measured times of `DenseBlock`s in double precision: (qubits of the matrix, moduli or 0 for a native
            one, qubits of the state, seconds), ascending, each matrix and count with at least two states, and at
            least two counts beside 0; empty: by the rates above.
    """

    name: str
    memory_bytes: int
    bandwidth_bytes_per_s: float
    fp64_flops_per_s: float
    fp32_flops_per_s: float
    int8_ops_per_s: float
    cache_bandwidth_bytes_per_s: float
    launch_seconds: float
    tile_qubits: int = 13
    line_qubits: int = 2
    overlap: float = 0.0
    fill_bytes_per_s: float = 0.0
    touch_bytes_per_s: float = 0.0
    block_flops_per_s: float = 0.0
    block_fp32_flops_per_s: float = 0.0
    block_overlap: float = 0.0
    blocks: tuple[tuple[int, int, int, float], ...] = ()
    mixes_per_s: float = 0.0
    mixes_fp32_per_s: float = 0.0
    mix_seconds: float = 0.0
    interpreted_qubits: int = 0
    splits_pairs: bool = False
    moves_qubits: bool = False
    skips_zeros: bool = False

    def __post_init__(self) -> None:
        # a record that came through JSON has lists
        object.__setattr__(self, "blocks", tuple(tuple(row) for row in self.blocks))

    def tile_for(self, precision: str) -> int:
        """Qubits of a tile in ``precision``: the same bytes hold one more qubit in single."""
        return self.tile_qubits + (precision == "single")

    def line_for(self, precision: str) -> int:
        """Lowest qubits of one memory transaction in ``precision``."""
        return self.line_qubits + (precision == "single")


def amplitude_bytes(precision: str) -> int:
    """Bytes of one amplitude: 16 for ``"double"``, 8 for ``"single"``."""
    return 8 if precision == "single" else 16


def state_bytes(num_qubits: int, precision: str) -> int:
    """Bytes of a state."""
    return amplitude_bytes(precision) << num_qubits


def max_qubits(memory_bytes: int, precision: str) -> int:
    """Qubits of the widest state that fits."""
    return max(0, (memory_bytes // amplitude_bytes(precision)).bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Work:
    """What ops cost per amplitude inside a tile.

    Attributes:
        flops: of all.
        sweeps: of all kinds.
        phase_layers: sweeps of phases alone.
        mixes: operators on one or two qubits that change values, by the share of the amplitudes that they act on; a
            dense matrix on two counts twice.
        wide: matrices on more qubits.
        wide_flops: of those.
    """

    flops: float
    sweeps: float
    phase_layers: int
    mixes: float
    wide: int
    wide_flops: float


def tile_work(ops: Iterable[Op]) -> Work:
    """What ``ops`` cost per amplitude inside a tile.

    Rotations go three to a sweep, diagonals all to one sweep per layer, a matrix costs 8 flops per entry of a row.
    """
    return Work(*OpList.of(ops).native.work())


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a state a pass works on.

    Attributes:
        read: amplitudes that are read from memory; what is zeroed before comes from the cache.
        worked: amplitudes of tiles that hold more than zeros: they are computed and written.
        fresh_bytes: pages first touched.
    """

    read: float
    worked: float
    fresh_bytes: float = 0.0

    @classmethod
    def whole(cls, num_qubits: int) -> Extent:
        """Of a pass over all of a state."""
        return cls(2.0**num_qubits, 2.0**num_qubits)


@dataclass(slots=True)
class Footprint:
    """Where a state may hold more than zeros as a plan goes on, and which of its memory was touched.

    Attributes:
        num_qubits: width of the state.
        precision: of the state.
        live: mask of the qubits that may be other than |0> or |1>.
        ones: mask of the qubits that are |1>.
        support: at most 2**support amplitudes are other than 0.
        pages: pages of `PAGE_BYTES` touched so far; None where all are.
        skips_zeros: as of the `Device`.
    """

    num_qubits: int
    precision: str
    live: int
    ones: int = 0
    support: int = 64
    pages: int | None = None
    skips_zeros: bool = False

    def fixed_qubits(self, tile: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The qubits outside ``tile`` that are |0>, and those that are |1>."""
        outside = [q for q in range(self.num_qubits) if not (self.live | tile) >> q & 1]
        return tuple(q for q in outside if not self.ones >> q & 1), tuple(q for q in outside if self.ones >> q & 1)

    def fresh_qubits(self, tile: int) -> tuple[int, ...]:
        """The qubits of ``tile`` that are |0>."""
        return tuple(q for q in range(self.num_qubits) if (tile & ~self.live & ~self.ones) >> q & 1)

    def extent(self, tile: int) -> Extent:
        """What a pass with ``tile`` works on; its pages count as touched from here on."""
        in_use = self.live | tile
        outside = (self.live & ~tile).bit_count()
        skipped = outside - min(outside, self.support)  # qubits by which tiles outnumber amplitudes
        read = 2.0 ** (self.live if self.skips_zeros else in_use).bit_count()
        worked = 2.0 ** (in_use.bit_count() - skipped)
        if self.pages is None:
            return Extent(read, worked)
        size = amplitude_bytes(self.precision)
        page = min(PAGE_BYTES, size << self.num_qubits)
        inner = (page // size).bit_length() - 1
        above = (in_use >> inner).bit_count()  # qubits that choose a page
        tile_above = (tile >> inner).bit_count()
        before, written = self.pages, 1 << min(above, tile_above + min(outside, self.support))
        # a tile is read whole or not at all: it also reads the pages that its qubits still |0> lead to
        unused_page_bits = (tile & ~self.live) >> inner
        looked_at = before << unused_page_bits.bit_count()
        self.pages = max(before, written, min(looked_at, 1 << above))  # what is read of used memory is zeroed first
        return Extent(min(read, float(before * page // size)), worked, float((self.pages - before) * page))

    def swap(self, swaps: Iterable[tuple[int, int]]) -> None:
        """The qubits of each pair change places."""
        for p, q in swaps:
            for name in ("live", "ones"):
                mask = getattr(self, name)
                if (mask >> p ^ mask >> q) & 1:
                    setattr(self, name, mask ^ (1 << p | 1 << q))

    def mix(self, mask: int, new_support: int) -> None:
        """The qubits of ``mask`` may be anything from here on, and 2**new_support times as many amplitudes too."""
        self.live |= mask
        self.ones &= ~mask
        self.support = min(self.support + new_support, self.num_qubits)


def predict_tile(ops: Iterable[Op], extent: Extent, num_qubits: int, precision: str, device: Device) -> Prediction:
    """What one tile pass with ``ops`` costs.

    Args:
        ops: in order.
        extent: how much of the state it works on.
        num_qubits: width of the state.
        precision: of the state.
        device: measured or made up.
    """
    work, size = tile_work(ops), amplitude_bytes(precision)
    rate = device.fp32_flops_per_s if precision == "single" else device.fp64_flops_per_s
    moved, flops = size * (extent.read + extent.worked), work.flops * extent.worked
    memory = moved / device.bandwidth_bytes_per_s + touch_seconds(extent.fresh_bytes, device)
    if device.mixes_per_s:
        mixes_per_s = device.mixes_fp32_per_s if precision == "single" else device.mixes_per_s
        least = device.mix_seconds if num_qubits < device.interpreted_qubits else 0.0
        inside = {"arithmetic": work.mixes * max(extent.worked / mixes_per_s, least)}
    else:
        swept = work.sweeps * 2 * size * extent.worked
        inside = {"arithmetic": flops / rate, "cache": swept / device.cache_bandwidth_bytes_per_s}
    seconds = {"memory": memory, **inside, "launch": device.launch_seconds}
    total_seconds = beside(memory, max(inside.values()), device.overlap) + device.launch_seconds
    bound = max(seconds, key=lambda name: seconds[name])
    return Prediction(total_seconds, moved, flops, moved / (2 * size * 2.0**num_qubits), bound)


def beside(memory: float, inside: float, overlap: float) -> float:
    """Seconds of both where the share ``overlap`` of memory's time can hide behind the rest."""
    return max(memory, (1 - overlap) * memory + inside)


def predict_prepare(
    num_qubits: int, live_qubits: int, precision: str, device: Device, fresh_bytes: float
) -> Prediction:
    """What writing a product state costs: half a pass where all qubits are live.

    Where some are not, the pages that are written in part are zeroed before; a device that hands out no zeros writes
    them all.
    """
    if device.skips_zeros:
        live_qubits = num_qubits
    size = float(state_bytes(live_qubits, precision))
    memory = size / (device.fill_bytes_per_s or device.bandwidth_bytes_per_s) + device.launch_seconds
    if live_qubits < num_qubits:
        memory += touch_seconds(fresh_bytes, device)
    share = 2.0 ** (live_qubits - num_qubits)
    return Prediction(memory, size, 6 * 2.0**live_qubits, share / 2, "memory")


def predict_stack(num_ops: int, num_qubits: int, device: Device) -> Prediction:
    """What one state of a stack costs: each operator a sweep over the cache, in double precision; memory sees none."""
    seconds = num_ops * 2 * state_bytes(num_qubits, "double") / device.cache_bandwidth_bytes_per_s
    return Prediction(seconds + device.launch_seconds, bound_by="cache")


def touch_seconds(fresh_bytes: float, device: Device) -> float:
    """What first touching so much memory takes."""
    return fresh_bytes / device.touch_bytes_per_s if device.touch_bytes_per_s else 0.0


def total(predictions: Iterable[Prediction]) -> Prediction:
    """The sum of ``predictions``; the bound is that of the costliest."""
    items = list(predictions)
    return Prediction(
        sum(p.seconds for p in items),
        sum(p.bytes for p in items),
        sum(p.flops for p in items),
        sum(p.passes for p in items),
        max(items, key=lambda p: p.seconds).bound_by if items else "launch",
    )
