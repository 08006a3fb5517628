"""Each row of a result has parts of its own: what changes one row changes no other row, and no circuit."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Parameter
from qiskit.result import marginal_counts

from qsim_ozaki import OzakiBackend


def sweep():
    angle = Parameter("angle")
    registers = ClassicalRegister(1, "a"), ClassicalRegister(2, "b")
    circuit = QuantumCircuit(QuantumRegister(3), *registers, metadata={"tags": ["kept"]})
    circuit.rx(angle, 0)
    circuit.cx(0, 2)
    circuit.measure(range(3), range(3))
    return circuit, [{angle: [0.0, np.pi, np.pi]}]


def dynamic_sweep():
    circuit, binds = sweep()
    circuit.reset(0)
    circuit.measure(1, 1)
    return circuit, binds


def rows_of(kind, **options):
    backend = OzakiBackend(seed_simulator=3, **options)
    if kind == "list":
        circuit, binds = sweep()
        (values,) = binds[0].values()
        return backend.run([circuit.assign_parameters([value]) for value in values]).result()
    circuit, binds = dynamic_sweep() if kind == "dynamic" else sweep()
    if kind == "executor":
        with ThreadPoolExecutor(2) as executor:
            return backend.run(circuit, parameter_binds=binds, executor=executor).result()
    return backend.run(circuit, parameter_binds=binds).result()


KINDS = ["rows", "list", "executor", "dynamic"]


def parts(value):
    """Every mutable container in ``value``, itself included, but not the user's own objects in metadata."""
    if isinstance(value, dict):
        yield value
        for key, entry in value.items():
            if key != "metadata":
                yield from parts(entry)
    elif isinstance(value, list):
        yield value
        for entry in value:
            yield from parts(entry)


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_rows_share_a_container(kind):
    result = rows_of(kind, memory=True)
    seen = {}
    for number, row in enumerate(result.results):
        row_parts = [row.data, row.header["metadata"], *parts(row.header), *parts(row.metadata)]
        row_parts += [row.data.counts, row.data.memory]
        for part in row_parts:
            assert seen.setdefault(id(part), number) == number


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("indices", [[0], [2], [0, 2], [1]])
@pytest.mark.parametrize("inplace", [False, True])
def test_marginals_of_every_row(kind, indices, inplace):
    result = rows_of(kind)
    want = [marginal_counts(dict(counts), indices) for counts in copy.deepcopy(result.get_counts())]
    marginals = marginal_counts(result, indices, inplace=inplace).get_counts()
    assert [{key.replace(" ", ""): n for key, n in row.items()} for row in marginals] == [
        {key.replace(" ", ""): n for key, n in row.items()} for row in want
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_marginals_without_memory(kind):
    result = rows_of(kind, memory=True)
    for marginal in marginal_counts(result, [0], marginalize_memory=False).results:
        assert not hasattr(marginal.data, "memory")
        assert marginal.data.to_dict().keys() == {"counts"}
        assert "memory" not in repr(marginal.data)
    assert all(len(row.data.memory) == 1024 for row in result.results)
    kept = marginal_counts(result, [0], marginalize_memory=True)
    assert kept.get_memory(1) == ["1"] * 1024 if kind != "dynamic" else len(kept.get_memory(1)) == 1024


def test_a_change_of_a_row_does_not_reach_the_circuit():
    circuit, binds = sweep()
    result = OzakiBackend().run(circuit, parameter_binds=binds).result()
    result.results[0].header["metadata"]["new"] = 1
    assert circuit.metadata == {"tags": ["kept"]}
    assert result.results[1].header["metadata"] == {"tags": ["kept"]}
    assert result.results[1].header["metadata"]["tags"] is circuit.metadata["tags"]  # the user's object, not a copy


def test_an_entry_that_is_not_there_cannot_be_deleted():
    row = rows_of("rows").results[0]
    with pytest.raises(AttributeError, match="no 'memory'"):
        del row.data.memory
