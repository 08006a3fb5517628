"""The interface to Qiskit: the backend, its options, jobs and results, and the primitives."""

from qsim_ozaki.provider.backend import OzakiBackend
from qsim_ozaki.provider.jsonable import to_jsonable
from qsim_ozaki.provider.options import BackendOptions
from qsim_ozaki.provider.plots import plot_counts
from qsim_ozaki.provider.prepare import Prepared, prepare_circuit, request
from qsim_ozaki.provider.primitives import EstimatorV2, SamplerV2
from qsim_ozaki.provider.result import counts_of
from qsim_ozaki.provider.rows import JobContext, Unit, make_units
from qsim_ozaki.provider.workers import stream_all

__all__ = [
    "BackendOptions",
    "EstimatorV2",
    "JobContext",
    "OzakiBackend",
    "Prepared",
    "SamplerV2",
    "Unit",
    "counts_of",
    "make_units",
    "plot_counts",
    "prepare_circuit",
    "request",
    "stream_all",
    "to_jsonable",
]
