"""Compiles every kernel of the table before it is needed, into the cache on disk.

In: an architecture. Out: machine code in the user's cache folder. It needs NVRTC; it may not need a GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.kernels import KERNELS
from qsim_ozaki.errors import EngineError


@dataclass(frozen=True, slots=True)
class Warmed:
    """The result of `compile_table`.

    Attributes:
        compiled: number of kernels that were compiled now.
        known: number of kernels that were in the cache.
        seconds: time of all of it.
    """

    compiled: int
    known: int
    seconds: float


def architecture_here() -> int:
    """Returns the architecture of this machine's current GPU.

    Raises:
        EngineError: CuPy is not installed, or finds no GPU.
    """
    try:
        import cupy

        capability = int(cupy.cuda.Device().compute_capability)
    except Exception as error:  # CuPy raises errors of many classes where its installation or the driver is broken
        raise EngineError(f"no GPU is usable here: {error}") from error
    return nvrtc.nearest_architecture(capability)


def compile_table(architecture: int, tell: Callable[[int, int], None]) -> Warmed:
    """Compiles the kernels of the table that are not in the cache, on all cores.

    Args:
        architecture: compute capability times ten.
        tell: called with the number of kernels that are ready and the number of all.

    Raises:
        EngineError: there is no NVRTC, a kernel does not compile, or nothing is built for this architecture.
    """
    architecture, start = nvrtc.nearest_architecture(architecture), time.perf_counter()
    rows = [
        (name, instance)
        for name, kernel in KERNELS.items()
        if architecture in kernel.architectures
        for instance in kernel.instances
    ]
    missing = [(name, instance) for name, instance in rows if not nvrtc.is_cached_kernel(name, instance, architecture)]
    known = len(rows) - len(missing)
    tell(known, len(rows))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs: list[Future[bytes]] = [pool.submit(nvrtc.cached_kernel, *row, architecture) for row in missing]
        try:
            for done, job in enumerate(as_completed(jobs), 1):
                job.result()
                tell(known + done, len(rows))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the kernels that compile now still end
            raise
    return Warmed(len(missing), known, time.perf_counter() - start)
