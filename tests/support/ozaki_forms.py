"""How the tests on a GPU run emulated blocks, and the kernels that they need: compiled once, before all of them."""

from collections.abc import Iterator

from qsim_ozaki.engines.cuda.device.kernels import DOUBLE, SINGLE
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, Wgmma, pipeline

COUNTS = (9, 15)  # moduli
SIZES = (7, 8, 9, 10)  # qubits of a matrix as it is padded
SHORT = 1 << 17  # amplitudes of a chunk


def chunked() -> list[Pipeline]:
    """Short chunks: in one stream or three, by every product, encoded and written back by one kernel or by two."""
    streams = [Pipeline(columns, depth, SHORT, count) for columns, depth in ((0, 2), (8, 8)) for count in (1, 3)]
    return [*streams, *(Pipeline(columns, 8, SHORT, wgmma=Wgmma.HELD) for columns in (0, 8))]


def kernels() -> Iterator[tuple[str, dict[str, str]]]:
    """Every kernel and instance."""
    for k in SIZES:
        for real in (DOUBLE, SINGLE):
            yield from pipeline(k, COUNTS[1]).kernels(1 << k - 7, COUNTS[1], real)
    yield from pipeline(7, COUNTS[0]).kernels(1, COUNTS[0], DOUBLE)
    for how in [*chunked(), *(Pipeline(wgmma=form) for form in Wgmma)]:
        for depth in (2, 4):
            yield from how.kernels(depth, COUNTS[0], DOUBLE)
