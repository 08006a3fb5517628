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
        self._amps = amps
        self._write_start: Callable[[CudaState], None] | None = None
        self.checks = ColumnChecks()
        self._counters: Any = None  # set to zero together: one by one, every pass would need one more launch
        self._addresses: Iterator[int] = iter(())

    @property
    def amps(self) -> Any:
        """The amplitudes; a start that was put off is written first."""
        if self._write_start is not None:
            write, self._write_start = self._write_start, None
            write(self)
        return self._amps

    def put_off(self, write_start: Callable[[CudaState], None]) -> None:
        """Puts the writing of all amplitudes off until they are used: by a step that writes all, it is not needed."""
        self._write_start = write_start

    def overwritten(self) -> Any:
        """Returns the amplitudes to a caller who writes all that later steps will read."""
        self._write_start = None
        return self._amps

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
        """Writes the amplitude of |0...0> alone, from an array of one element; later steps read no other as it is.

        Assignment would take three times as long.
        """
        self.overwritten().data.copy_from_device_async(amp.data, amp.nbytes)

    def put_zeros(self, one: Any) -> None:
        """Writes |0...0>.

        Args:
            one: the number 1 as an array of one element.
        """
        amps = self.overwritten()
        amps.data.memset_async(0, amps.nbytes)
        self.put_first(one)


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
    needed = bytes_of_one << num_qubits
    if needed <= (launcher.max_memory_bytes or needed):
        pointer = launcher.memory.take_kept(size * bytes_of_one)
        if pointer is not None:
            return CudaState(num_qubits, precision, cupy.ndarray(size, DTYPES[precision], pointer))
    free = launcher.free_bytes()
    if needed > free:
        make_room()
        free = launcher.free_bytes()
    if needed > free:
        fits = (free // bytes_of_one).bit_length() - 1
        raise CapacityError(
            f"{num_qubits} qubits need {needed / 2**30:.3g} GiB in {precision} precision; {launcher.device_name} has "
            f'{free / 2**30:.3g} GiB free. Use at most {fits} qubits, or engine="cpu".'
        )
    pointer = launcher.memory.allocate(size * bytes_of_one)
    return CudaState(num_qubits, precision, cupy.ndarray(size, DTYPES[precision], pointer))
