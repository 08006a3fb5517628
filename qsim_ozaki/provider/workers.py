"""Runs the rows of a job in this process, or in parts on the workers of an executor.

In: units, an engine and perhaps an executor. Out: results in order. It may not know how a row is run.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from qiskit.result.models import ExperimentResult

from qsim_ozaki.engines import SharedEngines
from qsim_ozaki.errors import CancelledError
from qsim_ozaki.provider.rows import JobContext, Unit, run_units

PARTS_PER_WORKER = 4  # a worker that ends early takes another part, and a cancelled job loses little work
UNKNOWN_WORKERS = 8  # number of workers assumed if the executor does not tell it
POLL_SECONDS = 0.05

# by the token of a job of this process: the event that ends the threads that work for the job
_stops: dict[str, threading.Event] = {}
# A job holds its backend's lock while threads work for it, so these threads need engines with other locks.
_engines = SharedEngines()


def run_all(units: list[Unit], context: JobContext) -> list[ExperimentResult]:
    """Returns the results of `stream_all` as a list; calls ``context.progress`` after each of them."""
    total = sum(unit.num_rows for unit in units)
    results: list[ExperimentResult] = []
    for result in stream_all(units, context):
        results.append(result)
        if context.progress is not None:
            context.progress(len(results), total)
    return results


def stream_all(units: list[Unit], context: JobContext) -> Iterator[ExperimentResult]:
    """Yields the results of all rows, in order, as soon as they are there.

    Args:
        units: the units of the job.
        context: engine, options and callbacks of the job.
    """
    if context.executor is not None:
        return _run_elsewhere(units, context, context.executor)
    return run_units(units, context)


def _run_elsewhere(units: list[Unit], context: JobContext, executor: Executor) -> Iterator[ExperimentResult]:
    """Runs the rows on ``executor``; headers stay in this process, for they may hold objects that cannot be pickled."""
    workers = getattr(executor, "_max_workers", None) or getattr(executor, "num_workers", None) or UNKNOWN_WORKERS
    rows = sum(unit.num_rows for unit in units)
    share = max(1, -(-rows // (PARTS_PER_WORKER * workers)))
    parts = list(_parts(units, share))
    options = context.options | {"threads": context.options["threads"] or 1}
    futures: list[Future[list[ExperimentResult]]] = []
    token, stop = str(uuid.uuid4()), threading.Event()
    _stops[token] = stop
    try:
        for part in parts:
            bare = [replace(unit, prepared=replace(unit.prepared, header={})) for unit in part]
            futures.append(executor.submit(run_part, bare, options, context.seed, token))
        for part, future in zip(parts, futures, strict=True):
            while not wait([future], timeout=POLL_SECONDS).done:
                context.check()
            headers = [unit.prepared.header for unit in part for _ in range(unit.num_rows)]
            for result, header in zip(future.result(), headers, strict=True):
                result.shared_header = header
                yield result
    finally:
        stop.set()
        del _stops[token]
        for future in futures:
            future.cancel()


def _parts(units: list[Unit], share: int) -> Iterator[list[Unit]]:
    """Cuts the units into parts of ``share`` rows; the last part may have fewer."""
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
    """Runs the rows of ``units`` on an engine of the worker's process.

    Args:
        units: a part of the job's units.
        options: checked options.
        seed: the seed of the job.
        token: the token of the job; a worker thread in the job's process stops when the job ends.

    Raises:
        CancelledError: the job has ended.
    """
    stop = _stops.get(token, threading.Event())

    def check() -> None:
        if stop.is_set():
            raise CancelledError("the job of this part has ended")

    engine, turn = _engines.shared(options["engine"], options["threads"], options["max_memory_bytes"])
    with nullcontext() if engine.runs_concurrently else turn:
        return list(run_units(units, JobContext(engine, engine.device(), options, seed, check)))
