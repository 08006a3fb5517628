"""Native primitives against Qiskit's own and against dense linear algebra."""

import os

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import Clbit, Parameter, ParameterVector, Qubit
from qiskit.circuit.library import HamiltonianGate, efficient_su2
from qiskit.primitives import BackendEstimatorV2, BackendSamplerV2, StatevectorEstimator
from qiskit.providers import JobStatus
from qiskit.quantum_info import Operator, SparseObservable, SparsePauliOp, Statevector
from support.bell import bell
from support.distribution import assert_follows
from support.parametric import exact_value, parametric_circuit, random_observable
from support.random_circuits import random_circuit

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2
from qsim_ozaki.errors import CancelledError, OptionError
from qsim_ozaki.runtime.stack import MAX_STACK_QUBITS

PAIRS = int(os.environ.get("QSIM_OZAKI_ESTIMATES", "200"))


def evs_of(*pub, **options):
    return EstimatorV2(OzakiBackend(**options)).run([pub]).result()[0].data.evs


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")  # Qiskit's matrix of an evolution
@pytest.mark.parametrize("batch", range(4))
def test_exact_values_equal_dense_linear_algebra(rng, batch):
    for _ in range(PAIRS // 4):
        num_qubits = int(rng.integers(1, 7))
        circuit = random_circuit(rng, num_qubits, 15)
        observable = random_observable(rng, num_qubits)
        state = Operator(circuit).data[:, 0]
        want = np.vdot(state, observable.to_matrix() @ state).real
        assert evs_of(circuit, observable) == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("num_qubits", [5, 13, 14])  # stacked, and one by one
def test_rows_and_observables_broadcast_as_qiskits_do(rng, num_qubits):
    circuit = efficient_su2(num_qubits, reps=1)
    values = rng.uniform(-np.pi, np.pi, (3, circuit.num_parameters))
    few = [random_observable(rng, num_qubits) for _ in range(3)]
    for observables in (few, [[o] for o in few[:2]], few[0]):
        want = StatevectorEstimator().run([(circuit, observables, values)]).result()[0].data.evs
        got = EstimatorV2().run([(circuit, observables, values)]).result()[0].data
        assert got.evs.shape == want.shape
        np.testing.assert_allclose(got.evs, want, atol=1e-12)
        np.testing.assert_array_equal(got.stds, 0)


@pytest.mark.parametrize("num_qubits", [MAX_STACK_QUBITS, MAX_STACK_QUBITS + 1, MAX_STACK_QUBITS + 3])
def test_an_energy_follows_qubits_that_swaps_have_moved(rng, num_qubits):
    circuit = QuantumCircuit(num_qubits + 1)  # one is idle
    used = [q for q in range(num_qubits + 1) if q != num_qubits // 2]
    circuit.compose(efficient_su2(num_qubits, reps=2, entanglement="linear"), used, inplace=True)
    for a, b in rng.permutation(used)[:8].reshape(4, 2).tolist():
        circuit.swap(a, b)
    bonds = [("ZZ", [q, q + 1], -1 - 0.1 * q) for q in range(num_qubits)]
    fields = [("X", [q], 0.2 * q - 0.7) for q in range(num_qubits + 1)]
    energy = SparsePauliOp.from_sparse_list([*bonds, *fields, ("YX", [0, num_qubits], 0.3)], num_qubits + 1)
    values = rng.uniform(-np.pi, np.pi, (2, circuit.num_parameters))
    want = [exact_value(circuit, energy, row) for row in values]
    np.testing.assert_allclose(evs_of(circuit, energy, values), want, atol=1e-12)


def test_a_row_does_not_depend_on_its_neighbours(rng):
    circuit = parametric_circuit(rng, 4)
    observable = random_observable(rng, 4)
    values = rng.uniform(-np.pi, np.pi, (50, circuit.num_parameters))
    together = evs_of(circuit, observable, values)
    assert [float(evs_of(circuit, observable, row)) for row in values] == together.tolist()
    for row in range(3):
        assert together[row] == pytest.approx(exact_value(circuit, observable, values[row]), abs=1e-12)


def test_projectors_and_every_form_of_an_observable(rng):
    circuit = random_circuit(rng, 3, 12)
    state = Statevector(circuit)
    projector = SparseObservable.from_list([("0+r", 0.5), ("l1-", 2.0), ("ZZI", -1.0)])
    want = state.expectation_value(SparsePauliOp.from_sparse_observable(projector)).real
    assert evs_of(circuit, projector) == pytest.approx(want, abs=1e-13)
    want = state.expectation_value(SparsePauliOp("XYZ")).real
    for form in ("XYZ", {"XYZ": 1.0}, SparsePauliOp("XYZ")):
        assert evs_of(circuit, form) == pytest.approx(want, abs=1e-13)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_transpiled_circuits(rng, level):
    circuit = random_circuit(rng, 4, 10)
    circuit.swap(0, 3)
    observable = random_observable(rng, 4)
    moved = transpile(circuit, OzakiBackend(), optimization_level=level, initial_layout=[3, 1, 0, 2])
    want = evs_of(circuit, observable)
    assert evs_of(moved, observable.apply_layout(moved.layout)) == pytest.approx(want, abs=1e-12)


def test_idle_qubits_read_zero():
    circuit = QuantumCircuit(70)
    circuit.ry(0.4, 65)
    label = ["I"] * 70
    label[70 - 1 - 65] = "X"
    label[0] = "Z"
    label[69] = "Z"
    assert evs_of(circuit, "".join(label)) == pytest.approx(np.sin(0.4), abs=1e-15)
    label[69] = "X"
    assert evs_of(circuit, "".join(label)) == 0


def test_initialize_and_single_precision(rng):
    vector = rng.normal(size=8) + 1j * rng.normal(size=8)
    vector /= np.linalg.norm(vector)
    circuit = QuantumCircuit(3)
    circuit.initialize(vector, [2, 0, 1])
    circuit.cx(0, 1)
    observable = random_observable(rng, 3)
    plain = QuantumCircuit(3)
    plain.prepare_state(vector, [2, 0, 1])
    plain.cx(0, 1)
    want = Statevector(plain).expectation_value(observable).real
    assert evs_of(circuit, observable) == pytest.approx(want, abs=1e-12)
    assert evs_of(circuit, observable, precision="single") == pytest.approx(want, abs=1e-5)


def test_a_parameter_that_no_slot_takes_is_bound_row_by_row(rng):
    time = Parameter("t")
    circuit = QuantumCircuit(1)
    circuit.append(HamiltonianGate([[0, 1], [1, 0]], time), [0])
    values = rng.uniform(0, 3, (4, 1))
    np.testing.assert_allclose(evs_of(circuit, "Z", values), np.cos(2 * values[:, 0]), atol=1e-13)


@pytest.mark.parametrize("precision", [0.1, 0.03, 0.01])
def test_sampled_values_scatter_as_their_errors_say(rng, precision):
    """The error falls as 1/sqrt(shots): in its own unit it is the same at every precision."""
    circuit = efficient_su2(4, reps=1)
    values = rng.uniform(-np.pi, np.pi, (40, circuit.num_parameters))
    observable = SparsePauliOp(["ZZII", "IXXI", "IIZZ", "YIIY", "IIII"], [1, 0.5, -1, 0.7, 3])
    exact = evs_of(circuit, observable, values)
    result = EstimatorV2(seed=5).run([(circuit, observable, values)], precision=precision).result()[0]
    scores = (result.data.evs - exact) / result.data.stds
    assert abs(scores.mean()) < 4 / np.sqrt(40)
    assert 0.7 < scores.std() < 1.35
    assert result.metadata["shots"] == np.ceil(1 / precision**2)
    variance = sum(c**2 for c in (1, 0.5, 1, 0.7))  # of one shot at most, each basis measured alone
    assert np.all(result.data.stds <= 3 * np.sqrt(variance) * precision)
    assert result.data.stds.mean() > 0.3 * precision


def test_sampled_values_of_a_sharp_observable_are_exact():
    result = EstimatorV2(seed=1).run([(bell(measured=False), ["ZZ", "XX", "YY"])], precision=0.1).result()[0]
    np.testing.assert_array_equal(result.data.evs, [1, 1, -1])
    np.testing.assert_array_equal(result.data.stds, 0)


def test_one_seed_gives_the_same_estimates():
    pub = (bell(measured=False), ["ZI", "XI"])
    runs = [EstimatorV2(seed=seed).run([pub, pub], precision=0.05).result() for seed in (3, 3, 4)]
    np.testing.assert_array_equal(runs[0][0].data.evs, runs[1][0].data.evs)
    assert not np.array_equal(runs[0][0].data.evs, runs[2][0].data.evs)
    assert not np.array_equal(runs[0][0].data.evs, runs[0][1].data.evs)


def test_t73_estimator_of_a_circuit_that_measures():
    circuit = QuantumCircuit(QuantumRegister(2), ClassicalRegister(2, "c"))
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure(0, 0)
    np.testing.assert_allclose(evs_of(circuit, ["ZZ", "XX", "IX", "IZ"]), [1, 0, 0, 0], atol=1e-15)


def test_dynamic_circuits_have_exact_values():
    angle = Parameter("a")
    circuit = QuantumCircuit(2, 1)
    circuit.ry(angle, 0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.h(1)
    circuit.reset(0)
    values = np.array([[0.0], [1.1], [np.pi]])
    ones = np.sin(values[:, 0] / 2) ** 2
    data = EstimatorV2().run([(circuit, [["XI"], ["ZI"], ["IZ"], ["+I"]], values)]).result()[0].data
    np.testing.assert_allclose(data.evs, [ones, 1 - ones, np.ones(3), (1 + ones) / 2], atol=1e-14)
    np.testing.assert_array_equal(data.stds, 0)


def test_what_an_estimator_refuses():
    with pytest.raises(OptionError, match=r"precision=-0\.1 is not allowed"):
        EstimatorV2(default_precision=-0.1)
    with pytest.raises(OptionError, match="seed"):
        EstimatorV2(seed=-1)


def test_t01_controlled_rotations_run_every_row():
    for gate in ("crx", "cry", "crz", "cp", "cu1"):
        angle = Parameter("a")
        circuit = QuantumCircuit(2)
        circuit.h([0, 1])
        if gate == "cu1":
            from qiskit.circuit.library import CU1Gate

            circuit.append(CU1Gate(angle), [0, 1])
        else:
            getattr(circuit, gate)(angle, 0, 1)
        circuit.measure_all()
        data = SamplerV2(seed=1).run([(circuit, [[0.1]] * 3)], shots=2000).result()[0].data.meas
        want = Statevector(circuit.remove_final_measurements(inplace=False).assign_parameters([0.1]))
        for row in range(3):
            assert_follows(data.get_counts(row), want.probabilities_dict())


@pytest.mark.parametrize("dynamic", [False, True])
def test_t14_registers_loose_overlapping_and_apart(dynamic):
    bits = [Clbit() for _ in range(5)]
    low = ClassicalRegister(bits=[bits[3], bits[0]], name="apart")
    mixed = ClassicalRegister(bits=[bits[0], bits[1]], name="shared")
    circuit = QuantumCircuit([Qubit(), Qubit()], bits, low, mixed)
    circuit.x(0)
    circuit.measure([0, 1, 0, 0], [0, 1, 3, 4])
    if dynamic:
        circuit.h(1)
        circuit.reset(1)
        circuit.measure(1, 1)
    data = SamplerV2(seed=2).run([circuit], shots=7).result()[0].data
    assert data.apart.get_counts() == {"11": 7}
    assert data.shared.get_counts() == {"01": 7}
    assert data.clbit2.get_counts() == {"0": 7}
    assert data.clbit4.get_counts() == {"1": 7}


@pytest.mark.parametrize("width", [1, 8, 9, 64, 65, 130])
def test_t71_t72_registers_of_any_width(width):
    registers = [ClassicalRegister(width, "wide"), ClassicalRegister(2, "two")]
    circuit = QuantumCircuit(QuantumRegister(2), *registers)
    circuit.x(0)
    circuit.measure([0, 0], [registers[0][width - 1], registers[1][1]])
    data = SamplerV2().run([circuit], shots=3).result()[0].data
    assert data.wide.get_int_counts() == {1 << (width - 1): 3}
    assert data.two.get_counts() == {"10": 3}
    assert data.wide.num_bits == width


def test_sampler_rows_follow_their_distributions_and_keep_shot_order(rng):
    circuit = efficient_su2(4, reps=1)
    values = rng.uniform(-np.pi, np.pi, (2, 3, circuit.num_parameters))
    measured = circuit.measure_all(inplace=False)
    result = SamplerV2(seed=9).run([(measured, values), (measured, values[0], 50)], shots=4000).result()
    data = result[0].data.meas
    assert data.shape == (2, 3)
    for place in np.ndindex(2, 3):
        want = Statevector(circuit.assign_parameters(values[place])).probabilities_dict()
        assert_follows(data.get_counts(place), want)
    assert result[1].data.meas.num_shots == 50
    again = SamplerV2(seed=9).run([(measured, values)], shots=4000).result()[0].data.meas
    np.testing.assert_array_equal(again.array, data.array)
    split = circuit.copy()
    split.add_register(ClassicalRegister(4, "b"), ClassicalRegister(4, "a"))
    split.measure(range(4), range(4))
    split.measure(range(4), range(4, 8))
    both = SamplerV2(seed=9).run([(split, values[0, 0])], shots=100).result()[0].data
    assert both.a.get_bitstrings() == both.b.get_bitstrings()


def test_sampler_of_a_dynamic_circuit():
    circuit = QuantumCircuit(2, 2)
    circuit.h(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(1)
    circuit.measure(1, 1)
    assert_follows(SamplerV2(seed=3).run([circuit]).result()[0].data.c.get_counts(), {"00": 0.5, "11": 0.5})


def test_backend_primitives_broadcast(rng):
    circuit = efficient_su2(3, reps=1)
    values = rng.uniform(-np.pi, np.pi, (4, circuit.num_parameters))
    observables = [["ZZZ"], ["IXX"]]
    exact = evs_of(circuit, observables, values)
    options = {"default_precision": 0.01, "seed_simulator": 3}
    estimator = BackendEstimatorV2(backend=OzakiBackend(), options=options)
    np.testing.assert_allclose(estimator.run([(circuit, observables, values)]).result()[0].data.evs, exact, atol=0.06)
    measured = circuit.measure_all(inplace=False)
    sampler = BackendSamplerV2(backend=OzakiBackend(), options={"seed_simulator": 3})
    data = sampler.run([(measured, values)], shots=2000).result()[0].data.meas
    for row in range(4):
        assert_follows(data.get_counts(row), Statevector(circuit.assign_parameters(values[row])).probabilities_dict())


def test_a_primitive_job_can_be_cancelled():
    angles = ParameterVector("p", 4)
    circuit = QuantumCircuit(18)
    for repeat in range(40):
        circuit.ry(angles[repeat % 4], range(18))
        circuit.cz(range(17), range(1, 18))
    job = EstimatorV2().run([(circuit, "Z" * 18, np.zeros((2000, 4)))])
    assert job.cancel()
    assert job.cancelled()
    assert job.status() is JobStatus.CANCELLED
    with pytest.raises(CancelledError):
        job.result()
    assert EstimatorV2().run([(bell(measured=False), "ZZ")]).result()[0].data.evs == pytest.approx(1)
