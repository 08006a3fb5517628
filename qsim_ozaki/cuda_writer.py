"""The source of one straight-line tile kernel, statement by statement.

In: phases of a tile pass. Out: a `StraightProgram`: source text that depends on the pass's structure alone, and the
arrays and arguments that hold its angles, matrices and qubits. It needs no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.cuda_cores import Table, Turn, Work, share_tables
from qsim_ozaki.cuda_layout import Place, Shape, Tile, load_place, places
from qsim_ozaki.cuda_lower import HALF_TURN, SQRT_HALF, TURN, Item, is_core, mask_of, phases_of
from qsim_ozaki.cuda_pairs import PairBlock
from qsim_ozaki.cuda_phases import angle_words, choosing, members, mirrored, reals, subsets
from qsim_ozaki.cuda_program import LEAST_COS
from qsim_ozaki.cuda_schedule import Frame, Phase, Phases
from qsim_ozaki.cuda_source import kernel_source, slots_struct
from qsim_ozaki.cuda_straight_program import NotStraightError, StraightProgram
from qsim_ozaki.ops import ComplexArray

MAX_TILE_PHASES = 30  # of the 1 KiB that two blocks a processor leave beside their tiles, twice
MAX_CONSTANT_BYTES = 30 << 10  # arguments of a kernel are at most 32764 bytes
MAX_TABLE_BYTES = 8 << 10  # in shared memory, where they keep as much of the next tile from being fetched early


def _is_table(work: Work, registers: int) -> bool:
    """Whether a statement multiplies by constants that a common phase can go into."""
    if isinstance(work, Phases):
        return any(not key & ~registers for key in work.terms)
    return isinstance(work, Table)


@dataclass(slots=True, eq=False)
class Writer:
    """Writes one pass; used once."""

    tile: Tile
    num_qubits: int
    shape: Shape
    lines: list[str] = field(default_factory=list)
    words: list[NDArray[np.uint64]] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)  # where equal data already is
    chosen: bytes = b""
    size: int = 0
    masks: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    records: list[dict[int, int]] = field(default_factory=list)
    scale: float = 1.0
    common: int = 0  # an angle that every amplitude still lacks
    last_table: Work | None = None
    place: Place = field(init=False)
    frame: Frame = field(init=False)

    def __post_init__(self) -> None:
        shape = self.shape
        self.frame = Frame(self.tile.qubits, shape.register_qubits, shape.line_qubits, self.tile.swaps)

    def write(self, phases: list[Phase]) -> StraightProgram:
        """Every phase's work between exchanges; the rest of the next tile is fetched once shared memory is free."""
        works = [share_tables(phase.work) for phase in phases]
        for phase, work in zip(phases, works, strict=True):
            inside = mask_of(phase.registers)
            self.last_table = next((w for w in reversed(work) if _is_table(w, inside)), self.last_table)
        layouts = places(self.frame, phases)
        load = load_place(self.frame)
        offsets = [self._put(load.offsets(self.frame)), self._put(layouts[-1].offsets(self.frame, stored=True))]
        self._all(works, layouts, load)
        records = self._records()
        if 8 * (len(self.values) + len(self.masks)) > MAX_CONSTANT_BYTES:
            raise NotStraightError(f"{len(self.values)} constants")
        table = self._put(np.frombuffer(self.chosen, np.uint64)) if self.chosen else 0
        return StraightProgram(
            source=self._source([load, *layouts], [*offsets, records, table]),
            tables=np.concatenate(self.words),
            stride_in=tuple(1 << q for q in load.registers),
            stride_out=tuple(1 << self.frame.stored_at(q) for q in layouts[-1].registers),
            masks=tuple(self.masks),
            values=tuple(self.values),
            num_tiles=1 << (self.num_qubits - len(self.tile.qubits) - len(self.tile.zero_qubits)),
            tile=self.tile.qubits,
            zero_qubits=self.tile.zero_qubits,
            fresh_qubits=self.tile.fresh_qubits,
            scale=self.scale,
            tile_phases=len(self.records),
            table_bytes=len(self.chosen),
        )

    def _all(self, works: list[list[Work]], layouts: list[Place], load: Place) -> None:
        """Statements of all phases."""
        last = len(works) - 1
        for i, work in enumerate(works):
            self.place = layouts[i]
            if i:
                within = str(layouts[i - 1].warps == layouts[i].warps).lower()
                self._say(f"exchange<Layout{i - 1}, Layout{i}, {within}>(a, tile);")
            if i == last:
                # others may still read what the last exchange brought
                wait = "__syncwarp" if load.warps == layouts[last].warps else "__syncthreads"
                self._say(f"{wait}();" if i else "")
                self._say("fetch_rest<Body>(tile, args);")
                self._say("const index_t to = offset_of_thread(tile.tables, kOffsetOut);")
            self._work(work)

    def _source(self, layouts: list[Place], tables: list[int]) -> str:
        sizes = {
            "TILE": len(self.tile.qubits),
            "CONSTANTS": max(len(self.values), 1),
            "MASKS": max(len(self.masks), 1),
            "PHASES": 2 * len(self.records) * self.shape.amp_bytes,
            "TABLES": len(self.chosen),
            "FRESH": int(bool(self.tile.fresh_qubits)),
        }
        tables_of = ("kOffsetIn", "kOffsetOut", "kRecords", "kTables")
        numbers = {f"unsigned {name}": at for name, at in zip(tables_of, tables, strict=True)} | {
            "int kTilePhases": len(self.records),
            "bool kScaled": str(self.scale != 1).lower(),
        }
        names = ["In", *map(str, range(len(layouts) - 1))]
        structs = [slots_struct(name, at, self.frame, self.shape) for name, at in zip(names, layouts, strict=True)]
        return kernel_source(sizes, structs, numbers, self.lines)

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _put(self, array: NDArray[np.generic]) -> int:
        """Appends an array on a 16-byte boundary, or finds it; returns its word index."""
        raw = array.tobytes() + bytes(-array.nbytes % 16)
        if raw and raw in self.known:
            return self.known[raw]
        data = np.frombuffer(raw, np.uint64)
        at = self.known[raw] = self.size
        self.words.append(data)
        self.size += data.size
        return at

    def _value(self, values: Sequence[float]) -> str:
        at = len(self.values)
        self.values += values
        return f"args.value + {at}"

    def _table(self, values: Sequence[float]) -> str:
        """The same, but equal tables are kept once; tangents and matrices used often would take registers."""
        key = tuple(values)
        if key not in self.known:
            self.known[key] = len(self.values)
            self.values += values
        return f"args.value + {self.known[key]}"

    def _mask(self, mask: int) -> str:
        self.masks.append(mask)
        return f"args.mask[{len(self.masks) - 1}]"

    def _work(self, works: list[Work]) -> None:
        for work in works:
            if isinstance(work, Phases):
                self._phases(work.terms, work is self.last_table)
            elif isinstance(work, Table):
                self._shared(work, work is self.last_table)
            elif isinstance(work, PairBlock):
                self._say(f"pair_block(a, tile.tables, {self._put(work.fragments())}u);")
            else:
                if isinstance(work, Turn):
                    self._turn(work)
                else:
                    self._item(work)
                if abs(self.scale) < self.shape.least_scale:
                    self._say(f"scale_all(a, *({self._value([self.scale])}));")
                    self.scale = 1.0

    def _shared(self, table: Table, last: bool) -> None:
        """A product of diagonals as one constant for each value of their qubits, left out where it is 1."""
        self.common = (self.common + table.angle) % TURN
        bits, values, indices = table.entries(self.place.registers)
        if last:
            values, indices = values * phases_of([self.common]), [*range(1 << len(self.place.registers))]
        on, support = (sum(1 << i for i in each) for each in (indices, bits))
        self._say(f"times_each<{on}u, {support}u>(a, {self._table(reals(values))});")

    def _turn(self, turn: Turn) -> None:
        self.scale *= turn.scale
        places = ", ".join(str(self._bit(q)) for q in turn.qubits)
        near = ", ".join(str(n).lower() for n in turn.near)
        self._say(f"turn4_by<{places}, {near}>(a, {self._value(turn.values)});")

    def _bit(self, qubit: int) -> int:
        return self.place.registers.index(qubit)

    def _tile_bits(self, mask: int) -> int:
        """The part of a mask of qubits that the tile's number holds."""
        return mask & ~mask_of(self.tile.qubits)

    def _crosses(self, mask: int) -> bool:
        """Whether a mask has qubits of the thread and of the tile's number at once."""
        return bool(self.place.bits(mask) and self._tile_bits(mask))

    def _item(self, item: Item) -> None:
        bits = [self._bit(q) for q in item.qubits]
        mask, value = item.condition
        inside = [(b, value >> q & 1) for b, q in enumerate(self.place.registers) if mask >> q & 1]
        places = f"{sum(1 << b for b, _ in inside)}u, {sum(v << b for b, v in inside)}u"
        where = self._where(mask & ~mask_of(self.place.registers), value)
        if item.kind == "hadamard":
            self.scale *= SQRT_HALF
            self._say(f"hadamard<{bits[0]}>(a);")
        elif item.kind == "rotate":
            cos, sin = item.angle
            near = abs(cos) >= LEAST_COS
            self.scale *= cos if near else sin
            tangent = self._value([sin / cos if near else cos / sin])
            self._say(f"rotate{'' if near else '_far'}<{bits[0]}>(a, *({tangent}));")
        elif item.kind == "flip":
            self._say(f"flip_bit<{bits[0]}, {places}>(a{', ' + where if where else ''});")
        else:
            assert item.data is not None
            matrix = item.data
            if len(bits) == 2 and bits[0] > bits[1]:
                matrix = matrix[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])]
            if is_core(item):
                entries = self._value(reals(np.concatenate([matrix[::3, ::3], matrix[1:3, 1:3]])))
                call = f"core4_by<{', '.join(str(b) for b in sorted(bits))}, {places}>(a, {entries});"
                self._say(f"if ({where}) {call}" if where else call)
                return
            entries = self._value(reals(matrix))
            size = "2" if len(bits) == 1 else "4"
            call = f"matrix{size}_by<{', '.join(str(b) for b in sorted(bits))}, {places}>(a, {entries});"
            self._say(f"if ({where}) {call}" if where else call)

    def _where(self, mask: int, value: int) -> str:
        """A condition on thread and tile bits as an expression, empty where there is none."""
        parts = []
        threads = self.place.bits(mask)
        if threads:
            parts.append(f"(threadIdx.x & {threads}u) == {self.place.bits(value & mask)}u")
        tile = self._tile_bits(mask)
        if tile:
            parts.append(f"(tile.base & {self._mask(tile)}) == {self._mask(self._tile_bits(value & mask))}")
        return " && ".join(parts)

    def _phases(self, terms: dict[int, int], last: bool) -> None:
        """Phases by register part: constants per register index, signs of outer bits, one factor per part otherwise.

        A few outer bits choose among tables of constants instead where several products become one.
        """
        inside = mask_of(self.place.registers)
        groups: dict[int, dict[int, int]] = {}
        for key, angle in terms.items():
            bits = sum(1 << b for b, q in enumerate(self.place.registers) if key >> q & 1)
            groups.setdefault(bits, {})[key & ~inside] = angle
        constants: dict[int, int] = {0: self.common} if last and self.common else {}
        for bits, group in groups.items():
            if 0 in group:
                constants[bits] = (constants.get(bits, 0) + group.pop(0)) % TURN
        signs = {bits: self._signs(group) for bits, group in groups.items()}
        chosen = choosing(groups, signs, bool(constants))
        if chosen and len(self.chosen) + self._table_bytes(groups, constants, chosen) <= MAX_TABLE_BYTES:
            folded = {bits: {k: group.pop(k) for k in [*group] if not k & ~chosen} for bits, group in groups.items()}
            self._chosen(folded, constants, chosen)
            constants = {}
        for bits, group in sorted(groups.items()):
            on = self._on([bits])
            own = {k: angle for k, angle in group.items() if k in signs[bits]}
            if own:
                self._say(f"flip_sign<{on}>(a, {self._sign(own)});")
            factors = {k: angle for k, angle in group.items() if k not in own}
            if factors:
                self._say(f"times<{on}>(a, {self._factor(factors)});")
        if constants and all(bits and angle == HALF_TURN for bits, angle in constants.items()):
            odd = [r for r in range(1 << len(self.place.registers)) if sum(r & p == p for p in constants) & 1]
            self._say(f"negate<{sum(1 << r for r in odd)}u>(a);")
        elif constants:
            self._constants(constants, last)

    def _signs(self, group: dict[int, int]) -> set[int]:
        """The outer parts that only flip signs, where that costs no product."""
        if all(angle == HALF_TURN for angle in group.values()):
            return set(group)
        return {key for key, angle in group.items() if angle == HALF_TURN and self._crosses(key)}

    def _chosen(self, folded: dict[int, dict[int, int]], constants: dict[int, int], chosen: int) -> None:
        """Angles by register part and outer bits, as constants that the outer bits in ``chosen`` select among."""
        parts = [bits for bits, group in folded.items() if group]
        support = 0
        for bits in [*parts, *constants]:
            support |= bits
        inner, outer = subsets(support), subsets(chosen)
        angles = []
        for r in inner:
            common = sum(angle for bits, angle in constants.items() if r & bits == bits)
            here = [group for bits, group in folded.items() if r & bits == bits]
            angles += [common + sum(a for group in here for k, a in group.items() if s & k == k) for s in outer]
        data = self._amps(phases_of([angle % TURN for angle in angles])).tobytes()
        data += bytes(-len(data) % 16)
        key = ("chosen", data)
        if key not in self.known:
            self.known[key] = len(self.chosen)
            self.chosen += data
        on = self._on([*parts, *constants])
        bit = [f"{self._one(1 << q)} << {i}" for i, q in enumerate(members(chosen))]
        self._say(
            f"times_chosen<{on}, {support}u, {len(outer)}>(a, tile.chosen, {self.known[key]}, {' | '.join(bit)});"
        )

    def _table_bytes(self, groups: dict[int, dict[int, int]], constants: dict[int, int], chosen: int) -> int:
        """At most so many more bytes of tables."""
        support = 0
        for bits in [*groups, *constants]:
            support |= bits
        return self.shape.amp_bytes << support.bit_count() + chosen.bit_count()

    def _one(self, mask: int) -> str:
        """Whether an outer bit is 1, as an unsigned number."""
        threads = self.place.bits(mask)
        if threads:
            return f"(threadIdx.x >> {threads.bit_length() - 1} & 1u)"
        return f"(unsigned)((tile.base & {self._mask(mask)}) != 0)"

    def _constants(self, constants: dict[int, int], last: bool) -> None:
        """Angles by register part, as one constant for each value of the register bits that they depend on.

        A common phase may wait for the last table of the pass; then often half of the constants are enough.
        """
        support = 0
        for part in constants:
            support |= part
        angles = [sum(angle for p, angle in constants.items() if r & p == p) % TURN for r in subsets(support)]
        mirror = None if last or len(angles) < 8 else mirrored(angles)
        if mirror is None:
            table = self._table(reals(phases_of(angles)))
            self._say(f"times_each<{self._on(list(constants))}, {support}u>(a, {table});")
            return
        common, conjugate, negative = mirror
        self.common = (self.common + common) % TURN
        table = self._table(reals(phases_of([(angle - common) % TURN for angle in angles[: len(angles) // 2]])))
        self._say(f"times_mirrored<{support}u, {str(conjugate).lower()}, {negative}u>(a, {table});")

    def _on(self, parts: list[int]) -> str:
        """Register indices that hold all bits of some part."""
        return f"{sum(1 << r for r in range(1 << len(self.place.registers)) if any(r & p == p for p in parts))}u"

    def _sign(self, group: dict[int, int]) -> str:
        singles = sum(key for key in group if key.bit_count() == 1)
        parts = []
        if self.place.bits(singles):
            parts.append(f"parity(threadIdx.x & {self.place.bits(singles)}u)")
        if self._tile_bits(singles):
            parts.append(f"parity(tile.base & {self._mask(self._tile_bits(singles))})")
        parts += [f"sign_where({self._where(key, key)})" for key in sorted(group) if key.bit_count() > 1]
        return " ^ ".join(parts)

    def _factor(self, group: dict[int, int]) -> str:
        """The phase of outer bits as a product of a thread's and a tile's."""
        thread = {key: angle for key, angle in group.items() if not self._tile_bits(key)}
        tile = {key: angle for key, angle in group.items() if self._tile_bits(key) == key}
        both = {key: angle for key, angle in group.items() if self._crosses(key)}
        parts = []
        if thread:
            total = np.zeros(1 << len(self.place.lanes), np.uint64)
            number = np.arange(len(total))
            for key, angle in thread.items():
                bits = self.place.bits(key)
                total[number & bits == bits] += np.uint64(angle)  # wraps modulo one turn
            parts.append(f"phase_of_thread(tile.tables, {self._put(self._amps(phases_of(total.tolist())))})")
        if tile:
            if len(self.records) == MAX_TILE_PHASES:
                raise NotStraightError(f"more than {MAX_TILE_PHASES} phases of the tile")
            self.records.append(tile)
            parts.append(f"tile.phases[{len(self.records) - 1}]")
        if both:
            words = angle_words(both)
            record = f"{(len(words) - 2) // 4}u, {self._put(np.array(words, np.uint64))}u"
            parts.append(
                f"phase_of_both(tile.tables, {record}, tile.base, {self._put(self.place.offsets(self.frame))}u)"
            )
        product = parts[0]
        for part in parts[1:]:
            product = f"cmul({product}, {part})"
        return product

    def _records(self) -> int:
        """Angle sums over the tile's bits; returns where their index begins."""
        index, data = [], [np.zeros(0, np.uint64)]
        at = self.size + len(self.records) + len(self.records) % 2
        for group in self.records:
            words = angle_words(group)
            index.append(len(words) // 4 | at << 32)
            data.append(np.array(words, np.uint64))
            at += len(words)
        records = self._put(np.array(index, np.uint64))
        self._put(np.concatenate(data))
        return records

    def _amps(self, values: ComplexArray) -> ComplexArray:
        return values.astype(np.complex128 if self.shape.amp_bytes == 16 else np.complex64)
