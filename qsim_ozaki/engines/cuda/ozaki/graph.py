"""Captures launches as a CUDA graph: repeated on the same buffers, they cost the host one call.

In: a function that launches on the current stream. Out: the launches, done. It may not depend on a kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

MAX_GRAPHS = 4  # enough for a state, and for copies of it that alternate in memory


@dataclass(frozen=True, slots=True, eq=False)
class _Replay:
    """A captured graph, and the memory that its launches use."""

    graph: Any
    memory: Any


class Replays:
    """Graphs of the same launches on a few sets of buffers.

    The first run on a set of buffers captures nothing: a capture takes as long as several launches, and many plans run
    only once.

    Args:
        cupy: the CuPy module.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._graphs: OrderedDict[Hashable, _Replay | None] = OrderedDict()  # None: the launches ran once
        self._captures = True

    def launch(self, key: Hashable, prepare: Callable[[], tuple[Callable[[], None], Any]]) -> None:
        """Does the launches on the current stream: one by one the first time, by a graph from the second time on.

        Args:
            key: addresses of the buffers, and everything else that the launches depend on.
            prepare: allocates the memory that the launches also need. It returns a function and this memory, which
                lives as long as the graph. The function may only launch kernels and fill memory without waiting: CuPy
                refuses copies to the host in a capture.
        """
        replay = self._graphs.get(key)
        if replay is not None:
            self._graphs.move_to_end(key)
            replay.graph.launch()
            return
        action, memory = prepare()
        graph = self._captured(action) if key in self._graphs and self._captures else None
        self._graphs[key] = None if graph is None else _Replay(graph, memory)
        if len(self._graphs) > MAX_GRAPHS:
            self._graphs.popitem(last=False)
        if graph is None:
            action()
        else:
            graph.launch()

    def _captured(self, action: Callable[[], None]) -> Any | None:
        """Returns the graph of ``action``, or None if the runtime refuses; then nothing is captured later either.

        According to CuPy, ROCm refuses; CUDA refuses for streams of some devices (cudaErrorStreamCaptureUnsupported).
        An error of a launch itself occurs again when the launch is done without a graph.
        """
        stream = self._cupy.cuda.Stream(non_blocking=True)  # a capture cannot be on the default stream
        try:
            with stream:
                stream.begin_capture()
                try:
                    action()
                finally:
                    graph = stream.end_capture()
        except RuntimeError:  # the base of CuPy's errors of the runtime and of the driver
            self._captures = False
            return None
        return graph
