"""Fixtures that every test file may use."""

import os
import zlib

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy: else every worker's products spin on as many threads as cores
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from support import ozaki_forms

from qsim_ozaki.engines import ENGINES, select
from qsim_ozaki.engines.cpu.engine import CpuEngine
from qsim_ozaki.engines.cuda.device import kernels as cuda_kernels
from qsim_ozaki.engines.cuda.device import nvrtc as jit
from qsim_ozaki.errors import EngineError

OPTIONAL = {"cuda"}  # engines that need hardware; any other that is not available is a failure
MOST_WORKERS = 16  # by default, for each has a state of its own, and on a GPU a context
ROWS = [pytest.param(name, marks=[pytest.mark.cuda] if name == "cuda" else []) for name in ENGINES]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Workers on all cores where the command line has no ``-n``; pytest without xdist runs as ever."""
    if "PYTEST_XDIST_WORKER" in os.environ or getattr(config.option, "numprocesses", 0) is not None:
        return
    config.option.numprocesses = "auto"
    config.option.maxprocesses = config.option.maxprocesses or MOST_WORKERS


def pytest_configure(config):
    """Before tests on a GPU: its calibration and the table's kernels, once for all workers, from all cores."""
    if config.option.markexpr != "cuda" or hasattr(config, "workerinput"):
        return
    try:
        gpu = select("cuda")
    except EngineError:
        return  # tests are skipped with the reason
    jit.cache_all(kernels(), gpu.launcher.architecture)
    gpu.device()


def kernels():
    """Names and instances that tests on a GPU take."""
    yield from ((name, instance) for name, row in cuda_kernels.KERNELS.items() for instance in row.instances)
    yield from ozaki_forms.kernels()


@pytest.fixture
def nvrtc():
    """For tests that compile kernels: skipped with the reason where there is no NVRTC."""
    try:
        jit.nvrtc()
    except EngineError as error:
        pytest.skip(str(error))


@pytest.fixture(params=ROWS)
def engine(request):
    """Each engine of the table in turn, with 2 threads; one that needs absent hardware is skipped with its reason."""
    try:
        return select(request.param, threads=2)
    except EngineError as error:
        if request.param in OPTIONAL:
            pytest.skip(str(error))
        raise


@pytest.fixture
def one_device(monkeypatch):
    """Engines plan by the same rates, whatever their number of threads: rates choose a plan, a plan fixes the bits."""
    device = select("cpu", threads=2).device()
    monkeypatch.setattr(CpuEngine, "device", lambda engine: device)


@pytest.fixture
def rng(request):
    """A generator seeded by the test's own name: the same numbers in any order and on any worker."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
