"""The backend under Qiskit's pass managers, default and custom, with and without a coupling map."""

import numpy as np
import pytest
from qiskit import QuantumCircuit, generate_preset_pass_manager, transpile
from qiskit.circuit import ParameterVector
from qiskit.quantum_info import SparsePauliOp, Statevector
from qiskit.transpiler import CouplingMap, PassManager
from qiskit.transpiler.passes import Optimize1qGatesDecomposition, RemoveBarriers

from qsim_ozaki import EstimatorV2, OzakiBackend

LEVELS = [0, 1, 2, 3]
LINE = CouplingMap.from_line(5)


def circuit_of_all_sorts():
    circuit = QuantumCircuit(4)
    circuit.h(0)
    circuit.cx(0, 3)
    circuit.ccx(0, 3, 2)
    circuit.barrier()
    circuit.rzz(0.3, 1, 3)
    circuit.ry(0.4, 1)
    circuit.swap(1, 2)
    return circuit


def assert_same_counts(made):
    want = Statevector(circuit_of_all_sorts()).probabilities_dict()
    counts = OzakiBackend(seed_simulator=1).run(made, shots=20_000).result().get_counts()
    assert counts.keys() == {key for key, probability in want.items() if probability > 1e-3}
    for key, count in counts.items():
        assert abs(count / 20_000 - want[key]) < 0.02


@pytest.mark.filterwarnings("ignore:Providing `coupling_map`:UserWarning")
@pytest.mark.parametrize("level", LEVELS)
def test_t75_preset_pass_managers_and_coupling_maps(level):
    backend = OzakiBackend()
    circuit = circuit_of_all_sorts().measure_all(inplace=False)
    assert_same_counts(generate_preset_pass_manager(level, backend=backend).run(circuit))
    assert_same_counts(transpile(circuit, target=backend.target, optimization_level=level))
    basis = {"basis_gates": ["cx", "rz", "sx"], "optimization_level": level}
    assert_same_counts(transpile(circuit, backend, **basis))
    assert_same_counts(transpile(circuit, backend, coupling_map=LINE, **basis))
    # what Qiskit itself refuses, whatever the backend: its message says what to do
    with pytest.raises(ValueError, match=r"(?s)3-qubit or larger.*target"):
        transpile(circuit, backend, coupling_map=LINE, optimization_level=level)
    with pytest.raises(ValueError, match=r"Use the ``target`` parameter"):
        transpile(circuit, basis_gates=backend.target.operation_names, optimization_level=level)


def test_t75_a_pass_manager_of_ones_own():
    target = OzakiBackend().target
    manager = PassManager([RemoveBarriers(), Optimize1qGatesDecomposition(target=target)])
    assert_same_counts(manager.run(circuit_of_all_sorts().measure_all(inplace=False)))


def test_t76_ideal_operations_have_no_properties():
    target = OzakiBackend().target
    assert isinstance(target.num_qubits, int)
    assert all(target[name] is None or set(target[name]) == {None} for name in target.operation_names)
    assert OzakiBackend().coupling_map is None


@pytest.mark.parametrize("level", LEVELS)
def test_parametrised_circuits_run_after_every_level(level, rng):
    angles = ParameterVector("p", 11)
    circuit = QuantumCircuit(3)
    for index, angle in enumerate(angles):
        circuit.ry(2 * angle, index % 3)
        circuit.crx(angle, index % 3, (index + 1) % 3)
    circuit.swap(0, 2)
    made = transpile(circuit, OzakiBackend(), optimization_level=level)
    names = [parameter.name for parameter in circuit.parameters]
    values = rng.uniform(-3, 3, (4, 11))
    order = [names.index(parameter.name) for parameter in made.parameters]
    result = OzakiBackend().run(made, parameter_binds=values[:, order]).result()
    for row in range(4):
        want = Statevector(circuit.assign_parameters(values[row]))
        np.testing.assert_allclose(np.asarray(result.get_statevector(row)), np.asarray(want), atol=1e-13)
    observable = "ZIX"
    want = EstimatorV2().run([(circuit, observable, values)]).result()[0].data.evs
    laid = SparsePauliOp(observable).apply_layout(made.layout)
    got = EstimatorV2().run([(made, laid, values[:, order])]).result()[0].data.evs
    np.testing.assert_allclose(got, want, atol=1e-13)
