"""What the parts of cuda_ozaki_session.py share: matrices and states made on a GPU, kernels compiled on all cores."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from qsim_ozaki import jit
from qsim_ozaki.bench_blocks import BITS_34

DOUBLE, SINGLE = {"REAL": "double"}, {"REAL": "float"}
PARITY = 16  # from 7 qubits to 12
COUNTS = (PARITY, BITS_34, 15)  # 15: what earlier times were measured with


def haar_on(engine, k, seed=1):
    """A Haar-random matrix, drawn on the device."""
    cupy = engine.cupy
    generator = cupy.random.default_rng(seed)
    size = 1 << k
    q, r = cupy.linalg.qr(generator.standard_normal((size, size)) + 1j * generator.standard_normal((size, size)))
    phases = cupy.diag(r)
    return (q * (phases / abs(phases))).get()


def random_amps(engine, n, dtype=np.complex128):
    """A random state, made on the device."""
    cupy = engine.cupy
    amps = cupy.empty(1 << n, dtype)
    real = np.float64 if dtype == np.complex128 else np.float32
    part = min(1 << n, 1 << 25)
    for first in range(0, 1 << n, part):
        values = cupy.random.standard_normal(2 * part, dtype=real) * real((2 << n) ** -0.5)
        amps[first : first + part] = values.view(dtype)
    return amps


def build_all(engine, wanted):
    """Seconds in which kernels' instances are compiled, on all cores."""

    def build(job):
        name, instance = job
        if engine.architecture in jit.KERNELS[name].architectures:
            jit.cached_kernel(name, instance, engine.architecture)

    start, once = (
        time.perf_counter(),
        {(name, *sorted(instance.items())): (name, instance) for name, instance in wanted},
    )
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(build, once.values()))
    return time.perf_counter() - start
