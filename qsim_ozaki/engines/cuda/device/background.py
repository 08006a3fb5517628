"""Runs jobs on background threads; the end of the program waits for those that are running, and only for those.

In: functions, in order. Out: nothing, a job stores its own result. It may not know what the jobs compile.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import weakref
from collections.abc import Callable

from qsim_ozaki.errors import EngineError


class Background:
    """Runs jobs in order on a few threads, half of the machine's cores at most.

    At its end, a program waits for the jobs that are running: NVRTC would crash if the process ended during one.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[Callable[[], None] | None] = queue.Queue()  # None: end
        self._threads: list[threading.Thread] = []
        self._ended = False
        BACKGROUNDS.add(self)

    @property
    def num_waiting(self) -> int:
        """The number of jobs that no thread has begun."""
        return self._queue.qsize()

    def submit(self, job: Callable[[], None]) -> None:
        """Adds ``job`` to the queue. An `EngineError` that it raises is dropped: whoever needs the result will see."""
        self._queue.put(job)
        if len(self._threads) < max((os.cpu_count() or 2) // 2, 1) and not self._ended:
            self._threads.append(threading.Thread(target=self._work, daemon=True))
            self._threads[-1].start()

    def finish(self) -> None:
        """Waits until every submitted job has run."""
        self._queue.join()

    def end(self) -> None:
        """Starts no further job, and waits for the running ones."""
        self._ended = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            try:
                if job is None:
                    return
                if not self._ended:
                    job()
            except EngineError:
                continue
            finally:
                self._queue.task_done()


BACKGROUNDS: weakref.WeakSet[Background] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for background in list(BACKGROUNDS):
        background.end()
