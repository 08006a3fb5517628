"""qsim_ozaki: a quantum state-vector simulator for Qiskit."""

from pathlib import Path

# In a checkout that is not installed, kernels/ and circuits/ lie beside the package, not in it.
_package = Path(__file__).parent
if not (_package / "kernels").is_dir():
    __path__.append(str(_package.parent))
