"""Writes the source of one straight-line tile kernel, statement by statement.

In: stages of a tile pass. Out: a `StraightProgram`: source text that depends only on the pass's structure, and the
arrays and arguments that hold its angles, matrices and qubits. It may not use a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from qsim_ozaki.engines.cuda.codegen.cores import Table, Turn, Work, share_tables
from qsim_ozaki.engines.cuda.codegen.operands import Operands
from qsim_ozaki.engines.cuda.codegen.outer import OuterBits
from qsim_ozaki.engines.cuda.codegen.phase_tables import choosing, mirrored, reals, subsets
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError, StraightProgram
from qsim_ozaki.engines.cuda.codegen.source import ScalableLine, kernel_source, slots_struct
from qsim_ozaki.engines.cuda.device.records import SQRT_HALF
from qsim_ozaki.engines.cuda.device.shapes import Shape
from qsim_ozaki.engines.cuda.tile.items import HALF_TURN, LEAST_COS, TURN, Item, is_core, members, phases_of
from qsim_ozaki.engines.cuda.tile.layout import Layout, Tile, load_layout, stage_layouts
from qsim_ozaki.engines.cuda.tile.pairs import PairBlock, split_tf32
from qsim_ozaki.engines.cuda.tile.schedule import TileFrame
from qsim_ozaki.engines.cuda.tile.stages import PhaseTerms, Stage
from qsim_ozaki.ir import ComplexArray, mask_of

MAX_CONSTANT_BYTES = 30 << 10  # arguments of a kernel are at most 32764 bytes
MAX_TABLE_BYTES = 8 << 10  # of shared memory; as many bytes of the next tile can then not be fetched early


@dataclass(slots=True, eq=False)
class SourceWriter:
    """Writes one pass; a writer is used once.

    Attributes:
        tile: the tile of the pass.
        num_qubits: width of the state.
        shape: sizes of the kernel.
        lines: statements so far.
        operands: collects the data that the statements read.
        outer: writes expressions of outer bits.
        scale: real factor that every amplitude still lacks.
        common_angle: angle that every amplitude still lacks, in 2**-64 of a turn.
        scalable_lines: statements that can multiply every amplitude by one more factor.
        layout: the layout of the current stage.
        frame: the tile, for the schedule's functions.
    """

    tile: Tile
    num_qubits: int
    shape: Shape
    lines: list[str] = field(default_factory=list)
    operands: Operands = field(init=False)
    outer: OuterBits = field(init=False)
    scale: float = 1.0
    common_angle: int = 0
    scalable_lines: list[ScalableLine] = field(default_factory=list)
    layout: Layout = field(init=False)
    frame: TileFrame = field(init=False)

    def __post_init__(self) -> None:
        shape = self.shape
        self.frame = TileFrame(self.tile.qubits, shape.register_qubits, shape.line_qubits, self.tile.swaps)
        self.operands = Operands(shape.amp_bytes)
        self.outer = OuterBits(self.frame, self.operands)

    def write(self, stages: list[Stage]) -> StraightProgram:
        """Writes the work of every stage and the exchanges between; returns the program."""
        works = [share_tables(stage.work) for stage in stages]
        layouts = stage_layouts(self.frame, stages)
        load = load_layout(self.frame)
        operands = self.operands
        offsets = [operands.put(load.offsets(self.frame)), operands.put(layouts[-1].offsets(self.frame, stored=True))]
        self._write_stages(works, layouts, load)
        self._fold_common_factor()
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

    def _write_stages(self, works: list[list[Work]], layouts: list[Layout], load: Layout) -> None:
        """Writes the statements of all stages; the rest of the next tile is fetched once shared memory is free."""
        last = len(works) - 1
        for i, work in enumerate(works):
            self.layout = self.outer.layout = layouts[i]
            if i:
                within = str(layouts[i - 1].warps == layouts[i].warps).lower()
                self._write_line(f"exchange<Layout{i - 1}, Layout{i}, {within}>(a, tile);")
            if i == last:
                # Other threads may still read shared memory after the last exchange.
                wait = "__syncwarp" if load.warps == layouts[last].warps else "__syncthreads"
                self._write_line(f"{wait}();" if i else "")
                self._write_line("fetch_rest<Body>(tile, args);")
                self._write_line("const index_t to = offset_of_thread(tile.tables, kOffsetOut);")
            self._write_work(work)

    def _fold_common_factor(self) -> None:
        """Folds the remaining common factor into an existing multiplication if there is one, else multiplies last."""
        factor = self.scale * complex(phases_of([self.common_angle])[0])
        best = min(self.scalable_lines, key=lambda scalable: scalable.products, default=None)
        if best and (self.common_angle or best.products <= self.num_amps // 2) and factor != 1:
            self.lines[best.line] = best.text(factor)
            self.scale = 1.0
        elif self.common_angle:
            self._write_line(
                f"times_each<{self.all_indices}u, 0u>(a, {self.operands.value(reals(np.array([factor])))});"
            )
            self.scale = 1.0

    def _source(self, layouts: list[Layout], tables: list[int]) -> str:
        """Returns the whole source; ``layouts`` begin with the load's, ``tables`` are word indices of the tables."""
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
        structs = [
            slots_struct(name, layout, self.frame, self.shape) for name, layout in zip(names, layouts, strict=True)
        ]
        return kernel_source(sizes, structs, numbers, self.lines)

    @property
    def num_amps(self) -> int:
        """Number of amplitudes of a thread."""
        return 1 << self.shape.register_qubits

    @property
    def all_indices(self) -> int:
        """The set of all register indices, as a mask."""
        return (1 << self.num_amps) - 1

    def _write_line(self, line: str) -> None:
        self.lines.append(line)

    def _write_scalable(self, products: int, text: Callable[[complex], str], line: str) -> None:
        """Writes a line that can multiply all amplitudes by a factor: ``text`` returns the line with the factor."""
        self.scalable_lines.append(ScalableLine(len(self.lines), products, text))
        self._write_line(line)

    def _write_work(self, works: list[Work]) -> None:
        for work in works:
            if isinstance(work, PhaseTerms):
                self._write_phases(work.terms)
            elif isinstance(work, Table):
                self._write_diagonals(work)
            elif isinstance(work, PairBlock):
                self._write_pair(work)
            else:
                if isinstance(work, Turn):
                    self._write_turn(work)
                elif work.kind == "parity":
                    self._write_parity(work)
                else:
                    self._write_item(work)
                if abs(self.scale) < self.shape.least_scale:
                    self._write_line(f"scale_all(a, *({self.operands.value([self.scale])}));")
                    self.scale = 1.0

    def _write_diagonals(self, table: Table) -> None:
        """Writes a product of diagonals as one constant per value of their qubits; constants of 1 are left out."""
        self.common_angle = (self.common_angle + table.angle) % TURN
        bits, values, indices = table.entries(self.layout.registers)
        self._write_table(sum(1 << i for i in indices), sum(1 << b for b in bits), values)

    def _write_table(self, on: int, support: int, values: ComplexArray) -> None:
        """Writes products by one constant per value of the register bits ``support``, at register indices ``on``."""

        def text(factor: complex) -> str:
            return f"times_each<{self.all_indices}u, {support}u>(a, {self.operands.value(reals(values * factor))});"

        line = f"times_each<{on}u, {support}u>(a, {self.operands.table(reals(values))});"
        self._write_scalable(self.num_amps - on.bit_count(), text, line)

    def _write_turn(self, turn: Turn) -> None:
        self.scale *= turn.scale
        bits = ", ".join(str(self._bit(q)) for q in turn.qubits)
        near = ", ".join(str(n).lower() for n in turn.near)
        self._write_line(f"turn4_by<{bits}, {near}>(a, {self.operands.value(turn.values)});")

    def _write_parity(self, item: Item) -> None:
        """Writes products by one of two factors, which the parity of register, thread and tile bits chooses."""
        assert item.data is not None
        factors: ComplexArray = item.data
        even, odd = complex(factors[0]), complex(factors[1])
        inside = mask_of(self.layout.registers)
        bits = sum(1 << b for b, q in enumerate(self.layout.registers) if item.used >> q & 1)
        odd_indices = self._indices_where(lambda r: (r & bits).bit_count() & 1)
        sign = self.outer.sign({1 << q: HALF_TURN for q in members(item.used & ~inside)}) or "0u"
        if even == odd.conjugate() and abs(odd.real) >= LEAST_COS:
            self.scale *= odd.real
            tangent = self.operands.value([odd.imag / odd.real])
            self._write_line(f"turn_by_parity<{odd_indices}u>(a, *({tangent}), {sign});")
            return

        def text(factor: complex) -> str:
            values = self.operands.value(reals(factors * factor))
            return f"times_by_parity<{odd_indices}u>(a, {values}, {sign});"

        self._write_scalable(0, text, text(1.0))

    def _write_pair(self, block: PairBlock) -> None:
        """Writes a block; register bits choose among its matrices at compile time, other bits at run time."""
        inner = [q for q in self.layout.registers if block.selecting >> q & 1]
        outer = members(block.selecting & ~mask_of(inner))
        fragments = block.fragments([*inner, *outer])
        start = self.operands.put(split_tf32(fragments) if self.shape.amp_bytes == 8 else fragments)
        inner_bits = sum(1 << self._bit(q) for q in inner)
        self._write_line(f"pair_block<{inner_bits}u>(a, tile.tables, {start}u, {self.outer.number(outer)});")

    def _bit(self, qubit: int) -> int:
        return self.layout.registers.index(qubit)

    def _write_item(self, item: Item) -> None:
        bits = [self._bit(q) for q in item.qubits]
        mask, value = item.condition
        inside = [(b, value >> q & 1) for b, q in enumerate(self.layout.registers) if mask >> q & 1]
        register_condition = f"{sum(1 << b for b, _ in inside)}u, {sum(v << b for b, v in inside)}u"
        outer_condition = self.outer.condition(mask & ~mask_of(self.layout.registers), value)
        if item.kind == "hadamard":
            self.scale *= SQRT_HALF
            self._write_line(f"hadamard<{bits[0]}>(a);")
        elif item.kind == "rotate":
            cos, sin = item.angle
            near = abs(cos) >= LEAST_COS
            self.scale *= cos if near else sin
            tangent = self.operands.value([sin / cos if near else cos / sin])
            self._write_line(f"rotate{'' if near else '_far'}<{bits[0]}>(a, *({tangent}));")
        elif item.kind == "flip":
            last = f", {outer_condition}" if outer_condition else ""
            self._write_line(f"flip_bit<{bits[0]}, {register_condition}>(a{last});")
        else:
            assert item.data is not None
            matrix = item.data
            if len(bits) == 2 and bits[0] > bits[1]:
                matrix = matrix[np.ix_([0, 2, 1, 3], [0, 2, 1, 3])]
            if is_core(item):
                entries = self.operands.value(reals(np.concatenate([matrix[::3, ::3], matrix[1:3, 1:3]])))
                function = "core4_by"
            else:
                entries = self.operands.value(reals(matrix))
                function = "matrix2_by" if len(bits) == 1 else "matrix4_by"
            targets = ", ".join(str(b) for b in sorted(bits))
            call = f"{function}<{targets}, {register_condition}>(a, {entries});"
            self._write_line(f"if ({outer_condition}) {call}" if outer_condition else call)

    def _write_phases(self, terms: dict[int, int]) -> None:
        """Writes phases, grouped by register part: the register bits of a product.

        Angles of register bits only become constants per register index. Half turns of outer bits flip signs. Other
        angles of outer bits give one factor per register part; where several of these products can become one, a few
        outer bits choose among tables of constants instead.
        """
        inside = mask_of(self.layout.registers)
        groups: dict[int, dict[int, int]] = {}
        for key, angle in terms.items():
            bits = sum(1 << b for b, q in enumerate(self.layout.registers) if key >> q & 1)
            groups.setdefault(bits, {})[key & ~inside] = angle
        constants: dict[int, int] = {}
        for bits, group in groups.items():
            if 0 in group:
                constants[bits] = (constants.get(bits, 0) + group.pop(0)) % TURN
        signs = {bits: self._signs(group) for bits, group in groups.items()}
        chosen = choosing(groups, signs, bool(constants))
        if chosen and len(self.operands.chosen) + self._table_bytes(groups, constants, chosen) <= MAX_TABLE_BYTES:
            folded = {bits: {k: group.pop(k) for k in [*group] if not k & ~chosen} for bits, group in groups.items()}
            self._write_chosen(folded, constants, chosen)
            constants = {}
        for bits, group in sorted(groups.items()):
            on = self._indices_of_parts([bits])
            flips = {k: angle for k, angle in group.items() if k in signs[bits]}
            if flips:
                self._write_line(f"flip_sign<{on}u>(a, {self.outer.sign(flips)});")
            factors = {k: angle for k, angle in group.items() if k not in flips}
            if factors:
                self._write_factor(on, factors)
        if constants and all(bits and angle == HALF_TURN for bits, angle in constants.items()):
            odd = self._indices_where(lambda r: sum(r & p == p for p in constants) & 1)
            self._write_line(f"negate<{odd}u>(a);")
        elif constants:
            self._write_constants(constants)

    def _write_factor(self, on: int, factors: dict[int, int]) -> None:
        """Writes products by the phases of outer bits, at the register indices ``on``."""
        product = self.outer.factor(factors)

        def text(factor: complex) -> str:
            value = self.operands.value(reals(np.array([factor])))
            return f"times<{on}u>(a, cmul({product}, amp_t{{*({value}), *({value} + 1)}}));"

        line = f"times<{on}u>(a, {product});"
        if on == self.all_indices:
            self._write_scalable(0, text, line)
        else:
            self._write_line(line)

    def _signs(self, group: dict[int, int]) -> set[int]:
        """Returns the outer parts that only flip signs, where this costs no product."""
        if all(angle == HALF_TURN for angle in group.values()):
            return set(group)
        return {key for key, angle in group.items() if angle == HALF_TURN and self.outer.crosses(key)}

    def _write_chosen(self, folded: dict[int, dict[int, int]], constants: dict[int, int], chosen: int) -> None:
        """Writes angles by register part and outer bits as tables of constants; the outer bits ``chosen`` choose."""
        parts = [bits for bits, group in folded.items() if group]
        support = 0
        for bits in [*parts, *constants]:
            support |= bits
        inner, outer = subsets(support), subsets(chosen)
        angles = []
        for r in inner:
            constant = sum(angle for bits, angle in constants.items() if r & bits == bits)
            terms = [(k, a) for bits, group in folded.items() if r & bits == bits for k, a in group.items()]
            angles += [constant + sum(a for k, a in terms if s & k == k) for s in outer]
        values = phases_of([angle % TURN for angle in angles])
        choice = self.outer.number(members(chosen))

        def line(on: int, factor: complex) -> str:
            start = self.operands.choose(values * factor)
            return f"times_chosen<{on}u, {support}u, {len(outer)}>(a, tile.chosen, {start}, {choice});"

        on = self._indices_of_parts([*parts, *constants])
        products = self.num_amps - on.bit_count()
        self._write_scalable(products + 1, lambda factor: line(self.all_indices, factor), line(on, 1.0))

    def _table_bytes(self, groups: dict[int, dict[int, int]], constants: dict[int, int], chosen: int) -> int:
        """Returns the most bytes that a table of these angles takes."""
        support = 0
        for bits in [*groups, *constants]:
            support |= bits
        return self.shape.amp_bytes << support.bit_count() + chosen.bit_count()

    def _write_constants(self, constants: dict[int, int]) -> None:
        """Writes angles by register part as one constant per value of the register bits that they depend on.

        The most frequent constant becomes part of the common angle, so that amplitudes with it need no product. If
        one half of the constants is equal or conjugate to the other half, the table holds one half only.
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
            self.common_angle = (self.common_angle + most) % TURN
            others = {r for r, angle in zip(inner, angles, strict=True) if angle != most}
            on = self._indices_where(lambda r: r & support in others)
            if on:
                self._write_table(on, support, phases_of([(angle - most) % TURN for angle in angles]))
            return
        common, conjugate, negative = mirror
        self.common_angle = (self.common_angle + common) % TURN
        table = self.operands.table(reals(phases_of([(angle - common) % TURN for angle in angles[: len(angles) // 2]])))
        self._write_line(f"times_mirrored<{support}u, {str(conjugate).lower()}, {negative}u>(a, {table});")

    def _indices_of_parts(self, parts: list[int]) -> int:
        """Returns the set of register indices that have all bits of some part, as a mask."""
        return self._indices_where(lambda r: any(r & p == p for p in parts))

    def _indices_where(self, condition: Callable[[int], object]) -> int:
        """Returns the set of register indices for which ``condition`` is true, as a mask."""
        return sum(1 << r for r in range(self.num_amps) if condition(r))
