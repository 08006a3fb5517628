"""Options of Aer, and of Qiskit's primitives, in terms of this backend's: one table says how each is treated.

In: names and values from a user. Out: values by the names of this backend's options. It may not check those values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, SupportsIndex

from qsim_ozaki.errors import OptionError
from qsim_ozaki.provider.user_warnings import warn_user

TAKEN, IGNORED, REFUSED = "taken", "ignored", "refused"
MIB_BITS = 20


@dataclass(frozen=True, slots=True)
class ForeignOption:
    """How an option of another package is treated.

    Attributes:
        treatment: `TAKEN`, `IGNORED` with a warning when it is first met, or `REFUSED` with an error. None as a value
            stands for an option that is not set, so it is always allowed.
        meaning: what the option means to this backend; of a refused one, what to use instead. It is part of the
            documentation and of the error.
        translate: for `TAKEN`: converts the value to values by the names of this backend's options; it raises a
            `ValueError` if the value means nothing to this backend.
    """

    treatment: str
    meaning: str
    translate: Callable[[Any], dict[str, Any]] = lambda _: {}


def _method(value: Any) -> dict[str, Any]:
    if value not in ("automatic", "statevector"):
        raise ValueError(value)
    return {}


def _device(value: Any) -> dict[str, Any]:
    engines = {"CPU": "cpu", "GPU": "cuda"}
    return {"engine": engines[value.upper()]} if isinstance(value, str) and value.upper() in engines else _no(value)


def _threads(value: Any) -> dict[str, Any]:
    return {"threads": value}


def _memory_mb(value: Any) -> dict[str, Any]:
    is_integer = isinstance(value, SupportsIndex) and not isinstance(value, bool) and value.__index__() >= 0
    return {"max_memory_bytes": value.__index__() << MIB_BITS} if is_integer else _no(value)


def _noise_model(value: Any) -> dict[str, Any]:
    is_ideal = getattr(value, "is_ideal", None)
    return {} if callable(is_ideal) and is_ideal() else _no(value)


def _meas_level(value: Any) -> dict[str, Any]:
    is_two = isinstance(value, SupportsIndex) and not isinstance(value, bool) and value.__index__() == 2
    return {} if is_two else _no(value)


def _meas_return(value: Any) -> dict[str, Any]:
    return {} if getattr(value, "value", value) in ("single", "avg") else _no(value)


def _no(value: Any) -> dict[str, Any]:
    raise ValueError(value)


# Name, or pattern of names with `*`: how it is treated. A name on its own goes before a pattern.
FOREIGN: dict[str, ForeignOption] = {
    "method": ForeignOption(TAKEN, "``statevector`` or ``automatic``, which is the same here", _method),
    "device": ForeignOption(TAKEN, "``CPU`` for ``engine=\"cpu\"``, or ``GPU`` for ``engine=\"cuda\"``", _device),
    "max_parallel_threads": ForeignOption(TAKEN, "``threads``", _threads),
    "max_memory_mb": ForeignOption(TAKEN, "an integer in MiB, for ``max_memory_bytes``", _memory_mb),
    "noise_model": ForeignOption(TAKEN, "None or an ideal model, for noise is not simulated", _noise_model),
    "meas_level": ForeignOption(TAKEN, "2, classified outcomes; levels 0 and 1 are signals of a device", _meas_level),
    "meas_return": ForeignOption(TAKEN, "``single`` or ``avg``, which mean the same at ``meas_level=2``", _meas_return),
    "enable_truncation": ForeignOption(IGNORED, "idle qubits are always left out"),
    "runtime_parameter_bind_enable": ForeignOption(IGNORED, "a circuit with ``parameter_binds`` is translated once"),
    "fusion_*": ForeignOption(IGNORED, "the planner chooses what to fuse; see ``plan(circuit).explain()``"),
    "blocking_*": ForeignOption(IGNORED, "cache blocking is the planner's choice"),
    "chunk_swap_buffer_qubits": ForeignOption(IGNORED, "cache blocking is the planner's choice"),
    "*_parallel_*": ForeignOption(IGNORED, "``threads`` is the only limit; rows of a job share them"),
    "num_threads_per_device": ForeignOption(IGNORED, "``threads`` is the only limit; rows of a job share them"),
    "max_job_size": ForeignOption(IGNORED, "an executor gets parts of a job that suit its workers"),
    "max_shot_size": ForeignOption(IGNORED, "an executor gets parts of a job that suit its workers"),
    "accept_distributed_results": ForeignOption(IGNORED, "a job gives all its results"),
    "batched_shots_gpu*": ForeignOption(IGNORED, "shots of one state are drawn together"),
    "shot_branching_*": ForeignOption(IGNORED, "shots with equal outcomes always share one state"),
    "zero_threshold": ForeignOption(IGNORED, "nothing is rounded to 0"),
    "chop_threshold": ForeignOption(IGNORED, "nothing is rounded to 0"),
    "validation_threshold": ForeignOption(IGNORED, "the tolerances of matrices and states are fixed"),
    "cuStateVec_enable": ForeignOption(IGNORED, "the CUDA engine has its own kernels"),
    "statevector_*": ForeignOption(IGNORED, "the sampler is chosen by its cost"),
    "stabilizer_*": ForeignOption(IGNORED, "it steers another method"),
    "extended_stabilizer_*": ForeignOption(IGNORED, "it steers another method"),
    "matrix_product_state_*": ForeignOption(IGNORED, "it steers another method"),
    "mps_*": ForeignOption(IGNORED, "it steers another method"),
    "tensor_network_*": ForeignOption(IGNORED, "it steers another method"),
    "use_cuTensorNet_autotuning": ForeignOption(IGNORED, "it steers another method"),
    "executor": ForeignOption(REFUSED, "pass it to ``run(circuits, executor=...)``"),
    "target_gpus": ForeignOption(REFUSED, "choose the GPU by the variable ``CUDA_VISIBLE_DEVICES``"),
    "basis_gates": ForeignOption(REFUSED, "pass it to ``transpile``"),
    "coupling_map": ForeignOption(REFUSED, "pass it to ``transpile``"),
    "target": ForeignOption(REFUSED, "pass it to ``transpile``"),
    "n_qubits": ForeignOption(REFUSED, "limit the memory by ``max_memory_bytes``"),
    "configuration": ForeignOption(REFUSED, "this backend models no device"),
    "properties": ForeignOption(REFUSED, "this backend models no device"),
    "provider": ForeignOption(REFUSED, "this backend needs no provider"),
}  # fmt: skip

_noted: set[str] = set()  # names of ignored options that a warning of this process has named


def find_foreign(name: str) -> ForeignOption | None:
    """Returns the entry of `FOREIGN` for option ``name``; None if it has none."""
    if name in FOREIGN:
        return FOREIGN[name]
    return next((option for pattern, option in FOREIGN.items() if "*" in pattern and fnmatchcase(name, pattern)), None)


def translate(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts ``values`` to values by the names of this backend's options; warns once of each ignored name.

    Args:
        values: values by name; a name without an entry in `FOREIGN` stays as it is.

    Raises:
        OptionError: an option is refused, has a value that means nothing here, or says the same as another one.
    """
    translated: dict[str, Any] = {}
    ignored: list[str] = []
    for name, value in values.items():
        option = find_foreign(name)
        if option is None:
            new = {name: value}
        elif value is None:
            continue
        elif option.treatment == IGNORED:
            ignored.append(name)
            continue
        else:
            new = _translated(name, value, option)
        for key in new:
            if key in translated or (key != name and key in values):
                raise OptionError(f"{name}={value!r} also sets {key}, which is given too. Give one of them.")
        translated |= new
    fresh = [name for name in ignored if name not in _noted]
    if fresh:
        _noted.update(fresh)
        warn_user(f"ignored: {', '.join(fresh)}. They steer the insides of Aer; results here do not depend on them.")
    return translated


def _translated(name: str, value: Any, option: ForeignOption) -> dict[str, Any]:
    meaning = option.meaning.replace("``", "")
    if option.treatment == REFUSED:
        raise OptionError(f"option {name!r} is not an option of this backend: {meaning}.")
    try:
        return option.translate(value)
    except ValueError:
        raise OptionError(f"{name}={value!r} is not allowed. Use {meaning}.") from None
