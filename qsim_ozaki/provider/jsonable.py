"""Converts results to plain values that `json` can write.

In: results of Qiskit, arrays, numbers. Out: dictionaries, lists, strings, numbers. It may not lose a digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def to_jsonable(value: Any) -> Any:
    """Converts ``value`` for `json`: a complex number to [real, imaginary], an array to lists, a `Result` to a dict.

    Args:
        value: a `Result`, a value that a `Result` may hold, or containers of these; an object of any other type becomes
            its text.

    Example:
        >>> json.dumps(to_jsonable(backend.run(circuit).result()))
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, Mapping):
        return {str(key): to_jsonable(entry) for key, entry in value.items()}
    if isinstance(value, np.generic):
        return to_jsonable(value.item())
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        return array.tolist() if array.dtype.kind in "biufUS" else [to_jsonable(entry) for entry in array.tolist()]
    if hasattr(value, "to_dict"):
        return to_jsonable(value.to_dict())
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [to_jsonable(entry) for entry in value]
    return str(value)
