"""What users of such simulators were bitten by: one test per public report, its right answer a number."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import Clbit, Gate, Parameter, ParameterVector, Qubit
from qiskit.circuit.library import RZGate, UCGate, UnitaryGate, XGate
from qiskit.primitives import BackendEstimatorV2, StatevectorEstimator
from qiskit.providers import JobStatus
from qiskit.quantum_info import SparsePauliOp, Statevector, random_unitary
from support.distribution import assert_follows
from support.pool_work import bell_counts

from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.errors import CancelledError, CapacityError, LoweringError

LEVELS = [None, 0, 1, 2, 3]


def counts_of(circuit, shots=1000, **options):
    return OzakiBackend(seed_simulator=42, **options).run(circuit, shots=shots).result().get_counts()


def state_of(circuit, **options):
    return np.asarray(OzakiBackend(**options).run(circuit, shots=1).result().get_statevector())


def at_level(circuit, level):
    return circuit if level is None else transpile(circuit, OzakiBackend(), optimization_level=level)


def bell():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    return circuit


def test_t02_fusion_does_not_change_the_state():
    circuit = QuantumCircuit(15)
    circuit.h(0)
    circuit.cx(1, 0)
    circuit.x(0)
    circuit.s(0)
    np.testing.assert_allclose(state_of(circuit), np.asarray(Statevector(circuit)), atol=1e-14)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("saved", ["inside", "after", "not"])
def test_t06_the_state_is_in_the_users_order_at_every_level(level, saved):
    circuit = QuantumCircuit(3)
    circuit.x(0)
    circuit.h(1)
    circuit.swap(0, 2)
    want = np.asarray(Statevector(circuit))
    if saved == "inside":
        save_statevector(circuit)
    circuit = at_level(circuit, level)
    if saved == "after":
        save_statevector(circuit)
    np.testing.assert_allclose(state_of(circuit), want, atol=1e-15)


@pytest.mark.parametrize("level", LEVELS)
def test_t08_open_controls(level):
    circuit = QuantumCircuit(2)
    circuit.cx(0, 1, ctrl_state=0)
    assert counts_of(at_level(circuit.measure_all(inplace=False), level)) == {"10": 1000}
    circuit = QuantumCircuit(3)
    circuit.x(1)
    circuit.ccx(0, 1, 2, ctrl_state="10")
    assert counts_of(at_level(circuit.measure_all(inplace=False), level)) == {"110": 1000}
    circuit = QuantumCircuit(5)
    circuit.append(XGate().control(4, ctrl_state=0), range(5))
    assert counts_of(at_level(circuit.measure_all(inplace=False), level)) == {"10000": 1000}
    circuit = QuantumCircuit(3)
    circuit.x(0)
    circuit.append(UnitaryGate(np.array([[0, 1], [1, 0]])).control(2, ctrl_state=1), range(3))
    assert counts_of(at_level(circuit.measure_all(inplace=False), level)) == {"101": 1000}


@pytest.mark.parametrize("level", LEVELS)
def test_t10_global_phase_is_exact(level, rng):
    circuit = QuantumCircuit(1)
    circuit.rz(2 * np.pi, 0)
    np.testing.assert_allclose(state_of(at_level(circuit, level)), [-1, 0], atol=1e-15)
    angle = Parameter("a")
    circuit = QuantumCircuit(1, global_phase=angle)
    bound = circuit.assign_parameters({angle: 0.7})
    np.testing.assert_allclose(state_of(at_level(bound, level)), [np.exp(0.7j), 0], atol=1e-15)
    circuit = QuantumCircuit(2)
    circuit.append(UCGate([np.array([[1, 1], [1, -1]]) / np.sqrt(2)] * 2), [0, 1])
    np.testing.assert_allclose(state_of(at_level(circuit, level)), np.asarray(Statevector(circuit)), atol=1e-14)
    circuit = QuantumCircuit(3)
    circuit.h([0, 1, 2])
    circuit.append(UnitaryGate(random_unitary(2, seed=rng)).control(2), [0, 1, 2])
    circuit.append(RZGate(0.4).control(1), [2, 0])
    np.testing.assert_allclose(state_of(at_level(circuit, level)), np.asarray(Statevector(circuit)), atol=1e-14)


@pytest.mark.parametrize("level", LEVELS)
def test_t11_conditions_hold_for_reset_and_measure(level):
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure(1, 1)
    with circuit.if_test((circuit.clbits[1], 0)):
        circuit.reset(0)
    circuit.measure(0, 0)
    assert_follows(counts_of(at_level(circuit, level)), {"00": 0.5, "11": 0.5})
    circuit = QuantumCircuit(1, 2)
    circuit.x(0)
    with circuit.if_test((circuit.clbits[1], 1)):
        circuit.measure(0, 0)
    assert counts_of(at_level(circuit, level)) == {"00": 1000}


@pytest.mark.parametrize("level", LEVELS)
def test_t12_empty_bodies_and_nested_branches(level):
    qubits, first, second = QuantumRegister(3), ClassicalRegister(1, "a"), ClassicalRegister(1, "b")
    circuit = QuantumCircuit(qubits, first, second, ClassicalRegister(1, "out"))
    circuit.x(0)
    circuit.h(1)
    circuit.cx(1, 2)
    circuit.cx(0, 1)
    circuit.h(0)
    circuit.measure([0, 1], [0, 1])
    with circuit.if_test((second, 1)):
        circuit.x(2)
    with circuit.if_test((first, 0)) as otherwise:
        pass
    with otherwise:
        circuit.z(2)
    circuit.measure(2, 2)
    counts = counts_of(at_level(circuit, level))
    assert {key.split()[0] for key in counts} == {"1"}
    assert_follows(counts, {f"1 {b} {a}": 0.25 for a in "01" for b in "01"})
    circuit = QuantumCircuit(3, 3)
    circuit.h([0, 1])
    circuit.measure([0, 1], [0, 1])
    with circuit.if_test((circuit.clbits[0], 1)), circuit.if_test((circuit.clbits[1], 1)):
        circuit.x(2)
    circuit.measure(2, 2)
    assert_follows(counts_of(at_level(circuit, level)), dict.fromkeys(["000", "001", "010", "111"], 0.25))


def test_t14_bits_outside_registers_keep_their_place():
    register = ClassicalRegister(1, "c")
    circuit = QuantumCircuit([Qubit()], register, [Clbit()])
    circuit.x(0)
    circuit.measure(0, register[0])
    assert counts_of(circuit) == {"0 1": 1000}
    circuit = QuantumCircuit([Qubit()], [Clbit(), Clbit()], register)
    circuit.x(0)
    circuit.measure(0, register[0])
    assert counts_of(circuit) == {"1 0 0": 1000}


def test_t14_overlapping_and_permuted_registers_each_show_their_own_bits():
    bits = [Clbit() for _ in range(4)]
    both = [ClassicalRegister(bits=bits[:2], name="low"), ClassicalRegister(bits=[bits[3], bits[1]], name="mixed")]
    circuit = QuantumCircuit([Qubit(), Qubit()], bits, *both)
    circuit.x([0, 1])
    circuit.measure([0, 1], [1, 2])  # low = 10, mixed (bits 3, 1) = 10, loose bit 2 = 1
    assert counts_of(circuit) == {"10 10 1": 1000}


@pytest.mark.parametrize("level", LEVELS)
def test_t18_a_measurement_inside_the_circuit_collapses(level):
    circuit = QuantumCircuit(1, 2)
    circuit.h(0)
    circuit.measure(0, 0)
    circuit.h(0)
    circuit.measure(0, 1)
    assert_follows(counts_of(at_level(circuit, level)), dict.fromkeys(["00", "01", "10", "11"], 0.25))
    circuit = QuantumCircuit(1, 2)
    circuit.x(0)
    circuit.measure(0, 0)
    circuit.x(0)
    circuit.measure(0, 1)
    assert counts_of(at_level(circuit, level)) == {"01": 1000}


@pytest.mark.parametrize("level", LEVELS)
def test_t19_subset_and_repeated_measurements(level):
    circuit = QuantumCircuit(3, 2)
    circuit.x(2)
    circuit.measure([2, 0], [0, 1])
    assert counts_of(at_level(circuit, level)) == {"01": 1000}
    circuit = QuantumCircuit(1, 2)
    circuit.h(0)
    circuit.measure([0, 0], [0, 1])
    assert_follows(counts_of(at_level(circuit, level)), {"00": 0.5, "11": 0.5})
    circuit = QuantumCircuit(2, 1)
    circuit.x(0)
    circuit.measure([0, 1], [0, 0])
    assert counts_of(at_level(circuit, level)) == {"0": 1000}
    circuit = QuantumCircuit(2, 1)
    circuit.x(0)
    circuit.measure([1, 0], [0, 0])
    assert counts_of(at_level(circuit, level)) == {"1": 1000}


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 0, 1]])
def test_t21_marginals_in_the_order_asked_and_on_far_apart_qubits(order):
    circuit = QuantumCircuit(21, 3)
    for qubit, angle in zip([9, 20, 14], [0.9, 1.7, 2.3], strict=True):
        circuit.ry(angle, qubit)
    circuit.cx(9, 20)
    circuit.measure([[9, 20, 14][q] for q in order], range(3))
    small = QuantumCircuit(3)
    for qubit, angle in enumerate([0.9, 1.7, 2.3]):
        small.ry(angle, qubit)
    small.cx(0, 1)
    assert_follows(counts_of(circuit, shots=50000), Statevector(small).probabilities_dict(order))


@pytest.mark.parametrize("dtype", [complex, np.complex64, float, int])
def test_t23_an_initial_state_given_as_an_array(dtype):
    state = state_of(bell(), initial_state=np.array([1, 0, 0, 0], dtype))
    assert Statevector(state).expectation_value(SparsePauliOp("ZZ")) == pytest.approx(1)


def test_t29_parameters_keep_their_order(rng):
    angles = ParameterVector("p", 16)
    circuit = QuantumCircuit(4)
    for index, angle in enumerate(angles):
        circuit.ry(angle, index % 4)
        if index % 4 == 3:
            circuit.cz([0, 1, 2], [1, 2, 3])
    values = rng.uniform(0, np.pi, 16)
    observable = SparsePauliOp(["ZIIZ", "XXII", "IYYI"], [1, -0.5, 2])
    want = StatevectorEstimator().run([(circuit, observable, values)]).result()[0].data.evs
    estimator = BackendEstimatorV2(backend=OzakiBackend(), options={"default_precision": 0.01, "seed_simulator": 1})
    assert estimator.run([(circuit, observable, values)]).result()[0].data.evs == pytest.approx(want, abs=0.06)
    first, second = Parameter("a"), Parameter("b")
    circuits = [QuantumCircuit(1), QuantumCircuit(1)]
    circuits[0].ry(first, 0)
    circuits[1].ry(second, 0)
    bound = [c.assign_parameters([v]).measure_all(inplace=False) for c, v in zip(circuits, [np.pi, 0], strict=True)]
    assert counts_of(bound) == [{"1": 1000}, {"0": 1000}]


def test_t31_a_failing_circuit_never_gives_an_empty_success():
    circuit = QuantumCircuit(1, 1)
    circuit.append(Gate("unheard_of", 1, []), [0])
    circuit.measure(0, 0)
    with pytest.raises(LoweringError, match="unheard_of"):
        OzakiBackend().run(circuit).result().get_counts()


@pytest.mark.parametrize("width", [64, 72, 132])
@pytest.mark.parametrize("value", ["zero", "one bit"])
def test_t40_conditions_on_wide_registers(width, value):
    register = ClassicalRegister(width, "wide")
    circuit = QuantumCircuit(QuantumRegister(2), register, ClassicalRegister(1, "out"))
    circuit.x(0)
    if value == "one bit":
        circuit.measure(0, register[width - 1])
    with circuit.if_test((register, 0 if value == "zero" else 1 << (width - 1))):
        circuit.x(1)
    circuit.measure(1, width)
    (key,) = counts_of(circuit)
    assert key.split()[0] == "1"
    assert int(key.split()[1], 2) == (0 if value == "zero" else 1 << (width - 1))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_t43_pools_after_first_use(method):
    mine = [bell_counts(seed) for seed in range(4)]
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(bell_counts, range(4), timeout=60)) == mine


def test_t46_a_long_job_is_cancelled_in_two_seconds():
    circuit = QuantumCircuit(10, 10)
    for _ in range(30):
        circuit.h(range(10))
        circuit.measure(range(10), range(10))
    backend = OzakiBackend()
    job = backend.run(circuit, shots=10**6)
    assert job.cancel() is True
    assert job.wait(60)
    assert job.status() is JobStatus.CANCELLED
    with pytest.raises(CancelledError):
        job.result()
    assert backend.run(bell().measure_all(inplace=False)).result().success


def test_t48_the_error_names_gate_qubits_circuit_and_remedy():
    circuit = QuantumCircuit(3, name="mine")
    circuit.append(Gate("unheard_of", 2, [0.5]), [2, 0])
    with pytest.raises(LoweringError) as caught:
        OzakiBackend().run(circuit)
    message = str(caught.value)
    assert "unheard_of" in message
    assert "mine" in message
    assert "2, 0" in message
    assert "qsim_ozaki cannot run" in message
    assert "Give it a definition, or a to_matrix() method; or remove it" in message


def test_t51_too_wide_a_circuit_says_what_would_fit_and_what_fits_runs():
    backend = OzakiBackend(max_memory_bytes=16 << 12)
    wide, fitting = QuantumCircuit(14), QuantumCircuit(12)
    for circuit in (wide, fitting):
        circuit.h(circuit.qubits)
        circuit.measure_all()
    message = (
        r"14 qubits need 256 KiB .*has 64 KiB available\. Use at most 12 qubits, or precision='single' .*13 qubits"
    )
    with pytest.raises(CapacityError, match=message):
        backend.run(wide)
    assert not backend.estimate(wide).fits
    assert backend.estimate(wide).max_qubits == 12
    assert sum(backend.run(fitting).result().get_counts().values()) == 1024


@pytest.mark.parametrize("width", [50, 1000])
@pytest.mark.parametrize("level", LEVELS)
def test_t52_wide_and_mostly_idle_circuits_run(width, level):
    circuit = QuantumCircuit(width, width)
    circuit.x(width - 2)
    circuit.measure([width - 2, 0], [width - 1, 1])
    result = OzakiBackend().run(at_level(circuit, level)).result()
    assert result.get_counts() == {"1" + "0" * (width - 1): 1024}
    assert result.results[0].metadata["idle_qubits"] == width - 1  # a qubit that is only measured reads 0


@pytest.mark.parametrize("width", [40, 1000])
def test_t52_measuring_every_qubit_of_a_wide_circuit_costs_nothing(width):
    circuit = QuantumCircuit(width)
    circuit.x(3)
    circuit.measure_all()
    result = OzakiBackend().run(circuit, shots=7).result()
    assert result.get_counts() == {"0" * (width - 4) + "1000": 7}


def test_t52_a_state_with_idle_qubits_is_filled_with_zeros_or_refused():
    circuit = QuantumCircuit(4)
    circuit.h(2)
    circuit.cx(2, 0)
    np.testing.assert_allclose(state_of(circuit), np.asarray(Statevector(circuit)), atol=1e-15)
    circuit = QuantumCircuit(50)
    circuit.h(7)
    with pytest.raises(CapacityError, match=r"1 qubits and 1 saved states of 50 qubits need .*49 idle qubits"):
        OzakiBackend().run(circuit)
