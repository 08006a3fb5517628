"""Random circuits over Qiskit's standard gates and its parametrised families; imports nothing of the package."""

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import (
    C3XGate,
    C4XGate,
    DiagonalGate,
    MCMTGate,
    MCPhaseGate,
    MCXGate,
    PauliEvolutionGate,
    PauliGate,
    PermutationGate,
    QFTGate,
    RC3XGate,
    RVGate,
    StatePreparation,
    UCGate,
    UCPauliRotGate,
    UnitaryGate,
    XGate,
    get_standard_gate_name_mapping,
)
from qiskit.quantum_info import SparsePauliOp, random_unitary

STANDARD = {
    name: gate for name, gate in get_standard_gate_name_mapping().items() if name not in ("measure", "reset", "delay")
}
SPECIAL_ANGLES = np.pi * np.array([0, 0.25, 0.5, 1, -0.5, 2, 4])  # where a rotation becomes a simpler gate


def angle(rng):
    return float(rng.choice(SPECIAL_ANGLES) if rng.random() < 0.2 else rng.uniform(-2 * np.pi, 2 * np.pi))


def phases(rng, size):
    return np.exp(1j * rng.uniform(0, 2 * np.pi, size))


def matrix(rng, num_qubits):
    return random_unitary(2**num_qubits, seed=int(rng.integers(2**31))).data


def evolution(rng, k):
    # terms that commute, so that Qiskit's product formula is exact and its matrix and its definition are one gate
    axes = rng.choice(list("XYZ"), k)
    labels = ["".join(np.where(rng.integers(2, size=k), axes, "I")) for _ in range(3)]
    return PauliEvolutionGate(SparsePauliOp(labels, rng.normal(size=3)), time=float(rng.uniform(0.1, 1)))


def multiplexed_rotation(rng, k):
    return UCPauliRotGate([angle(rng) for _ in range(2 ** (k - 1))], str(rng.choice(list("XYZ"))))


# name: (fewest qubits, most qubits, function of (rng, num_qubits) to a gate)
FAMILIES = {
    "unitary": (1, 5, lambda rng, k: UnitaryGate(matrix(rng, k))),
    "diagonal": (1, 5, lambda rng, k: DiagonalGate(list(phases(rng, 2**k)))),
    "permutation": (2, 6, lambda rng, k: PermutationGate(rng.permutation(k))),
    "pauli": (1, 6, lambda rng, k: PauliGate("".join(rng.choice(list("IXYZ"), k)))),
    "mcx": (2, 7, lambda rng, k: MCXGate(k - 1, ctrl_state=int(rng.integers(2 ** (k - 1))))),
    "mcphase": (2, 7, lambda rng, k: MCPhaseGate(angle(rng), k - 1, ctrl_state=int(rng.integers(2 ** (k - 1))))),
    "c3x": (4, 4, lambda rng, k: C3XGate()),
    "c4x": (5, 5, lambda rng, k: C4XGate()),
    "rc3x": (4, 4, lambda rng, k: RC3XGate()),
    "rv": (1, 1, lambda rng, k: RVGate(*rng.normal(size=3))),
    "qft": (1, 5, lambda rng, k: QFTGate(k)),
    "evolution": (1, 4, evolution),
    "mcmt": (3, 5, lambda rng, k: MCMTGate(XGate(), k - 2, 2)),
    "uc": (1, 4, lambda rng, k: UCGate([matrix(rng, 1) for _ in range(2 ** (k - 1))])),
    "preparation": (1, 4, lambda rng, k: StatePreparation(matrix(rng, k)[0])),
    "ucrot": (1, 4, multiplexed_rotation),
}


def standard(rng, name):
    """The standard gate ``name`` with random angles, now and then inverted or controlled."""
    gate = STANDARD[name]
    if gate.params:
        gate = type(gate)(*(angle(rng) for _ in gate.params))
    if rng.random() < 0.15:
        gate = gate.inverse()
    if rng.random() < 0.15 and 0 < gate.num_qubits < 4 and name != "id":
        extra = int(rng.integers(1, 3))
        gate = gate.control(extra, ctrl_state=int(rng.integers(2**extra)), annotated=bool(rng.integers(2)))
    return gate


def nested(rng, num_qubits):
    """A gate by definition alone, two levels deep, with a phase of its own on each."""
    inner = QuantumCircuit(num_qubits, global_phase=angle(rng))
    inner.rx(angle(rng), 0)
    for qubit in range(num_qubits - 1):
        inner.cx(qubit, qubit + 1)
    outer = QuantumCircuit(num_qubits, global_phase=angle(rng))
    outer.append(inner.to_gate(), list(range(num_qubits))[::-1])
    outer.h(0)
    return outer.to_gate(label="nested")


def draw(rng, names, num_qubits):
    """A random gate called one of ``names``, of at most ``num_qubits`` qubits, or None where it does not fit."""
    name = str(rng.choice(names))
    if name == "nested":
        return nested(rng, int(rng.integers(1, min(3, num_qubits) + 1)))
    if name in STANDARD:
        gate = standard(rng, name)
        return gate if gate.num_qubits <= num_qubits else None
    least, most, build = FAMILIES[name]
    if num_qubits < least:
        return None
    return build(rng, int(rng.integers(least, min(most, num_qubits) + 1)))


def random_circuit(rng, num_qubits, num_gates):
    """``num_gates`` gates of all kinds on random qubits in random order, barriers and a global phase among them."""
    names = [*STANDARD, *FAMILIES, "nested"]
    circuit = QuantumCircuit(num_qubits, global_phase=angle(rng))
    while len(circuit.data) < num_gates:
        gate = draw(rng, names, num_qubits)
        if gate is None:
            continue
        circuit.append(gate, [int(q) for q in rng.permutation(num_qubits)[: gate.num_qubits]])
        if rng.random() < 0.05:
            circuit.barrier()
    return circuit
