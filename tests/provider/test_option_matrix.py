"""Every option that changes a state or a sample, in every entry point: the right value, or a refusal by name."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.circuit import Parameter
from qiskit.circuit.classical import types
from qiskit.circuit.library import QFT, EfficientSU2, RealAmplitudes
from qiskit.quantum_info import SparsePauliOp, Statevector
from support.distribution import assert_follows

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2, expectation_gradient
from qsim_ozaki.errors import CapacityError, LoweringError, OptionError

ANGLE = Parameter("angle")
VALUES = np.array([[0.3], [1.1]])
OBSERVABLES = ["ZZZ", "IIX", "IZI", "YII"]
VECTOR = np.arange(1, 9) * np.exp(1j * np.arange(8)) / np.linalg.norm(np.arange(1, 9))
STARTS = {"none": None, "label": "1+r", "index": 5, "vector": VECTOR, "list": list(VECTOR)}
OTHERS = [
    {"precision": "single"},
    {"arithmetic": "native"},
    {"arithmetic": "emulated"},
    {"accuracy": 1e-10},
    {"threads": 1},
    {"max_memory_bytes": 1 << 20},
    {"engine": "cpu"},
    {"memory": True},
    {"shots": 3000},
    {"progress": True},
    {"progress": False},
]


def ansatz():
    """Qubit 1 is idle, so that only its start matters."""
    circuit = QuantumCircuit(3, global_phase=0.2)
    circuit.rx(ANGLE, 0)
    circuit.ry(2 * ANGLE, 2)
    circuit.cx(0, 2)
    return circuit


def measured(circuit):
    return circuit.measure_all(inplace=False)


def dynamic():
    """`ansatz` with a measurement on the way, after which qubit 0 is turned again."""
    circuit = QuantumCircuit(3, 1)
    circuit.rx(ANGLE, 0)
    circuit.measure(0, 0)
    circuit.ry(2 * ANGLE, 2)
    circuit.cx(0, 2)
    circuit.rx(ANGLE, 0)
    return circuit


def start_state(start):
    if start is None:
        return Statevector.from_int(0, 8)
    if isinstance(start, str):
        return Statevector.from_label(start)
    return Statevector.from_int(start, 8) if isinstance(start, int) else Statevector(start)


def final(start, row):
    return start_state(start).evolve(ansatz().assign_parameters(row))


def values_of(start, row, is_dynamic):
    """Of `OBSERVABLES`; a measurement of qubit 0 projects its density matrix."""
    state = final(start, row)
    if not is_dynamic:
        return [state.expectation_value(SparsePauliOp(label)).real for label in OBSERVABLES]
    first, rest = QuantumCircuit(3), QuantumCircuit(3)
    first.rx(row[0], 0)
    rest.ry(2 * row[0], 2)
    rest.cx(0, 2)
    rest.rx(row[0], 0)
    total = np.zeros(len(OBSERVABLES))
    before = start_state(start).evolve(first)
    for outcome in (0, 1):
        branch = Statevector(np.where(np.arange(8) & 1 == outcome, before.data, 0)).evolve(rest)
        total += [branch.expectation_value(SparsePauliOp(o)).real for o in OBSERVABLES]
    return total


@pytest.fixture(params=STARTS, ids=list(STARTS))
def start(request):
    return STARTS[request.param]


CASES = [(name, {}) for name in STARTS] + [("vector", options) for options in OTHERS] + [("none", OTHERS[0])]
CASE_NAMES = [f"{name}, {options}" for name, options in CASES]


@pytest.fixture(params=["pure", "dynamic"])
def circuit(request):
    return (request.param == "dynamic", ansatz() if request.param == "pure" else dynamic())


@pytest.mark.parametrize(("name", "options"), CASES, ids=CASE_NAMES)
def test_estimators_take_every_option(name, circuit, options):
    start = STARTS[name]
    is_dynamic, free = circuit
    backend = OzakiBackend(initial_state=start, seed_simulator=5, **options)
    want = np.array([values_of(start, row, is_dynamic) for row in VALUES])
    pub = (free, OBSERVABLES, VALUES[:, None])
    exact = EstimatorV2(backend).run([pub]).result()[0].data
    np.testing.assert_allclose(exact.evs, want, atol=1e-5 if options == {"precision": "single"} else 1e-12)
    sampled = EstimatorV2(backend).run([pub], precision=0.02).result()[0].data
    assert np.all(np.abs(sampled.evs - want) <= 5 * sampled.stds + 1e-9)
    again = EstimatorV2(backend).run([pub], precision=0.02).result()[0].data
    np.testing.assert_array_equal(again.evs, sampled.evs)


@pytest.mark.parametrize(("name", "options"), CASES, ids=CASE_NAMES)
def test_runs_rows_lists_executors_and_samplers_take_every_option(name, options):
    start = STARTS[name]
    backend = OzakiBackend(initial_state=start, seed_simulator=5, **options)
    circuit = measured(ansatz())
    shots = options.get("shots", 1024)
    want = [final(start, row).probabilities_dict() for row in VALUES]
    bound = [circuit.assign_parameters(row) for row in VALUES]
    with ThreadPoolExecutor(2) as executor:
        results = {
            "run": [backend.run(one).result().get_counts() for one in bound],
            "list": backend.run(bound).result().get_counts(),
            "rows": backend.run(circuit, parameter_binds=[VALUES]).result().get_counts(),
            "executor": backend.run(circuit, parameter_binds=[VALUES], executor=executor).result().get_counts(),
        }
    for counts in results.values():
        for row in range(2):
            assert sum(counts[row].values()) == shots
            assert_follows(counts[row], want[row])
    assert results["list"] == results["rows"] == results["executor"]
    data = SamplerV2(backend).run([(circuit, VALUES)]).result()[0].data.meas
    assert data.num_shots == shots
    for row in range(2):
        assert_follows(data.get_counts(row), want[row])
    exact = backend.run(bound[0], shots=None, memory=False).result().get_counts()
    for key, probability in want[0].items():
        assert exact.get(key, 0) == pytest.approx(probability, abs=1e-6)
    assert len(backend.plan(bound[0]).explain().splitlines()) > 2


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
@pytest.mark.parametrize("of", [lambda: EfficientSU2(3, reps=1), lambda: RealAmplitudes(3), lambda: QFT(3)])
def test_library_circuits_that_build_themselves_when_first_read(start, of):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.linspace(0, 2, of().num_parameters)
        want = start_state(start).evolve(of().assign_parameters(values))
        backend = OzakiBackend(initial_state=start)
        binds = [values[None]] if values.size else None
        states = [backend.run(of(), parameter_binds=binds).result().get_statevector()]
        states.append(backend.run(of().assign_parameters(values)).result().get_statevector())
        for state in states:
            np.testing.assert_allclose(state.data, want.data, atol=1e-12)
        exact = want.expectation_value(SparsePauliOp("XYZ")).real
        assert EstimatorV2(backend).run([(of(), "XYZ", values)]).result()[0].data.evs == pytest.approx(exact, abs=1e-12)
        backend.plan(of().assign_parameters(values)).explain()
        if start is None and values.size:
            assert expectation_gradient(of(), "XYZ", values)[0] == pytest.approx(exact, abs=1e-12)


def test_the_issue_of_an_initial_state_that_an_estimator_ignored():
    data = EstimatorV2(OzakiBackend(initial_state="1")).run([(QuantumCircuit(1), SparsePauliOp("Z"))]).result()[0].data
    assert data.evs == -1


@pytest.mark.parametrize("value", [False, True])
def test_inputs_in_every_entry_point(value):
    circuit = QuantumCircuit(1, 1)
    flips = circuit.add_input("flips", types.Bool())
    with circuit.if_test(flips):
        circuit.x(0)
    backend, wanted = OzakiBackend(inputs={"flips": value}), str(int(value))
    measuring = circuit.copy()
    measuring.measure(0, 0)
    for counts in (
        backend.run(measuring).result().get_counts(),
        *backend.run([measuring, measuring]).result().get_counts(),
        SamplerV2(backend).run([measuring]).result()[0].data.c.get_counts(),
    ):
        assert counts == {wanted: 1024}
    for precision in (0, 0.1):
        evs = EstimatorV2(backend).run([(circuit, "Z")], precision=precision).result()[0].data.evs
        assert evs == 1 - 2 * value
    assert backend.plan(measuring).explain()
    for refused in (
        lambda: EstimatorV2().run([(circuit, "Z")]).result(),
        lambda: SamplerV2().run([measuring]).result(),
        lambda: OzakiBackend().run(measuring),
        lambda: expectation_gradient(circuit, "Z", []),
    ):
        with pytest.raises(LoweringError, match=r"input variable 'flips' of type .* has no value"):
            refused()


ENTRIES = {
    "rows": lambda backend: backend.run(measured(ansatz()), parameter_binds=[VALUES]),
    "plan": lambda backend: backend.plan(ansatz().assign_parameters([1.0])),
    "sampler": lambda backend: SamplerV2(backend).run([(measured(ansatz()), VALUES)]).result(),
    "exact": lambda backend: EstimatorV2(backend).run([(ansatz(), "ZZZ", [1.0])]).result(),
    "sampled": lambda backend: EstimatorV2(backend).run([(ansatz(), "ZZZ", [1.0])], precision=0.1).result(),
    "dynamic exact": lambda backend: EstimatorV2(backend).run([(dynamic(), "ZZZ", [1.0])]).result(),
    "dynamic sampled": lambda backend: EstimatorV2(backend).run([(dynamic(), "ZZZ", [1.0])], precision=0.1).result(),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_does_not_suit_is_refused_by_name_in_every_entry_point(entry):
    for start, message in (("01", "initial_state='01' is for 2 qubits"), ([1, 0], "initial_state has 2 amplitudes")):
        with pytest.raises(OptionError, match=message):
            ENTRIES[entry](OzakiBackend(initial_state=start))
    with pytest.raises(LoweringError, match="no input variable 'other'"):
        ENTRIES[entry](OzakiBackend(inputs={"other": 1}))
    if entry != "plan":  # which takes no memory
        with pytest.raises(CapacityError, match="32 B"):
            ENTRIES[entry](OzakiBackend(max_memory_bytes=32))


def test_a_sampler_needs_shots_and_a_gradient_takes_no_options():
    with pytest.raises(OptionError, match="shots=None, the backend's option"):
        SamplerV2(OzakiBackend(shots=None)).run([measured(ansatz()).assign_parameters([1.0])])
    with pytest.raises(TypeError, match="initial_state"):
        expectation_gradient(ansatz(), "ZZZ", [1.0], initial_state="000")
