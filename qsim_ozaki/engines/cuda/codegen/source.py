"""Writes the CUDA text around the statements of a straight-line tile kernel, in the form of `tile/straight.cuh`.

In: sizes, layouts, numbers, statements. Out: source text. It may not depend on an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qsim_ozaki.engines.cuda.device.shapes import Shape
from qsim_ozaki.engines.cuda.tile.items import members
from qsim_ozaki.engines.cuda.tile.layout import CACHED_LAYOUTS, Layout
from qsim_ozaki.engines.cuda.tile.schedule import TileFrame

OF_THREAD = "static __device__ __forceinline__ unsigned of_thread(unsigned t)"
RUN = "static __device__ __forceinline__ index_t run(Amps& a, const Tile& tile, const Args& args)"


@dataclass(frozen=True, slots=True)
class ScalableLine:
    """A statement that can multiply every amplitude by one more factor.

    Attributes:
        line: index of the statement.
        products: number of amplitudes that only the statement with the factor multiplies; one more if its table would
            then be in shared memory twice.
        text: returns the statement with a factor.
    """

    line: int
    products: int
    text: Callable[[complex], str]


def kernel_source(
    sizes: Mapping[str, int], layouts: Sequence[str], numbers: Mapping[str, object], lines: Sequence[str]
) -> str:
    """Returns the whole translation unit.

    Args:
        sizes: values of the macros, by name without the prefix.
        layouts: structs from `slots_struct`, of the load and of every stage.
        numbers: constants of the body, by type and name.
        lines: statements; one of them defines ``to``, the thread's offset at the store.
    """
    out = [f"#define QSIM_{name} {value}" for name, value in sizes.items()]
    if any(line.startswith("pair_block") for line in lines):
        out.append('#include "tile/pairs.cuh"')
    out += ['#include "tile/straight.cuh"', "", "struct Body {", *(f"    {layout}" for layout in layouts)]
    out += ["    using In = LayoutIn;", "    using First = Layout0;"]
    out += [f"    static constexpr {name} = {value};" for name, value in numbers.items()]
    out += [f"    {RUN} {{"]
    out += [f"        {line}" for line in lines]
    out += ["        return to;", "    }", "};", "QSIM_KERNEL", ""]
    return "\n".join(out)


@lru_cache(maxsize=CACHED_LAYOUTS)
def slots_struct(name: str, layout: Layout, frame: TileFrame, shape: Shape) -> str:
    """Returns the struct of one layout: the slots that its register bits add, and the slot of a thread."""
    masks = ", ".join(f"{mask}u" for mask in layout.register_slots(frame, shape))
    slot = _shifted(layout.lane_slots(frame, shape))
    return f"struct Layout{name} : Layout<{masks}> {{ {OF_THREAD} {{ return {slot}; }} }};"


def _shifted(masks: list[int]) -> str:
    """Returns the expression of the exclusive or of ``masks[i]`` over the bits i of t that are 1.

    It uses shifts; bits that move by the same distance share one shift.
    """
    moves: dict[int, int] = {}
    for i, mask in enumerate(masks):
        for to in members(mask):
            moves[to - i] = moves.get(to - i, 0) | 1 << to
    return " ^ ".join(f"(t {'<<' if by >= 0 else '>>'} {abs(by)} & {bits}u)" for by, bits in sorted(moves.items()))
