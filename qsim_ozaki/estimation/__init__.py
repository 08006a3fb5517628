"""Computes expectation values and gradients of parametrised circuits."""

from qsim_ozaki.estimation.gradient import expectation_gradient
from qsim_ozaki.estimation.observables import QubitMap, check_factors, labelled
from qsim_ozaki.estimation.pubs import Estimation, estimate_pub, shots_of

__all__ = [
    "Estimation",
    "QubitMap",
    "check_factors",
    "estimate_pub",
    "expectation_gradient",
    "labelled",
    "shots_of",
]
