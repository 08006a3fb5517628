"""Compiles generated kernels on background threads, while the interpreter runs the passes.

In: generated sources. Out: loaded kernels, once they are ready. It may not decide when compiling is worth its time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.background import Background
from qsim_ozaki.engines.cuda.device.kernels import FIRST_KERNELS, INSTANCES, STRAIGHT

MAX_WAITING = 256  # most sources that wait for the compiler


class Compiler:
    """Compiles on background threads: generated sources, and the kernels of the table that nearly every run needs."""

    def __init__(self, architecture: int) -> None:
        self.architecture = architecture
        self.code: dict[tuple[str, str], bytes | None] = {}  # None: compiling, or refused by the compiler
        self.background = Background()
        self._functions: dict[tuple[str, str], Any] = {}

    def function(self, source: str, precision: str) -> Any | None:
        """Returns the kernel if it is ready or in the cache on disk; else submits its source and returns None."""
        key = (source, precision)
        if key in self._functions:
            return self._functions[key]
        if key not in self.code:
            if nvrtc.is_cached("tile_straight", source, self._options(precision)):
                self.code[key] = nvrtc.cubin("tile_straight", source, self._options(precision))
            elif self.background.num_waiting < MAX_WAITING:
                self.code[key] = None
                self.background.submit(partial(self._compile, key))
        code = self.code.get(key)
        if code is None:
            return None
        self._functions[key] = nvrtc.function(code, STRAIGHT.function)
        return self._functions[key]

    def compile_first(self, precision: str) -> None:
        """Begins to compile the kernels that nearly every run in ``precision`` needs; `nvrtc.load` then waits for one.

        Side by side they take the time of the slowest. A kernel that is in the cache on disk is only read.
        """
        for name in FIRST_KERNELS:
            self.background.submit(partial(self._compile_row, name, precision))

    def finish(self) -> None:
        """Waits until every submitted source is compiled."""
        self.background.finish()

    def _options(self, precision: str) -> tuple[str, ...]:
        return nvrtc.nvrtc_options(STRAIGHT, straight.instance(self.architecture, precision), self.architecture)

    def _compile(self, key: tuple[str, str]) -> None:
        """Compiles a generated source. If it is refused, the interpreter goes on running the pass.

        Tests compile every statement that the writer can write.
        """
        self.code[key] = nvrtc.cubin("tile_straight", key[0], self._options(key[1]))

    def _compile_row(self, name: str, precision: str) -> None:
        """Compiles a kernel of the table; if that fails, loading it will say why."""
        nvrtc.cached_kernel(name, INSTANCES[precision], self.architecture)
