"""Cases that measure, reset, initialize and branch on the way: against the slow interpreter of dynamic circuits."""

from dataclasses import dataclass

import numpy as np
from fuzz import checks
from fuzz.draws import append_gates, random_gate, some_label, some_observable, some_qubits
from fuzz.pure_cases import reduced
from fuzz.setting import shared_backend
from qiskit import ClassicalRegister, QuantumCircuit
from qiskit.circuit import Reset
from qiskit.circuit.library import StatePreparation, UnitaryGate
from qiskit.quantum_info import Operator, Statevector
from support.random_circuits import matrix
from support.random_dynamic import random_dynamic_circuit
from support.reference_dynamic import World, distribution, step

import qsim_ozaki as q
from qsim_ozaki import EstimatorV2, OzakiBackend

NUM_BITS = 3
MAX_BRANCHINGS = 5
STATEMENTS = (
    "for_loop",
    "while_loop",
    "switch_case",
    "if_else",
    "box",
    "store",
    "break_loop",
    "continue_loop",
    "reset",
)
OF_THE_REFERENCE = ("measure", "reset", "barrier", "delay", "if_else")  # any other instruction is a gate
SAVED_KINDS = ("probabilities", "density matrix", "value", "amplitudes squared")
SAVED_FORMS = ("mean", "conditional", "unnormalized")


@dataclass(frozen=True)
class Saved:
    """A save of a circuit: how it is saved, and its value of one state, a number or an array."""

    kind: str
    form: str
    value: object


class Writer:
    """Appends random gates, events and saves to a circuit."""

    def __init__(self, case):
        self.case, self.rng = case, case.rng
        self.num_qubits = int(self.rng.integers(1, 5))
        self.circuit = QuantumCircuit(self.num_qubits)
        self.circuit.add_register(ClassicalRegister(1, "a"), ClassicalRegister(NUM_BITS - 1, "b"))
        self.left, self.saves = MAX_BRANCHINGS, {}

    def qubit(self):
        return int(self.rng.integers(self.num_qubits))

    def add_gates(self):
        append_gates(self.rng, self.circuit, int(self.rng.integers(1, 5)), self.case.tally)

    def add_measure(self):
        self.circuit.measure(self.qubit(), int(self.rng.integers(NUM_BITS)))
        self.left -= 1

    def add_reset(self):
        self.circuit.reset(self.qubit())
        self.case.tally["gate reset"] += 1
        self.left -= 1

    def add_initialize(self):
        qubits = some_qubits(self.rng, self.num_qubits, min(2, self.left))
        state = some_label(self.rng, len(qubits)) if self.rng.integers(2) else matrix(self.rng, len(qubits))[0]
        self.circuit.initialize(state, qubits)
        self.left -= len(qubits)
        self.case.tally["gate initialize"] += 1

    def add_branch(self):
        with self.circuit.if_test((self.circuit.clbits[int(self.rng.integers(NUM_BITS))], int(self.rng.integers(2)))):
            _, gate = random_gate(self.rng, self.num_qubits)
            while gate.num_qubits == 0:
                _, gate = random_gate(self.rng, self.num_qubits)
            self.circuit.append(gate, [int(x) for x in self.rng.permutation(self.num_qubits)[: gate.num_qubits]])
        self.case.tally["gate if_else"] += 1

    def add_save(self):
        label = f"save {len(self.saves)}"
        # the first one takes all kinds and forms in turn
        turn = int(self.rng.integers(12)) if self.saves else self.case.turn
        kind, form = SAVED_KINDS[turn % 4], SAVED_FORMS[turn // 4 % 3]
        flags = {form: True} if form != "mean" else {}
        qubits = some_qubits(self.rng, self.num_qubits)
        if form == "conditional":  # else a transpiler may move the save past a measurement of another qubit
            qubits = [int(qubit) for qubit in self.rng.permutation(self.num_qubits)]
        if kind == "probabilities":
            q.save_probabilities(self.circuit, qubits, label, **flags)
            value = lambda state: state.probabilities(qubits)  # noqa: E731
        elif kind == "density matrix":
            q.save_density_matrix(self.circuit, qubits, label, **flags)
            value = lambda state: reduced(state, qubits)  # noqa: E731
        elif kind == "value":
            observable, plain, _ = some_observable(self.rng, len(qubits))
            q.save_expectation_value(self.circuit, observable, qubits, label, **flags)
            value = lambda state: np.array(state.expectation_value(plain, qubits).real)  # noqa: E731
        else:
            q.save_amplitudes_squared(self.circuit, [0, 1], label, **flags)
            value = lambda state: np.abs(state.data[:2]) ** 2  # noqa: E731
        self.saves[label] = Saved(kind, form, value)

    def write(self, is_saving=True):
        for _ in range(int(self.rng.integers(3, 9))):
            options = [self.add_gates] * 2 + [self.add_branch] + [self.add_save] * is_saving
            options += [self.add_measure, self.add_measure, self.add_reset, self.add_initialize] * (self.left > 0)
            options[int(self.rng.integers(len(options)))]()
        if is_saving:
            self.add_save()
        for qubit in range(min(2, self.num_qubits)):
            self.circuit.measure(qubit, qubit)
        self.case.tally["gate measure"] += 1


def advanced(item, worlds, qubits, bits):
    """The branches after one instruction of a circuit."""
    operation, axes = item.operation, [qubits[qubit] for qubit in item.qubits]
    if operation.name == "initialize":
        for qubit in item.qubits:
            reset = item.replace(operation=Reset(), qubits=[qubit], clbits=[])
            worlds = advanced(reset, worlds, qubits, bits)
        item = item.replace(operation=prepared(operation))
    elif not (
        item.clbits or operation.name in ("measure", "reset", "barrier", "delay") or hasattr(operation, "blocks")
    ):
        if not axes:  # a global phase
            return worlds
        item = item.replace(operation=UnitaryGate(Operator(operation).data))  # one matrix for all branches
    return [after for world in worlds for after, _ in step(item, world, qubits, bits)]


def prepared(initialize):
    """A gate that takes |0...0> to the state of an `Initialize`."""
    params = initialize.params
    vector = Statevector.from_label("".join(params)) if isinstance(params[0], str) else Statevector(params)
    return UnitaryGate(Operator(StatePreparation(vector.data)).data)


def followed(circuit, saves):
    """Probability of each classical value at the end; and by label (probability, bits, value) of each branch there."""
    state = np.zeros((2,) * circuit.num_qubits, complex)
    state[(0,) * circuit.num_qubits] = 1
    worlds = [World(1.0, state, dict.fromkeys(circuit.clbits, 0), {})]
    qubits = {qubit: index for index, qubit in enumerate(circuit.qubits)}
    bits = {bit: bit for bit in circuit.clbits}
    at_saves = {}
    for item in circuit.data:
        if item.operation.name.startswith("save_"):
            label = item.operation.label
            at_saves[label] = [
                (world.probability, read(circuit, world), saves[label].value(Statevector(world.state.reshape(-1))))
                for world in worlds
            ]
            continue
        worlds = advanced(item, worlds, qubits, bits)
    weights = {}
    for world in worlds:
        value = read(circuit, world)
        weights[value] = weights.get(value, 0.0) + world.probability
    return weights, at_saves


def read(circuit, world):
    return sum(world.bits[bit] << index for index, bit in enumerate(circuit.clbits))


def check_saves(case, data, saves, at_saves, atol):
    """Asserts that each saved mean is that over the branches."""
    for label, saved in saves.items():
        branches = at_saves[label]
        total = sum(weight * value for weight, _, value in branches)
        if saved.form != "conditional":
            checks.close(np.asarray(data[label]), total, atol, f"{saved.form} {saved.kind}")
        else:
            for bits in {bits for _, bits, _ in branches}:
                here = [(weight, value) for weight, at, value in branches if at == bits]
                norm = sum(weight for weight, _ in here)
                if norm > 1e-6:
                    mean = sum(weight * value for weight, value in here) / norm
                    checks.close(np.asarray(data[label][hex(bits)]), mean, atol / norm, f"{saved.kind} by bits")
        case.checked(f"mean {saved.form} of {saved.kind} over histories")


def histories(case):
    """All histories exactly, then samples of them, with and without room for more than one state."""
    writer = Writer(case)
    writer.write()
    circuit, precision = writer.circuit, case.precision()
    weights, at_saves = followed(circuit, writer.saves)
    ready, is_transpiled = case.transpiled(circuit)
    options = case.options(precision=precision)
    if case.rng.integers(2):
        needed = shared_backend().estimate(ready, **options).needed_bytes
        options["max_memory_bytes"] = case.note("max_memory_bytes", needed)
    # 100 times the state's error: values of observables, and branches of small probability, are less exact
    atol = 100 * checks.limit(len(circuit.data), precision, is_transpiled)
    data = case.run(ready, **options, shots=None).data(0)
    checks.close_dicts({int(k, 16): w for k, w in data["counts"].items()}, weights, atol, "probabilities of histories")
    case.checked("exact histories")
    check_saves(case, data, writer.saves, at_saves, atol)
    data = case.run(ready, **options, shots=2000).data(0)
    counts = {int(key, 16): count for key, count in data["counts"].items()}
    checks.follow(counts, weights, NUM_BITS, case.rng, 1e-4 if precision == "single" else 1e-9)
    case.checked("samples of histories")
    for label, saved in writer.saves.items():
        if saved.kind == "probabilities" and saved.form == "mean":
            total = sum(weight * value for weight, _, value in at_saves[label])
            for got, want in zip(data[label], total, strict=True):
                checks.near_mean(got, want, 1, 2000, "a saved mean of shots")
            case.checked("saved means of shots")


def control_flow(case):
    """Loops, switches, expressions and variables."""
    circuit = random_dynamic_circuit(case.rng)
    for name, count in statements(circuit).items():
        case.tally[f"gate {name}"] += count
    weights = distribution(circuit)
    ready, _ = case.transpiled(circuit)
    precision = case.precision()
    options = case.options(precision=precision)
    if case.rng.integers(2):
        options["max_memory_bytes"] = case.note("max_memory_bytes", 16 << circuit.num_qubits)
    atol = 1e-4 if precision == "single" else 1e-9
    counts = case.run(ready, **options, shots=None).data(0)["counts"]
    checks.close_dicts({int(k, 16): w for k, w in counts.items()}, weights, atol, "probabilities with control flow")
    case.checked("exact control flow")
    counts = case.run(ready, **options, shots=1000).data(0)["counts"]
    checks.follow({int(k, 16): c for k, c in counts.items()}, weights, circuit.num_clbits, case.rng, atol)
    case.checked("samples of control flow")


def statements(circuit):
    """How often each statement stands in the circuit, nested ones included."""
    out = dict.fromkeys(STATEMENTS, 0)
    for item in circuit.data:
        if item.operation.name in out:
            out[item.operation.name] += 1
        for block in getattr(item.operation, "blocks", ()):
            for name, count in statements(block).items():
                out[name] += count
    return out


def mixed_estimates(case):
    """Values of observables as means over histories, exact and sampled."""
    writer = Writer(case)
    writer.write(is_saving=False)
    circuit = writer.circuit
    observable, plain, terms = some_observable(case.rng, writer.num_qubits)
    end = {"end": Saved("value", "mean", lambda state: state.expectation_value(plain).real)}
    q.save_probabilities(circuit, [0], "end")
    branches = followed(circuit, end)[1]["end"]
    circuit.data.pop()
    want = sum(weight * value for weight, _, value in branches)
    case.circuit = circuit
    backend = OzakiBackend(**case.options())
    got = EstimatorV2(backend).run([(circuit, observable)]).result()[0].data.evs
    checks.close(got, want, 1e-10, "a mean over histories")
    case.checked("exact estimates of histories")
    data = EstimatorV2(backend).run([(circuit, observable)], precision=0.05).result()[0].data
    checks.near_mean(float(data.evs), want, sum(abs(weight) for _, weight in terms), 400, "a sampled mean of histories")
    case.checked("sampled estimates of histories")
