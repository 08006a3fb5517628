"""Memory of large states: allocated by the driver, and that of the last state kept for the next one of its size.

In: sizes. Out: CuPy's pointers to memory, whose content is left over from anything. It may not know of states or
precisions. The driver takes 5 ms to allocate 16 GiB and 6 to 10 ms to free them (H200, 2026-12).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

KEPT_SHARE = 4  # at most this fraction of the GPU's memory is kept: a wider state takes much longer than the driver


@dataclass(frozen=True, slots=True, eq=False)
class _Buffer:
    """Memory of the driver.

    Attributes:
        memory: CuPy's object, which frees the memory at its end.
        stream: address of the stream on which its last user worked; 0 for the default one.
    """

    memory: Any
    stream: int


class _Loan:
    """Memory in use: CuPy's arrays refer to it, and when the last of them is gone, the memory is kept."""

    def __init__(self, lender: StateMemory, buffer: _Buffer) -> None:
        self.lender, self.buffer = lender, buffer

    def __del__(self) -> None:
        self.lender.keep(self.buffer)


class StateMemory:
    """Lends memory to large states, one after the other; any thread may use it.

    The engines of a GPU share one, or one would keep memory that the state of another needs.

    Args:
        cupy: the CuPy module.
        max_kept_bytes: a larger buffer is freed when its state ends.
    """

    def __init__(self, cupy: Any, max_kept_bytes: int) -> None:
        self.cupy = cupy
        self.max_kept_bytes = max_kept_bytes
        self._kept: deque[_Buffer] = deque(maxlen=1)  # its operations are atomic: an end may come at any time

    @property
    def kept_bytes(self) -> int:
        """The bytes of the memory that is kept."""
        return sum(buffer.memory.size for buffer in tuple(self._kept))

    def take_kept(self, num_bytes: int) -> Any | None:
        """Returns a pointer to the kept memory if it has ``num_bytes``, else None."""
        try:
            buffer = self._kept.pop()
        except IndexError:
            return None
        if buffer.memory.size != num_bytes:
            self.keep(buffer)
            return None
        stream = self._stream()
        if stream or buffer.stream:  # work on the default stream is in order
            self.cupy.cuda.Device().synchronize()
        return self._lend(_Buffer(buffer.memory, stream))

    def allocate(self, num_bytes: int) -> Any:
        """Returns a pointer to new memory."""
        return self._lend(_Buffer(self.cupy.cuda.Memory(num_bytes), self._stream()))

    def keep(self, buffer: _Buffer) -> None:
        """Keeps ``buffer``, and frees what was kept before; a large buffer is freed at once."""
        if buffer.memory.size <= self.max_kept_bytes:
            self._kept.append(buffer)

    def release_kept_buffer(self) -> None:
        """Gives the memory that is kept back to the driver."""
        self._kept.clear()

    def _lend(self, buffer: _Buffer) -> Any:
        memory = buffer.memory
        loan = _Loan(self, buffer)
        lent = self.cupy.cuda.UnownedMemory(memory.ptr, memory.size, loan, memory.device_id)
        return self.cupy.cuda.MemoryPointer(lent, 0)

    def _stream(self) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)


_memories: WeakValueDictionary[int, StateMemory] = WeakValueDictionary()  # by CUDA device number


def shared_memory(cupy: Any, device_id: int) -> StateMemory:
    """Returns the memory of a GPU; it ends with the last engine that holds it."""
    memory = _memories.get(device_id)
    if memory is None:
        total = int(cupy.cuda.runtime.getDeviceProperties(device_id)["totalGlobalMem"])
        memory = _memories.setdefault(device_id, StateMemory(cupy, total // KEPT_SHARE))
    return memory
