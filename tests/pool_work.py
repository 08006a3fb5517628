"""What a worker process does in the tests of pools: a module of its own, which a spawned process can import."""

from qiskit import QuantumCircuit

from qsim_ozaki import OzakiBackend


def bell_counts(seed):
    """Counts of a Bell pair under ``seed``."""
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure_all()
    return OzakiBackend(seed_simulator=seed).run(circuit).result().get_counts()
