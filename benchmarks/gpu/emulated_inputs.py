"""Inputs for the parts of emulated_session.py: matrices and states drawn on a GPU, kernels compiled on all cores."""

import time

import numpy as np

from qsim_ozaki.bench.blocks.maps import BITS_34
from qsim_ozaki.engines import fill
from qsim_ozaki.engines.cuda.device import nvrtc

PARITY = 16  # from 7 qubits to 12
COUNTS = (PARITY, BITS_34, 15)  # 15: what earlier times were measured with


def haar_on(engine, k, seed=1):
    """A Haar-random matrix, drawn on the device."""
    cupy = engine.launcher.cupy
    generator = cupy.random.default_rng(seed)
    size = 1 << k
    q, r = cupy.linalg.qr(generator.standard_normal((size, size)) + 1j * generator.standard_normal((size, size)))
    phases = cupy.diag(r)
    return (q * (phases / abs(phases))).get()


def random_amps(engine, n, dtype=np.complex128, seed=1):
    """A random state, made on the device."""
    amps = engine.launcher.cupy.empty(1 << n, dtype)
    fill(engine.launcher.cupy, amps, seed)
    return amps


def build_all(engine, wanted):
    """Seconds in which kernels' instances are compiled, on all cores."""
    start = time.perf_counter()
    nvrtc.cache_all(wanted, engine.launcher.architecture)
    return time.perf_counter() - start
