"""Qiskit's own primitives for any backend run on this one."""

import numpy as np
import pytest
from qiskit import QuantumCircuit, transpile
from qiskit.circuit import ClassicalRegister, ParameterVector, QuantumRegister
from qiskit.primitives import BackendEstimatorV2, BackendSamplerV2, StatevectorEstimator
from qiskit.quantum_info import SparsePauliOp
from qiskit.transpiler import CouplingMap

from qsim_ozaki import OzakiBackend

SHOTS = 4000


def ansatz():
    angles = ParameterVector("angle", 2)
    circuit = QuantumCircuit(3)
    circuit.ry(angles[0], 0)
    circuit.cx(0, 1)
    circuit.rx(angles[1], 2)
    circuit.cx(1, 2)
    return circuit


ROWS = np.array([[0.3, 0.9], [1.1, -0.4], [np.pi, 0.0]])


def on_a_device(circuit):
    """The circuit on 115 qubits of a device with a heavy-hexagon lattice."""
    device = {"coupling_map": CouplingMap.from_heavy_hex(7), "basis_gates": ["cx", "rz", "sx", "x"]}
    return transpile(circuit, seed_transpiler=1, optimization_level=1, **device)


@pytest.mark.parametrize("prepare", [lambda circuit: circuit, on_a_device], ids=["plain", "device"])
def test_estimator(prepare):
    circuit = prepare(ansatz())
    observables = [[SparsePauliOp(["ZZI", "IXX"], [1.0, 0.5])], [SparsePauliOp("IIZ")]]
    exact = StatevectorEstimator().run([(ansatz(), observables, ROWS)]).result()[0].data.evs
    if circuit.layout is not None:
        observables = [[row[0].apply_layout(circuit.layout)] for row in observables]
    estimator = BackendEstimatorV2(backend=OzakiBackend(seed_simulator=4))
    data = estimator.run([(circuit, observables, ROWS)], precision=SHOTS**-0.5).result()[0].data
    assert data.evs.shape == (2, 3)
    np.testing.assert_allclose(data.evs, exact, atol=5 * 1.5 / np.sqrt(SHOTS))


@pytest.mark.parametrize("prepare", [lambda circuit: circuit, on_a_device], ids=["plain", "device"])
def test_sampler(prepare):
    sampler = BackendSamplerV2(backend=OzakiBackend(seed_simulator=4))
    pub = (prepare(ansatz().measure_all(inplace=False)), ROWS)
    data = sampler.run([pub], shots=SHOTS).result()[0].data
    assert (data.shape, data.meas.num_shots) == ((3,), SHOTS)
    for index, (first, last) in enumerate(ROWS):
        one = data.meas.slice_bits(0).get_counts(index).get("1", 0) / SHOTS
        assert one == pytest.approx(np.sin(first / 2) ** 2, abs=5 * 0.5 / np.sqrt(SHOTS))
        parity = 1 - 2 * np.mean(data.meas[index].to_bool_array(order="little")[:, [0, 2]].sum(1) % 2)
        assert parity == pytest.approx(np.cos(last), abs=5 / np.sqrt(SHOTS))  # Z of the turned qubit, undone by cx


def test_sampler_of_a_dynamic_circuit_with_two_registers():
    first, last = ClassicalRegister(1, "first"), ClassicalRegister(2, "last")
    circuit = QuantumCircuit(QuantumRegister(2), first, last)
    circuit.h(0)
    circuit.measure(0, first[0])
    with circuit.if_test((first, 1)):
        circuit.x(1)
    circuit.measure([0, 1], last)
    data = BackendSamplerV2(backend=OzakiBackend(seed_simulator=4)).run([circuit], shots=1000).result()[0].data
    counts = data.first.get_counts()
    assert counts["0"] + counts["1"] == 1000
    assert abs(counts["0"] - 500) < 100
    assert data.last.get_counts() == {"00": counts["0"], "11": counts["1"]}
