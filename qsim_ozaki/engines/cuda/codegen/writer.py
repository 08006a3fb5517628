"""The source of one straight-line tile kernel, statement by statement.

In: stages of a tile pass. Out: a `StraightProgram`: source text that depends on the pass's structure alone, and the
arrays and arguments that hold its angles, matrices and qubits. It needs no GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.codegen.cores import Table, Turn, Work, share_tables
from qsim_ozaki.engines.cuda.codegen.operands import Operands
from qsim_ozaki.engines.cuda.codegen.outer import Outer
from qsim_ozaki.engines.cuda.codegen.phase_tables import choosing, mirrored, reals, subsets
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError, StraightProgram
from qsim_ozaki.engines.cuda.codegen.source import kernel_source, slots_struct
from qsim_ozaki.engines.cuda.device.records import SQRT_HALF
from qsim_ozaki.engines.cuda.device.shapes import Shape
from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, LEAST_COS, TURN, Item, is_core, members, phases_of
from qsim_ozaki.engines.cuda.tile.layout import Place, Tile, load_place, places
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock, split_tf32
from qsim_ozaki.engines.cuda.tile.schedule import TileFrame
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.ir import ComplexArray, mask_of

MAX_CONSTANT_BYTES = 30 << 10  # arguments of a kernel are at most 32764 bytes
MAX_TABLE_BYTES = 8 << 10  # in shared memory, where they keep as much of the next tile from being fetched early


@dataclass(frozen=True, slots=True)
class Sink:
    """A statement that can multiply every amplitude by one more factor.

    Attributes:
        line: its index.
        products: more amplitudes that it multiplies then, one more where its table would be in shared memory twice.
        text: the statement, given the factor.
    """

    line: int
    products: int
    text: Callable[[complex], str]


@dataclass(slots=True, eq=False)
class SourceWriter:
    """Writes one pass; used once."""

    tile: Tile
    num_qubits: int
    shape: Shape
    lines: list[str] = field(default_factory=list)
    operands: Operands = field(init=False)
    outer: Outer = field(init=False)
    scale: float = 1.0
    common: int = 0  # an angle that every amplitude still lacks
    sinks: list[Sink] = field(default_factory=list)
    place: Place = field(init=False)
    frame: TileFrame = field(init=False)

    def __post_init__(self) -> None:
        shape = self.shape
        self.frame = TileFrame(self.tile.qubits, shape.register_qubits, shape.line_qubits, self.tile.swaps)
        self.operands = Operands(shape.amp_bytes)
        self.outer = Outer(self.frame, self.operands)

    def write(self, stages: list[Stage]) -> StraightProgram:
        """Every stage's work between exchanges; the rest of the next tile is fetched once shared memory is free."""
        works = [share_tables(stage.work) for stage in stages]
        layouts = places(self.frame, stages)
        load = load_place(self.frame)
        operands = self.operands
        offsets = [operands.put(load.offsets(self.frame)), operands.put(layouts[-1].offsets(self.frame, stored=True))]
        self._all(works, layouts, load)
        self._settle()
        records = self.outer.pack_records()
        if 8 * (len(operands.values) + len(operands.masks)) > MAX_CONSTANT_BYTES:
            raise NotStraightError(f"{len(operands.values)} constants")
        table = operands.put(np.frombuffer(operands.chosen, np.uint64)) if operands.chosen else 0
        return StraightProgram(
            source=self._source([load, *layouts], [*offsets, records, table]),
            tables=np.concatenate(operands.words),
            stride_in=tuple(1 << q for q in load.registers),
            stride_out=tuple(1 << self.frame.stored_at(q) for q in layouts[-1].registers),
            masks=tuple(operands.masks),
            values=tuple(operands.values),
            num_tiles=1 << (self.num_qubits - len(self.tile.qubits) - len(self.tile.zero_qubits)),
            tile=self.tile.qubits,
            zero_qubits=self.tile.zero_qubits,
            scale=self.scale,
            tile_phases=len(self.outer.records),
            table_bytes=len(operands.chosen),
        )

    def _all(self, works: list[list[Work]], layouts: list[Place], load: Place) -> None:
        """Statements of all stages."""
        last = len(works) - 1
        for i, work in enumerate(works):
            self.place = self.outer.place = layouts[i]
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

    def _settle(self) -> None:
        """Folds the remaining common factor into a multiplication that is there already, else multiplies at the end."""
        factor = self.scale * complex(phases_of([self.common])[0])
        best = min(self.sinks, key=lambda sink: sink.products, default=None)
        if best and (self.common or best.products <= self.amps // 2) and factor != 1:
            self.lines[best.line] = best.text(factor)
            self.scale = 1.0
        elif self.common:
            self._say(f"times_each<{self.every}u, 0u>(a, {self.operands.value(reals(np.array([factor])))});")
            self.scale = 1.0

    def _source(self, layouts: list[Place], tables: list[int]) -> str:
        sizes = {
            "TILE": len(self.tile.qubits),
            "CONSTANTS": max(len(self.operands.values), 1),
            "MASKS": max(len(self.operands.masks), 1),
            "PHASES": 2 * len(self.outer.records) * self.shape.amp_bytes,
            "TABLES": len(self.operands.chosen),
            "FRESH_REGISTERS": sum(1 << i for i, q in enumerate(layouts[0].registers) if q in self.tile.fresh_qubits),
            "FRESH_THREADS": layouts[0].bits(mask_of(self.tile.fresh_qubits)),
        }
        tables_of = ("kOffsetIn", "kOffsetOut", "kRecords", "kTables")
        numbers = {f"unsigned {name}": at for name, at in zip(tables_of, tables, strict=True)} | {
            "int kTilePhases": len(self.outer.records),
            "bool kScaled": str(self.scale != 1).lower(),
        }
        names = ["In", *map(str, range(len(layouts) - 1))]
        structs = [slots_struct(name, at, self.frame, self.shape) for name, at in zip(names, layouts, strict=True)]
        return kernel_source(sizes, structs, numbers, self.lines)

    @property
    def amps(self) -> int:
        """Amplitudes of a thread."""
        return 1 << self.shape.register_qubits

    @property
    def every(self) -> int:
        """All register indices."""
        return (1 << self.amps) - 1

    def _say(self, line: str) -> None:
        self.lines.append(line)

    def _say_sink(self, products: int, text: Callable[[complex], str], line: str) -> None:
        """A line that can multiply all amplitudes by a factor, as ``text`` writes it then."""
        self.sinks.append(Sink(len(self.lines), products, text))
        self._say(line)

    def _work(self, works: list[Work]) -> None:
        for work in works:
            if isinstance(work, PhaseTerms):
                self._phases(work.terms)
            elif isinstance(work, Table):
                self._shared(work)
            elif isinstance(work, PairBlock):
                self._pair(work)
            else:
                if isinstance(work, Turn):
                    self._turn(work)
                else:
                    self._item(work)
                if abs(self.scale) < self.shape.least_scale:
                    self._say(f"scale_all(a, *({self.operands.value([self.scale])}));")
                    self.scale = 1.0

    def _shared(self, table: Table) -> None:
        """A product of diagonals as one constant for each value of their qubits, left out where it is 1."""
        self.common = (self.common + table.angle) % TURN
        bits, values, indices = table.entries(self.place.registers)
        self._say_table(sum(1 << i for i in indices), sum(1 << b for b in bits), values)

    def _say_table(self, on: int, support: int, values: ComplexArray) -> None:
        """Products by a constant for each value of the register bits ``support``, at register indices ``on``."""

        def text(factor: complex) -> str:
            return f"times_each<{self.every}u, {support}u>(a, {self.operands.value(reals(values * factor))});"

        line = f"times_each<{on}u, {support}u>(a, {self.operands.table(reals(values))});"
        self._say_sink(self.amps - on.bit_count(), text, line)

    def _turn(self, turn: Turn) -> None:
        self.scale *= turn.scale
        places = ", ".join(str(self._bit(q)) for q in turn.qubits)
        near = ", ".join(str(n).lower() for n in turn.near)
        self._say(f"turn4_by<{places}, {near}>(a, {self.operands.value(turn.values)});")

    def _pair(self, block: PairBlock) -> None:
        """Register bits choose among a block's matrices when it is compiled, others when it runs."""
        inner = [q for q in self.place.registers if block.selecting >> q & 1]
        outer = members(block.selecting & ~mask_of(inner))
        fragments = block.fragments([*inner, *outer])
        at = self.operands.put(split_tf32(fragments) if self.shape.amp_bytes == 8 else fragments)
        choosing = sum(1 << self._bit(q) for q in inner)
        self._say(f"pair_block<{choosing}u>(a, tile.tables, {at}u, {self.outer.number(outer)});")

    def _bit(self, qubit: int) -> int:
        return self.place.registers.index(qubit)

    def _item(self, item: Item) -> None:
        bits = [self._bit(q) for q in item.qubits]
        mask, value = item.condition
        inside = [(b, value >> q & 1) for b, q in enumerate(self.place.registers) if mask >> q & 1]
        places = f"{sum(1 << b for b, _ in inside)}u, {sum(v << b for b, v in inside)}u"
        where = self.outer.where(mask & ~mask_of(self.place.registers), value)
        if item.kind == "hadamard":
            self.scale *= SQRT_HALF
            self._say(f"hadamard<{bits[0]}>(a);")
        elif item.kind == "rotate":
            cos, sin = item.angle
            near = abs(cos) >= LEAST_COS
            self.scale *= cos if near else sin
            tangent = self.operands.value([sin / cos if near else cos / sin])
            self._say(f"rotate{'' if near else '_far'}<{bits[0]}>(a, *({tangent}));")
        elif item.kind == "flip":
            self._say(f"flip_bit<{bits[0]}, {places}>(a{', ' + where if where else ''});")
        else:
            assert item.data is not None
            matrix = item.data
            if len(bits) == 2 and bits[0] > bits[1]:
                matrix = matrix[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])]
            if is_core(item):
                entries = self.operands.value(reals(np.concatenate([matrix[::3, ::3], matrix[1:3, 1:3]])))
                call = f"core4_by<{', '.join(str(b) for b in sorted(bits))}, {places}>(a, {entries});"
                self._say(f"if ({where}) {call}" if where else call)
                return
            entries = self.operands.value(reals(matrix))
            size = "2" if len(bits) == 1 else "4"
            call = f"matrix{size}_by<{', '.join(str(b) for b in sorted(bits))}, {places}>(a, {entries});"
            self._say(f"if ({where}) {call}" if where else call)

    def _phases(self, terms: dict[int, int]) -> None:
        """Phases by register part: constants per register index, signs of outer bits, one factor per part otherwise.

        A few outer bits choose among tables of constants instead where several products become one.
        """
        inside = mask_of(self.place.registers)
        groups: dict[int, dict[int, int]] = {}
        for key, angle in terms.items():
            bits = sum(1 << b for b, q in enumerate(self.place.registers) if key >> q & 1)
            groups.setdefault(bits, {})[key & ~inside] = angle
        constants: dict[int, int] = {}
        for bits, group in groups.items():
            if 0 in group:
                constants[bits] = (constants.get(bits, 0) + group.pop(0)) % TURN
        signs = {bits: self._signs(group) for bits, group in groups.items()}
        chosen = choosing(groups, signs, bool(constants))
        if chosen and len(self.operands.chosen) + self._table_bytes(groups, constants, chosen) <= MAX_TABLE_BYTES:
            folded = {bits: {k: group.pop(k) for k in [*group] if not k & ~chosen} for bits, group in groups.items()}
            self._chosen(folded, constants, chosen)
            constants = {}
        for bits, group in sorted(groups.items()):
            on = self._on([bits])
            flips = {k: angle for k, angle in group.items() if k in signs[bits]}
            if flips:
                self._say(f"flip_sign<{on}u>(a, {self.outer.sign(flips)});")
            factors = {k: angle for k, angle in group.items() if k not in flips}
            if factors:
                self._times(on, factors)
        if constants and all(bits and angle == HALF_TURN for bits, angle in constants.items()):
            odd = self._indices(lambda r: sum(r & p == p for p in constants) & 1)
            self._say(f"negate<{odd}u>(a);")
        elif constants:
            self._constants(constants)

    def _times(self, on: int, factors: dict[int, int]) -> None:
        """Products by the phases of outer bits, at the register indices ``on``."""
        product = self.outer.factor(factors)

        def text(factor: complex) -> str:
            value = self.operands.value(reals(np.array([factor])))
            return f"times<{on}u>(a, cmul({product}, amp_t{{*({value}), *({value} + 1)}}));"

        line = f"times<{on}u>(a, {product});"
        if on == self.every:
            self._say_sink(0, text, line)
        else:
            self._say(line)

    def _signs(self, group: dict[int, int]) -> set[int]:
        """The outer parts that only flip signs, where that costs no product."""
        if all(angle == HALF_TURN for angle in group.values()):
            return set(group)
        return {key for key, angle in group.items() if angle == HALF_TURN and self.outer.crosses(key)}

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
            terms = [(k, a) for bits, group in folded.items() if r & bits == bits for k, a in group.items()]
            angles += [common + sum(a for k, a in terms if s & k == k) for s in outer]
        values = phases_of([angle % TURN for angle in angles])
        bit = self.outer.number(members(chosen))

        def line(on: int, factor: complex) -> str:
            at = self.operands.choose(values * factor)
            return f"times_chosen<{on}u, {support}u, {len(outer)}>(a, tile.chosen, {at}, {bit});"

        on = self._on([*parts, *constants])
        products = self.amps - on.bit_count()
        self._say_sink(products + 1, lambda factor: line(self.every, factor), line(on, 1.0))

    def _table_bytes(self, groups: dict[int, dict[int, int]], constants: dict[int, int], chosen: int) -> int:
        """At most so many more bytes of tables."""
        support = 0
        for bits in [*groups, *constants]:
            support |= bits
        return self.shape.amp_bytes << support.bit_count() + chosen.bit_count()

    def _constants(self, constants: dict[int, int]) -> None:
        """Angles by register part, as one constant for each value of the register bits that they depend on.

        The most frequent constant is left to all amplitudes together, so that those with it need no product; or, where
        half of the constants are equal or conjugate to the others, these are enough.
        """
        support = 0
        for part in constants:
            support |= part
        inner = subsets(support)
        angles = [sum(angle for p, angle in constants.items() if r & p == p) % TURN for r in inner]
        counts = Counter(angles)
        most = max(counts, key=lambda angle: (counts[angle], angle == 0))
        mirror = None if len(angles) < 8 or 8 * counts[most] > len(angles) else mirrored(angles)
        if mirror is None:
            self.common = (self.common + most) % TURN
            others = {r for r, angle in zip(inner, angles, strict=True) if angle != most}
            on = self._indices(lambda r: r & support in others)
            if on:
                self._say_table(on, support, phases_of([(angle - most) % TURN for angle in angles]))
            return
        common, conjugate, negative = mirror
        self.common = (self.common + common) % TURN
        table = self.operands.table(reals(phases_of([(angle - common) % TURN for angle in angles[: len(angles) // 2]])))
        self._say(f"times_mirrored<{support}u, {str(conjugate).lower()}, {negative}u>(a, {table});")

    def _on(self, parts: list[int]) -> int:
        """Register indices that hold all bits of some part, as a set of bits."""
        return self._indices(lambda r: any(r & p == p for p in parts))

    def _indices(self, holds: Callable[[int], object]) -> int:
        """Register indices for which ``holds`` is true, as a set of bits."""
        return sum(1 << r for r in range(self.amps) if holds(r))
