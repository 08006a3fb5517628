"""A GPU that is none: CuPy's names on NumPy, the CUDA engine's on the CPU engine, cuStateVec's on explicit indices."""

import ctypes
import sys
import time
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
from support import reference
from support.devices import H200

from qsim_ozaki.engines import ColumnChecks, select
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import Kind, Op

DTYPES = {4: np.complex64, 5: np.complex128}


class Array(np.ndarray):
    """A NumPy array whose ``data`` has an address, as CuPy's has."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def at(address, count, dtype):
    """The array that lies at ``address``."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


class Event:
    """The clock."""

    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass


class Random:
    """CuPy's global generator."""

    def seed(self, seed):
        self.generator = np.random.default_rng(seed)

    def standard_normal(self, size, dtype):
        return self.generator.standard_normal(size, dtype)


class Cupy:
    """CuPy's names; those of arrays are NumPy's."""

    __version__ = "0"

    def __init__(self):
        self.random = Random()
        self.cuda = SimpleNamespace(
            Event=Event,
            get_elapsed_time=lambda start, end: 1e3 * (end.seconds - start.seconds),
            Device=lambda: SimpleNamespace(id=0, synchronize=lambda: None),
            runtime=SimpleNamespace(driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13000),
            UnownedMemory=lambda address, size, owner, device: address,
            MemoryPointer=lambda address, offset: address + offset,
        )

    def __getattr__(self, name):
        return getattr(np, name)

    def ndarray(self, size, dtype, memory):
        return at(memory, size, dtype)

    def asarray(self, values):
        return np.array(values).view(Array)

    def empty(self, size, dtype):
        return np.empty(size, dtype).view(Array)

    def get_default_memory_pool(self):
        return SimpleNamespace(free_all_blocks=lambda: None)


class Engine:
    """The CUDA engine's names; every step is the CPU engine's."""

    name = "cuda"
    compiler = SimpleNamespace(finish=lambda: None)

    def __init__(self, free_bytes=1 << 34):
        self.cpu, self.free = select("cpu", threads=1), free_bytes
        self.launcher = SimpleNamespace(cupy=Cupy(), free_bytes=lambda: self.free, launch=self.launch)
        self.failing = None  # a step that raises

    def device(self):
        return H200

    def allocate(self, num_qubits, precision):
        state = self.cpu.allocate(num_qubits, precision)
        amps = self.cpu.vector(state).view(Array)
        return SimpleNamespace(own=state, amps=amps, num_qubits=num_qubits, precision=precision)

    def run_step(self, state, step):
        if self.failing is not None and isinstance(step, self.failing):
            raise EngineError("it was to fail")
        self.cpu.run_step(state.own, step)

    def launch(self, name, *_):
        assert name == "collapse"

    def take_checks(self, state):
        return ColumnChecks()


class MatrixType(IntEnum):
    DENSE, DIAGONAL, ANTI_DIAGONAL = 1, 2, 3


class Ex:
    """custatevecEx: an updater that turns the wires round whenever it is applied, and multiplies by ``wrong``."""

    MatrixType = MatrixType
    StateVectorProperty = IntEnum("StateVectorProperty", {"WIRE_ORDERING": 3})
    SVUpdaterConfigName = IntEnum("SVUpdaterConfigName", {"DENSE_FUSION_SIZE": 1})

    def __init__(self, wrong=1.0):
        self.wrong, self.things, self.fusions = wrong, {}, []
        self.SVUpdaterConfigItem = lambda name, value: (name, value)

    def keep(self, thing):
        self.things[len(self.things) + 1] = thing
        return len(self.things)

    def dictionary_destroy(self, handle):
        assert self.things[handle]

    def configure_state_vector_single_device(self, kind, wires, device_wires, device, capability):
        assert (wires, device, capability) == (device_wires, 0, 0)
        return self.keep(SimpleNamespace(kind=kind, n=wires))

    def state_vector_create_single_process(self, config, streams, num_streams, manager):
        made = self.things[config]
        amps = np.full(1 << made.n, np.nan, DTYPES[made.kind])
        return self.keep(SimpleNamespace(amps=amps, wires=list(range(made.n))))

    def state_vector_destroy(self, handle):
        self.things[handle].amps = None

    def state_vector_set_zero_state(self, handle):
        amps = self.things[handle].amps
        amps[:] = 0
        amps[0] = 1

    def state_vector_synchronize(self, handle):
        assert self.things[handle]

    def state_vector_reassign_wire_ordering(self, handle, wires, count):
        assert len(wires) == count
        self.things[handle].wires = list(wires)

    def state_vector_get_resources_from_device_sub_sv(self, handle, number):
        assert number == 0
        return 0, self.things[handle].amps.ctypes.data, 0, 0

    def state_vector_get_property(self, handle, name, address, size):
        assert name == self.StateVectorProperty.WIRE_ORDERING
        at(address, size // 4, np.int32)[:] = self.things[handle].wires

    def configure_sv_updater(self, kind, items):
        self.fusions.append(dict(items).get(1, 0))
        return self.keep(SimpleNamespace(kind=kind))

    def sv_updater_create(self, config, manager):
        return self.keep(SimpleNamespace(kind=self.things[config].kind, ops=[]))

    def sv_updater_destroy(self, handle):
        self.things[handle].ops = None

    def sv_updater_enqueue_matrix(self, handle, address, kind, form, layout, adjoint, *places):
        targets, num_targets, controls, values, num_controls = places
        updater, size = self.things[handle], 1 << num_targets
        assert (kind, layout, adjoint, len(targets)) == (updater.kind, 1, 0, num_targets)
        controls, values = (controls, values) if num_controls else ([], [])
        assert num_controls == len(controls) == len(values)
        data = at(address, size * size if form == MatrixType.DENSE else size, DTYPES[kind]).astype(complex)
        matrix = {MatrixType.DENSE: lambda: data.reshape(size, size), MatrixType.DIAGONAL: lambda: np.diag(data)}.get(
            form, lambda: np.diag(data)[::-1]
        )()
        state = sum(value << b for b, value in enumerate(values))
        updater.ops.append(Op(Kind.UNITARY, tuple(targets), matrix, tuple(controls), state))

    def sv_updater_apply(self, handle, state_handle, randoms, num_randoms):
        updater, state = self.things[handle], self.things[state_handle]
        place = {wire: bit for bit, wire in enumerate(state.wires)}
        for op in updater.ops:
            targets, controls = (tuple(place[wire] for wire in wires) for wires in (op.targets, op.controls))
            moved = Op(op.kind, targets, op.data, controls, op.ctrl_state)
            state.amps[:] = reference.apply_op(state.amps, moved)
        n = len(state.wires)
        state.amps[:] = self.wrong * state.amps.reshape((2,) * n).transpose(range(n)[::-1]).reshape(-1)
        state.wires.reverse()


class Sv:
    """custatevec: apply_matrix, times ``wrong``."""

    MatrixLayout = IntEnum("MatrixLayout", {"COL": 0, "ROW": 1})
    ComputeType = IntEnum("ComputeType", {"COMPUTE_32F": 4, "COMPUTE_64F": 16})

    def __init__(self, wrong):
        self.wrong = wrong

    def create(self):
        return 1

    def get_property(self, part):
        return (1, 15, 0)[part]

    def apply_matrix_get_workspace_size(self, handle, kind, n, address, matrix_kind, layout, *_):
        assert (kind, layout) == (matrix_kind, 1)
        return 0

    def apply_matrix(self, handle, address, kind, n, matrix_address, *rest):
        matrix_kind, layout, adjoint, targets, k, *controls, compute, _, size = rest
        assert (matrix_kind, layout, adjoint, len(targets), controls, size) == (kind, 1, 0, k, [0, 0, 0], 0)
        assert compute == {4: 4, 5: 16}[kind]
        amps, matrix = at(address, 1 << n, DTYPES[kind]), at(matrix_address, 4**k, DTYPES[kind])
        op = Op(Kind.UNITARY, tuple(targets), matrix.astype(complex).reshape(1 << k, -1))
        amps[:] = self.wrong * reference.apply_op(amps, op)


def install(monkeypatch, engine=None, ex=None):
    """Puts the fakes where the benchmark looks for the real ones; without ``ex`` there is no cuStateVec."""
    made = engine or Engine()
    monkeypatch.setattr("qsim_ozaki.bench.gpu.runner.create", lambda: made)
    for name, module in (("custatevec", Sv(ex.wrong) if ex else None), ("custatevecEx", ex)):
        monkeypatch.setitem(sys.modules, f"cuquantum.bindings.{name}", module)
    return made
