"""Compiles CUDA kernels by NVRTC, caches the machine code on disk, and loads it.

In: a kernel's name, an instance (macro values) and an architecture. Out: a cubin, or a function that CuPy can launch.
It may not depend on states, steps or gates. Compiling needs no GPU; loading needs one.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from qsim_ozaki.cache import write_atomically
from qsim_ozaki.engines.cuda.device.kernels import ARCHITECTURES, KERNELS, SOURCES, STRAIGHT, Kernel
from qsim_ozaki.errors import EngineError

USAGE_LEVELS = (4, 8, 2)  # register usage levels to try, in this order; the assembler's default is 5


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of one kernel instance, and the assembler's report about it."""

    code: bytes
    log: str = field(repr=False, default="")


@cache
def sources_hash() -> str:
    """Returns the SHA-256 of the paths and contents of every file in ``kernels/cuda``: no edited header is stale."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.cu*")):
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def nvrtc_options(kernel: Kernel, instance: Mapping[str, str], architecture: int) -> tuple[str, ...]:
    """Returns the NVRTC options of one instance; the cache key contains them and the sources' hash."""
    macros = tuple(f"-DQSIM_{name}={value}" for name, value in sorted(instance.items()))
    return (
        f"--gpu-architecture=sm_{architecture}{kernel.suffix}",
        "--std=c++17",
        f"--include-path={SOURCES}",
        "--ptxas-options=--verbose",
        "--ptxas-options=--warn-on-spills",
        *macros,
    )


def compile_kernel(name: str, instance: Mapping[str, str], architecture: int) -> Cubin:
    """Compiles kernel ``name`` for ``architecture`` and returns its cubin; this needs NVRTC, but no GPU.

    Raises:
        EngineError: NVRTC is missing, or the source does not compile; then the message has the numbered source lines.
    """
    kernel = KERNELS[name]
    if architecture not in kernel.architectures:
        known = ", ".join(f"sm_{a}" for a in kernel.architectures)
        raise EngineError(f"kernel {name} has no code for sm_{architecture}; it is built for {known}")
    source = (SOURCES / kernel.file).read_text()
    return nvrtc().compile(source, kernel.file, nvrtc_options(kernel, instance, architecture))


@cache
def load(name: str, instance: tuple[tuple[str, str], ...], device: int) -> Any:
    """Returns the CuPy function of one kernel instance on CUDA device ``device``; it is compiled once, cached on disk.

    Args:
        name: a key of `KERNELS`.
        instance: the instance's items, sorted.
        device: CUDA device number; it must be the current device.
    """
    import cupy

    architecture = nearest_architecture(int(cupy.cuda.Device(device).compute_capability))
    loaded = function(cached_kernel(name, dict(instance), architecture), KERNELS[name].function)
    if KERNELS[name].most_shared:
        driver = cupy.cuda.driver
        driver.funcSetAttribute(loaded.ptr, driver.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100)
    return loaded


def cached_kernel(name: str, instance: Mapping[str, str], architecture: int) -> bytes:
    """Returns the machine code of one kernel instance: from the cache on disk, or compiled now."""
    kernel = KERNELS[name]
    return cubin(name, (SOURCES / kernel.file).read_text(), nvrtc_options(kernel, instance, architecture))


def is_cached_kernel(name: str, instance: Mapping[str, str], architecture: int) -> bool:
    """Returns whether the machine code of one kernel instance is in the cache on disk."""
    kernel = KERNELS[name]
    return is_cached(name, (SOURCES / kernel.file).read_text(), nvrtc_options(kernel, instance, architecture))


def cache_all(kernels: Iterable[tuple[str, Mapping[str, str]]], architecture: int) -> None:
    """Compiles kernel instances once, on all cores; kernels that are not built for ``architecture`` are left out."""
    unique = {(name, *sorted(instance.items())): (name, instance) for name, instance in kernels}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(cached_kernel, name, instance, architecture)
            for name, instance in unique.values()
            if architecture in KERNELS[name].architectures
        ]
    for job in jobs:
        job.result()


def compile_generated(source: str, opts: tuple[str, ...]) -> Cubin:
    """Compiles a generated source; if the assembler spills registers, the setting with the fewest spills is used."""
    best = nvrtc().compile(source, "generated.cu", opts)
    for level in USAGE_LEVELS:
        if not spilled_bytes(best.log):
            break
        with contextlib.suppress(EngineError):  # an older assembler may not have the setting
            other = nvrtc().compile(source, "generated.cu", (*opts, f"--ptxas-options=--register-usage-level={level}"))
            best = min(best, other, key=lambda compiled: spilled_bytes(compiled.log))
    return best


def spilled_bytes(log: str) -> int:
    """Returns the bytes of stack and spills in the assembler's report, summed over all kernels."""
    rows = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    return sum(int(number) for row in rows for number in row)


def cubin(name: str, source: str, opts: tuple[str, ...]) -> bytes:
    """Returns the machine code of ``source``: from the cache on disk, or compiled now and stored there.

    This needs NVRTC, but no GPU. Threads that need the same code at once wait for one of them to compile it.
    """
    path = _cache_file(name, source, opts)
    if path.is_file():
        return path.read_bytes()
    with _compiled_lock:
        other = _compiled.get(path)
        if other is None:
            mine = _compiled[path] = Future[bytes | None]()
    if other is not None:
        code = other.result()
        return cubin(name, source, opts) if code is None else code  # it failed there, and so it may here
    code = None
    try:
        code = _compile_to(path, name, source, opts)
    finally:
        if code is None or path.is_file():
            del _compiled[path]
        mine.set_result(code)
    return code


# By the path of the file: code that is being compiled, or that could not be written to the disk.
_compiled: dict[Path, Future[bytes | None]] = {}
_compiled_lock = threading.Lock()


def _compile_to(path: Path, name: str, source: str, opts: tuple[str, ...]) -> bytes:
    """Compiles ``source``, stores the machine code at ``path`` and returns it."""
    generated = name == STRAIGHT.function
    compiled = compile_generated(source, opts) if generated else nvrtc().compile(source, name, opts)
    if os.environ.get("QSIM_OZAKI_DEBUG", "0") >= "2":
        print(compiled.log, file=sys.stderr)
    write_atomically(path, compiled.code)
    return compiled.code


def is_cached(name: str, source: str, opts: tuple[str, ...]) -> bool:
    """Returns whether the machine code is in the cache on disk, so that `cubin` would only read a file."""
    return _cache_file(name, source, opts).is_file()


def function(code: bytes, name: str) -> Any:
    """Returns the CuPy function ``name`` of a cubin, on the current device.

    Its blocks may use all shared memory of the device. With a limit set to the needs of a launch, engines that share
    the function would lower the limit for each other, and notes kept by address would outlive the function.
    """
    import cupy

    module = cupy.cuda.function.Module()
    module.load(code)
    loaded, driver = module.get_function(name), cupy.cuda.driver
    static_bytes = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded.ptr)
    most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.funcSetAttribute(loaded.ptr, most, block_shared_bytes(int(cupy.cuda.Device().id)) - static_bytes)
    return loaded


@cache
def block_shared_bytes(device: int) -> int:
    """Returns the bytes of shared memory that one block may have on CUDA device ``device``."""
    import cupy

    return int(cupy.cuda.runtime.getDeviceProperties(device)["sharedMemPerBlockOptin"])


def nearest_architecture(compute_capability: int) -> int:
    """Returns the newest built architecture of the same major version that ``compute_capability`` can run."""
    usable = [a for a in ARCHITECTURES if a // 10 == compute_capability // 10 and a <= compute_capability]
    if not usable:
        raise EngineError(
            f"compute capability {compute_capability / 10} is not supported; the kernels are built for "
            f'{", ".join(str(a / 10) for a in ARCHITECTURES)}. Use engine="cpu".'
        )
    return max(usable)


def _cache_file(name: str, source: str, opts: tuple[str, ...]) -> Path:
    """Returns the path of the machine code in the cache on disk."""
    from platformdirs import user_cache_path

    key = hashlib.sha256("\0".join((sources_hash(), source, nvrtc().version, *opts)).encode()).hexdigest()[:32]
    return user_cache_path("qsim-ozaki") / "cubin" / f"{name}-{key}.cubin"


class _Nvrtc:
    """The few NVRTC calls that are needed, through ctypes: they work with CuPy 12x, with CuPy 13x and without CuPy."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = f"{major.value}.{minor.value}"

    def compile(self, source: str, file: str, opts: tuple[str, ...]) -> Cubin:
        program = ctypes.c_void_p()
        encoded = [o.encode() for o in opts]
        array = (ctypes.c_char_p * len(encoded))(*encoded)
        create = self._library.nvrtcCreateProgram
        self._check(create(ctypes.byref(program), source.encode(), file.encode(), 0, None, None))
        try:
            status = self._library.nvrtcCompileProgram(program, len(encoded), array)
            log = self._text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status != 0:
                numbered = "\n".join(f"{i:4d} {line}" for i, line in enumerate(source.splitlines(), 1))
                raise EngineError(f"{file} does not compile with {' '.join(opts)}:\n{log}\n{numbered}")
            return Cubin(self._text(program, "CUBIN"), log)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw[: size.value]

    def _check(self, status: int) -> None:
        if status != 0:
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise EngineError(f"NVRTC failed: {self._library.nvrtcGetErrorString(status).decode()}")


@cache
def nvrtc() -> _Nvrtc:
    """Returns the NVRTC library; the search runs once.

    Raises:
        EngineError: NVRTC is not installed; the message has the command that installs it.
    """
    for candidate in _nvrtc_candidates():
        try:
            return _Nvrtc(ctypes.CDLL(candidate))
        except OSError:
            continue
    raise EngineError("NVRTC was not found. Install it with: pip install nvidia-cuda-nvrtc (or the CUDA toolkit).")


def _nvrtc_candidates() -> Iterator[str]:
    """Yields candidates for the library: NVIDIA's wheels (any CUDA version), the system's library path, CUDA_PATH."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        yield from sorted((str(p) for p in Path(root).glob("*/lib/libnvrtc.so.*") if "alt" not in p.name), reverse=True)
        yield from sorted((str(p) for p in Path(root).glob("*/bin/**/nvrtc64_*_0.dll")), reverse=True)
    for version in ("13", "12"):
        yield f"libnvrtc.so.{version}"
        yield str(Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "lib64" / f"libnvrtc.so.{version}")
