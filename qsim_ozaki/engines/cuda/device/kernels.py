"""The table of CUDA kernels: the source file, function, compiled instances and architectures of every kernel.

In: nothing. Out: rows that `nvrtc` compiles and the engine launches. It may not compile, and it needs no GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import qsim_ozaki.kernels

SOURCES = Path(qsim_ozaki.kernels.__file__).parent / "cuda"
ARCHITECTURES = (80, 86, 89, 90, 100, 120)
DOUBLE = {"REAL": "double"}
SINGLE = {"REAL": "float"}
INSTANCES = {"double": DOUBLE, "single": SINGLE}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the kernel table.

    Attributes:
        file: source file in ``kernels/cuda``.
        function: the ``extern "C"`` name in the file.
        instances: macro values, one mapping per compiled variant.
        architectures: compute capabilities times ten for which the kernel compiles.
        suffix: ``"a"`` if the kernel needs the architecture-specific target (sm_90a).
        most_shared: whether a multiprocessor's cache is divided for as much shared memory as possible. Blocks of
            kernels with different divisions never run on a multiprocessor at the same time.
    """

    file: str
    function: str
    instances: tuple[Mapping[str, str], ...] = (DOUBLE, SINGLE)
    architectures: tuple[int, ...] = ARCHITECTURES
    suffix: str = ""
    most_shared: bool = False


def _rows(macros: Sequence[str], values: Iterable[str]) -> tuple[dict[str, str], ...]:
    """Returns one instance per text; ``macros`` are the names of the words of a text."""
    return tuple(dict(zip(macros, text.split(), strict=True)) for text in values)


WHOLE_MACROS = ("REAL", "MODULI", "DEPTH", "WHOLE")  # of ozaki/encode.cu and ozaki/finish.cu
WGMMA_MACROS = ("DEPTH", "CLUSTER", "STAGES", "WHOLE")  # of ozaki/product_held.cu; `Wgmma.instance` chooses values
WGMMA = ("1 1 8 0", "2 2 8 8", "4 2 8 8", "8 2 6 0")
# Of dense/held.cu and dense/streamed.cu, by number of targets; `HeldShape` and `StreamedShape` of dense/tables.py
# explain the values.
HELD_MACROS = ("REAL", "K", "THREADS", "GROUPS", "WARP_ROWS", "STAGES", "PRODUCTS", "BLOCKS")
HELD_SHAPES = (
    "double 4 128 8 1 6 4 2",
    "double 5 128 4 2 5 4 2",
    "double 6 128 4 1 3 3 2",
    "float 4 128 16 1 4 4 2",
    "float 5 128 8 2 4 4 2",
    "float 6 128 4 1 4 3 2",
)
STREAMED_MACROS = ("REAL", "K", "THREADS", "GROUPS", "WARP_GROUPS", "BLOCKS")
STREAMED_SHAPES = (
    "double 7 128 4 4 2",
    "double 8 256 4 4 1",
    "double 9 256 3 3 1",
    "float 7 128 4 4 2",
    "float 8 256 4 4 1",
    "float 9 256 4 4 1",
)
TENSOR_CORES = (90, 100)  # other architectures have no m16n8k16 of doubles, or too little shared memory

KERNELS: dict[str, Kernel] = {
    "tile_exec": Kernel("tile/interpreter.cu", "tile_exec"),
    "prepare": Kernel("state/prepare.cu", "prepare"),
    "marginal": Kernel("state/measure.cu", "marginal"),
    "find_sample": Kernel("state/measure.cu", "find_sample"),
    "collapse": Kernel("state/measure.cu", "collapse"),
    "pauli_values": Kernel("state/pauli.cu", "pauli_values"),
    "stack_run": Kernel("state/stack.cu", "stack_run"),
    "block_gather": Kernel("dense/gather.cu", "block_gather"),
    "block_scatter": Kernel("dense/gather.cu", "block_scatter"),
    "dense_held": Kernel("dense/held.cu", "dense_held", _rows(HELD_MACROS, HELD_SHAPES), TENSOR_CORES),
    "dense_streamed": Kernel(
        "dense/streamed.cu", "dense_streamed", _rows(STREAMED_MACROS, STREAMED_SHAPES), TENSOR_CORES
    ),
    "hadamard_tf32": Kernel("experiments/hadamard_tf32.cu", "hadamard_tf32", ({},)),
    "ozaki_clear": Kernel("ozaki/scale.cu", "ozaki_clear", ({},), most_shared=True),
    "ozaki_scale": Kernel("ozaki/scale.cu", "ozaki_scale", most_shared=True),
    "ozaki_residues": Kernel(
        "ozaki/residues.cu",
        "ozaki_residues",
        (DOUBLE | {"MODULI": "15", "WHOLE": "0"}, SINGLE | {"MODULI": "8", "WHOLE": "8"}),
        most_shared=True,
    ),
    "ozaki_encode": Kernel(
        "ozaki/encode.cu",
        "ozaki_encode",
        _rows(WHOLE_MACROS, ("double 15 1 0", "double 9 2 16", "float 8 4 8", "double 9 8 8")),
        most_shared=True,
    ),
    "ozaki_matrix": Kernel("ozaki/matrix.cu", "ozaki_matrix", ({"MODULI": "9"}, {"MODULI": "17"})),
    "ozaki_product": Kernel(
        "ozaki/product.cu", "ozaki_product", ({"RAW": "0", "WHOLE": "0"}, {"RAW": "0", "WHOLE": "8"}, {"RAW": "1"})
    ),
    "ozaki_wgmma": Kernel(
        "ozaki/product_wgmma.cu",
        "ozaki_wgmma",
        tuple({"CLUSTER": cluster, "STAGES": "4", "WHOLE": whole} for cluster in "12" for whole in "08"),
        (90,),
        "a",
        most_shared=True,
    ),
    "ozaki_held": Kernel(
        "ozaki/product_held.cu",
        "ozaki_held",
        _rows(WGMMA_MACROS, WGMMA),
        (90,),
        "a",
        most_shared=True,
    ),
    "ozaki_naive": Kernel("ozaki/product.cu", "ozaki_naive", ({},)),
    "ozaki_founding": Kernel(
        "experiments/founding.cu",
        "ozaki_founding",
        (
            *({"CRT": "1", "LAYER": layer} for layer in "0123"),
            *({"CRT": "0", "LAYER": layer} for layer in "01"),
        ),
    ),
    "founding_naive": Kernel("experiments/founding.cu", "founding_naive", ({"CRT": "0"},)),
    "ozaki_reconstruct": Kernel(
        "ozaki/reconstruct.cu",
        "ozaki_reconstruct",
        ({"MODULI": "9"}, {"MODULI": "15"}, {"MODULI": "17"}),
        most_shared=True,
    ),
    "ozaki_finish": Kernel(
        "ozaki/finish.cu",
        "ozaki_finish",
        _rows(WHOLE_MACROS, ("double 15 1 16", "double 9 2 16", "double 16 4 8", "double 9 8 8", "float 8 8 8")),
        most_shared=True,
    ),
    "ozaki_commit": Kernel("ozaki/commit.cu", "ozaki_commit", most_shared=True),
    "rate_int8": Kernel("state/calibrate.cu", "rate_int8", ({},)),
}

STRAIGHT = Kernel("tile/straight.cuh", "tile_straight")  # the frame of generated sources: codegen/source.py
FIRST_KERNELS = ("tile_exec", "prepare", "marginal", "find_sample")  # nearly every run needs them; the slowest first
