"""Small measured circuits: run as stacks, alone or in lists, their outcomes written out when asked for."""

import copy
import json
import pickle
from collections import Counter

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import Statevector, random_unitary
from qiskit.result import marginal_counts
from support.bell import bell
from support.distribution import assert_follows
from support.random_circuits import random_circuit

from qsim_ozaki import OzakiBackend
from qsim_ozaki.ir import Stack
from qsim_ozaki.provider import to_jsonable
from qsim_ozaki.runtime import sampling


def measured(rng, num_qubits):
    """A random circuit with some of its qubits measured, in any order, into two registers."""
    circuit = QuantumCircuit(QuantumRegister(num_qubits), ClassicalRegister(2, "low"), ClassicalRegister(3, "high"))
    circuit.compose(random_circuit(rng, num_qubits, 25), inplace=True)
    for bit, qubit in zip(rng.permutation(5).tolist(), rng.permutation(num_qubits).tolist(), strict=False):
        circuit.measure(qubit, bit)
    return circuit


def steps_of(result, index=0):
    return result.results[index].metadata["steps"]


@pytest.mark.parametrize("num_qubits", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
def test_shots_are_where_the_streams_numbers_fall(rng, num_qubits, precision):
    """Numbers of the row's stream among the cumulative probabilities that Qiskit finds."""
    circuits = [measured(rng, num_qubits) for _ in range(8)]
    result = OzakiBackend(seed_simulator=3, memory=True, precision=precision).run(circuits, shots=200).result()
    for index, circuit in enumerate(circuits):
        assert steps_of(result, index) == {"stack": 1}
        reads = [
            (circuit.find_bit(item.qubits[0]).index, circuit.find_bit(item.clbits[0]).index)
            for item in circuit.data
            if item.name == "measure"
        ]
        cumulative = np.cumsum(np.abs(Statevector(circuit.remove_final_measurements(inplace=False)).data) ** 2)
        uniforms = sampling.stream(3, (index,)).random(200)
        samples = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right").tolist()
        values = [sum((sample >> qubit & 1) << bit for qubit, bit in reads) for sample in samples]
        strings = [f"{value:05b}" for value in values]
        assert result.get_memory(index) == [f"{text[:3]} {text[3:]}" for text in strings]
        assert result.get_counts(index) == Counter(result.get_memory(index))
        assert result.data(index)["counts"] == Counter(map(hex, values))


def test_a_row_is_the_same_alone_and_among_others(rng):
    circuits = [measured(rng, int(rng.integers(1, 8))) for _ in range(30)]
    others = [*circuits[:10], bell(), *circuits[11:20], QuantumCircuit(2), *circuits[21:]]
    backend = OzakiBackend(seed_simulator=8, memory=True)
    all_of_them = backend.run(circuits, shots=50).result()
    changed = backend.run(others, shots=50).result()
    alone = backend.run(circuits[0], shots=50).result()
    assert alone.get_memory() == all_of_them.get_memory(0)
    for index in {*range(30)} - {10, 20}:
        assert changed.get_memory(index) == all_of_them.get_memory(index)
    assert "stack" in steps_of(changed, 10)
    assert "statevector" in changed.data(20)


def test_which_circuits_are_stacked():
    backend = OzakiBackend()
    wide, matrix, state = QuantumCircuit(14), QuantumCircuit(6), QuantumCircuit(2)
    wide.h(range(14))
    wide.measure_all()
    matrix.unitary(random_unitary(64, seed=1), range(6))
    matrix.measure_all()
    state.h(0)
    for circuit, options in ((wide, {}), (matrix, {}), (state, {}), (bell(), {"shots": None})):
        assert "stack" not in steps_of(backend.run(circuit, **options).result())
        assert not any(isinstance(step, Stack) for step in backend.plan(circuit, **options).steps)
    found = backend.run(bell()).result()
    assert steps_of(found) == {"stack": 1}
    planned = backend.plan(bell())
    (step,) = planned.steps
    assert (type(step), step.qubits, len(step.ops)) == (Stack, (0, 1), 2)
    assert found.results[0].metadata["predicted_seconds"] == planned.prediction.seconds > 0
    assert "Stack 1 h, 1 cx" in planned.explain()
    assert "Stack 1 h, 1 cx" in planned._repr_html_()


def test_emulated_arithmetic_is_done_in_rows_too(rng):
    circuit = efficient_su2(3, reps=1)
    circuit.unitary(random_unitary(8, seed=2), range(3))
    values = rng.uniform(-3, 3, (2, circuit.num_parameters))
    result = OzakiBackend(arithmetic="emulated").run(circuit, parameter_binds=values).result()
    for index, row in enumerate(values):
        assert result.results[index].metadata["emulated"]["blocks"] == 1
        want = np.asarray(Statevector(circuit.assign_parameters(row)))
        np.testing.assert_allclose(np.asarray(result.get_statevector(index)), want, atol=1e-13)


def test_results_that_are_not_written_out_can_be_copied(rng):
    circuit = measured(rng, 5)
    result = OzakiBackend(seed_simulator=1).run([circuit, bell()], shots=300, memory=True).result()
    copies = [pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)]
    plain = json.loads(json.dumps(to_jsonable(result)))
    for each in (result, *copies):
        for index in range(2):
            counts = each.get_counts(index)
            assert counts == result.get_counts(index)
            assert counts.hex_outcomes() == each.data(index)["counts"] == plain["results"][index]["data"]["counts"]
            assert counts.int_outcomes() == {int(key, 16): count for key, count in counts.hex_outcomes().items()}
            again = pickle.loads(pickle.dumps(counts))
            assert again == counts
            assert again.hex_outcomes() == counts.hex_outcomes()
            assert again.shots() == 300
            assert each.get_memory(index) == result.get_memory(index)
    assert "counts={" in repr(result.results[1].data)
    without = OzakiBackend().run(bell()).result().results[0].data
    assert not hasattr(without, "memory")
    assert not hasattr(without, "anything")


def test_counts_that_somebody_changed_are_shown(rng):
    result = OzakiBackend(seed_simulator=1).run([measured(rng, 5), bell()], shots=300, memory=True).result()
    marginal = marginal_counts(result, [0])
    for index in range(2):
        wanted = Counter(text[-1] for text in result.get_memory(index))
        assert marginal.get_counts(index) == wanted
    result.results[1].data.counts = {"0x2": 5}
    assert result.get_counts(1) == {"10": 5}


def test_many_shots_of_a_small_circuit_follow_its_distribution():
    circuit = QuantumCircuit(3)
    circuit.ry(0.3, 0)
    circuit.cry(1.1, 0, 1)
    circuit.ry(2.2, 2)
    wanted = Statevector(circuit).probabilities_dict()
    circuit.measure_all()
    result = OzakiBackend(seed_simulator=12).run(circuit, shots=10**6).result()
    assert steps_of(result) == {"stack": 1}
    assert_follows(result.get_counts(), wanted)
