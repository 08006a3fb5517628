"""Values of one estimator pub: exact, or sampled with the variance that measurements have.

In: a pub, an engine, a seed. Out: values, standard errors, shots. It knows nothing of jobs.
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
    """How a pub is evaluated.

    Attributes:
        engine: runs what is not stacked.
        options: of the backend, checked.
        seed: of the job.
        first: the job's index of the pub's first row.
        check: called now and then; what it raises ends the job.
    """

    engine: Engine
    options: dict[str, Any]
    seed: int
    first: int
    check: Callable[[], None]


def estimate_pub(pub: EstimatorPub, setting: Estimation) -> tuple[RealArray, RealArray, int]:
    """Values and standard errors in the pub's broadcast shape, and the shots of each basis (0: exact)."""
    shots = math.ceil(1 / pub.precision**2) if pub.precision else 0
    circuit = pub.circuit
    given = pub.parameter_values
    rows = given.as_array(circuit.parameters).reshape(given.size, circuit.num_parameters)
    terms = labelled(pub.observables)
    row_of = np.arange(len(rows)).reshape(given.shape)
    term_of = np.arange(len(terms)).reshape(pub.observables.shape)
    row_of, term_of = np.broadcast_arrays(row_of, term_of)
    evs, stds = np.zeros(row_of.size), np.zeros(row_of.size)
    for places, evaluator, values, firsts in _groups(circuit, rows, row_of.reshape(-1), term_of.reshape(-1)):
        wanted = [evaluator.qubit_map.observable(terms[index]) for index in term_of.reshape(-1)[places[0]]]
        for number, (mean, error) in enumerate(_values(evaluator, values, wanted, shots, setting, firsts)):
            evs[places[number]], stds[places[number]] = mean, error
    return evs.reshape(row_of.shape), stds.reshape(row_of.shape), shots


def _groups(circuit: QuantumCircuit, rows: RealArray, row_of: NDArray[np.int64], term_of: NDArray[np.int64]) -> Any:
    """Rows that want the same observables: (places of each row's values, evaluator, values, numbers of the rows)."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(row_of.tolist()):
        places.setdefault(row, []).append(place)
    alike: dict[tuple[int, ...], list[int]] = {}
    for row, own in places.items():
        alike.setdefault(tuple(term_of[own].tolist()), []).append(row)
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
    wanted: Sequence[Observable],
    shots: int,
    setting: Estimation,
    numbers: Sequence[int],
) -> Any:
    """(means, standard errors) of the wanted observables at each row; ``numbers`` are those of the pub's rows."""
    threads = num_threads(setting.options["threads"])
    options = plan_options(setting.options)
    if not shots:
        for _, exact in evaluator.expectations(values, wanted, setting.engine, options, threads):
            setting.check()
            yield from zip(exact, np.zeros_like(exact), strict=True)
        return
    for rows, states in evaluator.states(values, setting.engine, options, threads):
        setting.check()
        for number, state in zip(numbers[rows], states, strict=True):
            yield _sampled(state, wanted, shots, setting, setting.first + number)


def _sampled(
    state: NDArray[np.complexfloating], wanted: Sequence[Observable], shots: int, setting: Estimation, row: int
) -> tuple[RealArray, RealArray]:
    """Means of ``shots`` measurements in each basis that the observables need, and their standard errors.

    The row's index in the job, ``row``, is part of the key of its random streams.
    """
    means = SampledMeans(wanted, shots)
    for number, basis in enumerate(commuting_groups(wanted)):
        generator = stream(setting.seed, (row, number))
        means.add(basis, *np.unique(_measured(state, basis, generator.random(shots), setting), return_counts=True))
    return means.values_and_errors()


def _measured(
    state: NDArray[np.complexfloating], basis: Basis, uniforms: RealArray, setting: Estimation
) -> NDArray[np.int64]:
    """Basis states drawn after X and Y were turned to Z on the qubits of ``basis``."""
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
