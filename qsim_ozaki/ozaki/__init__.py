"""The exact arithmetic of emulated FP64 (Ozaki scheme II): moduli, CRT weights, proved error bounds, checks of columns.

This subpackage may not know a device or a state, and it never chooses between emulated and native arithmetic.
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
