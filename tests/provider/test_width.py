"""The number of qubits: an integer for every reader, in no transpiler's way."""

import copy
import pickle

import pytest
from qiskit import QuantumCircuit, generate_preset_pass_manager, transpile
from qiskit.quantum_info import Statevector
from qiskit.transpiler import CouplingMap, PassManager
from qiskit.transpiler.passes import EnlargeWithAncilla, FullAncillaAllocation, SetLayout

from qsim_ozaki import OzakiBackend
from qsim_ozaki.provider.target import MAX_CIRCUIT_QUBITS, width_for

LEVELS = [0, 1, 2, 3]


def ghz(width):
    circuit = QuantumCircuit(width, 3)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.cx(1, 2)
    circuit.measure([0, 1, 2], [0, 1, 2])
    return circuit


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda target: pickle.loads(pickle.dumps(target))])
def test_an_integer_wider_than_devices(copied):
    backend = OzakiBackend()
    for target in (backend.target, copied(backend.target), copied(backend).target):
        assert type(target.num_qubits) is int
        assert target.num_qubits == backend.num_qubits == copied(backend).num_qubits == MAX_CIRCUIT_QUBITS > 1121
        assert target.build_coupling_map() is None
        assert target.operation_names == backend.target.operation_names


@pytest.mark.parametrize(
    ("reader", "is_transpiler"),
    [
        ("qiskit.transpiler", True),
        ("qiskit.transpiler.passes.layout.full_ancilla_allocation", True),
        ("qiskit.compiler.transpiler", True),
        ("qiskit.transpilers", False),
        ("qiskit.primitives.backend_sampler_v2", False),
        ("qiskit.providers.backend", False),
        ("pennylane_qiskit.qiskit_device", False),
        ("", False),
    ],
)
def test_only_qiskits_transpiler_is_told_any_width(reader, is_transpiler):
    assert (width_for(reader) is None) == is_transpiler


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("width", [3, 127, MAX_CIRCUIT_QUBITS + 1])
def test_circuits_keep_their_width(level, width):
    backend = OzakiBackend(seed_simulator=1)
    for done in (
        transpile(ghz(width), backend, optimization_level=level),
        transpile(ghz(width), target=backend.target, optimization_level=level),
        generate_preset_pass_manager(level, backend=backend).run(ghz(width)),
    ):
        assert done.num_qubits == width
        assert set(backend.run(done, shots=50).result().get_counts()) == {"000", "111"}


@pytest.mark.parametrize("level", LEVELS)
def test_a_layout_widens_a_circuit_no_further_than_it_says(level):
    backend = OzakiBackend(seed_simulator=1)
    circuit = ghz(3)
    circuit.remove_final_measurements()
    done = transpile(circuit, backend, initial_layout=[4, 0, 2], optimization_level=level)
    assert done.num_qubits == 5
    assert backend.run(done).result().get_statevector().equiv(Statevector(circuit))


@pytest.mark.filterwarnings("ignore:Providing `coupling_map`:UserWarning")
@pytest.mark.parametrize("level", LEVELS)
def test_a_coupling_map_sets_the_width(level):
    backend = OzakiBackend(seed_simulator=1)
    line = {"coupling_map": CouplingMap.from_line(5), "basis_gates": ["cx", "rz", "sx"]}
    done = transpile(ghz(3), backend, optimization_level=level, **line)
    assert done.num_qubits == 5
    assert set(backend.run(done, shots=50).result().get_counts()) == {"000", "111"}


def test_a_pass_that_reads_the_target_sees_any_width():
    manager = PassManager([SetLayout([1, 0, 2]), FullAncillaAllocation(OzakiBackend().target), EnlargeWithAncilla()])
    assert manager.run(ghz(3)).num_qubits == 3
