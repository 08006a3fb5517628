"""Results as plain values that `json` takes.

In: results of Qiskit, arrays, numbers. Out: dictionaries, lists, strings, numbers. It loses no digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def to_jsonable(value: Any) -> Any:
    """``value`` as what `json` takes: a complex number as [real, imaginary], an array as lists, a `Result` as a dict.

    Args:
        value: a `Result`, anything it may hold, or containers of such; what is unknown becomes its text.

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
