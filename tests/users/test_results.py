"""What users were bitten by in results, seeds, primitives and options: one test per public report."""

import random

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister
from qiskit.circuit import Parameter
from qiskit.primitives import BackendEstimatorV2, BackendSamplerV2
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki import OzakiBackend
from qsim_ozaki.errors import LoweringError, OptionError


def counts_of(circuit, shots=1000, **options):
    return OzakiBackend(seed_simulator=42, **options).run(circuit, shots=shots).result().get_counts()


def bell():
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    return circuit


@pytest.mark.parametrize("width", [1, 9, 64, 65, 130])
def test_t71_sampler_gets_hexadecimal_memory(width):
    registers = [ClassicalRegister(width, "a"), ClassicalRegister(2, "b")]
    circuit = QuantumCircuit(QuantumRegister(2), *registers)
    circuit.x(0)
    circuit.measure(0, registers[0][width - 1])
    circuit.measure(0, registers[1][1])
    data = BackendSamplerV2(backend=OzakiBackend()).run([circuit], shots=20).result()[0].data
    assert data.a.get_int_counts() == {1 << (width - 1): 20}
    assert data.b.get_counts() == {"10": 20}
    memory = OzakiBackend().run(circuit, memory=True, shots=3).result().data(0)["memory"]
    assert memory == [hex(0b10 << width | 1 << (width - 1))] * 3


def test_t72_empty_and_several_registers():
    registers = [ClassicalRegister(size, name) for size, name in [(1, "one"), (9, "nine"), (0, "none")]]
    circuit = QuantumCircuit(QuantumRegister(2), *registers[:2])
    circuit.x(1)
    circuit.measure([1, 1], [registers[0][0], registers[1][4]])
    data = BackendSamplerV2(backend=OzakiBackend()).run([circuit], shots=10).result()[0].data
    assert data.one.get_counts() == {"1": 10}
    assert data.nine.get_counts() == {"000010000": 10}
    # Qiskit 2.6's own sampler cannot shape the bits of an empty register, whatever the backend
    circuit.add_register(registers[2])
    assert counts_of(circuit) == {" 000010000 1": 1000}


def test_t73_estimator_with_registers_and_measurements_of_its_own():
    circuit = QuantumCircuit(QuantumRegister(2), ClassicalRegister(2, "c"))
    circuit.x(0)
    circuit.measure(0, 0)
    estimator = BackendEstimatorV2(backend=OzakiBackend(), options={"seed_simulator": 3})
    job = estimator.run([(circuit, [SparsePauliOp("IZ"), SparsePauliOp("ZI"), SparsePauliOp("IX")])])
    np.testing.assert_allclose(job.result()[0].data.evs, [-1, 1, 0], atol=0.1)


def test_t74_metadata_goes_through_by_reference():
    circuit = bell().measure_all(inplace=False)
    marker = object()
    circuit.metadata = {"observable": marker}
    assert OzakiBackend().run(circuit).result().results[0].header["metadata"]["observable"] is marker


def test_t77_identical_circuits_have_independent_streams_and_no_neighbours():
    circuit = QuantumCircuit(8)
    circuit.h(range(8))
    circuit.measure_all()
    backend = OzakiBackend(memory=True, shots=50)
    first = backend.run([circuit] * 3, seed_simulator=7).result()
    memories = [first.get_memory(index) for index in range(3)]
    assert memories[0] != memories[1] != memories[2] != memories[0]
    other = QuantumCircuit(1, 1)
    other.h(0)
    other.measure(0, 0)
    again = backend.run([other, circuit, other], seed_simulator=7).result()
    assert again.get_memory(1) == memories[1]
    unseeded = backend.run(circuit).result()
    assert backend.run(circuit, seed_simulator=unseeded.results[0].seed).result().get_memory() == unseeded.get_memory()


def test_t79_global_random_generators_are_left_alone():
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    before = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    OzakiBackend().run(bell().measure_all(inplace=False), seed_simulator=1).result()
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert random.getstate() == before[1]


def test_t80_a_misspelt_option_names_the_nearest():
    with pytest.raises(OptionError, match=r"'shotz' is not known. Did you mean 'shots'"):
        OzakiBackend().run(bell(), shotz=5)
    with pytest.raises(OptionError, match="Did you mean 'double'"):
        OzakiBackend(precision="doubl")
    with pytest.raises(OptionError, match="Options are engine, precision"):
        OzakiBackend().set_options(xyz=1)
    with pytest.raises(AttributeError, match="Did you mean 'memory'"):
        OzakiBackend().options.memry = True


@pytest.mark.parametrize("shots", [0, -5, 10.0, True, "7"])
def test_t81_shots_are_integers_of_at_least_one(shots):
    with pytest.raises(OptionError, match=r"shots=.*Use an integer of at least 1"):
        OzakiBackend().run(bell(), shots=shots)


@pytest.mark.parametrize("shots", [1, np.int32(17), np.uint64(5)])
def test_t81_numpy_integers_are_shots(shots):
    assert sum(counts_of(bell().measure_all(inplace=False), shots=shots).values()) == shots


def test_t83_unbound_parameters_are_named():
    circuit = QuantumCircuit(1, name="open")
    circuit.rx(Parameter("alpha"), 0)
    circuit.ry(Parameter("beta"), 0)
    with pytest.raises(LoweringError, match="'open' has unbound parameters: alpha, beta"):
        OzakiBackend().run(circuit)


def test_t85_registers_in_order_and_padded():
    registers = [ClassicalRegister(3, name) for name in "abc"]
    circuit = QuantumCircuit(QuantumRegister(9), *registers)
    circuit.x(0)
    circuit.measure(range(9), range(9))
    assert counts_of(circuit) == {"000 000 001": 1000}
    assert counts_of(QuantumCircuit(2, 5).compose(measured_first())) == {"00001": 1000}


def measured_first():
    circuit = QuantumCircuit(2, 5)
    circuit.x(0)
    circuit.measure(0, 0)
    return circuit


def test_t87_one_public_import():
    import qsim_ozaki

    assert qsim_ozaki.OzakiBackend is OzakiBackend
    with pytest.raises(AttributeError, match=r"Public names are .*OzakiBackend, .*save_statevector"):
        _ = qsim_ozaki.AerSimulator
