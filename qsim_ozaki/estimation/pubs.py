"""Computes the values of one estimator pub: exact, or sampled with the variance that measurements have.

In: a pub, an engine, a seed. Out: values, standard errors, shots. It may not know of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from qsim_ozaki.lowering import GATES, row_op
from qsim_ozaki.planner import plan, plan_options
from qsim_ozaki.runtime import num_threads, stream


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


def estimate_pub(pub: EstimatorPub, setting: Estimation) -> tuple[RealArray, RealArray, int]:
    """Returns values and standard errors in the pub's broadcast shape, and the shots of each basis (0: exact)."""
    shots = math.ceil(1 / pub.precision**2) if pub.precision else 0
    circuit = pub.circuit
    bindings = pub.parameter_values
    rows = bindings.as_array(circuit.parameters).reshape(bindings.size, circuit.num_parameters)
    terms = labelled(pub.observables)
    row_of = np.arange(len(rows)).reshape(bindings.shape)
    term_of = np.arange(len(terms)).reshape(pub.observables.shape)
    row_of, term_of = np.broadcast_arrays(row_of, term_of)
    evs, stds = np.zeros(row_of.size), np.zeros(row_of.size)
    for places, evaluator, values, firsts in _groups(circuit, rows, row_of.reshape(-1), term_of.reshape(-1)):
        observables = [evaluator.qubit_map.observable(terms[index]) for index in term_of.reshape(-1)[places[0]]]
        for number, (mean, error) in enumerate(_values(evaluator, values, observables, shots, setting, firsts)):
            evs[places[number]], stds[places[number]] = mean, error
    return evs.reshape(row_of.shape), stds.reshape(row_of.shape), shots


def _groups(circuit: QuantumCircuit, rows: RealArray, row_of: NDArray[np.int64], term_of: NDArray[np.int64]) -> Any:
    """Groups rows with the same observables: yields (places of each row's results, evaluator, values, row numbers)."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(row_of.tolist()):
        places.setdefault(row, []).append(place)
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, row_places in places.items():
        alike.setdefault(tuple(term_of[row_places].tolist()), []).append(row)
    evaluator = make_evaluator(circuit)
    for members in alike.values():
        if evaluator is not None:
            yield [places[row] for row in members], evaluator, rows[members], members
            continue
        for row in members:
            bound = make_evaluator(circuit.assign_parameters(dict(zip(circuit.parameters, rows[row], strict=True))))
            yield [places[row]], bound, np.empty((1, 0)), [row]


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
        generator = stream(setting.seed, (row, number))
        means.add(basis, *np.unique(_measured(state, basis, generator.random(shots), setting), return_counts=True))
    return means.values_and_errors()


def _measured(
    state: NDArray[np.complexfloating], basis: Basis, uniforms: RealArray, setting: Estimation
) -> NDArray[np.int64]:
    """Turns X and Y to Z on the qubits of ``basis``, then draws basis states."""
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
    return engine.sample(turned, uniforms)
