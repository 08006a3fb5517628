"""qsim_ozaki: a quantum state-vector simulator for Qiskit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qsim_ozaki.backend import OzakiBackend as OzakiBackend
    from qsim_ozaki.backend import SaveStatevector as SaveStatevector
    from qsim_ozaki.backend import save_statevector as save_statevector

__all__ = ["OzakiBackend", "SaveStatevector", "save_statevector"]

# In a checkout that is not installed, kernels/ and circuits/ lie beside the package, not in it.
_package = Path(__file__).parent
if not (_package / "kernels").is_dir():
    __path__.append(str(_package.parent))


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: ``import qsim_ozaki`` loads neither Qiskit nor an engine."""
    if name in __all__:
        from qsim_ozaki import backend

        return getattr(backend, name)
    raise AttributeError(f"module 'qsim_ozaki' has no attribute {name!r}. Public names are {', '.join(__all__)}.")


def __dir__() -> list[str]:
    return sorted(__all__)
