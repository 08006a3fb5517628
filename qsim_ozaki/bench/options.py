"""Checks options of benchmarks, and writes the command line that repeats a run.

In: options. Out: an error or a text. It may not measure anything.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from qsim_ozaki.circuits import FAMILIES
from qsim_ozaki.errors import OptionError

PRECISIONS = ("double", "single")
SEVERAL = {"family": "families", "qubits": "qubits", "precision": "precisions"}  # flag: attribute of the options


def check_known(noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raises OptionError if one of ``names`` is not in ``known``; ``noun`` says in the message what they name."""
    for name in names:
        if name not in known:
            raise OptionError(f"{noun} {name!r} is not known; there are {', '.join(known)}")


def check_widths(families: Iterable[str], qubits: Iterable[int]) -> None:
    """Raises OptionError if a width is too small for a family of circuits."""
    for family in families:
        least = FAMILIES[family].min_qubits
        if min(qubits) < least:
            raise OptionError(f"{family} needs at least {least} qubits, not {min(qubits)}")


def command_line(
    options: Any, default: Any, several: Mapping[str, str], single: Iterable[str], first: Iterable[str] = ()
) -> str:
    """Returns the command line that repeats a run, with a flag for every option that differs from its default.

    Args:
        options: of the run.
        default: options of the same type with their default values.
        several: flags that are repeated for each value, and the attributes that hold the values.
        single: flags with one value, named as their attributes.
        first: words after ``bench``.
    """
    words = ["qsim-ozaki", "bench", *first]
    for flag, name in several.items():
        if getattr(options, name) != getattr(default, name):
            words += [word for value in getattr(options, name) for word in (f"--{flag}", str(value))]
    for flag in single:
        if getattr(options, flag) != getattr(default, flag):
            words += [f"--{flag}", str(getattr(options, flag))]
    return shlex.join(words)
