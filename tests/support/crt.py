"""Residues and their reconstruction in Python's integers: the slow reference of the exact arithmetic."""

import math
from fractions import Fraction

from qsim_ozaki.ozaki import balanced
from qsim_ozaki.ozaki.moduli import complex_crt_fractions, crt_fractions, root_of_minus_one


def complex_residues(re, im, modulus):
    """The pair (re + i im, re - i im), balanced."""
    root = root_of_minus_one(modulus)
    return balanced(re + root * im, modulus), balanced(re - root * im, modulus)


def reconstruct(residues, moduli):
    """The integer of least magnitude with ``residues[t]`` modulo ``moduli[t]``."""
    product = math.prod(moduli)
    total = sum((r * f for r, f in zip(residues, crt_fractions(moduli), strict=True)), Fraction(0))
    return balanced(int(total * product), product)


def reconstruct_complex(pairs, moduli):
    """The integers (re, im) of least magnitude whose `complex_residues` are ``pairs``."""
    product = math.prod(moduli)
    re = im = Fraction(0)
    for (p, q), (f, g) in zip(pairs, complex_crt_fractions(moduli), strict=True):
        re, im = re + (p + q) * f, im + (p - q) * g
    return balanced(int(re * product), product), balanced(int(im * product), product)
