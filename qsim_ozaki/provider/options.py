"""The backend's options: names, defaults, and a check of every value when it is set.

In: names and values from a user, Aer's names included. Out: a Qiskit `Options` with allowed values only. It may not run
anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
from qiskit.providers import Options

from qsim_ozaki.engines import ENGINES
from qsim_ozaki.errors import OptionError
from qsim_ozaki.provider.foreign_options import find_foreign, translate
from qsim_ozaki.runtime import check_seed

LABEL_LETTERS = "01+-rl"
MAX_SHOTS = 1 << 53  # Qiskit's tools convert counts to floating point, which is exact up to this number
DLPACK_CPU = 1  # kDLCPU in dlpack.h
STATE_NORM_TOLERANCE = {8: 1e-5, 16: 1e-8}  # by bytes of an amplitude: above the rounding of its precision


def _choice(*allowed: str, aliases: Mapping[str, str] | None = None) -> Callable[[str, object], object]:
    """Returns a check that allows ``allowed``, and ``aliases``, other names of them."""

    def check(name: str, value: object) -> object:
        if aliases is not None and isinstance(value, str):
            value = aliases.get(value, value)
        if not isinstance(value, str) or value not in allowed:
            near = difflib.get_close_matches(str(value), allowed, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise OptionError(f"{name}={value!r} is not allowed. Use one of {', '.join(map(repr, allowed))}.{hint}")
        return value

    return check


def _integer(least: int) -> Callable[[str, object], object]:
    def check(name: str, value: object) -> object:
        if type(value) is int and value >= least:  # takes a fiftieth of the time of the general check below
            return value
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsIndex) or value.__index__() < least:
            raise OptionError(f"{name}={value!r} is not allowed. Use an integer of at least {least}.")
        return value.__index__()

    return check


def _check_accuracy(name: str, value: object) -> object:
    if value is None:
        return None
    number = isinstance(value, (float, np.floating)) and 0 < float(value) < 1
    if not number:
        raise OptionError(f"{name}={value!r} is not allowed. Use a relative error between 0 and 1, as 1e-12, or None.")
    return float(value)  # type: ignore[arg-type]


def _check_bool(name: str, value: object) -> object:
    if not isinstance(value, (bool, np.bool_)):
        raise OptionError(f"{name}={value!r} is not allowed. Use True or False.")
    return bool(value)


def _check_progress(name: str, value: object) -> object:
    if value is None:
        return None
    try:
        return _check_bool(name, value)
    except OptionError as error:
        hint = " A function goes to run(circuits, progress=function)." if callable(value) else ""
        raise OptionError(f"{str(error)[:-1]}, or None for a bar in long jobs, where it can be seen.{hint}") from None


def _check_memory(name: str, value: object) -> object:
    return False if value is None else _check_bool(name, value)  # None is the default of Aer's option


def _check_shots(name: str, value: object) -> object:
    if value is None:
        return None
    try:
        shots = _integer(1)(name, value)
    except OptionError as error:
        raise OptionError(f"{str(error)[:-1]}, or None for exact probabilities.") from None
    if shots > MAX_SHOTS:  # type: ignore[operator]
        raise OptionError(f"{name}={value!r} is more than 2**53. Use fewer, or None for exact probabilities.")
    return shots


def _check_inputs(name: str, value: object) -> object:
    if value is None or isinstance(value, Mapping):
        return value
    raise OptionError(
        f"{name} of type {type(value).__name__} is not allowed. Use a dict of variables' names and values, or None."
    )


def _check_initial_state(name: str, value: Any) -> object:
    """Allows None, a label, a basis state's index, or a vector of unit norm; a vector on the host is not copied."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value or set(value) - set(LABEL_LETTERS):
            raise OptionError(
                f"{name}={value!r} is not a label. Use one letter of {LABEL_LETTERS} per qubit, qubit 0 last."
            )
        return value
    array = hasattr(value, "__dlpack__") and getattr(value, "ndim", 0) > 0  # some arrays are a SupportsIndex too
    if isinstance(value, SupportsIndex) and not array and not isinstance(value, (bool, np.bool_, np.ndarray)):
        return _integer(0)(name, value)
    try:
        vector = host_array(value)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.ndim != 1 or vector.size < 2 or vector.size & (vector.size - 1) or vector.dtype.kind not in "iufc":
        raise OptionError(
            f"{name} of type {type(value).__name__} is not allowed. Use a label such as '0+', a basis state's index, "
            f"or a vector of 2**num_qubits amplitudes."
        )
    if vector.dtype not in (np.complex64, np.complex128):
        vector = vector.astype(complex)
    norm = float(np.vdot(vector, vector).real)
    if not np.isfinite(norm):
        raise OptionError(f"{name} holds NaN or infinity. Give finite amplitudes.")
    if not abs(norm - 1) <= STATE_NORM_TOLERANCE[vector.dtype.itemsize]:
        raise OptionError(f"{name} has squared norm {norm}, not 1. Divide it by its norm {norm**0.5}.")
    return vector


def host_array(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Converts ``value`` to a NumPy array: a view of host memory, a copy of device memory (CuPy or any DLPack array).

    Raises:
        TypeError: ``value`` is not an array.
        ValueError: ``value`` is not an array, or cannot be copied to the host.
    """
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack_device__"):
        return np.asarray(value)
    if value.__dlpack_device__()[0] == DLPACK_CPU:
        return np.from_dlpack(value)
    for method in ("get", "cpu"):  # of CuPy and PyTorch; not every version of them copies by DLPack
        if hasattr(value, method):
            return host_array(getattr(value, method)())
    try:
        return np.from_dlpack(value, device="cpu", copy=True)
    except (BufferError, RuntimeError) as error:
        raise ValueError(str(error)) from error


# name: (default, check)
OPTIONS: dict[str, tuple[object, Callable[[str, Any], object]]] = {
    "engine": ("auto", _choice("auto", *ENGINES, aliases={"gpu": "cuda"})),
    "precision": ("double", _choice("double", "single")),
    "arithmetic": ("auto", _choice("auto", "native", "emulated")),
    "accuracy": (None, _check_accuracy),
    "shots": (1024, _check_shots),
    "seed_simulator": (None, lambda _, value: check_seed(value)),
    "memory": (False, _check_memory),
    "initial_state": (None, _check_initial_state),
    "inputs": (None, _check_inputs),
    "max_memory_bytes": (0, _integer(0)),
    "threads": (0, _integer(0)),
    "progress": (None, _check_progress),
}


def checked(values: Mapping[str, Any], arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Checks ``values`` and returns them in their checked form.

    Args:
        values: values by name of the option, or by a name of `FOREIGN`, which is translated.
        arguments: names of other arguments of the caller, which a message may suggest.

    Raises:
        OptionError: a name is unknown, or a value is not allowed; the message suggests the nearest name.
    """
    for name in values:
        if name not in OPTIONS and find_foreign(name) is None:
            near = difflib.get_close_matches(name, (*OPTIONS, *arguments), 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Options are {', '.join(OPTIONS)}."
            raise OptionError(f"option {name!r} is not known. {hint}")
    if not OPTIONS.keys() >= values.keys():
        values = translate(values)
    return {name: OPTIONS[name][1](name, value) for name, value in values.items()}


def check_run_arguments(executor: object, progress: object, timeout: object) -> None:
    """Checks the arguments of `OzakiBackend.run` that are not options.

    Raises:
        OptionError: an argument is not allowed; the message says what to use.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise OptionError(
            f"executor of type {type(executor).__name__} is not allowed. Use a concurrent.futures.Executor, or None."
        )
    if progress is not None and not callable(progress) and not isinstance(progress, (bool, np.bool_)):
        raise OptionError(
            f"progress of type {type(progress).__name__} is not allowed. Use a function of rows done and all rows, "
            f"or True, False or None for a bar."
        )
    number = isinstance(timeout, Real) and not isinstance(timeout, bool) and float(timeout) > 0
    if timeout is not None and not number:
        raise OptionError(f"timeout={timeout!r} is not allowed. Use seconds above 0, or None for no limit.")


class BackendOptions(Options):  # type: ignore[misc]
    """Qiskit's options with a check of every value, in whatever way it is set.

    Args:
        values: values by name, as in `OPTIONS`; options without a value have their defaults.
    """

    __slots__ = ()

    def __init__(self, **values: Any) -> None:
        defaults = {name: default for name, (default, _) in OPTIONS.items()}
        super().__init__(**(defaults | checked(values)))

    def update_options(self, **fields: Any) -> None:
        """Sets all of ``fields``, or none of them if one is not allowed."""
        super().update_options(**checked(fields))

    def __setattr__(self, key: str, value: Any) -> None:
        self.update_options(**{key: value})
