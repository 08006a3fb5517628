"""Cases of circuits that are unitary up to their end: amplitudes, saves, samples; against Qiskit's Statevector."""

import numpy as np
from fuzz import checks
from fuzz.draws import append_gates, random_gates, some_label, some_observable, some_qubits
from fuzz.setting import shared_backend, vector_of
from qiskit import ClassicalRegister, QuantumCircuit, transpile
from qiskit.circuit.library import UnitaryGate
from qiskit.quantum_info import DensityMatrix, Statevector, partial_trace
from support.random_circuits import matrix

import qsim_ozaki as q
from qsim_ozaki import OzakiBackend, SamplerV2

SAVED_KINDS = (
    *("state", "statevector", "dict", "amplitudes", "amplitudes squared"),
    *("probabilities", "probabilities dict", "density matrix", "value", "variance"),
)


def some_start(case, num_qubits):
    """An initial state in one of its forms, and its vector."""
    form = case.rng.choice(["none", "none", "none", "label", "index", "vector"])
    case.note("start", str(form))
    if form == "label":
        label = some_label(case.rng, num_qubits)
        return label, Statevector.from_label(label)
    if form == "index":
        index = int(case.rng.integers(2**num_qubits))
        return index, Statevector.from_int(index, 2**num_qubits)
    if form == "vector":
        vector = matrix(case.rng, num_qubits)[0]
        return vector, Statevector(vector)
    return None, Statevector.from_int(0, 2**num_qubits)


def amplitudes(case):
    """The final state from any start, saved or as the result of a circuit that saves nothing."""
    num_qubits = case.width()
    circuit = random_gates(case.rng, num_qubits, int(case.rng.integers(3, 30)), case.tally)
    initial_state, state = some_start(case, num_qubits)
    want, size = state.evolve(circuit).data, len(circuit.data)
    if case.rng.integers(2):
        q.save_statevector(circuit)
    ready, is_transpiled = (circuit, False) if initial_state is not None else case.transpiled(circuit)
    precision = case.precision()
    options = case.options(precision=precision, initial_state=initial_state)
    if case.rng.random() < 0.2:
        options["max_memory_bytes"] = shared_backend().estimate(ready, **options).needed_bytes
    got = vector_of(case.run(ready, **options).data(0)["statevector"])
    checks.close(got, want, checks.limit(size, precision, is_transpiled), "the final state")
    case.checked("amplitudes")
    case.checked(f"amplitudes in {precision} precision")
    case.checked("amplitudes from a start" if initial_state is not None else "amplitudes from zero")


def wide(case):
    """11 to 14 qubits with layers of Hadamard gates and a large matrix: passes of every kind."""
    num_qubits = int(case.rng.integers(11, 15))
    circuit = QuantumCircuit(num_qubits)
    for _ in range(2):
        circuit.h(some_qubits(case.rng, num_qubits, num_qubits))
        append_gates(case.rng, circuit, int(case.rng.integers(1, 5)), case.tally)
        if case.rng.integers(2):
            k = int(case.rng.integers(6, 9))
            circuit.append(UnitaryGate(matrix(case.rng, k)), some_qubits_exactly(case.rng, num_qubits, k))
    circuit.h(range(num_qubits))
    precision = case.precision()
    want = Statevector(circuit).data
    got = vector_of(case.run(circuit, **case.options(precision=precision)).data(0)["statevector"])
    checks.close(got, want, checks.limit(len(circuit.data), precision), "the final state")
    case.checked("wide amplitudes")


def some_qubits_exactly(rng, num_qubits, count):
    return [int(qubit) for qubit in rng.permutation(num_qubits)[:count]]


def emulated(case):
    """Matrices on 3 qubits and more by INT8 products, to a chosen accuracy, beside other gates."""
    num_qubits = int(case.rng.integers(4, 11))
    circuit = QuantumCircuit(num_qubits)
    for _ in range(int(case.rng.integers(1, 4))):
        append_gates(case.rng, circuit, int(case.rng.integers(0, 4)), case.tally)
        k = int(case.rng.integers(3, min(7, num_qubits) + 1))
        gate = UnitaryGate(matrix(case.rng, k))
        if k < min(num_qubits, 6) and case.rng.integers(2):
            gate = gate.control(1, ctrl_state=int(case.rng.integers(2)), annotated=k > 3)
        circuit.append(gate, some_qubits_exactly(case.rng, num_qubits, gate.num_qubits))
    precision = case.precision()
    accuracy = case.rng.choice([None, 1e-12, 1e-9, 1e-6])
    options = case.options(precision=precision) | {"arithmetic": "emulated", "accuracy": accuracy}
    initial_state, state = some_start(case, num_qubits)
    result = case.run(circuit, **case.note("options", options | {"initial_state": initial_state}))
    got = vector_of(result.data(0)["statevector"])
    blocks = result.results[0].metadata.get("emulated", {"blocks": 0})["blocks"]
    case.tally["step emulated"] += blocks
    atol = checks.limit(len(circuit.data), precision) + (accuracy or 0) * (blocks + len(circuit.data))
    checks.close(got, state.evolve(circuit).data, atol, "the final state")
    case.checked("emulated amplitudes")


def saved_value(case, circuit, state, number):
    """Appends save ``number`` of the circuit; returns its kind, its form and its value in ``state``."""
    label = f"save {number}"
    rng, n = case.rng, circuit.num_qubits
    # the first one takes all kinds in turn
    turn = int(rng.integers(len(SAVED_KINDS))) if number else case.turn
    kind = SAVED_KINDS[turn % len(SAVED_KINDS)]
    form = {"pershot": bool(rng.random() < 0.3), "conditional": bool(rng.random() < 0.3)}
    qubits = some_qubits(rng, n) if rng.integers(2) else None
    indices = [int(index) for index in rng.integers(0, 2**n, 3)]
    chosen = list(range(n)) if qubits is None else qubits
    if kind in ("state", "statevector"):
        getattr(q, f"save_{kind}")(circuit, label, **form)
        value = state.data
    elif kind == "dict":
        q.save_statevector_dict(circuit, label, **form)
        value = {hex(index): amplitude for index, amplitude in enumerate(state.data)}
    elif kind == "amplitudes":
        q.save_amplitudes(circuit, indices, label, **form)
        value = state.data[indices]
    else:
        form["unnormalized"] = bool(rng.random() < 0.3) and not form["pershot"]
        if kind == "amplitudes squared":
            q.save_amplitudes_squared(circuit, indices, label, **form)
            value = np.abs(state.data[indices]) ** 2
        elif kind == "probabilities":
            q.save_probabilities(circuit, qubits, label, **form)
            value = state.probabilities(chosen)
        elif kind == "probabilities dict":
            q.save_probabilities_dict(circuit, qubits, label, **form)
            value = dict(enumerate(state.probabilities(chosen)))
        elif kind == "density matrix":
            q.save_density_matrix(circuit, qubits, label, **form)
            value = reduced(state, chosen)
        else:
            observable, plain, _ = some_observable(rng, len(chosen))
            mean = state.expectation_value(plain, chosen).real
            if kind == "value":
                q.save_expectation_value(circuit, observable, qubits, label, **form)
                value = mean
            else:
                q.save_expectation_value_variance(circuit, observable, qubits, label, **form)
                square = state.expectation_value((plain @ plain).simplify(), chosen).real
                value = np.array([mean, square - mean**2])
    return kind, form, value


def reduced(state, qubits):
    """The density matrix of ``qubits``, the first of which is bit 0 of its index."""
    rest = [qubit for qubit in range(state.num_qubits) if qubit not in qubits]
    matrix_ = np.asarray(partial_trace(state, rest)) if rest else DensityMatrix(state).data
    rank = [sorted(qubits).index(qubit) for qubit in qubits]
    index = np.arange(2 ** len(qubits))
    place = sum((index >> j & 1) << rank[j] for j in range(len(qubits)))
    return matrix_[np.ix_(place, place)]


def saves(case):
    """Saves of every kind and form between gates."""
    num_qubits, shots = case.width(8), int(case.rng.integers(1, 6))
    circuit, state = QuantumCircuit(num_qubits), Statevector.from_int(0, 2**num_qubits)
    expected = {}
    for number in range(int(case.rng.integers(2, 6))):
        part = QuantumCircuit(num_qubits)
        append_gates(case.rng, part, int(case.rng.integers(1, 8)), case.tally)
        state = state.evolve(part)
        circuit.compose(part, inplace=True)
        if case.rng.random() < 0.1:
            vector = matrix(case.rng, num_qubits)[0]
            q.set_statevector(circuit, vector)
            state = Statevector(vector)
            case.tally["gate set_statevector"] += 1
        expected[f"save {number}"] = saved_value(case, circuit, state, number)
    size = len(circuit.data)
    ready, is_transpiled = case.transpiled(circuit)
    precision = case.precision()
    data = case.run(ready, **case.options(precision=precision, shots=shots)).data(0)
    for label, (kind, form, value) in expected.items():
        got = data[label]
        if form["conditional"]:
            assert set(got) == {"0x0"}, f"{kind}: values of bits {set(got)}"
            got = got["0x0"]
        assert not form["pershot"] or len(got) == shots, f"{kind}: {len(got)} entries of {shots} shots"
        factor = shots if form.get("unnormalized") else 1
        # a transpiler moves phases of gates to the whole circuit, past a save
        is_free = is_transpiled and kind in ("state", "statevector", "dict", "amplitudes")
        case.note("kind", kind)
        for entry in got if form["pershot"] else [got]:
            check_saved(entry, value, factor, checks.limit(size, precision, is_transpiled), is_free)
        case.checked(f"save of {kind}")
        for name in form:
            case.tally[f"check save {name}"] += bool(form[name])


def check_saved(got, value, factor, atol, is_free):
    """Asserts that one saved value is ``factor`` times ``value``, up to a global phase where that ``is_free``."""
    if isinstance(value, dict):
        assert got.keys() <= value.keys(), f"keys {got.keys() - value.keys()}"
        got, value = [got.get(key, 0) for key in value], list(value.values())
    got = vector_of(getattr(got, "data", got) if isinstance(got, DensityMatrix) else got)
    want = factor * np.asarray(value)
    if is_free:
        overlap = np.vdot(want, got)
        want = want * (overlap / abs(overlap) if overlap else 1)
    # a variance or the value of an observable has an error larger than the state's
    checks.close(got, want, 10 * factor * atol, "the saved value")


def measured(case, circuit):
    """The circuit with measurements of random qubits into random bits of registers; qubit and bit pairs."""
    n, rng = circuit.num_qubits, case.rng
    out = circuit.copy()
    out.add_register(ClassicalRegister(2, "low"), ClassicalRegister(n, "high"))
    qubits, bits = some_qubits_exactly(rng, n, int(rng.integers(1, n + 1))), rng.permutation(n + 2)
    pairs = [(qubit, int(bit)) for qubit, bit in zip(qubits, bits, strict=False)]
    for qubit, bit in pairs:
        out.measure(qubit, bit)
    case.tally["gate measure"] += len(pairs)
    return out, pairs


def outcome_weights(state, pairs):
    """Probability of each value of the classical bits."""
    index = np.arange(state.dim)
    values = sum((index >> qubit & 1) << bit for qubit, bit in pairs)
    weights = {}
    for value, weight in zip(values.tolist(), (np.abs(state.data) ** 2).tolist(), strict=True):
        weights[value] = weights.get(value, 0.0) + weight
    return weights


def samples(case):
    """Counts, memory, exact probabilities and a sampler's registers of a circuit that ends in measurements."""
    num_qubits = case.width()
    circuit = random_gates(case.rng, num_qubits, int(case.rng.integers(3, 25)), case.tally)
    out, pairs = measured(case, circuit)
    initial_state, state = some_start(case, num_qubits)
    want = outcome_weights(state.evolve(circuit), pairs)
    ready, is_transpiled = case.transpiled(out) if initial_state is None else (out, False)
    precision, shots = case.precision(), int(case.rng.choice([1, 100, 1000, 5000]))
    error = checks.limit(len(circuit.data), precision, is_transpiled)
    options = case.options(precision=precision, initial_state=initial_state)
    data = case.run(ready, **options, shots=shots, memory=True).data(0)
    memory = [int(value, 16) for value in data["memory"]]
    counts = {int(key, 16): count for key, count in data["counts"].items()}
    assert counts == {value: memory.count(value) for value in set(memory)}, "the memory has other counts"
    assert sum(counts.values()) == shots, "the counts are not as many as the shots"
    checks.follow(counts, want, num_qubits + 2, case.rng, error)
    case.checked("samples")
    exact = case.run(ready, **options, shots=None).data(0)["counts"]
    checks.close_dicts({int(key, 16): value for key, value in exact.items()}, want, 2 * error, "exact probabilities")
    case.checked("exact probabilities")
    drawn = SamplerV2(OzakiBackend(**options)).run([ready], shots=1000).result()[0].data
    for name, shift, width in (("low", 0, 2), ("high", 2, num_qubits)):
        marginal = {}
        for value, weight in want.items():
            key = value >> shift & (1 << width) - 1
            marginal[key] = marginal.get(key, 0.0) + weight
        checks.follow(drawn[name].get_int_counts(), marginal, width, case.rng, error)
    case.checked("samples of a sampler")


def lists(case):
    """Several circuits in one job, some transpiled by Qiskit for a line of qubits: each has its own counts."""
    parts, wants = [], []
    for _ in range(int(case.rng.integers(2, 5))):
        n = case.width(5)
        circuit = random_gates(case.rng, n, int(case.rng.integers(2, 12)), case.tally)
        out, pairs = measured(case, circuit)
        wants.append((outcome_weights(Statevector(circuit), pairs), n + 2))
        if n > 1 and case.rng.integers(2):
            line = [[a, b] for a in range(n) for b in range(n) if abs(a - b) == 1]
            basis = ["rz", "sx", "cx"]
            out = transpile(out, coupling_map=line, basis_gates=basis, seed_transpiler=1, optimization_level=1)
            case.checked("samples of a routed circuit")
        parts.append(out)
    result = case.run(parts, **case.options(precision=case.precision(), shots=1000))
    for number, (want, width) in enumerate(wants):
        counts = {int(key, 16): count for key, count in result.data(number)["counts"].items()}
        checks.follow(counts, want, width, case.rng, 1e-4)
        case.checked("samples of a list")
