"""CUDA kernels: their table, their compilation by NVRTC, and the cache of what was compiled.

In: a kernel's name, an instance (macro values) and an architecture. Out: a cubin, or a function CuPy can launch.
It knows nothing of states, steps or gates; compiling needs no GPU, loading does.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import qsim_ozaki.kernels
from qsim_ozaki.errors import EngineError

SOURCES = Path(qsim_ozaki.kernels.__file__).parent / "cuda"
ARCHITECTURES = (80, 86, 89, 90, 100, 120)
DOUBLE = {"REAL": "double"}
SINGLE = {"REAL": "float"}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One row of the kernel table.

    Attributes:
        file: source file in ``kernels/cuda``.
        function: the ``extern "C"`` name in it.
        instances: macro values, one mapping per compiled variant.
        architectures: compute capabilities times ten for which it compiles.
        suffix: ``"a"`` where the kernel needs the architecture-specific target (sm_90a).
        most_shared: whether a multiprocessor's cache is divided for as much shared memory as it has: blocks of kernels
            that want different divisions are never on one at a time.
    """

    file: str
    function: str
    instances: tuple[Mapping[str, str], ...] = (DOUBLE, SINGLE)
    architectures: tuple[int, ...] = ARCHITECTURES
    suffix: str = ""
    most_shared: bool = False


def _rows(macros: Sequence[str], values: Iterable[str]) -> tuple[dict[str, str], ...]:
    """One instance a text, by the names of its words."""
    return tuple(dict(zip(macros, text.split(), strict=True)) for text in values)


WHOLE_MACROS = ("REAL", "MODULI", "DEPTH", "WHOLE")  # of ozaki/encode.cu and ozaki/finish.cu
WGMMA_MACROS = ("DEPTH", "CLUSTER", "STAGES", "WHOLE")  # of ozaki/product_held.cu: cuda_ozaki_pipeline.Wgmma
WGMMA = ("1 1 8 0", "2 2 8 8", "4 2 8 8", "8 2 6 0")
# of dense/held.cu and dense/streamed.cu, by number of targets; cuda_dense's shapes say what each means and why
HELD_MACROS = ("REAL", "K", "THREADS", "GROUPS", "WARP_ROWS", "STAGES", "PRODUCTS", "BLOCKS")
HELD_SHAPES = (
    "double 4 128 8 1 6 4 2",
    "double 5 128 4 2 5 4 2",
    "double 6 128 4 1 3 3 2",
    "float 4 128 16 1 4 4 2",
    "float 5 128 8 2 4 4 2",
    "float 6 128 4 1 4 3 2",
)
STREAMED_MACROS = ("REAL", "K", "THREADS", "GROUPS", "WARP_GROUPS", "BLOCKS")
STREAMED_SHAPES = (
    "double 7 128 4 4 2",
    "double 8 256 4 4 1",
    "double 9 256 3 3 1",
    "float 7 128 4 4 2",
    "float 8 256 4 4 1",
    "float 9 256 4 4 1",
)
TENSOR_CORES = (90, 100)  # others have no m16n8k16 of doubles, or too little shared memory

KERNELS: dict[str, Kernel] = {
    "tile_exec": Kernel("tile/interpreter.cu", "tile_exec"),
    "prepare": Kernel("state/prepare.cu", "prepare"),
    "marginal": Kernel("state/measure.cu", "marginal"),
    "find_sample": Kernel("state/measure.cu", "find_sample"),
    "collapse": Kernel("state/measure.cu", "collapse"),
    "pauli_values": Kernel("state/pauli.cu", "pauli_values"),
    "stack_run": Kernel("state/stack.cu", "stack_run"),
    "block_gather": Kernel("dense/gather.cu", "block_gather"),
    "block_scatter": Kernel("dense/gather.cu", "block_scatter"),
    "dense_held": Kernel("dense/held.cu", "dense_held", _rows(HELD_MACROS, HELD_SHAPES), TENSOR_CORES),
    "dense_streamed": Kernel(
        "dense/streamed.cu", "dense_streamed", _rows(STREAMED_MACROS, STREAMED_SHAPES), TENSOR_CORES
    ),
    "hadamard_tf32": Kernel("experiments/hadamard_tf32.cu", "hadamard_tf32", ({},)),
    "ozaki_clear": Kernel("ozaki/scale.cu", "ozaki_clear", ({},), most_shared=True),
    "ozaki_scale": Kernel("ozaki/scale.cu", "ozaki_scale", most_shared=True),
    "ozaki_residues": Kernel(
        "ozaki/residues.cu",
        "ozaki_residues",
        (DOUBLE | {"MODULI": "15", "WHOLE": "0"}, SINGLE | {"MODULI": "8", "WHOLE": "8"}),
        most_shared=True,
    ),
    "ozaki_encode": Kernel(
        "ozaki/encode.cu",
        "ozaki_encode",
        _rows(WHOLE_MACROS, ("double 15 1 0", "double 9 2 16", "float 8 4 8", "double 9 8 8")),
        most_shared=True,
    ),
    "ozaki_matrix": Kernel("ozaki/matrix.cu", "ozaki_matrix", ({"MODULI": "9"}, {"MODULI": "17"})),
    "ozaki_product": Kernel(
        "ozaki/product.cu", "ozaki_product", ({"RAW": "0", "WHOLE": "0"}, {"RAW": "0", "WHOLE": "8"}, {"RAW": "1"})
    ),
    "ozaki_wgmma": Kernel(
        "ozaki/product_wgmma.cu",
        "ozaki_wgmma",
        tuple({"CLUSTER": cluster, "STAGES": "4", "WHOLE": whole} for cluster in "12" for whole in "08"),
        (90,),
        "a",
        most_shared=True,
    ),
    "ozaki_held": Kernel(
        "ozaki/product_held.cu",
        "ozaki_held",
        _rows(WGMMA_MACROS, WGMMA),
        (90,),
        "a",
        most_shared=True,
    ),
    "ozaki_naive": Kernel("ozaki/product.cu", "ozaki_naive", ({},)),
    "ozaki_founding": Kernel(
        "experiments/founding.cu",
        "ozaki_founding",
        (
            *({"CRT": "1", "LAYER": layer} for layer in "0123"),
            *({"CRT": "0", "LAYER": layer} for layer in "01"),
        ),
    ),
    "founding_naive": Kernel("experiments/founding.cu", "founding_naive", ({"CRT": "0"},)),
    "ozaki_reconstruct": Kernel(
        "ozaki/reconstruct.cu",
        "ozaki_reconstruct",
        ({"MODULI": "9"}, {"MODULI": "15"}, {"MODULI": "17"}),
        most_shared=True,
    ),
    "ozaki_finish": Kernel(
        "ozaki/finish.cu",
        "ozaki_finish",
        _rows(WHOLE_MACROS, ("double 15 1 16", "double 9 2 16", "double 16 4 8", "double 9 8 8", "float 8 8 8")),
        most_shared=True,
    ),
    "ozaki_commit": Kernel("ozaki/commit.cu", "ozaki_commit", most_shared=True),
    "rate_int8": Kernel("state/calibrate.cu", "rate_int8", ({},)),
}

USAGE_LEVELS = (4, 8, 2)  # of registers, tried in turn: 5 is the assembler's own choice
STRAIGHT = Kernel("tile/straight.cuh", "tile_straight")  # the frame of generated sources: cuda_source.py


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of one kernel instance, and what the assembler said about it."""

    code: bytes
    log: str = field(repr=False, default="")


@cache
def sources_hash() -> str:
    """SHA-256 over the paths and contents of every file in ``kernels/cuda``: an edited header is never stale."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*.cu*")):
        digest.update(path.relative_to(SOURCES).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def options(kernel: Kernel, instance: Mapping[str, str], architecture: int) -> tuple[str, ...]:
    """NVRTC options of one instance; they and the sources' hash are the cache key."""
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
    """The cubin of kernel ``name`` for ``architecture``; needs NVRTC, but no GPU.

    Raises:
        EngineError: NVRTC is missing, or the source does not compile; then the message has the numbered source lines.
    """
    kernel = KERNELS[name]
    if architecture not in kernel.architectures:
        known = ", ".join(f"sm_{a}" for a in kernel.architectures)
        raise EngineError(f"kernel {name} has no code for sm_{architecture}; it is built for {known}")
    source = (SOURCES / kernel.file).read_text()
    return nvrtc().compile(source, kernel.file, options(kernel, instance, architecture))


@cache
def load(name: str, instance: tuple[tuple[str, str], ...], device: int) -> Any:
    """The launchable CuPy function of one kernel instance on CUDA device ``device`` (compiled once, cached on disk).

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
    """Machine code of one kernel instance, as `cubin` has it."""
    kernel = KERNELS[name]
    return cubin(name, (SOURCES / kernel.file).read_text(), options(kernel, instance, architecture))


def cache_all(wanted: Iterable[tuple[str, Mapping[str, str]]], architecture: int) -> None:
    """Compiles kernel instances, each once, on all cores; those that are not for ``architecture`` are left out."""
    once = {(name, *sorted(instance.items())): (name, instance) for name, instance in wanted}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [
            pool.submit(cached_kernel, name, instance, architecture)
            for name, instance in once.values()
            if architecture in KERNELS[name].architectures
        ]
    for job in jobs:
        job.result()


def compile_generated(source: str, opts: tuple[str, ...]) -> Cubin:
    """The cubin of a generated source; where the assembler spills, of the setting under which it spills least."""
    best = nvrtc().compile(source, "generated.cu", opts)
    for level in USAGE_LEVELS:
        if not spilled_bytes(best.log):
            break
        with contextlib.suppress(EngineError):  # an assembler that does not know the setting
            other = nvrtc().compile(source, "generated.cu", (*opts, f"--ptxas-options=--register-usage-level={level}"))
            best = min(best, other, key=lambda found: spilled_bytes(found.log))
    return best


def spilled_bytes(log: str) -> int:
    """Bytes of the stack that the assembler's report names, over all kernels."""
    found = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    return sum(int(number) for row in found for number in row)


def cubin(name: str, source: str, opts: tuple[str, ...]) -> bytes:
    """Machine code of ``source``: from the disk's cache, or compiled now and put there. Needs NVRTC, but no GPU."""
    path = _cache_file(name, source, opts)
    if path.is_file():
        return path.read_bytes()
    generated = name == STRAIGHT.function
    compiled = compile_generated(source, opts) if generated else nvrtc().compile(source, name, opts)
    if os.environ.get("QSIM_OZAKI_DEBUG", "0") >= "2":
        print(compiled.log, file=sys.stderr)
    write_atomically(path, compiled.code)
    return compiled.code


def is_cached(name: str, source: str, opts: tuple[str, ...]) -> bool:
    """Whether `cubin` would only read a file."""
    return _cache_file(name, source, opts).is_file()


def function(code: bytes, name: str) -> Any:
    """The launchable CuPy function ``name`` of a cubin, on the current device.

    Its blocks may ask for all the shared memory there is. Were the limit set by what a launch needs, engines that share
    the function would lower it for each other, and what is noted by address would outlive the function.
    """
    import cupy

    module = cupy.cuda.function.Module()
    module.load(code)
    found, driver = module.get_function(name), cupy.cuda.driver
    own_bytes = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found.ptr)
    most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.funcSetAttribute(found.ptr, most, block_shared_bytes(int(cupy.cuda.Device().id)) - own_bytes)
    return found


@cache
def block_shared_bytes(device: int) -> int:
    """Shared memory that one block may have on CUDA device ``device``."""
    import cupy

    return int(cupy.cuda.runtime.getDeviceProperties(device)["sharedMemPerBlockOptin"])


def nearest_architecture(compute_capability: int) -> int:
    """The newest built architecture of the same major version that ``compute_capability`` can run."""
    usable = [a for a in ARCHITECTURES if a // 10 == compute_capability // 10 and a <= compute_capability]
    if not usable:
        raise EngineError(
            f"compute capability {compute_capability / 10} is not supported; the kernels are built for "
            f'{", ".join(str(a / 10) for a in ARCHITECTURES)}. Use engine="cpu".'
        )
    return max(usable)


def _cache_file(name: str, source: str, opts: tuple[str, ...]) -> Path:
    from platformdirs import user_cache_path

    key = hashlib.sha256("\0".join((sources_hash(), source, nvrtc().version, *opts)).encode()).hexdigest()[:32]
    return user_cache_path("qsim-ozaki") / "cubin" / f"{name}-{key}.cubin"


def write_atomically(path: Path, data: bytes) -> None:
    """Best effort: a read-only home costs a recompilation, not a failure."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
    except OSError:
        return


class _Nvrtc:
    """The few NVRTC calls used here, through ctypes: the same path with CuPy 12x, CuPy 13x and no CuPy at all."""

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
    """The NVRTC library, found once.

    Raises:
        EngineError: it is not installed, with the way out.
    """
    for candidate in _nvrtc_candidates():
        try:
            return _Nvrtc(ctypes.CDLL(candidate))
        except OSError:
            continue
    raise EngineError("NVRTC was not found. Install it with: pip install nvidia-cuda-nvrtc (or the CUDA toolkit).")


def _nvrtc_candidates() -> Iterator[str]:
    """Wheels of NVIDIA first (any CUDA version), then the system's library path and CUDA_PATH."""
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        yield from sorted((str(p) for p in Path(root).glob("*/lib/libnvrtc.so.*") if "alt" not in p.name), reverse=True)
        yield from sorted((str(p) for p in Path(root).glob("*/bin/**/nvrtc64_*_0.dll")), reverse=True)
    for version in ("13", "12"):
        yield f"libnvrtc.so.{version}"
        yield str(Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "lib64" / f"libnvrtc.so.{version}")
