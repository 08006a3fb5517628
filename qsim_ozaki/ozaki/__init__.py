"""The exact arithmetic of emulated FP64 (Ozaki scheme II): moduli, residues' roots, error bounds.

It knows no device and no state.
"""

from qsim_ozaki.ozaki.moduli import MAX_MODULI, MAX_TARGETS, balanced, error_bound, num_moduli_for
from qsim_ozaki.ozaki.scheme import Block, block

__all__ = [
    "MAX_MODULI",
    "MAX_TARGETS",
    "Block",
    "balanced",
    "block",
    "error_bound",
    "num_moduli_for",
]
