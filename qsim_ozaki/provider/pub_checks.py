"""Checks the numbers of primitives' pubs, of which Qiskit takes some that have no right value.

In: pubs, before and after Qiskit has converted them. Out: errors that name the parameter or the factor. It may not
change a pub.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
from qiskit.primitives.containers.estimator_pub import EstimatorPub
from qiskit.primitives.containers.sampler_pub import SamplerPub

from qsim_ozaki.errors import OptionError
from qsim_ozaki.estimation import check_factors
from qsim_ozaki.lowering import finite_rows


def checked_pubs(pubs: Any) -> Iterable[Any]:
    """Yields ``pubs`` one by one, if they can be pubs; Qiskit checks their parts.

    Raises:
        OptionError: ``pubs`` is no list of pubs; the message has the type of the wrong value.
    """
    if not isinstance(pubs, Iterable):
        raise OptionError(f"run() takes a list of pubs, not {type(pubs).__name__}. Pass [circuit] or [(circuit, ...)].")
    for number, pub in enumerate(pubs):
        if not isinstance(pub, (Sized, EstimatorPub, SamplerPub)):
            raise OptionError(f"pub {number} is of type {type(pub).__name__}. Give a circuit or a tuple.")
        yield pub


def check_estimator_pub(pub: Any) -> None:
    """Checks an estimator's pub before Qiskit converts it, as `check_sampler_pub`, and its observables.

    Raises:
        OptionError: a parameter's value has an imaginary part.
        LoweringError: a factor of an observable is not finite.
    """
    if isinstance(pub, (tuple, list)):
        for observables in pub[1:2]:
            check_factors(observables)
        for values in pub[2:3]:
            _check_real(values)


def check_sampler_pub(pub: Any) -> None:
    """Checks a sampler's pub before Qiskit converts it, for conversion drops imaginary parts.

    Raises:
        OptionError: a parameter's value has an imaginary part.
    """
    if isinstance(pub, (tuple, list)):
        for values in pub[1:2]:
            _check_real(values)


def check_values(pub: EstimatorPub | SamplerPub) -> None:
    """Checks the values of parameters.

    Raises:
        OptionError: a value is not finite; the message names the parameter and the row.
    """
    circuit, bindings = pub.circuit, pub.parameter_values
    if circuit.num_parameters:
        finite_rows(bindings.as_array(circuit.parameters).reshape(-1, circuit.num_parameters), circuit)


def _check_real(values: Any) -> None:
    entries = values.items() if isinstance(values, Mapping) else [("rows", values)]
    for key, entry in entries:
        array = np.asarray(entry) if isinstance(entry, (list, tuple, np.ndarray, complex, np.number)) else np.empty(0)
        if array.dtype.kind == "c" and array.imag.any():
            name = getattr(key, "name", key)
            raise OptionError(f"values {entry!r} of parameter {name} are not real numbers. Give real ones.")
