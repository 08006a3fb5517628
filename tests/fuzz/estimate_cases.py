"""Cases with parameters: rows, estimates exact and sampled, gradients; against Qiskit's Statevector row by row."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from fuzz import checks
from fuzz.draws import some_observable
from fuzz.pure_cases import outcome_weights, some_qubits_exactly, some_start
from fuzz.setting import vector_of
from qiskit import ClassicalRegister
from qiskit.quantum_info import Statevector
from support.parametric import parametric_circuit

import qsim_ozaki as q
from qsim_ozaki import EstimatorV2, OzakiBackend, expectation_gradient

PRECISION = 0.03
STEP = 1e-5  # of a difference quotient, whose error is then about 1e-10


def some_rows(case, most=5):
    """A parametrised circuit and its rows of values."""
    num_qubits = int(case.rng.integers(1, 7))
    circuit = parametric_circuit(
        case.rng, num_qubits, int(case.rng.integers(4, 14)), special=bool(case.rng.integers(2))
    )
    rows = case.rng.uniform(-7, 7, (int(case.rng.integers(1, most + 1)), circuit.num_parameters))
    quarters = np.pi / 2 * case.rng.integers(-4, 5, rows.shape)
    rows = np.where(case.rng.random(rows.shape) < 0.2, quarters, rows)
    case.circuit = circuit
    return circuit, rows


def state_of(circuit, row, start=None):
    """The state at one row; ``start`` is the state before, None for |0...0>."""
    # evolutions by their definition: their matrix is sparse and warns
    bound = circuit.assign_parameters(row).decompose("PauliEvolution")
    return Statevector(bound) if start is None else start.evolve(bound)


def binds_of(case, circuit, rows):
    """The rows in one of the forms that a run takes."""
    if case.rng.integers(2):
        return rows
    return {parameter: rows[:, index].tolist() for index, parameter in enumerate(circuit.parameters)}


def rows(case):
    """States and counts of rows of parameters, here and in threads."""
    circuit, values = some_rows(case)
    states = [state_of(circuit, row) for row in values]
    precision, saving, measuring = case.precision(), circuit.copy(), circuit.copy()
    q.save_statevector(saving)
    ready, is_transpiled = case.transpiled(saving)
    options = case.options(precision=precision)
    atol = checks.limit(len(circuit.data), precision, is_transpiled)
    with ThreadPoolExecutor(2) as pool:
        executor = pool if case.rng.integers(2) else None
        result = case.run(ready, **options, parameter_binds=binds_of(case, ready, values), executor=executor)
    for number, state in enumerate(states):
        got = vector_of(result.data(number)["statevector"])
        checks.close(got, state.data, atol, f"the state of row {number}")
        case.checked("amplitudes of a row")
    n = circuit.num_qubits
    measuring.add_register(ClassicalRegister(n, "m"))
    pairs = [(qubit, bit) for bit, qubit in enumerate(some_qubits_exactly(case.rng, n, n))]
    for qubit, bit in pairs:
        measuring.measure(qubit, bit)
    result = case.run(measuring, **options, parameter_binds=binds_of(case, measuring, values), shots=1000)
    for number, state in enumerate(states):
        counts = {int(key, 16): count for key, count in result.data(number)["counts"].items()}
        checks.follow(counts, outcome_weights(state, pairs), n, case.rng, atol)
        case.checked("samples of a row")


def estimates(case):
    """Exact values of several observables at each row, then sampled ones with their errors."""
    circuit, values = some_rows(case)
    initial_state, start = some_start(case, circuit.num_qubits)
    states = [state_of(circuit, row, start) for row in values]
    drawn = [some_observable(case.rng, circuit.num_qubits) for _ in range(int(case.rng.integers(1, 4)))]
    observables = [[observable] for observable, _, _ in drawn]
    want = np.array([[state.expectation_value(plain).real for state in states] for _, plain, _ in drawn])
    precision = case.precision()
    backend = OzakiBackend(**case.options(precision=precision, initial_state=initial_state))
    exact = EstimatorV2(backend).run([(circuit, observables, values)]).result()[0].data
    scale = 10 * max(1.0, max(sum(abs(weight) for _, weight in terms) for _, _, terms in drawn))
    checks.close(exact.evs, want, scale * checks.limit(want.size * len(circuit.data), precision), "exact estimates")
    assert not exact.stds.any(), "exact estimates have errors"
    case.checked("exact estimates")
    data = EstimatorV2(backend).run([(circuit, observables, values)], precision=PRECISION).result()[0].data
    shots = int(np.ceil(PRECISION**-2))
    for number, (_, _, terms) in enumerate(drawn):
        size = sum(abs(weight) for _, weight in terms)
        for got, std, due in zip(data.evs[number], data.stds[number], want[number], strict=True):
            checks.near_mean(got, due, size, shots, "a sampled estimate")
            case.checked("sampled estimates")
            # a projector is split, and its parts may be measured in several bases
            if len(terms) == 1 and {"I"} < {"I", *terms[0][0]} <= set("IXYZ"):
                check_term(case, (got, std, due), terms[0], shots)


def check_term(case, row, term, shots):
    """Asserts that one term's mean is a count of shots, has its probability, and has the error of such a count."""
    (got, std, due), (label, weight) = row, term
    seen, probability, mean = shots * (1 + got / weight) / 2, (1 + due / weight) / 2, got / weight
    count = round(seen)
    assert abs(seen - count) < 1e-6, f"{label}: a mean of {shots} shots is {mean}"
    probability = min(max(probability, 0.0), 1.0)
    level = checks.FALSE_ALARMS
    assert checks.may_count(count, shots, probability, level, 1e-4), f"{label}: {count} of {shots}, {probability} due"
    checks.close(std, abs(weight) * np.sqrt(max(1 - mean**2, 0) / (shots - 1)), 1e-6, f"the error of {label}")
    case.checked("sampled terms")


def gradients(case):
    """Gradients against difference quotients of the reference."""
    circuit, values = some_rows(case, 1)
    observable, plain, terms = some_observable(case.rng, circuit.num_qubits)
    value, gradient = expectation_gradient(circuit, observable, values[0], threads=int(case.rng.integers(1, 3)))
    checks.close(
        value, state_of(circuit, values[0]).expectation_value(plain).real, 1e-10, "the value beside a gradient"
    )
    size = 1 + sum(abs(weight) for _, weight in terms)
    for index in case.rng.permutation(values.shape[1])[:3]:
        shift = STEP * np.eye(values.shape[1])[index]
        pair = [state_of(circuit, values[0] + sign * shift).expectation_value(plain).real for sign in (1, -1)]
        checks.close(gradient[index], (pair[0] - pair[1]) / (2 * STEP), 1e-7 * size, f"derivative {index}")
        case.checked("derivatives")
