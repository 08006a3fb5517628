"""Flattened programs: the short way for plain circuits gives what the general way gives."""

import numpy as np
import pytest
from qiskit import QuantumCircuit

from qsim_ozaki.ir import Measure
from qsim_ozaki.lowering import lower
from qsim_ozaki.runtime import flatten, flattening


def plain_circuit(rng, num_qubits):
    """Gates, then measurements: of some qubits, in any order, some bits written twice."""
    circuit = QuantumCircuit(num_qubits, num_qubits + 2)
    for _ in range(3 * num_qubits):
        circuit.rx(rng.uniform(0, 3), rng.integers(num_qubits))
    for _ in range(rng.integers(1, num_qubits + 2)):
        circuit.measure(rng.integers(num_qubits), rng.integers(num_qubits + 2))
    return circuit


@pytest.mark.parametrize("number", range(40))
def test_the_short_way_gives_the_code_of_the_general_way(number, rng, monkeypatch):
    program = lower(plain_circuit(rng, 1 + number % 6))
    short = flatten(program)
    monkeypatch.setattr(flattening, "_plain_code", lambda program: None)
    general = flatten(program)
    assert sorted(short.reads) == sorted(general.reads)
    assert short.measures
    assert general.measures
    assert (short.fresh, short.program) == (general.fresh, program)
    assert [len(item.ops) for item in short.segments] == [len(item.ops) for item in general.segments]
    assert short.items[len(short.segments) :] == general.items[len(general.segments) :]


def test_measurements_that_wait_leave_no_boundary():
    circuit = QuantumCircuit(3, 3)
    circuit.h(range(3))
    circuit.measure(range(3), range(3))
    code = flatten(lower(circuit))
    assert code.reads == ((0, 0), (1, 1), (2, 2))
    assert not any(isinstance(item, Measure) for item in code.items)
    circuit.h(1)
    circuit.measure(1, 1)
    code = flatten(lower(circuit))
    assert [item.clbits for item in code.items if isinstance(item, Measure)] == [(1,)]
    assert sorted(code.reads) == [(0, 0), (1, 1), (2, 2)]
    assert np.sum([len(segment.ops) for segment in code.segments]) == 4
