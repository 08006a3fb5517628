"""Computes expectation values and gradients of parametrised circuits."""

from qsim_ozaki.estimation.gradient import expectation_gradient
from qsim_ozaki.estimation.observables import QubitMap, labelled, pauli_strings
from qsim_ozaki.estimation.pubs import Estimation, estimate_pub

__all__ = [
    "Estimation",
    "QubitMap",
    "estimate_pub",
    "expectation_gradient",
    "labelled",
    "pauli_strings",
]
