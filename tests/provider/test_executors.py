"""Rows on the workers of others: threads, processes, a Dask cluster, MPI ranks. All give the same rows."""

import json
import multiprocessing
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from qiskit.circuit.library import efficient_su2
from qiskit.providers import JobStatus

from qsim_ozaki import OzakiBackend

ROWS = 11


def batch():
    """Circuits that are stacked and one that is not, and their parameters."""
    small, wide = (efficient_su2(width, reps=1).measure_all(inplace=False) for width in (3, 14))
    rng = np.random.default_rng(5)
    binds = [rng.uniform(-np.pi, np.pi, (rows, circuit.num_parameters)) for circuit, rows in ((small, 9), (wide, 2))]
    return [small, wide], binds


def memories(executor=None, progress=None):
    """What every shot of the batch gave."""
    circuits, binds = batch()
    backend = OzakiBackend(seed_simulator=4)
    job = backend.run(circuits, parameter_binds=binds, memory=True, shots=100, executor=executor, progress=progress)
    return [job.result().get_memory(row) for row in range(ROWS)]


@contextmanager
def dask_executor():
    """The workers of a cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


POOLS = {
    "threads": lambda: ThreadPoolExecutor(2),
    "fork": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")),
    "spawn": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
    "dask": dask_executor,
}


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("pool", POOLS)
def test_executors_give_the_same_rows(pool):
    seen = []
    with POOLS[pool]() as executor:
        there = memories(executor, lambda done, rows: seen.append((done, rows)))
    assert there == memories()
    assert seen == [(done, ROWS) for done in range(1, ROWS + 1)]


def test_mpi_ranks_give_the_same_rows(tmp_path):
    pytest.importorskip("mpi4py")
    start = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
    if start is None:
        pytest.skip("needs mpiexec")
    script = tmp_path / "rows.py"
    script.write_text(
        "import json, sys\n"
        f"sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}\n"
        "from mpi4py.futures import MPIPoolExecutor\n"
        "from test_executors import memories\n"
        "if __name__ == '__main__':\n"
        "    with MPIPoolExecutor() as executor:\n"
        "        print(json.dumps([executor.num_workers, memories(executor)]))\n"
    )
    command = [start, "-n", "3", sys.executable, "-P", "-W", "ignore", "-m", "mpi4py.futures", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    workers, there = json.loads(done.stdout)
    assert workers == 2
    assert there == memories()


def test_what_cannot_be_sent_stays_here():
    circuits, binds = batch()
    circuits[0].metadata = {"cannot be sent": threading.Lock()}
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        result = OzakiBackend().run(circuits[0], parameter_binds=binds[0], executor=executor).result()
    copied = result.results[3].header["metadata"]
    assert copied["cannot be sent"] is circuits[0].metadata["cannot be sent"]


def fail(*_):
    raise RuntimeError("a worker's own trouble")


def test_a_failing_part_fails_the_job(monkeypatch):
    circuits, binds = batch()
    monkeypatch.setattr("qsim_ozaki.provider.workers.run_part", fail)
    with ThreadPoolExecutor(2) as executor:
        job = OzakiBackend().run(circuits, parameter_binds=binds, executor=executor)
        with pytest.raises(RuntimeError, match="own trouble"):
            job.result()
    assert job.status() is JobStatus.ERROR
