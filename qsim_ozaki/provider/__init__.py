"""Qiskit's face: the backend, its options, jobs and results, and the primitives.

Names are imported when first used: a backend does not wait for the modules of the primitives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsim_ozaki import lazy

if TYPE_CHECKING:
    from qsim_ozaki.provider.backend import OzakiBackend as OzakiBackend
    from qsim_ozaki.provider.jsonable import to_jsonable as to_jsonable
    from qsim_ozaki.provider.options import BackendOptions as BackendOptions
    from qsim_ozaki.provider.plots import check_picture as check_picture
    from qsim_ozaki.provider.plots import plot_counts as plot_counts
    from qsim_ozaki.provider.plots import plot_state as plot_state
    from qsim_ozaki.provider.prepare import Prepared as Prepared
    from qsim_ozaki.provider.prepare import prepare_circuit as prepare_circuit
    from qsim_ozaki.provider.prepare import request as request
    from qsim_ozaki.provider.primitives import EstimatorV2 as EstimatorV2
    from qsim_ozaki.provider.primitives import SamplerV2 as SamplerV2
    from qsim_ozaki.provider.result import counts_of as counts_of
    from qsim_ozaki.provider.rows import JobContext as JobContext
    from qsim_ozaki.provider.rows import Unit as Unit
    from qsim_ozaki.provider.rows import make_units as make_units
    from qsim_ozaki.provider.workers import stream_all as stream_all

_PUBLIC = {
    "backend": ("OzakiBackend",),
    "jsonable": ("to_jsonable",),
    "options": ("BackendOptions",),
    "plots": ("check_picture", "plot_counts", "plot_state"),
    "prepare": ("Prepared", "prepare_circuit", "request"),
    "primitives": ("EstimatorV2", "SamplerV2"),
    "result": ("counts_of",),
    "rows": ("JobContext", "Unit", "make_units"),
    "workers": ("stream_all",),
}
__all__ = [name for names in _PUBLIC.values() for name in names]

__getattr__, __dir__ = lazy.attach(__name__, _PUBLIC)
