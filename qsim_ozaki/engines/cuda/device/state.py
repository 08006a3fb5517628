"""States in GPU memory: their amplitudes, the counters of their passes, and their allocation.

In: a launcher, a width and a precision. Out: a `CudaState`. It may not run a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.engines.base import ColumnChecks
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.engines.cuda.device.shapes import SHAPES
from qsim_ozaki.errors import CapacityError
from qsim_ozaki.ir import amplitude_bytes

DTYPES: dict[str, type[np.complexfloating]] = {"double": np.complex128, "single": np.complex64}
POOLED_BYTES = 64 << 20  # larger states are allocated and freed by the driver, not by CuPy's memory pool
COUNTER_AMPS, COUNTER_BYTES = 256, 8  # the counters of a state take the bytes of so many amplitudes; size of a counter


class CudaState:
    """Amplitudes in GPU memory; index bit q is qubit q. Tiny states are zero-padded to the registers of one thread."""

    def __init__(self, num_qubits: int, precision: str, amps: Any) -> None:
        self.num_qubits = num_qubits
        self.precision = precision
        self.amps = amps
        self.checks = ColumnChecks()
        self._counters: Any = None  # set to zero together: one by one, every pass would need one more launch
        self._addresses: Iterator[int] = iter(())

    def new_tickets(self) -> np.uint64:
        """Returns the device address of a counter at 0, from which blocks draw the tiles of this state's next pass."""
        address = next(self._addresses, 0)
        if not address:
            if self._counters is None:
                self._counters = self.amps[:COUNTER_AMPS].view(np.uint64).copy()
            data = self._counters.data
            data.memset_async(0, self._counters.nbytes)
            self._addresses = iter(range(data.ptr, data.ptr + self._counters.nbytes, COUNTER_BYTES))
            address = next(self._addresses)
        return np.uint64(address)

    @property
    def kernel_qubits(self) -> int:
        """The width of the state with its padding."""
        return max(self.num_qubits, SHAPES[self.precision].register_qubits)

    def vector(self) -> NDArray[np.complexfloating]:
        """Returns the amplitudes as a new host array."""
        out: NDArray[np.complexfloating] = self.amps[: 1 << self.num_qubits].get()
        return out

    def put_first(self, amp: Any) -> None:
        """Copies the amplitude of |0...0> from an array of one element: assignment would take three times as long."""
        self.amps.data.copy_from_device_async(amp.data, amp.nbytes)


StateLaunch: TypeAlias = Callable[[CudaState], None]  # launches one step on a state of the width it was compiled for


def new_state(launcher: Launcher, num_qubits: int, precision: str, make_room: Callable[[], None]) -> CudaState:
    """Returns a state whose amplitudes are not written yet.

    Args:
        launcher: launches kernels on the GPU.
        num_qubits: width of the state.
        precision: ``"double"`` or ``"single"``.
        make_room: frees memory that is only kept for speed; it is called if the state does not fit.

    Raises:
        CapacityError: the state does not fit the GPU's free memory or the launcher's limit.
    """
    cupy, bytes_of_one = launcher.cupy, amplitude_bytes(precision)
    size = 1 << max(num_qubits, SHAPES[precision].register_qubits)
    if size * bytes_of_one < POOLED_BYTES and not launcher.max_memory_bytes:
        return CudaState(num_qubits, precision, cupy.empty(size, DTYPES[precision]))
    needed, free = bytes_of_one << num_qubits, launcher.free_bytes()
    if needed > free:
        make_room()
        free = launcher.free_bytes()
    if needed > free:
        fits = (free // bytes_of_one).bit_length() - 1
        raise CapacityError(
            f"{num_qubits} qubits need {needed / 2**30:.3g} GiB in {precision} precision; {launcher.device_name} has "
            f'{free / 2**30:.3g} GiB free. Use at most {fits} qubits, or engine="cpu".'
        )
    memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(size * bytes_of_one), 0)
    return CudaState(num_qubits, precision, cupy.ndarray(size, DTYPES[precision], memory))
