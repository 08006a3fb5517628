"""Circuit cutting: the parts of a cut circuit run on our sampler and give the expectation value of the whole."""

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import SparsePauliOp, Statevector

from qsim_ozaki import SamplerV2

instructions = pytest.importorskip("qiskit_addon_cutting.instructions", reason="qiskit-addon-cutting is not installed")
cutting = pytest.importorskip("qiskit_addon_cutting", reason="qiskit-addon-cutting is not installed")


def test_a_gate_cut_gives_the_value_of_the_whole_circuit():
    circuit = QuantumCircuit(4)
    for qubit in range(4):
        circuit.ry(0.4 + 0.2 * qubit, qubit)
    circuit.cx(0, 1)
    circuit.cx(1, 2)
    circuit.cx(2, 3)
    observable = SparsePauliOp(["ZZII", "IZZI", "IIIX"])
    problem = cutting.partition_problem(circuit=circuit, partition_labels="AABB", observables=observable.paulis)
    experiments, coefficients = cutting.generate_cutting_experiments(
        circuits=problem.subcircuits, observables=problem.subobservables, num_samples=np.inf
    )
    sampler = SamplerV2(seed=9)
    results = {label: sampler.run(parts, shots=2**14).result() for label, parts in experiments.items()}
    values = cutting.reconstruct_expectation_values(results, coefficients, problem.subobservables)
    exact = [Statevector(circuit).expectation_value(pauli).real for pauli in observable.paulis]
    np.testing.assert_allclose(values, exact, atol=0.06)


def test_a_wire_cut_gives_the_value_of_the_whole_circuit():
    circuit = QuantumCircuit(3)
    for qubit in range(3):
        circuit.ry(0.5 + 0.3 * qubit, qubit)
    circuit.cx(0, 1)
    circuit.append(instructions.CutWire(), [1])
    circuit.cx(1, 2)
    paulis = SparsePauliOp(["ZZI", "IZZ", "XIZ"]).paulis
    separate = cutting.cut_wires(circuit)
    problem = cutting.partition_problem(
        circuit=separate, observables=cutting.expand_observables(paulis, circuit, separate)
    )
    experiments, coefficients = cutting.generate_cutting_experiments(
        circuits=problem.subcircuits, observables=problem.subobservables, num_samples=np.inf
    )
    sampler = SamplerV2(seed=9)
    results = {label: sampler.run(parts, shots=2**14).result() for label, parts in experiments.items()}
    values = cutting.reconstruct_expectation_values(results, coefficients, problem.subobservables)
    circuit.data = [entry for entry in circuit.data if entry.operation.name != "cut_wire"]
    exact = [Statevector(circuit).expectation_value(pauli).real for pauli in paulis]
    np.testing.assert_allclose(values, exact, atol=0.06)
