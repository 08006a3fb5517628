"""The circuit that many tests start from."""

from qiskit import QuantumCircuit


def bell(measured=True):
    """A Bell pair, measured unless told otherwise."""
    circuit = QuantumCircuit(2, name="bell")
    circuit.h(0)
    circuit.cx(0, 1)
    if measured:
        circuit.measure_all()
    return circuit
