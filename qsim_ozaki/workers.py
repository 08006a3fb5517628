"""The rows of a job: here, or in parts on the workers of an executor.

In: units, an engine, perhaps an executor. Out: results in order. It knows nothing of how a row is run.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from qiskit.result.models import ExperimentResult

from qsim_ozaki import engine as engines
from qsim_ozaki.batch import Setting, Unit, run_units
from qsim_ozaki.device import Device
from qsim_ozaki.engine import Engine
from qsim_ozaki.errors import CancelledError
from qsim_ozaki.stack import num_threads

PARTS_PER_WORKER = 4  # a worker that is done early takes more, and a cancelled job loses little
UNKNOWN_WORKERS = 8  # of an executor that does not tell
POLL_SECONDS = 0.05

_stops: dict[str, threading.Event] = {}  # of this process's jobs: threads that work for one end when it is set
_engines: dict[tuple[object, ...], tuple[Engine, threading.Lock]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """How the rows of a job are run.

    Attributes:
        engine: runs what is not stacked.
        device: what to plan for.
        options: checked.
        executor: runs parts elsewhere, None for here.
        progress: called with rows done and all rows.
    """

    engine: Engine
    device: Device
    options: dict[str, Any]
    executor: Executor | None = None
    progress: Callable[[int, int], None] | None = None


def run_all(units: list[Unit], work: Work, seed: int, check: Callable[[], None]) -> list[ExperimentResult]:
    """The results of `stream_all`; tells ``work.progress`` of each."""
    total = sum(unit.num_rows for unit in units)
    results: list[ExperimentResult] = []
    for result in stream_all(units, work, seed, check):
        results.append(result)
        if work.progress is not None:
            work.progress(len(results), total)
    return results


def stream_all(units: list[Unit], work: Work, seed: int, check: Callable[[], None]) -> Iterator[ExperimentResult]:
    """The results of all rows, in order, as they come.

    Args:
        units: of the job.
        work: how to run them.
        seed: of the job.
        check: called now and then; what it raises ends the job.
    """
    if work.executor is not None:
        return _run_elsewhere(units, work.executor, work.options, seed, check)
    threads = num_threads(work.options["threads"])
    return run_units(units, Setting(work.options, seed, work.engine, work.device, threads, check))


def _run_elsewhere(
    units: list[Unit], executor: Executor, options: dict[str, Any], seed: int, check: Callable[[], None]
) -> Iterator[ExperimentResult]:
    """Hands parts to ``executor``; headers stay here, for they may hold what cannot be sent."""
    workers = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None) or UNKNOWN_WORKERS
    rows = sum(unit.num_rows for unit in units)
    share = max(1, -(-rows // (PARTS_PER_WORKER * workers)))
    parts = list(_parts(units, share))
    options = options | {"threads": options["threads"] or 1}
    futures: list[Future[list[ExperimentResult]]] = []
    token, stop = str(uuid.uuid4()), threading.Event()
    _stops[token] = stop
    try:
        for part in parts:
            bare = [replace(unit, prepared=replace(unit.prepared, header={})) for unit in part]
            futures.append(executor.submit(run_part, bare, options, seed, token))
        for part, future in zip(parts, futures, strict=True):
            while not wait([future], timeout=POLL_SECONDS).done:
                check()
            headers = [unit.prepared.header for unit in part for _ in range(unit.num_rows)]
            for result, header in zip(future.result(), headers, strict=True):
                result.header = header
                yield result
    finally:
        stop.set()
        del _stops[token]
        for future in futures:
            future.cancel()


def _parts(units: list[Unit], share: int) -> Iterator[list[Unit]]:
    """The units cut into parts of ``share`` rows."""
    part: list[Unit] = []
    room = share
    for unit in units:
        start = 0
        while start < unit.num_rows:
            piece = unit.part(slice(start, min(start + room, unit.num_rows)))
            part.append(piece)
            start += piece.num_rows
            room -= piece.num_rows
            if not room:
                yield part
                part, room = [], share
    if part:
        yield part


def run_part(units: list[Unit], options: dict[str, Any], seed: int, token: str) -> list[ExperimentResult]:
    """What a worker does: the rows of ``units`` on an engine of its own process.

    Args:
        units: parts of the job's.
        options: checked.
        seed: of the job.
        token: of the job; a thread of the job's own process stops with it.

    Raises:
        CancelledError: the job has ended.
    """
    stop = _stops.get(token, threading.Event())

    def check() -> None:
        if stop.is_set():
            raise CancelledError("the job of this part has ended")

    key = (os.getpid(), options["engine"], options["threads"], options["max_memory_bytes"])
    if key not in _engines:
        made = engines.select(key[1], threads=options["threads"], max_memory_bytes=options["max_memory_bytes"])
        _engines.setdefault(key, (made, threading.Lock()))
    engine, turn = _engines[key]
    with nullcontext() if engine.name == "cpu" else turn:  # host memory is shared by threads, a device's is not
        setting = Setting(options, seed, engine, engine.device(), options["threads"], check)
        return list(run_units(units, setting))
