"""qsim_ozaki: a quantum state-vector simulator for Qiskit."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qsim_ozaki.backend import OzakiBackend as OzakiBackend
    from qsim_ozaki.gradient import expectation_gradient as expectation_gradient
    from qsim_ozaki.instructions import SaveStatevector as SaveStatevector
    from qsim_ozaki.instructions import save_statevector as save_statevector
    from qsim_ozaki.jsonable import to_jsonable as to_jsonable
    from qsim_ozaki.plots import plot_counts as plot_counts
    from qsim_ozaki.primitives import EstimatorV2 as EstimatorV2
    from qsim_ozaki.primitives import SamplerV2 as SamplerV2

# public name: the module that holds it
_HOME = {
    "EstimatorV2": "primitives",
    "OzakiBackend": "backend",
    "SamplerV2": "primitives",
    "SaveStatevector": "instructions",
    "expectation_gradient": "gradient",
    "plot_counts": "plots",
    "save_statevector": "instructions",
    "to_jsonable": "jsonable",
}
__all__ = [
    "EstimatorV2",
    "OzakiBackend",
    "SamplerV2",
    "SaveStatevector",
    "expectation_gradient",
    "plot_counts",
    "save_statevector",
    "to_jsonable",
]

# In a checkout that is not installed, kernels/ and circuits/ lie beside the package, not in it.
_package = Path(__file__).parent
if not (_package / "kernels").is_dir():
    __path__.append(str(_package.parent))


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: ``import qsim_ozaki`` loads neither Qiskit nor an engine."""
    if name in _HOME:
        return getattr(importlib.import_module(f"qsim_ozaki.{_HOME[name]}"), name)
    raise AttributeError(f"module 'qsim_ozaki' has no attribute {name!r}. Public names are {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return sorted(__all__)
