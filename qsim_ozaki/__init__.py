"""qsim_ozaki: a quantum state-vector simulator for Qiskit.

This module offers the public names of the package. It may not import Qiskit or an engine before a name needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qsim_ozaki import lazy
from qsim_ozaki.circuit_methods import attach_methods

if TYPE_CHECKING:
    from qsim_ozaki.estimation import expectation_gradient as expectation_gradient
    from qsim_ozaki.lowering import SaveInstruction as SaveInstruction
    from qsim_ozaki.lowering import SaveStatevector as SaveStatevector
    from qsim_ozaki.lowering import SetStatevector as SetStatevector
    from qsim_ozaki.lowering import save_amplitudes as save_amplitudes
    from qsim_ozaki.lowering import save_amplitudes_squared as save_amplitudes_squared
    from qsim_ozaki.lowering import save_density_matrix as save_density_matrix
    from qsim_ozaki.lowering import save_expectation_value as save_expectation_value
    from qsim_ozaki.lowering import save_expectation_value_variance as save_expectation_value_variance
    from qsim_ozaki.lowering import save_probabilities as save_probabilities
    from qsim_ozaki.lowering import save_probabilities_dict as save_probabilities_dict
    from qsim_ozaki.lowering import save_state as save_state
    from qsim_ozaki.lowering import save_statevector as save_statevector
    from qsim_ozaki.lowering import save_statevector_dict as save_statevector_dict
    from qsim_ozaki.lowering import set_statevector as set_statevector
    from qsim_ozaki.provider import EstimatorV2 as EstimatorV2
    from qsim_ozaki.provider import OzakiBackend as OzakiBackend
    from qsim_ozaki.provider import SamplerV2 as SamplerV2
    from qsim_ozaki.provider import plot_counts as plot_counts
    from qsim_ozaki.provider import plot_state as plot_state
    from qsim_ozaki.provider import to_jsonable as to_jsonable

# subpackage: the public names that it holds
_PUBLIC = {
    "provider": ("OzakiBackend", "EstimatorV2", "SamplerV2", "plot_counts", "plot_state", "to_jsonable"),
    "estimation": ("expectation_gradient",),
    "lowering": (
        "SaveInstruction",
        "SaveStatevector",
        "SetStatevector",
        "save_amplitudes",
        "save_amplitudes_squared",
        "save_density_matrix",
        "save_expectation_value",
        "save_expectation_value_variance",
        "save_probabilities",
        "save_probabilities_dict",
        "save_state",
        "save_statevector",
        "save_statevector_dict",
        "set_statevector",
    ),
}
__all__ = [name for names in _PUBLIC.values() for name in names]

# In a checkout that is not installed, kernels/ and circuits/ lie beside the package, not inside it.
_package = Path(__file__).parent
if not (_package / "kernels").is_dir():
    __path__.append(str(_package.parent))


# ``import qsim_ozaki`` loads neither Qiskit nor an engine.
__getattr__, __dir__ = lazy.attach(__name__, _PUBLIC)

attach_methods()
