"""CUDA kernels on the host: a shared library per instance, over `cuda_on_host.hpp`, launched as the engine does."""

import atexit
import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from weakref import WeakValueDictionary

import numpy as np
from support.straight_host import REPLACED, compiler

from qsim_ozaki.engines.cuda.device import kernels

HERE = Path(__file__).parent
FOLDER = Path(tempfile.mkdtemp(prefix="qsim-ozaki-host-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
# dynamic shared memory is one array; static arrays are as good as shared, since threads take turns
SHARED = (
    (r"extern __shared__ __align__\(\d+\) ((?:\w+ )+)(\w+)\[\];", r"\1* const \2 = (\1*)::shared;"),
    (r"__shared__ (__align__\(\d+\))?", r"\1 static "),
    (r"__device__ __forceinline__ void (copy_async|wait_async)\([^}]*\}", ""),
)


class Capture:
    """What streams do: at once, or noted while one of them captures."""

    noted = None  # a list while a capture goes on
    refuses = False

    @classmethod
    def waits(cls):
        """What CuPy and CUDA refuse while a stream captures."""
        if cls.noted is not None:
            raise RuntimeError("the current stream is capturing, so D2H transfers are disallowed")

    @classmethod
    def do(cls, action):
        if cls.noted is None:
            action()
        else:
            cls.noted.append(action)


class Array(np.ndarray):
    """A NumPy array with the names by which CuPy's come to the host and are zeroed."""

    def get(self):
        Capture.waits()
        return np.array(self)

    @property
    def data(self):
        whole = self.view(np.uint8)
        return SimpleNamespace(
            ptr=self.ctypes.data,
            memset_async=lambda value, size: Capture.do(lambda: whole[:size].fill(value)),
            copy_from_device_async=lambda source, size: Capture.do(
                lambda: ctypes.memmove(whole.ctypes.data, source.ptr, size)
            ),
            copy_to_host_async=lambda address, size: (
                Capture.waits() or ctypes.memmove(address, whole.ctypes.data, size)
            ),
        )


def _translated(text):
    for pattern, replacement in (*SHARED, *REPLACED):
        text = re.sub(pattern, replacement, text)
    return text


def _prepare():
    for source in kernels.SOURCES.rglob("*.cu*"):
        target = FOLDER / source.relative_to(kernels.SOURCES)
        target.parent.mkdir(exist_ok=True)
        target.write_text(_translated(source.read_text()))
    shutil.copytree(HERE / "on_host", FOLDER, dirs_exist_ok=True)  # these stand in for files of the same path


def _types(source, function):
    """The types of a kernel's arguments, from its signature."""
    found = re.search(rf"\b{function}\(([^{{]*)\)\s*\{{", source)
    words = re.sub(r"__restrict__|__grid_constant__", "", found.group(1))
    return [re.match(r"\s*(.*?)\s*\w+\s*$", parameter, re.DOTALL).group(1) for parameter in words.split(",")]


LIBRARIES = {}


def library(name, instance):
    """The compiled kernel: ``run(blocks, threads, pointers to arguments)``."""
    key = (name, *sorted(instance.items()))
    if key not in LIBRARIES:
        if not LIBRARIES:
            _prepare()
        kernel = kernels.KERNELS[name]
        types = _types((kernels.SOURCES / kernel.file).read_text(), kernel.function)
        call = ", ".join(f"*({type_}*)args[{i}]" for i, type_ in enumerate(types))
        stem = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
        # the stand-ins of the instructions take threads' copies, so they come before what uses them
        (FOLDER / f"{stem}.cpp").write_text(
            f'#include "cuda_on_host.hpp"\n#include "common/ptx.cuh"\n#include "{kernel.file}"\n'
            'extern "C" void run(int blocks, int threads, void** args) {\n'
            f"    launch(blocks, threads, [&] {{ {kernel.function}({call}); }});\n}}\n"
        )
        macros = [f"-DQSIM_{macro}={value}" for macro, value in instance.items()]
        flags = [
            "-std=c++20",
            "-O1",
            "-w",
            "-shared",
            "-fPIC",
            "-mfma",
            "-ffp-contract=off",
            f"-I{HERE}",
            f"-I{FOLDER}",
            *macros,
        ]
        target = FOLDER / f"{stem}.so"
        subprocess.run([compiler(), *flags, str(FOLDER / f"{stem}.cpp"), "-o", str(target)], check=True)
        LIBRARIES[key] = ctypes.CDLL(str(target))
    return LIBRARIES[key]


def launch(name, instance, blocks, threads, args, shared_bytes=0):
    """Runs one kernel; arrays by address, records and scalars by value."""
    held, pointers = [], []
    for arg in args:
        is_record = isinstance(arg, np.ndarray) and (arg.dtype.names is not None or arg.dtype.kind == "V")
        value = arg if is_record else ctypes.c_void_p(arg.ctypes.data) if isinstance(arg, np.ndarray) else np.array(arg)
        held.append(value)
        pointers.append(ctypes.addressof(value) if isinstance(value, ctypes.c_void_p) else value.ctypes.data)
    library(name, instance).run(blocks, threads, (ctypes.c_void_p * len(pointers))(*pointers))


class _Stream:
    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def wait_event(self, event):
        pass

    def record(self, stream=None):
        pass

    def synchronize(self):
        Capture.waits()

    def begin_capture(self):
        if Capture.refuses:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")
        Capture.noted = []

    def end_capture(self):
        noted, Capture.noted = Capture.noted, None
        return SimpleNamespace(launch=lambda: [action() for action in noted])


class _Cupy:
    """The part of CuPy that emulated blocks and library products use, by NumPy."""

    matmul = staticmethod(np.matmul)

    cuda = SimpleNamespace(
        Stream=_Stream, Event=_Stream, get_current_stream=_Stream, alloc_pinned_memory=lambda size: bytearray(size)
    )

    @staticmethod
    def asarray(values, dtype=None):
        return np.ascontiguousarray(values, dtype).view(Array)

    @staticmethod
    def empty(shape, dtype):
        out = np.empty(shape, dtype).view(Array)
        out.view(np.uint8).fill(0xA5)  # memory that nobody has written
        return out

    @staticmethod
    def zeros(shape, dtype):
        return np.zeros(shape, dtype).view(Array)


class Launcher:
    """The part of a GPU's launcher that emulated blocks and library products use."""

    cupy = _Cupy
    device_name = "the host"

    def __init__(self, architecture=80, num_processors=3):
        self.architecture, self.num_processors = architecture, num_processors
        self.launched = []
        self.workspaces = WeakValueDictionary()

    def free_bytes(self):
        return 1 << 40

    def launch(self, name, instance, blocks, threads, args, shared_bytes=0):
        self.launched.append(name)
        Capture.do(lambda: launch(name, instance, blocks, threads, args, shared_bytes))
