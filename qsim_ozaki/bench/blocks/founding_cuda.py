"""The founding design on a GPU: a form's list of products as `ozaki_founding` takes it, and its launches.

In: int8 planes of two matrices and a `founding.Form`. Out: their product, or one layer of it, as a GPU array.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.bench.blocks import founding
from qsim_ozaki.bench.blocks.founding import Form, Planes
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.ozaki.block import THREADS
from qsim_ozaki.engines.cuda.ozaki.tables import SCHEME, fill_modulus

TILE_ROWS, TILE_COLUMNS, STEP = 128, 64, 32  # kRows, kColumns, kStep
MAX_PRODUCTS = 64
LAYERS: dict[str, tuple[str, type[np.generic]]] = {
    "product": ("0", np.float64),
    "sums": ("1", np.int32),
    "residues": ("2", np.int8),
    "integers": ("3", np.int64),
}
FOUNDING = np.dtype(
    [
        ("scale", "f8", MAX_PRODUCTS),
        ("weights", "i8", 17),
        ("unit", "f8"),
        ("num_products", "i4"),
        ("rows", "i4"),
        ("columns", "i4"),
        ("depth", "i4"),
        ("left", "u1", MAX_PRODUCTS),
        ("right", "u1", MAX_PRODUCTS),
        ("modulus", "u1", MAX_PRODUCTS),
    ],
    align=True,
)


def form_records(form: Form, rows: int, columns: int, depth: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The `Founding` and the `Scheme` of a product of padded planes."""
    record, scheme = np.zeros(1, FOUNDING), np.zeros(1, SCHEME)
    count = len(form.products)
    record["num_products"], record["rows"], record["columns"], record["depth"] = count, rows, columns, depth
    for name in ("scale", "left", "right"):
        record[name][0, :count] = [getattr(product, name) for product in form.products]
    if form.moduli:
        record["modulus"][0, :count] = [product.modulus for product in form.products]
        record["weights"][0, : len(form.moduli)], record["unit"] = form.weights, form.unit
        for row, modulus in zip(scheme["moduli"][0], form.moduli, strict=False):
            fill_modulus(row, modulus, 0)
    return record, scheme


def padded(planes: Planes, rows: int) -> Planes:
    """Planes with zeros up to whole tiles of ``rows`` rows and whole steps of K."""
    _, height, depth = planes.shape
    return np.pad(planes, ((0, 0), (0, -height % rows), (0, -depth % STEP)))


def multiply(
    launcher: Launcher, left: Planes, right: Planes, form: Form, layer: str = "product", number: int = 0
) -> NDArray[Any]:
    """``founding.multiply`` on a GPU, on the host's planes; the result comes back.

    Args:
        launcher: of the GPU.
        left: planes of the left matrix, ``(planes, rows, depth)``.
        right: of the right one transposed, ``(planes, columns, depth)``.
        form: names the products.
        layer: a key of `LAYERS`.
        number: of the product whose layer is returned.
    """
    founding.check_depth(form, left.shape[2])
    rows, columns = left.shape[1], right.shape[1]
    left, right = padded(left, TILE_ROWS), padded(right, TILE_COLUMNS)
    cupy = launcher.cupy
    out = cupy.zeros((left.shape[1], right.shape[1]), LAYERS[layer][1])
    launch(launcher, cupy.asarray(left), cupy.asarray(right), out, form, layer, number)
    result: NDArray[Any] = out.get()[:rows, :columns]
    return result


def launch(
    launcher: Launcher, left: Any, right: Any, out: Any, form: Form, layer: str = "product", number: int = 0
) -> None:
    """One launch on planes that lie on the GPU, padded to whole tiles; ``out`` is ``(rows, columns)``."""
    record, scheme = form_records(form, left.shape[1], right.shape[1], left.shape[2])
    instance = {"CRT": str(int(bool(form.moduli))), "LAYER": LAYERS[layer][0]}
    blocks = left.shape[1] // TILE_ROWS * (right.shape[1] // TILE_COLUMNS)
    args = (left, right, out, np.int32(number), record, scheme)
    launcher.launch("ozaki_founding", instance, blocks, THREADS, args)


def naive_sums(launcher: Launcher, left: Planes, right: Planes) -> NDArray[np.int32]:
    """Raw sums ``(rows, columns)`` of one plane each, one thread an entry."""
    rows, columns, depth = len(left), len(right), left.shape[1]
    cupy = launcher.cupy
    out = cupy.zeros((rows, columns), np.int32)
    args = (
        cupy.asarray(left),
        cupy.asarray(right),
        out,
        np.int32(columns),
        np.int32(depth),
        np.uint64(rows * columns),
    )
    launcher.launch("founding_naive", {"CRT": "0"}, -(-rows * columns // THREADS), THREADS, args)
    result: NDArray[np.int32] = out.get()
    return result
