"""Memory of large states is kept for the next one; the driver is made up, and notes what it does."""

import ctypes
import gc
from types import SimpleNamespace

import numpy as np
import pytest
from support import kernels_host

from qsim_ozaki.engines.cuda.device import memory, state
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.errors import CapacityError

QUBITS = 23  # the narrowest state in double precision that does not come from the pool
STATE = 16 << QUBITS
TOTAL = 9 * STATE


class Driver:
    """CuPy's names for a GPU of `TOTAL` bytes; states are on the host, and no page of them is touched."""

    def __init__(self):
        self.free, self.noted, self.stream, self.pooled = TOTAL, [], 0, 0
        runtime = SimpleNamespace(
            memGetInfo=lambda: (self.free - self.pooled, TOTAL),
            getDeviceProperties=lambda number: (
                {"totalGlobalMem": TOTAL, "name": b"made up", "multiProcessorCount": 4}
                | {"sharedMemPerBlockOptin": 1 << 17}
            ),
        )
        device = SimpleNamespace(id=0, compute_capability="90", synchronize=lambda: self.noted.append("synchronize"))
        self.cuda = SimpleNamespace(
            Memory=lambda size: Memory(self, size),
            UnownedMemory=lambda address, size, owner, device: SimpleNamespace(ptr=address, owner=owner),
            MemoryPointer=lambda lent, offset: lent,
            Device=lambda: device,
            runtime=runtime,
            get_current_stream=lambda: SimpleNamespace(ptr=self.stream),
        )

    def empty(self, size, dtype):
        self.noted.append("pool")
        return np.zeros(size, dtype).view(kernels_host.Array)

    def ndarray(self, size, dtype, pointer):
        class Lent(ctypes.c_char * (size * np.dtype(dtype).itemsize)):
            pass

        base = Lent.from_address(pointer.ptr)
        base.pointer = pointer
        return np.frombuffer(base, dtype).view(kernels_host.Array)

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: self.pooled, free_all_blocks=lambda: setattr(self, "pooled", 0))


class Memory:
    """Memory of the driver, freed at its end."""

    device_id = 0

    def __init__(self, driver, size):
        assert size <= driver.free - driver.pooled
        self.driver, self.size, self.array = driver, size, np.empty(size, np.uint8)
        self.ptr = self.array.ctypes.data
        driver.free -= size
        driver.noted.append(f"allocate {size // STATE}")

    def __del__(self):
        self.driver.free += self.size
        self.driver.noted.append(f"free {self.size // STATE}")


@pytest.fixture
def driver(monkeypatch):
    """A made-up driver without any memory of other tests."""
    monkeypatch.setattr(memory, "_memories", type(memory._memories)())
    monkeypatch.setattr("qsim_ozaki.engines.cuda.device.nvrtc.block_shared_bytes", lambda number: 1 << 17)
    return Driver()


def new_state(launcher, num_qubits=QUBITS):
    return state.new_state(launcher, num_qubits, "double", lambda: None)


def test_the_next_state_of_a_size_has_the_memory_of_the_last(driver):
    launcher = Launcher(driver)
    for _ in range(3):
        first = new_state(launcher)
        address = first._amps.ctypes.data
        del first
    assert driver.noted == ["allocate 1"]
    assert new_state(launcher)._amps.ctypes.data == address
    assert launcher.available_bytes() == TOTAL
    assert driver.free == TOTAL - STATE


def test_two_states_never_share_memory(driver):
    launcher = Launcher(driver)
    first, second = new_state(launcher), new_state(launcher)
    assert first._amps.ctypes.data != second._amps.ctypes.data
    part = first.amps[5:7]  # a view outlives its state
    del first
    third = new_state(launcher)
    assert third._amps.ctypes.data != part.ctypes.data - 5 * 16
    assert driver.noted == ["allocate 1"] * 3
    del part, second, third
    assert driver.noted == [*["allocate 1"] * 3, "free 1", "free 1"]  # one buffer is kept


def test_another_size_gives_the_kept_memory_back_first(driver):
    launcher = Launcher(driver)
    new_state(launcher)
    wide = new_state(launcher, QUBITS + 3)  # 8 of 9 parts: with what is kept they would just fit
    assert driver.noted == ["allocate 1", "free 1", "allocate 8"]
    del wide
    assert driver.noted[3:] == ["free 8"]  # too much to keep
    assert launcher.memory.kept_bytes == 0


def test_free_memory_is_really_free(driver):
    launcher = Launcher(driver)
    new_state(launcher)
    driver.pooled = STATE // 2
    assert launcher.available_bytes() == TOTAL
    assert driver.noted == ["allocate 1"]
    assert launcher.free_bytes() == TOTAL
    assert driver.free == TOTAL
    assert driver.pooled == 0
    assert driver.noted == ["allocate 1", "free 1"]


def test_the_engines_of_a_gpu_share_what_is_kept(driver):
    first, second = Launcher(driver), Launcher(driver, 2 * STATE)
    new_state(first)
    kept = new_state(second)
    assert driver.noted == ["allocate 1"]
    del kept
    with pytest.raises(CapacityError, match="Use at most 24 qubits"):
        new_state(second, QUBITS + 2)
    new_state(first)
    limited = Launcher(driver, STATE // 2)
    with pytest.raises(CapacityError, match="Use at most 22 qubits"):
        new_state(limited)
    new_state(first)
    del first, second, limited
    gc.collect()
    assert driver.free == TOTAL  # the last engine has gone


def test_small_states_come_from_the_pool_and_leave_the_kept_memory(driver):
    launcher = Launcher(driver)
    new_state(launcher)
    new_state(launcher, 5)
    new_state(launcher)
    assert driver.noted == ["allocate 1", "pool"]


@pytest.mark.parametrize(("before", "now", "waits"), [(0, 0, False), (0, 7, True), (7, 0, True), (7, 7, True)])
def test_work_of_another_stream_has_ended_before_memory_is_used_again(driver, before, now, waits):
    launcher = Launcher(driver)
    driver.stream = before
    new_state(launcher)
    driver.stream = now
    new_state(launcher)
    assert driver.noted == ["allocate 1", *["synchronize"] * waits]
