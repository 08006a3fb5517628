"""Rows of parameters in one run: right, independent, reproducible, on executors, fast."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Clbit, Parameter, ParameterVector
from qiskit.circuit.library import HamiltonianGate, efficient_su2
from qiskit.providers import JobStatus
from qiskit.quantum_info import Statevector
from qiskit.result import Result
from support.bell import bell
from support.distribution import assert_follows
from support.parametric import parametric_circuit

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import CancelledError, EngineError, LoweringError, OptionError, TimeLimitError


def ansatz(num_qubits, reps=1):
    return efficient_su2(num_qubits, reps=reps)


def rows_of(rng, circuit, count):
    return rng.uniform(-np.pi, np.pi, (count, circuit.num_parameters))


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 6, 13, 14])  # stacked up to 13
@pytest.mark.parametrize("precision", ["double", "single"])
def test_states_of_rows_equal_those_of_bound_circuits(rng, num_qubits, precision):
    circuit = parametric_circuit(rng, num_qubits)
    values = rows_of(rng, circuit, 3)
    result = OzakiBackend(precision=precision).run(circuit, parameter_binds=values).result()
    for index, row in enumerate(values):
        want = OzakiBackend().run(circuit.assign_parameters(row)).result().get_statevector()
        got = np.asarray(result.data(index)["statevector"])
        assert got.dtype == (np.complex128 if precision == "double" else np.complex64)
        np.testing.assert_allclose(got, np.asarray(want), atol=1e-13 if precision == "double" else 1e-5)
    paths = {"stack"} if num_qubits <= 13 else {"prepare", "tile"}
    assert set(result.results[0].metadata["steps"]) <= paths | {"relabel", "hadamard", "dense_native"}


@pytest.mark.parametrize("num_qubits", [5, 14])
def test_counts_of_a_row_are_those_of_its_bound_circuit(rng, num_qubits):
    circuit = ansatz(num_qubits).measure_all(inplace=False)
    values = rows_of(rng, circuit, 4)
    backend = OzakiBackend(seed_simulator=11, memory=True)
    rows = backend.run(circuit, parameter_binds=values).result()
    bound = backend.run([circuit.assign_parameters(row) for row in values]).result()
    assert [rows.get_memory(i) for i in range(4)] == [bound.get_memory(i) for i in range(4)]
    assert rows.get_counts() == bound.get_counts()
    assert rows.results[2].metadata["parameters"] == {
        p.name: v for p, v in zip(circuit.parameters, values[2], strict=True)
    }


def test_t77_a_row_depends_on_seed_and_index_alone(rng):
    circuit = ansatz(4).measure_all(inplace=False)
    values = np.repeat(rows_of(rng, circuit, 1), 30, axis=0)
    backend = OzakiBackend(memory=True)
    first = backend.run(circuit, parameter_binds=values, seed_simulator=5).result()
    again = backend.run(circuit, parameter_binds=values, seed_simulator=5).result()
    memories = [first.get_memory(index) for index in range(30)]
    assert memories == [again.get_memory(index) for index in range(30)]
    assert len({tuple(memory) for memory in memories}) == 30
    other = values.copy()
    other[:7] += 1
    changed = backend.run(circuit, parameter_binds=other, seed_simulator=5).result()
    assert [changed.get_memory(index) for index in range(7, 30)] == memories[7:]
    fewer = backend.run([bell(), circuit], parameter_binds=[None, values[:3]], seed_simulator=5).result()
    assert [fewer.get_memory(index) for index in (1, 2, 3)] == memories[1:4]


def test_aers_form_of_parameter_binds():
    a, b = Parameter("a"), Parameter("b")
    circuits = [QuantumCircuit(1), QuantumCircuit(1)]
    circuits[0].ry(a, 0)
    circuits[1].ry(b, 0)
    circuits[1].rx(a, 0)
    measured = [circuit.measure_all(inplace=False) for circuit in circuits]
    binds = [{a: [0, np.pi]}, {a: [0, 0, np.pi], b: [np.pi]}]
    counts = OzakiBackend().run(measured, parameter_binds=binds, shots=10).result().get_counts()
    assert counts == [{"0": 10}, {"1": 10}, {"1": 10}, {"1": 10}, {"0": 10}]
    named = OzakiBackend().run(measured[1], parameter_binds={"a": 0, "b": [0, np.pi]}, shots=10).result()
    assert named.get_counts() == [{"0": 10}, {"1": 10}]
    vector = ParameterVector("p", 12)
    circuit = QuantumCircuit(12)
    for qubit, angle in enumerate(vector):
        circuit.rx(angle, qubit)
    circuit.measure_all()
    ones = np.pi * np.array([[1, 0] * 6, [1, 1, 0] * 4])
    got = OzakiBackend().run(circuit, parameter_binds=[{vector: ones}], shots=1).result().get_counts()
    assert got == [{"01" * 6: 1}, {"011" * 4: 1}]


def test_t01_three_rows_of_a_controlled_rotation():
    for gate in ("crx", "cry", "crz", "cp", "mcp"):
        angle = Parameter("a")
        circuit = QuantumCircuit(2)
        circuit.h([0, 1])
        getattr(circuit, gate)(angle, [0] if gate == "mcp" else 0, 1)
        circuit.h([0, 1])
        want = Statevector(circuit.assign_parameters([0.1])).probabilities_dict()
        circuit.measure_all()
        counts = OzakiBackend(seed_simulator=2).run(circuit, parameter_binds=[{angle: [0.1] * 3}]).result().get_counts()
        assert len(counts) == 3
        for each in counts:
            assert_follows(each, want)


def test_what_does_not_suit_a_circuit_is_refused():
    angle = Parameter("alpha")
    circuit = QuantumCircuit(1, name="mine")
    circuit.rx(angle, 0)
    circuit.ry(Parameter("beta"), 0)
    backend = OzakiBackend()
    cases = [
        ({angle: [0.1]}, "'mine' has unbound parameters: beta"),
        ({angle: [0.1], "gamma": 1}, "'mine' has no parameter 'gamma'. It has: alpha, beta"),
        ({angle: [1, 2], "beta": [1, 2, 3]}, "parameters have 2, 3 values"),
        ({angle: [], "beta": 1}, "has no values"),
        (np.empty((0, 2)), "no rows of values"),
        ({angle: ["x"], "beta": 1}, "are not real numbers"),
        ([{}, {}], "2 entries for 1 circuits"),
        (np.zeros((4, 3)), r"shape \(4, 3\) do not suit"),
        (3, "type int is not allowed"),
        (np.array([[0.1, np.nan]]), r"parameter '.*' is nan in row 0, which is not finite"),
    ]
    for binds, message in cases:
        with pytest.raises(OptionError, match=message):
            backend.run(circuit, parameter_binds=binds)
    with pytest.raises(LoweringError, match="'mine' has unbound parameters"):
        backend.run(circuit)


def test_rows_of_what_no_slot_takes(rng):
    """A parameter inside a branch, and a gate that needs its number: bound and translated row by row."""
    angle = Parameter("a")
    circuit = QuantumCircuit(QuantumRegister(2), ClassicalRegister(2, "c"))
    circuit.x(0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.rx(angle, 1)
    circuit.measure(1, 1)
    counts = OzakiBackend().run(circuit, parameter_binds={angle: [0, np.pi]}, shots=9).result().get_counts()
    assert counts == [{"01": 9}, {"11": 9}]
    circuit = QuantumCircuit(1)
    circuit.append(HamiltonianGate([[0, 1], [1, 0]], angle), [0])
    result = OzakiBackend().run(circuit, parameter_binds={angle: [0.1, 0.7]}).result()
    for index, time_ in enumerate((0.1, 0.7)):
        want = [np.cos(time_), -1j * np.sin(time_)]
        np.testing.assert_allclose(np.asarray(result.get_statevector(index)), want, atol=1e-14)


def test_rows_of_dynamic_circuits(rng):
    angle = Parameter("a")
    circuit = QuantumCircuit(2, 2)
    circuit.ry(angle, 0)
    circuit.measure(0, 0)
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(1)
    circuit.reset(0)
    circuit.ry(angle, 0)
    circuit.measure(1, 1)
    values = [0, np.pi, 1.1]
    result = OzakiBackend(seed_simulator=1).run(circuit, parameter_binds={angle: values}, shots=2000).result()
    assert result.get_counts(0) == {"00": 2000}
    assert result.get_counts(1) == {"11": 2000}
    assert_follows(result.get_counts(2), {"00": np.cos(0.55) ** 2, "11": np.sin(0.55) ** 2})


def long_circuit():
    circuit = QuantumCircuit(16, 16)
    for _ in range(60):
        circuit.h(range(16))
        circuit.measure(range(16), range(16))
    return circuit


@pytest.mark.parametrize("elsewhere", [False, True])
def test_t46_cancel_and_timeout_stop_a_batch(rng, elsewhere):
    circuit = ansatz(12, reps=4).measure_all(inplace=False)
    values = rows_of(rng, circuit, 20000)
    with ThreadPoolExecutor(1) as pool:
        where = {"executor": pool} if elsewhere else {}
        job = OzakiBackend().run(circuit, parameter_binds=values, shots=1, **where)
        assert job.cancel()
        assert job.wait(60)
        with pytest.raises(CancelledError):
            job.result()
        job = OzakiBackend().run(long_circuit(), shots=10**6, timeout=0.2, **where)
        with pytest.raises(TimeLimitError, match=r"longer than its timeout of 0.2 s"):
            job.result()
        assert job.status() is JobStatus.ERROR


def test_progress_is_told_row_by_row(rng):
    seen = []
    circuit = ansatz(2)
    backend = OzakiBackend()
    backend.run(
        [circuit, bell()], parameter_binds=[rows_of(rng, circuit, 3), None], progress=lambda *n: seen.append(n)
    ).result()
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_backend_job_and_result_are_pickled(rng):
    backend = OzakiBackend(seed_simulator=3, shots=100)
    circuit = ansatz(2).measure_all(inplace=False)
    job = backend.run(circuit, parameter_binds=rows_of(rng, circuit, 2))
    result = job.result()
    copies = pickle.loads(pickle.dumps((backend, job, result)))
    assert copies[0].run(bell()).result().get_counts() == backend.run(bell()).result().get_counts()
    assert copies[1].status() is JobStatus.DONE
    assert copies[1].job_id() == job.job_id()
    assert copies[1].result().get_counts() == copies[2].get_counts() == result.get_counts()
    with pytest.raises(EngineError, match="submitted before"):
        copies[1].submit()
    running = OzakiBackend().run(long_circuit(), shots=10**6)
    with pytest.raises(EngineError, match="has not ended"):
        pickle.dumps(running)
    running.cancel()
    assert running.wait(60)


def test_many_threads_share_a_backend(rng):
    circuit = ansatz(3).measure_all(inplace=False)
    values = rows_of(rng, circuit, 6)
    backends = [OzakiBackend(seed_simulator=5), OzakiBackend(seed_simulator=5, threads=1)]
    want = backends[0].run(circuit, parameter_binds=values).result().get_counts()

    def one(index):
        return backends[index % 2].run(circuit, parameter_binds=values).result().get_counts()

    with ThreadPoolExecutor(8) as pool:
        assert all(counts == want for counts in pool.map(one, range(40)))


@pytest.mark.parametrize("sizes", [[5], [1, 0, 4], [2, 3], []])
def test_counts_are_those_that_qiskit_formats(rng, sizes):
    loose = [] if sizes else [[Clbit() for _ in range(3)]]
    registers = [ClassicalRegister(size, f"r{index}") for index, size in enumerate(sizes)]
    circuit = QuantumCircuit(QuantumRegister(5), *loose, *registers)
    for qubit in range(5):
        circuit.ry(rng.uniform(0, np.pi), qubit)
    circuit.measure(range(circuit.num_clbits), range(circuit.num_clbits))
    result = OzakiBackend().run([circuit, bell()]).result()
    for index in range(2):
        ours, theirs = result.get_counts(index), Result.get_counts(result, index)
        assert ours == theirs
        assert ours.hex_outcomes() == theirs.hex_outcomes()
        assert ours.int_outcomes() == theirs.int_outcomes()
        assert ours.creg_sizes == theirs.creg_sizes
        assert ours.shots() == 1024
    assert result.get_counts() == [result.get_counts(0), result.get_counts(circuits_name(result, 1))]
    state = QuantumCircuit(1)
    state.h(0)
    assert OzakiBackend().run(state).result().get_counts() == {"0": 0.5, "1": 0.5}


def circuits_name(result, index):
    return result.results[index].header["name"]
