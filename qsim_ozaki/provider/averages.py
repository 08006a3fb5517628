"""Computes expectation values of circuits that measure, reset or branch inside: means over all histories, or sampled.

In: an estimator pub, a backend. Out: values and standard errors. It may not know of jobs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from qiskit import ClassicalRegister, QuantumCircuit
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.quantum_info import SparseObservable

from qsim_ozaki.estimation import QubitMap, labelled, shots_of
from qsim_ozaki.ir import TURNS_TO_Z, Basis, RealArray, SampledMeans, commuting_groups
from qsim_ozaki.lowering import save_expectation_value, start_qubits
from qsim_ozaki.provider.backend import OzakiBackend
from qsim_ozaki.runtime import stream as random_stream

REGISTER = "estimated"


def average_pub(pub: EstimatorPub, backend: OzakiBackend, check: Callable[[], None]) -> RealArray:
    """Returns exact values in the pub's broadcast shape: means over all histories, weighted by their probabilities.

    Args:
        pub: its precision is ignored.
        backend: runs it.
        check: called now and then; what it raises ends the run.
    """
    circuit = pub.circuit
    saving = circuit.copy()
    terms = labelled(pub.observables)
    for number, observable in enumerate(terms):
        operator = SparseObservable.from_list(list(observable.items()))
        save_expectation_value(saving, operator, saving.qubits, label=f"observable {number}")
    options = {"shots": None, "memory": False, "seed_simulator": 0}
    results = backend.results([saving], _binds(pub), options, check=check)
    values = np.array([[result.data.to_dict()[f"observable {n}"] for n in range(len(terms))] for result in results])
    return np.asarray(_broadcast(pub, values), float)


def sample_pub(
    pub: EstimatorPub, backend: OzakiBackend, stream: tuple[int, int], check: Callable[[], None]
) -> tuple[RealArray, RealArray, int]:
    """Returns sampled values and standard errors in the pub's broadcast shape, and the shots of each basis.

    Each shot runs the whole circuit, with its own mid-circuit outcomes, and is measured in a basis at the end. Values
    therefore scatter as those of a device without noise.

    Args:
        pub: its precision is above 0.
        backend: runs it.
        stream: seed of the job, and the job's index of the pub's first row.
        check: called now and then; what it raises ends the run.
    """
    shots = shots_of(pub.precision)
    qubit_map = _qubit_map(pub.circuit, backend.options.initial_state)
    observables = [qubit_map.observable(terms) for terms in labelled(pub.observables)]
    means = [SampledMeans(observables, shots) for _ in range(pub.parameter_values.size)]
    seed, first = stream
    for number, basis in enumerate(commuting_groups(observables)):
        basis_seed = int(random_stream(seed, (number,)).integers(1 << 63))  # each basis has its own samples
        options = {"shots": shots, "memory": False, "seed_simulator": basis_seed}
        circuit = _measured(pub.circuit, qubit_map, basis)
        results = backend.results([circuit], _binds(pub), options, first=first, check=check, draws_counts=True)
        for row, result in enumerate(results):
            means[row].add(basis, [_samples(result)])
    values, errors = zip(*(row.values_and_errors() for row in means), strict=True)
    return _broadcast(pub, np.array(values)), _broadcast(pub, np.array(errors)), shots


def _binds(pub: EstimatorPub) -> RealArray | None:
    """Returns one row per set of parameters; None if the circuit has no parameters and the pub no shape."""
    bindings, circuit = pub.parameter_values, pub.circuit
    if not circuit.num_parameters and not bindings.shape:
        return None
    return np.asarray(bindings.as_array(circuit.parameters).reshape(bindings.size, circuit.num_parameters), float)


def _broadcast(pub: EstimatorPub, values: RealArray) -> RealArray:
    """Broadcasts ``(rows, observables)`` to the pub's shape."""
    rows = np.arange(len(values)).reshape(pub.parameter_values.shape)
    columns = np.arange(values.shape[1]).reshape(pub.observables.shape)
    row_of, column_of = np.broadcast_arrays(rows, columns)
    return np.asarray(values[row_of, column_of])


def _qubit_map(circuit: QuantumCircuit, initial_state: object) -> QubitMap:
    """Numbers the qubits that may leave |0>, in order; measurements are part of the circuit's histories."""
    touched = {circuit.qubits[qubit] for qubit in start_qubits(circuit, initial_state)}
    touched |= {qubit for item in circuit.data for qubit in item.qubits if item.operation.name != "barrier"}
    place, count = [], 0
    for qubit in circuit.qubits:
        place.append(count if qubit in touched else -1)
        count += qubit in touched
    return QubitMap(tuple(place), frozenset())


def _measured(circuit: QuantumCircuit, qubit_map: QubitMap, basis: Basis) -> QuantumCircuit:
    """Returns ``circuit`` followed by gates and measurements that read ``basis`` into a separate register."""
    measured = circuit.copy()
    register = ClassicalRegister(max(qubit_map.place, default=-1) + 1, REGISTER)
    while register.name in {other.name for other in circuit.cregs}:
        register = ClassicalRegister(register.size, register.name + "_")
    measured.add_register(register)
    for qubit, place in enumerate(qubit_map.place):
        letter = basis.letter(place) if place >= 0 else "I"
        if letter == "I":
            continue
        for name in TURNS_TO_Z[letter]:
            getattr(measured, name)(qubit)
        measured.measure(qubit, register[place])
    return measured


def _samples(result: object) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Returns the distinct values of the last register and their counts."""
    sizes = [size for _, size in result.header["creg_sizes"]]  # type: ignore[attr-defined]
    counts = result.data.counts  # type: ignore[attr-defined]
    below = sum(sizes[:-1])
    values = np.array([int(key, 16) >> below for key in counts], np.uint64)
    return values, np.array(list(counts.values()))
