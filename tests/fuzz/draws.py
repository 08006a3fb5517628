"""Random circuits, observables and starts over the whole of Qiskit's library; imports nothing of the package."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit import AnnotatedOperation, ControlModifier, InverseModifier, PowerModifier, library
from qiskit.exceptions import QiskitError
from qiskit.quantum_info import Operator, Pauli, SparseObservable, SparsePauliOp, random_clifford, random_hermitian
from support.random_circuits import FAMILIES, STANDARD, angle, draw, matrix

LETTERS = list("IXYZ01+-rl")
LABEL_LETTERS = list("01+-rl")
MAX_MATRIX_QUBITS = 7  # of a gate with modifiers: the reference multiplies by its whole matrix


@dataclass(frozen=True)
class Family:
    """Gates of one kind.

    Attributes:
        classes: the names in Qiskit's library that it needs; older versions lack some.
        build: from a generator and a size of 1 to 3, by which the number of qubits grows, to a gate.
    """

    classes: tuple[str, ...]
    build: Callable


def axis(rng):
    return str(rng.choice(list("XYZ")))


def small(rng, shape):
    """Random integers from -1 to 1."""
    return rng.integers(-1, 2, shape).tolist()


def invertible(rng, size):
    """A random invertible matrix of bits: a product of a lower and an upper triangle, its rows permuted."""
    lower, upper = (np.tril(rng.integers(0, 2, (size, size)), -1) + np.eye(size, dtype=int) for _ in range(2))
    return (lower @ upper.T % 2)[rng.permutation(size)].astype(bool)


def expression(rng, size):
    """A Boolean expression of ``size`` variables, each of them there."""
    parts = [f"{rng.choice(['', '~'])}x{index}" for index in range(size)]
    return "".join(part + (str(rng.choice([" & ", " | ", " ^ "])) if part is not parts[-1] else "") for part in parts)


def graph(rng, size):
    upper = np.triu(rng.integers(0, 2, (size, size)), 1)
    return upper + upper.T


def superposition(rng, k):
    return library.UniformSuperpositionGate(int(rng.integers(2, 2**k + 1)), k)


def controlled_many(rng, k):
    base = library.get_standard_gate_name_mapping()[str(rng.choice(["x", "y", "z", "h", "s", "sx"]))]
    return library.MCMTGate(base, k, 2, ctrl_state=int(rng.integers(2**k)))


def amplitude_function(rng, k):
    slope, offset = (float(value) for value in rng.uniform(-1, 1, 2))
    return library.LinearAmplitudeFunctionGate(k, slope, offset, (0, 1), (-2, 2))


def rotations_by_parts(rng, k):
    slopes, offsets = rng.normal(size=2).tolist(), rng.normal(size=2).tolist()
    return library.PiecewiseLinearPauliRotationsGate(
        k, [0, 2 ** (k - 1)], slopes, offsets, str(rng.choice(list("XYZ")))
    )


def pauli_rotation(rng, k):
    return library.PauliProductRotationGate(Pauli("".join(rng.choice(list("XYZ"), k))), angle(rng))


def multiplexed(rng, k):
    name = f"UCR{axis(rng)}Gate"
    return getattr(library, name)([angle(rng) for _ in range(2**k)])


MORE = {
    "linear function": Family(("LinearFunction",), lambda rng, k: library.LinearFunction(invertible(rng, k + 1))),
    "isometry": Family(("Isometry",), lambda rng, k: library.Isometry(matrix(rng, k), 0, 0)),
    "hamiltonian": Family(
        ("HamiltonianGate",),
        lambda rng, k: library.HamiltonianGate(random_hermitian(2**k, seed=int(rng.integers(2**31))), 0.3),
    ),
    "multiplexed rotation": Family(("UCRXGate",), multiplexed),
    "pauli rotation": Family(("PauliProductRotationGate",), pauli_rotation),
    "clifford": Family((), lambda rng, k: random_clifford(k, seed=int(rng.integers(2**31))).to_instruction()),
    "operator": Family((), lambda rng, k: Operator(matrix(rng, k)).to_instruction()),
    "half adder": Family(("HalfAdderGate",), lambda rng, k: library.HalfAdderGate(k)),
    "full adder": Family(("FullAdderGate",), lambda rng, k: library.FullAdderGate(min(k, 2))),
    "modular adder": Family(("ModularAdderGate",), lambda rng, k: library.ModularAdderGate(k)),
    "multiplier": Family(("MultiplierGate",), lambda rng, k: library.MultiplierGate(min(k, 2))),
    "and": Family(("AndGate",), lambda rng, k: library.AndGate(k, small(rng, k))),
    "or": Family(("OrGate",), lambda rng, k: library.OrGate(k, small(rng, k))),
    "xor": Family(("BitwiseXorGate",), lambda rng, k: library.BitwiseXorGate(k, int(rng.integers(2**k)))),
    "inner product": Family(("InnerProductGate",), lambda rng, k: library.InnerProductGate(k)),
    "quadratic form": Family(
        ("QuadraticFormGate",),
        lambda rng, k: library.QuadraticFormGate(
            2, rng.integers(-1, 2, (k, k)).tolist(), rng.integers(-1, 2, k).tolist()
        ),
    ),
    "linear rotations": Family(
        ("LinearPauliRotationsGate",),
        lambda rng, k: library.LinearPauliRotationsGate(k, *rng.normal(size=2).tolist(), axis(rng)),
    ),
    "polynomial rotations": Family(
        ("PolynomialPauliRotationsGate",),
        lambda rng, k: library.PolynomialPauliRotationsGate(
            k, rng.normal(size=3).tolist(), str(rng.choice(list("XYZ")))
        ),
    ),
    "rotations by parts": Family(("PiecewiseLinearPauliRotationsGate",), rotations_by_parts),
    "reciprocal": Family(("ExactReciprocalGate",), lambda rng, k: library.ExactReciprocalGate(k + 1, 0.4)),
    "amplitude function": Family(("LinearAmplitudeFunctionGate",), amplitude_function),
    "graph state": Family(("GraphStateGate",), lambda rng, k: library.GraphStateGate(graph(rng, k + 1))),
    "superposition": Family(("UniformSuperpositionGate",), superposition),
    "phase oracle": Family(("PhaseOracleGate",), lambda rng, k: library.PhaseOracleGate(expression(rng, k))),
    "flip oracle": Family(("BitFlipOracleGate",), lambda rng, k: library.BitFlipOracleGate(expression(rng, k))),
    "many targets": Family(("MCMTGate",), controlled_many),
    "molmer sorensen": Family(("MSGate",), lambda rng, k: library.MSGate(k + 1, angle(rng))),
}
MORE = {name: family for name, family in MORE.items() if all(hasattr(library, each) for each in family.classes)}


def composite(rng, num_qubits):
    """A gate by its definition alone: a small circuit, inverted, raised, repeated or controlled."""
    k = int(rng.integers(1, min(3, num_qubits) + 1))
    inner = QuantumCircuit(k, global_phase=angle(rng), name="inner")
    while len(inner.data) < 3:
        gate = draw(rng, [*STANDARD, "unitary", "diagonal", "mcx"], k)
        if gate is not None:
            inner.append(gate, [int(q) for q in rng.permutation(k)[: gate.num_qubits]])
    form = int(rng.integers(4))
    if form == 0:
        return inner.to_gate().inverse()
    if form == 1:
        return inner.repeat(2).to_gate()
    if form == 2:
        return inner.to_instruction()
    return inner.to_gate()


def modified(rng, gate, room):
    """``gate`` inverted, raised or controlled, by Qiskit's methods or by annotation; on at most ``room`` qubits."""
    spare = min(room, MAX_MATRIX_QUBITS) - gate.num_qubits
    form = rng.choice(["inverse", "power", "control", "annotated"])
    if spare < 0:
        return gate
    if form == "inverse":
        return gate.inverse()
    if form == "power":
        return gate.power(float(rng.choice([2, 3, -1, 0.5, 0.3])), annotated=False)
    extra = int(rng.integers(0, min(3, spare) + 1))
    state = int(rng.integers(2**extra))
    if form == "control":
        return gate.control(extra, ctrl_state=state, annotated=bool(rng.integers(2))) if extra else gate
    modifiers = [InverseModifier(), PowerModifier(int(rng.integers(-2, 4)))]
    if extra:
        modifiers.append(ControlModifier(extra, state))
    order = rng.permutation(len(modifiers))[: int(rng.integers(1, len(modifiers) + 1))]
    return AnnotatedOperation(gate, [modifiers[index] for index in order])


def random_gate(rng, room):
    """A gate of the library, or a composite, on at most ``room`` qubits; and its name in these tables."""
    while True:
        name = str(rng.choice([*STANDARD, *FAMILIES, "nested", *MORE, *["composite"] * 4]))
        if name in MORE:
            gate = MORE[name].build(rng, int(rng.integers(1, 4)))
        elif name == "composite":
            gate = composite(rng, room)
        else:
            gate = draw(rng, [name], room)
        if gate is None or gate.num_qubits > room:
            continue
        if gate.num_qubits > 0 and rng.random() < 0.2:
            try:
                gate = modified(rng, gate, room)
            except (AttributeError, QiskitError):  # of a gate that has no such form in Qiskit
                continue
        return name, gate


def append_gates(rng, circuit, count, tally):
    """Appends ``count`` random gates on random qubits, now and then a barrier or delay; counts them in ``tally``."""
    for _ in range(count):
        name, gate = random_gate(rng, circuit.num_qubits)
        qubits = [int(q) for q in rng.permutation(circuit.num_qubits)[: gate.num_qubits]]
        circuit.append(gate, qubits)
        tally[f"gate {name}"] += 1
        tally[f"gate {gate.name}"] += 1
        if rng.random() < 0.05:
            circuit.barrier()
            tally["gate barrier"] += 1
        if rng.random() < 0.02:
            circuit.delay(int(rng.integers(1, 100)), int(rng.integers(circuit.num_qubits)))
            tally["gate delay"] += 1


def random_gates(rng, num_qubits, count, tally):
    """A circuit of ``count`` random gates with a global phase."""
    circuit = QuantumCircuit(num_qubits, global_phase=angle(rng))
    append_gates(rng, circuit, count, tally)
    return circuit


def some_qubits(rng, num_qubits, most=4):
    """1 to ``most`` qubits in random order."""
    return [int(q) for q in rng.permutation(num_qubits)[: rng.integers(1, min(most, num_qubits) + 1)]]


def some_label(rng, num_qubits):
    return "".join(rng.choice(LABEL_LETTERS, num_qubits))


def some_observable(rng, num_qubits):
    """A SparsePauliOp, a SparseObservable with projectors, or a single term of either; and its matrix form."""
    count = int(rng.choice([1, 2, 5]))
    letters = LETTERS if rng.integers(2) else LETTERS[:4]
    terms = [("".join(rng.choice(letters, num_qubits)), float(rng.normal())) for _ in range(count)]
    observable = SparseObservable.from_list(terms)
    plain = SparsePauliOp.from_sparse_observable(observable)
    return (observable if len(letters) > 4 or rng.integers(2) else SparsePauliOp.from_list(terms)), plain, terms
