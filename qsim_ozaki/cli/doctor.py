"""Examines the installation: versions, processor, GPU, and a check of every engine.

In: nothing. Out: `Finding`s, each with a remedy for a failure. It may not change any file but those of calibrations.
"""

from __future__ import annotations

import importlib
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import ParameterVector
from qiskit.quantum_info import SparsePauliOp, Statevector

import qsim_ozaki._native as _native
from qsim_ozaki.engines import ENGINES, available_threads, select
from qsim_ozaki.engines.cpu import available_memory_bytes, processor
from qsim_ozaki.engines.cuda import architecture_here, compile_table
from qsim_ozaki.errors import QsimError
from qsim_ozaki.estimation import expectation_gradient
from qsim_ozaki.ir import MEASURED_HERE, format_bytes
from qsim_ozaki.provider import OzakiBackend

OK, ABSENT, FAILED = "ok", "absent", "failed"
TOLERANCE = {"double": 1e-13, "single": 1e-5}
PACKAGES = {  # optional package: (its use, the command that installs it)
    "qiskit-aer": ("comparisons with Aer", "pip install 'qsim-ozaki[compare]'"),
    "matplotlib": ("plots", "pip install 'qsim-ozaki[plot]'"),
    "pyarrow": ("Parquet output of batches", "pip install 'qsim-ozaki[parquet]'"),
}
MAX_DETAIL = 400  # characters of an error: that of a compiler holds the whole source
DRIVER_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        what: name of the check.
        state: ``"ok"``, ``"absent"`` (the rest works without it) or ``"failed"``.
        detail: version, size, error or reason.
        remedy: advice to the user, empty if there is none.
    """

    what: str
    state: str
    detail: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Yields versions, processor and GPU, then the result of a small check of each engine and path."""
    names = ("qsim-ozaki", "qiskit", "numpy")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    yield Finding("versions", OK, f"Python {platform.python_version()}, {versions}, {sys.platform}")
    for package, (use, remedy) in PACKAGES.items():
        yield _package(package, use, remedy)
    yield Finding("processor", OK, f"{processor()}, {available_threads()} threads, kernels for {_native.isa()}")
    free = available_memory_bytes()
    qubits = (free // 16).bit_length() - 1
    yield Finding("memory", OK, f"{format_bytes(free)} available: {qubits} qubits in double precision")
    yield from _gpu()
    for engine in ENGINES:
        yield from _engine(engine)


def calibrate() -> Iterator[Finding]:
    """Measures the hardware of every engine that runs here, for this and later processes."""
    for name in ENGINES:
        try:
            engine = select(name)
        except QsimError as error:
            yield Finding(f"calibration of {name}", ABSENT, str(error))
            continue
        start = time.perf_counter()
        engine.calibrate()
        seconds = time.perf_counter() - start
        yield Finding(f"calibration of {name}", OK, f"{engine.device_name}, measured in {seconds:.1f} s")


def warm(architectures: Sequence[int], tell: Callable[[int, int], None]) -> Iterator[Finding]:
    """Compiles the GPU kernels that are not in the cache, on all cores; this needs NVRTC, but no GPU.

    Args:
        architectures: compute capabilities times ten; none for that of this machine's GPU.
        tell: called with the number of kernels that are ready and the number of all.
    """
    try:
        chosen = list(architectures) or [architecture_here()]
    except QsimError as error:
        remedy = "For another machine: --architecture, its compute capability times ten, as 90."
        yield Finding("kernels", ABSENT, str(error), remedy)
        return
    for architecture in dict.fromkeys(chosen):
        name = f"kernels for {architecture / 10}"
        try:
            warmed = compile_table(architecture, tell)
        except QsimError as error:
            yield Finding(name, FAILED, " ".join(str(error).split())[:MAX_DETAIL], "The message says why.")
            continue
        detail = f"{warmed.compiled} compiled in {warmed.seconds:.1f} s, {warmed.known} were there"
        yield Finding(name, OK, detail)


def _package(package: str, use: str, remedy: str) -> Finding:
    try:
        return Finding(package, OK, version(package))
    except PackageNotFoundError:
        return Finding(package, ABSENT, f"not installed; for {use}", remedy)


def _gpu() -> Iterator[Finding]:
    try:
        driver = DRIVER_FILE.read_text(encoding="utf-8").splitlines()[0]
        yield Finding("CUDA driver", OK, " ".join(driver.split()))
    except (OSError, IndexError):
        yield Finding("CUDA driver", ABSENT, "no NVIDIA driver is loaded", "With an NVIDIA GPU: install its driver.")
    try:
        cupy: Any = importlib.import_module("cupy")
    except ImportError as error:
        yield Finding("CuPy", ABSENT, str(error), "With an NVIDIA GPU: pip install 'qsim-ozaki[cuda12]' (or cuda13).")
        return
    try:
        runtime, count = cupy.cuda.runtime.runtimeGetVersion(), cupy.cuda.runtime.getDeviceCount()
        for number in range(count):
            properties = cupy.cuda.runtime.getDeviceProperties(number)
            name = properties["name"].decode()
            architecture = f"{properties['major']}.{properties['minor']}"
            memory = format_bytes(properties["totalGlobalMem"])
            yield Finding(f"GPU {number}", OK, f"{name}, compute capability {architecture}, {memory}")
        yield Finding("CuPy", OK, f"{cupy.__version__}, CUDA runtime {runtime}, {count} devices")
    except Exception as error:
        remedy = "Use the CuPy of the driver's CUDA version: extra cuda12 or cuda13."
        yield Finding("CuPy", FAILED, f"{cupy.__version__}: {error}", remedy)


def _engine(engine: str) -> Iterator[Finding]:
    """Checks every path of one engine on a small circuit against Qiskit's Statevector."""
    try:
        source = select(engine).device().source
    except QsimError as error:
        yield Finding(f"engine {engine}", ABSENT, str(error))
        return
    remedy = "" if source == MEASURED_HERE else "For better plans: qsim-ozaki doctor --calibrate"
    yield Finding(f"{engine}: rates", OK, source, remedy)
    checks: dict[str, Callable[[str], float]] = {
        "tiles": lambda precision: _difference(_mixed(), engine, precision),
        "dense block": lambda precision: _difference(_dense(), engine, precision),
        "Hadamards": lambda precision: _difference(_hadamards(), engine, precision),
        "measurements": lambda precision: _misread(engine, precision),
    }
    for precision, tolerance in TOLERANCE.items():
        for name, check in checks.items():
            yield _checked(f"{engine} {precision}: {name}", partial(check, precision), tolerance)
    if engine == "cpu":
        yield _checked("cpu: stacked rows", _stacked_difference, TOLERANCE["double"])
        yield _checked("cpu: gradient", _gradient_difference, TOLERANCE["double"])


def _checked(what: str, check: Callable[[], float], tolerance: float) -> Finding:
    start = time.perf_counter()
    try:
        error = check()
    except Exception as failure:
        return Finding(what, FAILED, f"{type(failure).__name__}: {failure}", "Please report this with the whole table.")
    detail = f"error {error:.1e}, {1e3 * (time.perf_counter() - start):.0f} ms"
    if not error <= tolerance:
        return Finding(what, FAILED, f"{detail}, over {tolerance:.0e}", "Do not use this path; please report it.")
    return Finding(what, OK, detail)


def _mixed() -> QuantumCircuit:
    """Returns a circuit with gates of every structure, controls and phases, wider than a vector register."""
    circuit = QuantumCircuit(7, global_phase=0.3)
    circuit.h(range(7))
    for qubit in range(7):
        circuit.u(0.3 + qubit, 0.2, 1.1 * qubit, qubit)
        circuit.cp(0.4 * qubit, qubit, (qubit + 3) % 7)
        circuit.ccx(qubit, (qubit + 1) % 7, (qubit + 2) % 7)
    circuit.swap(0, 6)
    circuit.rxx(0.7, 1, 5)
    return circuit


def _dense() -> QuantumCircuit:
    circuit = QuantumCircuit(8)
    circuit.h(range(8))
    parts = np.random.default_rng(7).normal(size=(2, 1 << 7, 1 << 7))
    circuit.unitary(np.linalg.qr(parts[0] + 1j * parts[1])[0], [3, 0, 7, 1, 5, 2, 6])
    return circuit


def _hadamards() -> QuantumCircuit:
    circuit = QuantumCircuit(6)
    circuit.x([1, 4])
    circuit.barrier()
    circuit.ccz(0, 1, 4)
    circuit.h(range(6))
    return circuit


def _difference(circuit: QuantumCircuit, engine: str, precision: str) -> float:
    state = OzakiBackend(engine=engine, precision=precision).run(circuit).result().data(0)["statevector"]
    return float(np.abs(np.asarray(state) - np.asarray(Statevector(circuit))).max())


def _misread(engine: str, precision: str) -> float:
    """Returns the share of wrong shots of a circuit with a reset, a branch and one possible outcome."""
    circuit = QuantumCircuit(3, 3)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(1)
    circuit.reset(0)
    circuit.x(2)
    circuit.measure([0, 1, 2], [0, 1, 2])
    backend = OzakiBackend(engine=engine, precision=precision, seed_simulator=1)
    counts = backend.run(circuit, shots=100).result().get_counts()
    return 1 - int(counts.get("100", 0)) / 100


def _ansatz() -> tuple[QuantumCircuit, np.ndarray[Any, np.dtype[np.float64]]]:
    angles = ParameterVector("p", 8)
    circuit = QuantumCircuit(4)
    for index, angle in enumerate(angles):
        circuit.ry(angle, index % 4)
        circuit.crx(2 * angle, index % 4, (index + 1) % 4)
    return circuit, np.linspace(-1, 2, 8)


def _stacked_difference() -> float:
    circuit, values = _ansatz()
    result = OzakiBackend().run(circuit, parameter_binds=np.stack([values, values + 1])).result()
    reference = Statevector(circuit.assign_parameters(values + 1))
    return float(np.abs(np.asarray(result.get_statevector(1)) - np.asarray(reference)).max())


def _gradient_difference() -> float:
    circuit, values = _ansatz()
    step = np.zeros(8)
    step[3] = 1e-3
    observable = SparsePauliOp(["ZZII", "IXXI"])
    up, down, up2, down2 = expectation_gradient(circuit, observable, values + np.outer([1, -1, 2, -2], step))[0]
    difference = (8 * (up - down) - (up2 - down2)) / 12e-3
    # The fourth-order difference is accurate to 1e-11.
    return max(0.0, abs(float(expectation_gradient(circuit, observable, values)[1][3] - difference)) - 1e-11)
