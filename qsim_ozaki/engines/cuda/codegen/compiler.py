"""Compiles generated kernels on background threads, while the interpreter runs the passes.

In: generated sources. Out: loaded kernels, once they are ready. It may not decide when compiling is worth its time.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from typing import Any

from qsim_ozaki.engines.cuda.codegen import straight
from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.kernels import STRAIGHT
from qsim_ozaki.errors import EngineError

MAX_WAITING = 256  # most sources that wait for the compiler


class Compiler:
    """Compiles generated sources on a few background threads.

    At its end, a program waits for the compilations that are running, and only for those: NVRTC would crash if the
    process ended during one.
    """

    def __init__(self, architecture: int) -> None:
        self.architecture = architecture
        self.code: dict[tuple[str, str], bytes | None] = {}  # None: compiling, or refused by the compiler
        self._functions: dict[tuple[str, str], Any] = {}
        self._queue: queue.Queue[tuple[str, str] | None] = queue.Queue()  # None: end
        self._threads: list[threading.Thread] = []
        self._ended = False
        COMPILERS.add(self)

    def function(self, source: str, precision: str) -> Any | None:
        """Returns the kernel if it is ready or in the cache on disk; else submits its source and returns None."""
        key = (source, precision)
        if key in self._functions:
            return self._functions[key]
        if key not in self.code:
            if nvrtc.is_cached("tile_straight", source, self._options(precision)):
                self.code[key] = nvrtc.cubin("tile_straight", source, self._options(precision))
            elif self._queue.qsize() < MAX_WAITING:
                self._submit(key)
        code = self.code.get(key)
        if code is None:
            return None
        self._functions[key] = nvrtc.function(code, STRAIGHT.function)
        return self._functions[key]

    def finish(self) -> None:
        """Waits until every submitted source is compiled."""
        self._queue.join()

    def end(self) -> None:
        """Starts no further compilation, and waits for the running ones."""
        self._ended = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _options(self, precision: str) -> tuple[str, ...]:
        return nvrtc.nvrtc_options(STRAIGHT, straight.instance(self.architecture, precision), self.architecture)

    def _submit(self, key: tuple[str, str]) -> None:
        self.code[key] = None
        self._queue.put(key)
        if len(self._threads) < max((os.cpu_count() or 2) // 2, 1) and not self._ended:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def _work(self) -> None:
        while True:
            key = self._queue.get()
            try:
                if key is None:
                    return
                if not self._ended:
                    self.code[key] = nvrtc.cubin("tile_straight", key[0], self._options(key[1]))
            except EngineError:
                continue  # the interpreter runs the pass; tests compile every statement that the writer can write
            finally:
                self._queue.task_done()


COMPILERS: weakref.WeakSet[Compiler] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for compiler in list(COMPILERS):
        compiler.end()
