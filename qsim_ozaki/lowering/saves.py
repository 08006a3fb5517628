"""Lowers save and set instructions, ours and Aer's, which are recognised by their names.

In: an instruction and its program qubits. Out: a `Save` or an `Initialize`. It may not read a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from qiskit.circuit import Operation

from qsim_ozaki.ir import AXES, Initialize, Save
from qsim_ozaki.lowering.instructions import FORMS, SAVES
from qsim_ozaki.lowering.site import Site

MAX_IDLE_PROJECTORS = 8  # of a term whose variance is saved
VECTOR_NORM_TOLERANCE = 1e-5 + 1e-8  # of an initial vector's norm: Qiskit's own relative and absolute tolerance
NORM_ROUNDING = 1e-12  # a vector in double precision is not scaled


def save_of(operation: Operation, qubits: tuple[int, ...], num_active: int, site: Site) -> Save:
    """Lowers a save instruction.

    Args:
        operation: an instruction whose name begins with ``save_``.
        qubits: its program qubits, -1 for idle ones.
        num_active: number of qubits of the program.
        site: for messages.

    Raises:
        LoweringError: the instruction is not known, or its parameters do not suit its qubits.
    """
    if operation.name not in SAVES:
        raise site.error("a state-vector simulator saves no such thing", f"Use one of {', '.join(SAVES)}")
    what = SAVES[operation.name]
    form, params = _form(operation, site)
    label = getattr(operation, "_label", None) or getattr(operation, "label", None) or what
    label = "statevector" if label == "_method_" else label  # Aer's label of save_state by default
    details: tuple[Any, ...] = ()
    if what.startswith("expectation"):
        details = _terms(params, len(qubits), site)
        if what == "expectation_value_variance":
            _check_idle_projectors(details, qubits, site)
    elif what.startswith("amplitudes"):
        details = _indices(params, len(qubits), site)
        active = sum(qubit >= 0 for qubit in qubits)
        if active < num_active:
            raise site.error(f"it names {active} of the {num_active} qubits in use", "Save amplitudes on all qubits")
    return Save(what, label, qubits, form.removeprefix("c_"), form.startswith("c_"), details)


def _form(operation: Operation, site: Site) -> tuple[str, Sequence[Any]]:
    """Returns the form of the result and the other parameters.

    Aer keeps the form in an attribute; in our instructions it is the first parameter.
    """
    params = list(operation.params)
    form = getattr(operation, "_subtype", None)
    if form is None:
        form = params.pop(0) if params and isinstance(params[0], str) else FORMS[SAVES[operation.name]]
    whole = form.removeprefix("c_")
    if whole not in ("single", "list", "average", "accum"):
        raise site.error(f"its form {form!r} is not known", "Append it with the functions of qsim_ozaki")
    return form, params


def _terms(params: Sequence[Any], num_qubits: int, site: Site) -> tuple[tuple[str, float], ...]:
    """Returns (Pauli label, factor) of each term.

    Args:
        params: our flat list of labels and factors in turn, or Aer's list of
            (label, (factor, factor of the squared observable)).
        num_qubits: of the observable.
        site: for messages.
    """
    if params and isinstance(params[0], str):
        pairs = list(zip(params[::2], params[1::2], strict=True))
    else:
        pairs = [(label, factors[0]) for label, factors in params if factors[0] != 0]
    terms = tuple((label, float(np.real(factor))) for label, factor in pairs)
    if any(len(label) != num_qubits or not set(label) <= AXES.keys() for label, _ in terms):
        raise site.error(
            f"its Pauli strings are not of {num_qubits} letters of IXYZ01+-rl", "Give one letter per qubit"
        )
    if not all(np.isfinite(factor) for _, factor in terms):
        raise site.error("a factor of its observable is not finite", "Give finite factors")
    return terms


def _check_idle_projectors(terms: Sequence[tuple[str, float]], qubits: Sequence[int], site: Site) -> None:
    """Refuses a variance with terms that project many idle qubits on X or Y: each of them doubles the work."""
    for label, _ in terms:
        count = sum(qubit < 0 and letter in "+-rl" for letter, qubit in zip(label, reversed(qubits), strict=True))
        if count > MAX_IDLE_PROJECTORS:
            raise site.error(f"a term projects {count} idle qubits on X or Y", f"Use at most {MAX_IDLE_PROJECTORS}")


def _indices(params: Sequence[Any], num_qubits: int, site: Site) -> tuple[int, ...]:
    indices = tuple(int(str(param), 0) if isinstance(param, str) else int(param) for param in params)
    if any(not 0 <= index < 1 << num_qubits for index in indices):
        raise site.error(f"an amplitude's index is not below 2**{num_qubits}", "Give indices of basis states")
    return indices


def set_of(operation: Operation, qubits: tuple[int, ...], num_active: int, site: Site) -> Initialize:
    """Lowers an instruction whose name begins with ``set_``: it replaces the state.

    Raises:
        LoweringError: the instruction is not known or is not on all qubits, or its vector is not a state.
    """
    if operation.name != "set_statevector":
        raise site.error("a state-vector simulator sets no such thing", "Use set_statevector")
    if len(qubits) != num_active:
        raise site.error(
            f"it names {len(qubits)} of the {num_active} qubits in use", "Set all qubits, or initialize these"
        )
    return Initialize(qubits, unit_vector(operation.params[0], len(qubits), site))


def unit_vector(values: ArrayLike, num_qubits: int, site: Site) -> Any:
    """Returns ``values`` as a read-only complex128 vector ``(2**num_qubits,)`` of unit norm.

    Raises:
        LoweringError: the vector has a wrong length, is not finite or is not of unit norm.
    """
    vector = np.array(values, complex)
    if vector.shape != (1 << num_qubits,):
        raise site.error(
            f"its vector has shape {vector.shape}", f"{num_qubits} qubits need {1 << num_qubits} amplitudes"
        )
    if not np.isfinite(vector).all():
        raise site.error("its vector holds NaN or infinity", "Give finite amplitudes")
    norm = float(np.linalg.norm(vector))
    if abs(norm - 1) > VECTOR_NORM_TOLERANCE:
        raise site.error(
            f"its vector has norm {norm:.9g}, not 1 within {VECTOR_NORM_TOLERANCE:.0e}",
            "Divide it by its norm (normalize=True)",
        )
    site.deviation.add(abs(norm - 1))
    if abs(norm - 1) > NORM_ROUNDING:
        vector /= norm
    vector.setflags(write=False)
    return vector
