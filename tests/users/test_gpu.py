"""What users of GPUs were bitten by: what can be shown without one, and what the next run on one has to show."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFTGate
from qiskit.quantum_info import SparsePauliOp, Statevector
from support.bell import bell
from support.random_circuits import random_circuit

from qsim_ozaki import OzakiBackend, save_expectation_value, save_statevector
from qsim_ozaki.engines import StackWork, select
from qsim_ozaki.engines.cuda import engine as cuda
from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.engines.cuda.device.launcher import Launcher
from qsim_ozaki.errors import CapacityError, EngineError
from qsim_ozaki.ir import EMPTY, Kind, Op

LARGEST_GRID = (1 << 31) - 1  # blocks in x, CUDA C++ Programming Guide, compute capabilities


@pytest.fixture
def gpu():
    try:
        return select("cuda")
    except EngineError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # Qiskit's matrix of an evolution
@pytest.mark.parametrize("num_qubits", [1, 2, 3, 4, 5])
def test_t25_registers_of_a_few_qubits(engine, rng, num_qubits, precision):
    backend = OzakiBackend(engine=engine.name, precision=precision)
    circuit = QuantumCircuit(num_qubits)
    circuit.h(range(num_qubits))
    circuit.measure_all()
    counts = backend.run(circuit, shots=None).result().get_counts()
    assert counts == pytest.approx({format(i, f"0{num_qubits}b"): 0.5**num_qubits for i in range(1 << num_qubits)})
    for _ in range(5):
        circuit = random_circuit(rng, num_qubits, 20)
        state = np.asarray(backend.run(circuit).result().get_statevector())
        limit = 1e-13 if precision == "double" else 1e-5
        np.testing.assert_allclose(state, np.asarray(Statevector(circuit)), atol=limit)


def test_t25_a_kernel_that_is_not_for_this_architecture_raises():
    with pytest.raises(EngineError, match="kernel ozaki_wgmma has no code for sm_80; it is built for sm_90"):
        nvrtc.compile_kernel("ozaki_wgmma", {"CLUSTER": "1"}, 80)
    with pytest.raises(EngineError, match=r"compute capability 6\.1 is not supported.*engine=\"cpu\""):
        nvrtc.nearest_architecture(61)


class FakeModule:
    """As the driver where machine code is of another architecture: loading fails, nothing is returned."""

    def load(self, code):
        raise RuntimeError(f"CUDA_ERROR_NO_BINARY_FOR_GPU: {len(code)} bytes")


def fake_cupy(monkeypatch, **runtime):
    cupy = ModuleType("cupy")
    error = type("CUDARuntimeError", (RuntimeError,), {})
    cupy.cuda = SimpleNamespace(
        runtime=SimpleNamespace(CUDARuntimeError=error, **runtime),
        function=SimpleNamespace(Module=FakeModule),
        Device=lambda number=0: SimpleNamespace(id=0, compute_capability="75"),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return error


def test_t60_code_of_another_architecture_is_never_run(monkeypatch):
    fake_cupy(monkeypatch)
    with pytest.raises(RuntimeError, match="NO_BINARY_FOR_GPU: 3 bytes"):
        nvrtc.function(b"elf", "collapse")
    nvrtc.load.cache_clear()
    with pytest.raises(EngineError, match=r"compute capability 7\.5 is not supported"):
        nvrtc.load("collapse", tuple(kernels.DOUBLE.items()), 0)


def test_a_loaded_function_may_have_all_shared_memory(monkeypatch):
    """Whoever launches it, and whatever was launched before: the limit is the function's own."""
    limits = {}
    fake_cupy(monkeypatch, getDeviceProperties=lambda number: {"sharedMemPerBlockOptin": 232448})
    cuda_module = sys.modules["cupy"].cuda
    monkeypatch.setattr(FakeModule, "load", lambda self, code: None)
    monkeypatch.setattr(FakeModule, "get_function", lambda self, name: SimpleNamespace(ptr=7), raising=False)
    cuda_module.driver = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES="own",
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most",
        funcGetAttribute=lambda attribute, pointer: {"own": 64}[attribute],
        funcSetAttribute=lambda pointer, attribute, value: limits.update({(pointer, attribute): value}),
    )
    nvrtc.block_shared_bytes.cache_clear()
    assert nvrtc.function(b"elf", "tile_exec").ptr == 7
    nvrtc.block_shared_bytes.cache_clear()
    assert limits == {(7, "most"): 232448 - 64}


@pytest.mark.cuda
def test_engines_do_not_lower_each_others_shared_memory(gpu):
    """Two engines share a kernel: a launch of one that needs less leaves the other's larger launches alone."""
    other = select("cuda")
    for engine, num_qubits in ((gpu, gpu.stack_qubits), (other, gpu.stack_qubits - 1), (gpu, gpu.stack_qubits)):
        flip = Op(Kind.HADAMARD, (num_qubits - 1,), EMPTY)
        (states,) = engine.run_stacks([StackWork(num_qubits, [flip], np.empty((2, 0), complex))], "double")
        want = np.zeros((2, 1 << num_qubits), complex)
        want[:, [0, 1 << (num_qubits - 1)]] = 0.5**0.5
        np.testing.assert_allclose(states, want, atol=1e-15)


def test_t58_the_drivers_own_error_is_told(monkeypatch):
    def broken():
        raise error("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    error = fake_cupy(monkeypatch, getDeviceCount=broken)
    with pytest.raises(
        EngineError, match=r"found no NVIDIA GPU: cudaErrorInsufficientDriver: CUDA driver version"
    ) as e:
        OzakiBackend(engine="cuda").run(bell())
    assert e.value.__cause__ is not None
    assert not isinstance(e.value, CapacityError)


@pytest.mark.parametrize("blocks", [0, 1, LARGEST_GRID, 1 << 31, 1 << 40])
def test_t55_a_grid_is_never_larger_than_a_launch_allows(blocks):
    launched = []
    Launcher.launch_function(None, lambda *args, **_: launched.append(args), blocks, 256, ())
    ((grid, threads, _),) = launched
    assert grid == (min(max(blocks, 1), LARGEST_GRID),)
    assert threads == (256,)


def test_t56_metadata_says_where_and_by_which_path_and_nothing_falls_back(monkeypatch):
    circuit = QuantumCircuit(9)
    circuit.h(range(9))
    circuit.append(QFTGate(3), [4, 5, 6])
    circuit.unitary(np.eye(128)[::-1], range(7))
    metadata = OzakiBackend(arithmetic="emulated").run(circuit).result().results[0].metadata
    assert metadata["engine"] == "cpu"
    assert metadata["device"] == OzakiBackend().plan(circuit).plans[0].device.name
    assert sum(metadata["steps"].values()) == len(OzakiBackend(arithmetic="emulated").plan(circuit).steps)
    native = OzakiBackend(arithmetic="native").run(circuit).result().results[0].metadata
    assert not any("ozaki" in path for path in native["steps"])
    monkeypatch.setitem(sys.modules, "cupy", None)
    for way in (OzakiBackend(engine="cuda").run, OzakiBackend(engine="cuda").plan):
        with pytest.raises(EngineError, match=r"engine \"cuda\" needs CuPy.*pip install"):
            way(circuit)


def test_t57_the_package_works_without_a_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert sum(OzakiBackend().run(bell()).result().get_counts().values()) == 1024
    with pytest.raises(EngineError, match=r"needs CuPy"):
        cuda.create()


def test_t05_a_state_read_twenty_times_in_one_run(engine):
    circuit = QuantumCircuit(12)
    circuit.append(QFTGate(12), range(12))
    for number in range(20):
        save_statevector(circuit, f"state {number}")
    data = OzakiBackend(engine=engine.name).run(circuit).result().data(0)
    states = [np.asarray(data[f"state {number}"]) for number in range(20)]
    np.testing.assert_allclose(states[0], np.full(1 << 12, 2**-6), atol=1e-14)
    assert all(np.array_equal(state, states[0]) for state in states)


@pytest.mark.cuda
def test_t27_t55_thirty_two_qubits_on_a_gpu(gpu):
    """2^32 amplitudes in single precision, 32 GiB: indices and grids beyond 32 bits."""
    n = 32
    if gpu.device().memory_bytes < 40 << 30:
        pytest.skip("needs 40 GiB of GPU memory")
    circuit = QuantumCircuit(n)
    circuit.x([n - 1, n - 2, 3])
    circuit.cp(np.pi, n - 1, n - 2)
    circuit.swap(n - 1, 0)
    circuit.h(5)
    save_expectation_value(circuit, SparsePauliOp.from_sparse_list([("ZX", [n - 2, 5], 1.0)], n))
    circuit.measure_all()
    result = OzakiBackend(engine="cuda", precision="single", seed_simulator=1).run(circuit, shots=100).result()
    assert result.data(0)["expectation_value"] == pytest.approx(-1, abs=1e-5)
    for key in result.get_counts():
        value = int(key, 2) & ~(1 << 5)
        assert value == 1 << (n - 2) | 1 << 3 | 1
    dense = QuantumCircuit(n)
    dense.h(range(n))
    dense.measure_all()
    backend = OzakiBackend(engine="cuda", precision="single", seed_simulator=1)
    counts = backend.run(dense, shots=2000).result().get_counts()
    for qubit in (0, 15, 30, 31):
        ones = sum(count for key, count in counts.items() if key[n - 1 - qubit] == "1")
        assert abs(ones - 1000) < 150


@pytest.mark.cuda
def test_t60_kernels_of_this_gpu_do_what_they_say(gpu):
    """A kernel that silently did nothing would leave |0>."""
    for num_qubits in (1, 5, 13, 20):
        circuit = QuantumCircuit(num_qubits)
        circuit.x(range(num_qubits))
        circuit.measure_all()
        counts = OzakiBackend(engine="cuda").run(circuit, shots=3).result().get_counts()
        assert counts == {"1" * num_qubits: 3}
