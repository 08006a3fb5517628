"""Fixtures that every test file may use."""

import zlib

import numpy as np
import pytest

from qsim_ozaki.engine import ENGINES, select
from qsim_ozaki.errors import EngineError

OPTIONAL = {"cuda"}  # engines that need hardware; any other that is not available is a failure
ROWS = [pytest.param(name, marks=[pytest.mark.cuda] if name == "cuda" else []) for name in ENGINES]


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
def rng(request):
    """A generator seeded by the test's own name: the same numbers in any order and on any worker."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
