"""Exact expectation values of circuits that measure, reset or branch inside: means over all histories.

In: an estimator pub, a backend. Out: values. It samples nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.quantum_info import SparsePauliOp

from qsim_ozaki.backend import OzakiBackend
from qsim_ozaki.instructions import save_expectation_value
from qsim_ozaki.observables import labelled, pauli_strings


def average_pub(pub: EstimatorPub, backend: OzakiBackend, check: Callable[[], None]) -> NDArray[np.float64]:
    """The values in the pub's broadcast shape, by exact probabilities of the outcomes on the way.

    Args:
        pub: its precision is not looked at.
        backend: runs it.
        check: called now and then; what it raises ends the run.
    """
    circuit, given = pub.circuit, pub.parameter_values
    rows = given.as_array(circuit.parameters).reshape(given.size, circuit.num_parameters)
    saving = circuit.copy()
    terms = labelled(pub.observables)
    for number, each in enumerate(terms):
        operator = SparsePauliOp.from_list(list(pauli_strings(each))).simplify()
        save_expectation_value(saving, operator, saving.qubits, label=f"observable {number}")
    binds = rows if circuit.num_parameters else None
    results = backend.results([saving], binds, {"shots": None, "memory": False, "seed_simulator": 0}, check=check)
    values = np.array([[result.data.to_dict()[f"observable {n}"] for n in range(len(terms))] for result in results])
    row_of, term_of = np.broadcast_arrays(
        np.arange(len(rows)).reshape(given.shape), np.arange(len(terms)).reshape(pub.observables.shape)
    )
    return np.asarray(values[row_of, term_of], float)
