"""Launches captured as a CUDA graph: done again on the same buffers, they cost the host one call.

In: a function that launches on the current stream. Out: the same work done. It knows no kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

MAX_GRAPHS = 4  # a state, and copies that take turns in memory


@dataclass(frozen=True, slots=True, eq=False)
class _Replay:
    """A captured graph, and the memory that its launches use."""

    graph: Any
    memory: Any


class Replays:
    """Graphs of the same launches on a few buffers.

    The first time nothing is captured: that takes as long as several launches, and many plans run once.

    Args:
        cupy: the module.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._graphs: OrderedDict[Hashable, _Replay | None] = OrderedDict()  # None: launched once
        self._captures = True

    def launch(self, key: Hashable, prepare: Callable[[], tuple[Callable[[], None], Any]]) -> None:
        """Does the launches on the current stream: by their graph, by a new one the second time, or one by one.

        Args:
            key: addresses of the buffers, and all else that the launches depend on.
            prepare: allocates the memory they need besides; returns them, nothing but launches and fills that return at
                once (CuPy refuses copies to the host in a capture), and the memory, to live as long as their graph.
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
        """The graph of ``action``, or None, now and from now on, where the runtime refuses.

        CuPy says that it does on ROCm, CUDA for streams of some devices (cudaErrorStreamCaptureUnsupported). An error
        of a launch itself comes again when it is done without a graph.
        """
        stream = self._cupy.cuda.Stream(non_blocking=True)  # a capture cannot be on the default stream
        try:
            with stream:
                stream.begin_capture()
                try:
                    action()
                finally:
                    graph = stream.end_capture()
        except RuntimeError:  # CuPy's errors of the runtime and of the driver are such
            self._captures = False
            return None
        return graph
