"""Computes the values of one estimator pub: exact, or sampled with the variance that measurements have.

In: a pub, an engine, a seed. Out: values, standard errors, shots. It may not know of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.primitives.containers.estimator_pub import EstimatorPub

from qsim_ozaki.engines import Engine
from qsim_ozaki.estimation.evaluator import Evaluator, make_evaluator
from qsim_ozaki.estimation.observables import labelled
from qsim_ozaki.ir import TURNS_TO_Z, Basis, Observable, RealArray, Relabel, SampledMeans, commuting_groups
from qsim_ozaki.lowering import GATES, bound_circuit, row_op
from qsim_ozaki.planner import plan, plan_options
from qsim_ozaki.runtime import SHOTS_PER_BLOCK, draw_counts, draws_counts, num_threads, stream

Block = tuple[NDArray[np.int64], NDArray[np.int64]]  # distinct samples, and how often each came


@dataclass(frozen=True, slots=True, eq=False)
class Estimation:
    """The engine, options and seed with which a pub is evaluated.

    Attributes:
        engine: runs circuits that are too wide to run in stacks.
        options: checked options of the backend.
        seed: seed of the job.
        first: the job's index of the pub's first row.
        check: called now and then; what it raises ends the job.
    """

    engine: Engine
    options: dict[str, Any]
    seed: int
    first: int
    check: Callable[[], None]


def shots_of(precision: float) -> int:
    """Returns the shots of each basis that give a standard error of ``precision`` times that of one shot; 0: exact."""
    return math.ceil(1 / precision**2) if precision else 0


def estimate_pub(pub: EstimatorPub, setting: Estimation) -> tuple[RealArray, RealArray, int]:
    """Returns values and standard errors in the pub's broadcast shape, and the shots of each basis (0: exact)."""
    shots = shots_of(pub.precision)
    circuit = pub.circuit
    bindings = pub.parameter_values
    rows = bindings.as_array(circuit.parameters).reshape(bindings.size, circuit.num_parameters)
    terms = labelled(pub.observables)
    row_of = np.arange(len(rows)).reshape(bindings.shape)
    term_of = np.arange(len(terms)).reshape(pub.observables.shape)
    row_of, term_of = np.broadcast_arrays(row_of, term_of)
    evs, stds = np.zeros(row_of.size), np.zeros(row_of.size)
    for places, evaluator, values, firsts in _groups(circuit, setting, rows, row_of.reshape(-1), term_of.reshape(-1)):
        observables = [evaluator.qubit_map.observable(terms[index]) for index in term_of.reshape(-1)[places[0]]]
        for number, (mean, error) in enumerate(_values(evaluator, values, observables, shots, setting, firsts)):
            evs[places[number]], stds[places[number]] = mean, error
    return evs.reshape(row_of.shape), stds.reshape(row_of.shape), shots


def _groups(
    circuit: QuantumCircuit,
    setting: Estimation,
    rows: RealArray,
    row_of: NDArray[np.int64],
    term_of: NDArray[np.int64],
) -> Any:
    """Groups rows with the same observables: yields (places of each row's results, evaluator, values, row numbers)."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(row_of.tolist()):
        places.setdefault(row, []).append(place)
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, row_places in places.items():
        alike.setdefault(tuple(term_of[row_places].tolist()), []).append(row)
    start = setting.options["initial_state"], setting.options["inputs"]
    evaluator = make_evaluator(circuit, *start)
    for members in alike.values():
        if evaluator is not None:
            yield [places[row] for row in members], evaluator, rows[members], members
            continue
        for row in members:
            bound = bound_circuit(circuit, rows[row].tolist())
            yield [places[row]], make_evaluator(bound, *start), np.empty((1, 0)), [row]


def _values(
    evaluator: Evaluator,
    values: RealArray,
    observables: Sequence[Observable],
    shots: int,
    setting: Estimation,
    numbers: Sequence[int],
) -> Any:
    """Yields (means, standard errors) of the observables at each row; ``numbers`` are the rows' numbers in the pub."""
    threads = num_threads(setting.options["threads"])
    options = plan_options(setting.options)
    if not shots:
        for _, exact in evaluator.expectations(values, observables, setting.engine, options, threads):
            setting.check()
            yield from zip(exact, np.zeros_like(exact), strict=True)
        return
    for rows, states in evaluator.states(values, setting.engine, options, threads):
        setting.check()
        for number, state in zip(numbers[rows], states, strict=True):
            yield _sampled(state, observables, shots, setting, setting.first + number)


def _sampled(
    state: NDArray[np.complexfloating], observables: Sequence[Observable], shots: int, setting: Estimation, row: int
) -> tuple[RealArray, RealArray]:
    """Returns means of ``shots`` measurements in each basis that the observables need, and their standard errors.

    The row's index in the job, ``row``, is part of the key of its random streams.
    """
    means = SampledMeans(observables, shots)
    for number, basis in enumerate(commuting_groups(observables)):
        means.add(basis, _measured(state, basis, shots, stream(setting.seed, (row, number)), setting))
    return means.values_and_errors()


def _measured(
    state: NDArray[np.complexfloating], basis: Basis, shots: int, generator: np.random.Generator, setting: Estimation
) -> Iterator[Block]:
    """Turns X and Y to Z on the qubits of ``basis``, then yields distinct samples of these qubits and their counts."""
    engine, options = setting.engine, plan_options(setting.options)
    num_qubits = state.size.bit_length() - 1
    ops = []
    for qubit in range(num_qubits):
        ops += [row_op(GATES[name], (), (qubit,)) for name in TURNS_TO_Z[basis.letter(qubit)]]
    turned = engine.load(state, options.precision)
    ordered = replace(options, from_zero=False, restore_order=True)
    for step in plan(ops, num_qubits, engine.device(), ordered).steps:
        setting.check()
        assert not isinstance(step, Relabel), "one-qubit gates rename no qubit"
        engine.run_step(turned, step)
    qubits = [qubit for qubit in range(num_qubits) if basis.letter(qubit) != "I"]
    if draws_counts(len(qubits), shots):
        for outcomes, counts in draw_counts(generator, shots, engine.probabilities(turned, qubits)):
            setting.check()
            samples = np.zeros(len(outcomes), np.int64)
            for bit, qubit in enumerate(qubits):
                samples |= (outcomes >> bit & 1) << qubit
            yield samples, counts
        return
    for start in range(0, shots, SHOTS_PER_BLOCK):
        setting.check()
        uniforms = generator.random(min(SHOTS_PER_BLOCK, shots - start))
        yield np.unique(engine.sample(turned, uniforms), return_counts=True)
