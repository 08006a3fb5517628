"""What benchmarks' options have in common: their checks, and the command line that repeats a run.

In: options. Out: an error or a text. It measures nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from qsim_ozaki.circuits import FAMILIES
from qsim_ozaki.errors import OptionError

PRECISIONS = ("double", "single")
SEVERAL = {"family": "families", "qubits": "qubits", "precision": "precisions"}  # flags and attributes of options


def check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises OptionError where one of ``given`` is not ``known``."""
    for name in given:
        if name not in known:
            raise OptionError(f"{what} {name!r} is not known; there are {', '.join(known)}")


def check_widths(families: Iterable[str], qubits: Iterable[int]) -> None:
    """Raises OptionError where a width is too small for a family of circuits."""
    for family in families:
        least = FAMILIES[family].min_qubits
        if min(qubits) < least:
            raise OptionError(f"{family} needs at least {least} qubits, not {min(qubits)}")


def command_line(
    options: Any, default: Any, several: Mapping[str, str], single: Iterable[str], first: Iterable[str] = ()
) -> str:
    """The command line that repeats a run, of what is not as by default.

    Args:
        options: of the run.
        default: of the same type.
        several: flags that are given once for each value, and the attributes that hold these.
        single: flags that are attributes.
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
