"""Launches kernels on one GPU, and reports the properties and the free memory of this GPU.

In: names and instances of the kernel table, arguments. Out: launches on CuPy's current stream. It may not depend on a
state, a step or an operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakValueDictionary

from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.memory import shared_memory

MAX_GRID = (1 << 31) - 1  # blocks in x


class Launcher:
    """Launches kernels on the current GPU, on CuPy's current stream of the calling thread.

    Attributes:
        cupy: the CuPy module.
        device_id: CUDA device number.
        device_name: the name that the driver reports.
        num_processors: number of streaming multiprocessors.
        shared_bytes: shared memory that one block may have.
        architecture: compute capability times ten of the newest built architecture that the GPU runs.
        max_memory_bytes: limit for one state; 0 for the free memory of the GPU.
        memory: lends memory to large states; the launchers of a GPU share it.
        workspaces: scratch arrays of emulated blocks by size; an array lives for as long as a block refers to it.
    """

    def __init__(self, cupy: Any, max_memory_bytes: int = 0) -> None:
        self.cupy = cupy
        self.max_memory_bytes = max_memory_bytes
        self.device_id = int(cupy.cuda.Device().id)
        properties = cupy.cuda.runtime.getDeviceProperties(self.device_id)
        self.device_name: str = properties["name"].decode()
        self.num_processors = int(properties["multiProcessorCount"])
        self.shared_bytes = nvrtc.block_shared_bytes(self.device_id)
        self.architecture = nvrtc.nearest_architecture(int(cupy.cuda.Device().compute_capability))
        self.memory = shared_memory(cupy, self.device_id)
        self.workspaces: WeakValueDictionary[tuple[int, ...], Any] = WeakValueDictionary()

    def available_bytes(self) -> int:
        """Returns the bytes that a new state may take, with the memory that is only kept for speed."""
        pool = self.cupy.get_default_memory_pool()
        free: int = self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes() + self.memory.kept_bytes
        return min(free, self.max_memory_bytes or free)

    def free_bytes(self) -> int:
        """Gives memory that is only kept for speed back to the driver; returns the bytes that a state may take then."""
        self.memory.release_kept_buffer()
        self.cupy.get_default_memory_pool().free_all_blocks()
        return self.available_bytes()

    def function(self, name: str, instance: Mapping[str, str]) -> Any:
        """Returns a kernel of the table, loaded. Callers that launch a kernel often call this once."""
        return nvrtc.load(name, tuple(sorted(instance.items())), self.device_id)

    def launch(
        self,
        name: str,
        instance: Mapping[str, str],
        blocks: int,
        threads: int,
        args: tuple[Any, ...],
        shared_bytes: int = 0,
    ) -> None:
        """Launches one kernel of the table on the current stream."""
        self.launch_function(self.function(name, instance), blocks, threads, args, shared_bytes)

    def launch_function(
        self, function: Any, blocks: int, threads: int, args: tuple[Any, ...], shared_bytes: int = 0
    ) -> None:
        """Launches a loaded kernel on the current stream."""
        function((min(max(blocks, 1), MAX_GRID),), (threads,), args, shared_mem=shared_bytes)
