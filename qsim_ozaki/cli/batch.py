"""Runs sweeps: circuits at rows of parameters; results are written one by one, and a broken sweep can be resumed.

In: circuits, a grid and the path of a file. Out: one JSON line per row in the file, or a Parquet file at the end. It
may not write to the terminal.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import io
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from qiskit import QuantumCircuit, qpy
from qiskit.result.models import ExperimentResult

from qsim_ozaki.errors import QsimError
from qsim_ozaki.provider import JobContext, OzakiBackend, Unit, counts_of, make_units, stream_all, to_jsonable
from qsim_ozaki.runtime import fresh_seed

PARENT_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Circuits and the rows of parameters at which they run.

    Attributes:
        circuits: circuits that measure and may have free parameters.
        rows: for each circuit a mapping from names to lists of values; None for a circuit without parameters.
    """

    circuits: tuple[QuantumCircuit, ...]
    rows: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _SweepKey:
    """The digest and the seed by which stored rows are told from those of another sweep."""

    digest: str
    seed: int | None


def make_sweep(circuits: Sequence[QuantumCircuit], rows: Sequence[dict[str, float]]) -> Sweep:
    """Makes the sweep of every circuit at every row; a circuit takes the values of its own parameters.

    Args:
        circuits: circuits with the same parameters, or with none.
        rows: mappings from names to values.

    Raises:
        QsimError: no circuit has a parameter of some name, or a circuit has parameters and there are no rows.
    """
    known = {parameter.name for circuit in circuits for parameter in circuit.parameters}
    for row in rows:
        if unknown := row.keys() - known:
            raise QsimError(
                f"no circuit has a parameter {min(unknown)!r}. They have: {', '.join(sorted(known)) or 'none'}."
            )
    binds: list[Any] = []
    for circuit in circuits:
        names = [parameter.name for parameter in circuit.parameters]
        if names and not rows:
            raise QsimError(
                f"circuit {circuit.name!r} has parameters {', '.join(names)}. Give --grid {names[0]}=0:3.14:11, or a "
                f"file of rows with --parameters."
            )
        for row in rows if names else ():
            if missing := [name for name in names if name not in row]:
                raise QsimError(f"circuit {circuit.name!r}: a row has no value for {', '.join(missing)}.")
        binds.append({name: [row[name] for row in rows] for name in names} if names else None)
    return Sweep(tuple(circuits), tuple(binds))


def grid_rows(axes: Sequence[str]) -> list[dict[str, float]]:
    """Returns the points of a grid; the last axis changes fastest.

    Args:
        axes: the axes, written ``name=first:last:count`` or ``name=value,value,...``.

    Raises:
        QsimError: an axis is written in another way.
    """
    columns: dict[str, list[float]] = {}
    for axis in axes:
        name, equals, text = axis.partition("=")
        try:
            if text.count(":") == 2:
                first, last, count = text.split(":")
                columns[name] = np.linspace(float(first), float(last), int(count)).tolist()
            else:
                columns[name] = [float(value) for value in text.split(",")]
        except ValueError:
            equals = ""
        if not equals or not name or not columns.get(name):
            raise QsimError(f"--grid {axis} is no axis. Write name=first:last:count or name=value,value.")
    return [dict(zip(columns, point, strict=True)) for point in product(*columns.values())] if columns else []


def read_rows(path: Path) -> list[dict[str, float]]:
    """Reads the rows of a CSV file with a header of names, or of a JSON file with a list of objects.

    Raises:
        QsimError: the file cannot be read as either.
    """
    try:
        text = path.read_text(encoding="utf-8")
        listed = json.loads(text) if path.suffix == ".json" else list(csv.DictReader(io.StringIO(text)))
        return [{str(name): float(value) for name, value in row.items()} for row in listed]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise QsimError(f"{path}: {error}. Give CSV with a line of names, or JSON: a list of objects.") from error


def run_sweep(
    sweep: Sweep,
    path: Path,
    backend: OzakiBackend,
    processes: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Runs the rows that are not in the file yet and appends each result; returns the number of rows that it ran.

    Args:
        sweep: the circuits and rows to run.
        path: file of JSON lines. If its name ends in ``.parquet``, the lines are in a file beside it until all rows are
            done; the Parquet file, once it exists, has the whole sweep.
        backend: runs the circuits, with its options; if it has no seed, the seed of the rows in the file is used.
        processes: number of worker processes, 0 for none.
        progress: called with the number of finished rows and the number of all rows.

    Raises:
        QsimError: the file holds another sweep, is no file of a sweep, or another process writes it.
    """
    options = backend.merged_options({})
    digest = _digest(sweep, options)
    parquet = path if path.suffix == ".parquet" else None
    if parquet is not None:
        _require_pyarrow()
        path = path.with_name(f"{path.name}.jsonl")
        if parquet.exists():  # it is written only after the last row
            _check_parquet(parquet, digest, options["seed_simulator"])
            path.unlink(missing_ok=True)
            return 0
    units = make_units(sweep.circuits, list(sweep.rows), options)
    with path.open("a+b") as file:
        _lock(file, path)
        done, seed = _read_done(file, path, digest, options["seed_simulator"])
        todo = [piece for unit in units for piece in _missing(unit, done)]
        total = sum(unit.num_rows for unit in units)
        count = len(done)
        for index, result in _results(todo, backend, options | {"seed_simulator": seed}, processes):
            file.write(_line(index, result, digest) + b"\n")
            file.flush()
            count += 1
            if progress is not None:
                progress(count, total)
        os.fsync(file.fileno())
        if parquet is not None:
            _write_parquet(path, parquet)
    return sum(unit.num_rows for unit in todo)


def _results(
    units: list[Unit], backend: OzakiBackend, options: dict[str, Any], processes: int
) -> Iterator[tuple[int, ExperimentResult]]:
    engine = backend.engine(options)[0]
    executor = _pool(processes) if processes and units else None
    with executor if executor is not None else nullcontext():
        seed = options["seed_simulator"]
        context = JobContext(engine, engine.device(), options, seed, lambda: None, executor)
        indices = [unit.first + row for unit in units for row in range(unit.num_rows)]
        yield from zip(indices, stream_all(units, context), strict=True)


def _pool(processes: int) -> Executor:
    """Makes a pool of processes that end when this process ends, even if it is killed."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, context, initializer=end_with_parent, initargs=(os.getpid(),))


def end_with_parent(parent: int) -> None:
    """Ends this worker process soon after process ``parent`` has ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def _missing(unit: Unit, done: set[int]) -> Iterator[Unit]:
    """Yields the parts of ``unit`` whose rows are not in ``done``."""
    start = None
    for row in range(unit.num_rows + 1):
        is_missing = row < unit.num_rows and unit.first + row not in done
        if is_missing and start is None:
            start = row
        elif not is_missing and start is not None:
            yield unit.part(slice(start, row))
            start = None


def _line(index: int, result: ExperimentResult, digest: str) -> bytes:
    record = {
        "index": index,
        "circuit": result.header["name"],
        "parameters": result.metadata.get("parameters", {}),
        "shots": result.shots,
        "seed": result.seed,
        "counts": dict(counts_of(result)),
        "seconds": result.metadata["measured_seconds"],
        "sweep": digest,
    }
    return json.dumps(to_jsonable(record)).encode()


def _digest(sweep: Sweep, options: dict[str, Any]) -> str:
    """Returns a digest of the circuits, rows, shots and precision: it tells one sweep from another."""
    buffer = io.BytesIO()
    for circuit, rows in zip(sweep.circuits, sweep.rows, strict=True):
        qpy.dump(circuit, buffer)
        buffer.write(json.dumps(rows).encode())
    buffer.write(json.dumps([options["shots"], options["precision"]]).encode())
    return hashlib.sha256(buffer.getvalue()).hexdigest()[:16]


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise QsimError(f"{path}: another process writes it. Wait for it, or give another --output.") from error


def _read_done(file: BinaryIO, path: Path, digest: str, seed: int | None) -> tuple[set[int], int]:
    """Returns the indices of the rows in ``file`` and the sweep's seed; cuts off an unfinished last line."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)
    done: set[int] = set()
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            record = json.loads(line)
            index, row_digest, row_seed = int(record["index"]), record["sweep"], int(record["seed"])
        except (ValueError, KeyError, TypeError) as error:
            raise QsimError(f"{path}, line {number}: not a row of a sweep. Give another --output.") from error
        _check_same(path, _SweepKey(row_digest, row_seed), _SweepKey(digest, seed))
        seed = row_seed
        done.add(index)
    return done, fresh_seed() if seed is None else seed


def _check_same(path: Path, stored: _SweepKey, current: _SweepKey) -> None:
    """Refuses stored rows of another sweep or seed than the current one; a current seed of None allows any seed."""
    same_sweep = stored.digest == current.digest
    if same_sweep and current.seed in (None, stored.seed):
        return
    other = f"with seed {stored.seed}" if same_sweep else "of other circuits, parameters, shots or precision"
    raise QsimError(f"{path} holds rows {other}. Give another --output, or remove it.")


def _check_parquet(path: Path, digest: str, seed: int | None) -> None:
    """Refuses a Parquet file that does not hold this sweep."""
    import pyarrow
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(path, columns=["sweep", "seed"]).slice(0, 1).to_pylist()
        stored = _SweepKey(rows[0]["sweep"], rows[0]["seed"])
    except (OSError, pyarrow.ArrowException, LookupError) as error:
        raise QsimError(f"{path}: not the rows of a sweep. Give another --output, or remove it.") from error
    _check_same(path, stored, _SweepKey(digest, seed))


def _require_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise QsimError(
            "Parquet needs pyarrow: pip install pyarrow. Or give an --output that ends in .jsonl."
        ) from None


def _write_parquet(lines: Path, path: Path) -> None:
    """Writes all rows to a Parquet file in the order of their indices; counts and parameters become maps."""
    import pyarrow
    import pyarrow.parquet

    records = sorted((json.loads(line) for line in lines.read_text().splitlines()), key=lambda record: record["index"])
    for record in records:
        for field in ("counts", "parameters"):
            record[field] = list(record[field].items())
    integers, reals = pyarrow.int64(), pyarrow.float64()
    schema = pyarrow.schema(
        {"index": integers, "circuit": pyarrow.string(), "parameters": pyarrow.map_(pyarrow.string(), reals)}
        | {"shots": integers, "seed": integers, "counts": pyarrow.map_(pyarrow.string(), integers)}
        | {"seconds": reals, "sweep": pyarrow.string()}
    )
    unfinished = path.with_name(f"{path.name}.part")  # so that a break leaves the file whole or not there at all
    with unfinished.open("wb") as file:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records, schema), file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    lines.unlink(missing_ok=True)
