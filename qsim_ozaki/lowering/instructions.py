"""The package's circuit instructions, which save or set the state.

In: a Qiskit circuit. Out: the circuit with an instruction appended. It may not simulate anything.

The instructions have Aer's names, and only parameters that QPY stores: a circuit that is read back from QPY has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
from qiskit.circuit import Instruction, QuantumCircuit
from qiskit.quantum_info import Operator, Pauli, SparseObservable, SparsePauliOp

from qsim_ozaki.errors import LoweringError
from qsim_ozaki.lowering.layout import final_order
from qsim_ozaki.lowering.projectors import split_projectors

RESERVED_LABELS = frozenset({"counts", "memory"})  # a result already holds these

# name of an instruction: name of the quantity that it saves
SAVES = {
    "save_statevector": "statevector",
    "save_statevector_dict": "statevector_dict",
    "save_state": "statevector",
    "save_probabilities": "probabilities",
    "save_probabilities_dict": "probabilities_dict",
    "save_amplitudes": "amplitudes",
    "save_amplitudes_sq": "amplitudes_squared",
    "save_density_matrix": "density_matrix",
    "save_expval": "expectation_value",
    "save_expval_var": "expectation_value_variance",
}
# name of the quantity: its form by default, one value of a state ("single") or a mean over shots ("average")
FORMS = dict.fromkeys(SAVES.values(), "average") | dict.fromkeys(
    ("statevector", "statevector_dict", "amplitudes"), "single"
)


class SaveInstruction(Instruction):  # type: ignore[misc]
    """Saves a quantity of the state so far under a label of the result's data; its name says which quantity.

    Args:
        name: a key of `SAVES`.
        num_qubits: number of qubits; bit j of a saved index is the j-th qubit that the instruction is appended to.
        label: key in ``result.data()``.
        params: the form, then an observable's Pauli labels and factors in turn, or the indices of amplitudes.
    """

    # Qiskit treats it like a barrier: no pass may move gates across it or ask for its definition.
    _directive = True

    def __init__(self, name: str, num_qubits: int, label: str, params: Sequence[Any] = ()) -> None:
        super().__init__(name, num_qubits, 0, list(params), label=label)


class SaveStatevector(SaveInstruction):
    """Saves the state so far under a label of the result's data; bit j of its index is the circuit's qubit j.

    Args:
        num_qubits: number of qubits of the circuit; it is appended to all of them.
        label: key in ``result.data()``.
        form: ``"single"``, or ``"list"`` for an entry per shot. With ``"c_"`` before it, the result is a dict with an
            entry for each value of the classical bits.
    """

    def __init__(self, num_qubits: int, label: str = "statevector", form: str = "single") -> None:
        super().__init__("save_statevector", num_qubits, label, [form])


class SetStatevector(Instruction):  # type: ignore[misc]
    """Replaces the state of all qubits; it is recognised by its name, ``set_statevector``.

    Args:
        vector: ``(2**num_qubits,)`` amplitudes; bit j of the index is the circuit's qubit j.
    """

    _directive = True

    def __init__(self, vector: Any) -> None:
        amplitudes = np.asarray(vector, complex)
        super().__init__("set_statevector", amplitudes.size.bit_length() - 1, 0, [amplitudes])


def save_statevector(
    circuit: QuantumCircuit, label: str = "statevector", pershot: bool = False, conditional: bool = False
) -> QuantumCircuit:
    """Appends an instruction that saves the state of all qubits so far.

    In a transpiled circuit, the state's qubits have the order of the circuit before: the layout says where they went.

    Args:
        circuit: changed in place.
        label: key in ``result.data()``; no two saves of a circuit have the same.
        pershot: save a list, with an entry for each shot in the order of ``memory``.
        conditional: save a dict, with an entry for each hexadecimal value of the classical bits at this place.

    Returns:
        The same circuit.

    Raises:
        LoweringError: the label is not a string, is taken, or is a name that results use themselves.

    Example:
        >>> circuit = QuantumCircuit(1)
        >>> circuit.h(0)
        >>> save_statevector(circuit)
        >>> OzakiBackend().run(circuit).result().get_statevector()
    """
    return _append(circuit, "save_statevector", None, label, [_form("single", pershot, conditional)])


def save_state(
    circuit: QuantumCircuit, label: str = "statevector", pershot: bool = False, conditional: bool = False
) -> QuantumCircuit:
    """Appends an instruction that saves the state, as `save_statevector`."""
    return _append(circuit, "save_state", None, label, [_form("single", pershot, conditional)])


def save_statevector_dict(
    circuit: QuantumCircuit, label: str = "statevector_dict", pershot: bool = False, conditional: bool = False
) -> QuantumCircuit:
    """Appends an instruction that saves the amplitudes other than 0 by hexadecimal index, as `save_statevector`."""
    return _append(circuit, "save_statevector_dict", None, label, [_form("single", pershot, conditional)])


def save_amplitudes(
    circuit: QuantumCircuit,
    indices: Iterable[int],
    label: str = "amplitudes",
    pershot: bool = False,
    conditional: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the amplitudes of the basis states ``indices``, as `save_statevector`."""
    return _append(
        circuit, "save_amplitudes", None, label, [_form("single", pershot, conditional), *map(index, indices)]
    )


def save_amplitudes_squared(
    circuit: QuantumCircuit,
    indices: Iterable[int],
    label: str = "amplitudes_squared",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the probabilities of the basis states ``indices``, as `save_probabilities`."""
    form = _form(_mean(unnormalized), pershot, conditional)
    return _append(circuit, "save_amplitudes_sq", None, label, [form, *map(index, indices)])


def save_probabilities(
    circuit: QuantumCircuit,
    qubits: Sequence[Any] | None = None,
    label: str = "probabilities",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the probabilities of ``qubits``, as their mean over the shots that reach it.

    Args:
        circuit: changed in place.
        qubits: bit j of the index is ``qubits[j]``; None for all, as `save_statevector`.
        label: key in ``result.data()``; no two saves of a circuit have the same.
        pershot: save a list, with an entry for each shot in the order of ``memory``.
        conditional: save a dict, with an entry for each hexadecimal value of the classical bits at this place.
        unnormalized: save the sum over the shots instead of the mean.

    Returns:
        The same circuit.

    Raises:
        LoweringError: as `save_statevector`.
    """
    return _append(circuit, "save_probabilities", qubits, label, [_form(_mean(unnormalized), pershot, conditional)])


def save_probabilities_dict(
    circuit: QuantumCircuit,
    qubits: Sequence[Any] | None = None,
    label: str = "probabilities_dict",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the probabilities other than 0 by index, as `save_probabilities`."""
    form = _form(_mean(unnormalized), pershot, conditional)
    return _append(circuit, "save_probabilities_dict", qubits, label, [form])


def save_density_matrix(
    circuit: QuantumCircuit,
    qubits: Sequence[Any] | None = None,
    label: str = "density_matrix",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the reduced density matrix of ``qubits``, else as `save_probabilities`."""
    form = _form(_mean(unnormalized), pershot, conditional)
    return _append(circuit, "save_density_matrix", qubits, label, [form])


def save_expectation_value(
    circuit: QuantumCircuit,
    operator: Any,
    qubits: Sequence[Any] | None = None,
    label: str = "expectation_value",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves the expectation value of ``operator``, as `save_probabilities`.

    Args:
        circuit: changed in place.
        operator: Hermitian; a label such as ``"XZ"``, whose last letter is for ``qubits[0]``, or an operator of Qiskit.
        qubits: as many as the operator has; None for all.
        label: key in ``result.data()``.
        pershot: as `save_probabilities`.
        conditional: as `save_probabilities`.
        unnormalized: as `save_probabilities`.
    """
    form = _form(_mean(unnormalized), pershot, conditional)
    return _append(circuit, "save_expval", qubits, label, [form, *_terms(operator)])


def save_expectation_value_variance(
    circuit: QuantumCircuit,
    operator: Any,
    qubits: Sequence[Any] | None = None,
    label: str = "expectation_value_variance",
    pershot: bool = False,
    conditional: bool = False,
    unnormalized: bool = False,
) -> QuantumCircuit:
    """Appends an instruction that saves an array of mean and variance, else as `save_expectation_value`."""
    form = _form(_mean(unnormalized), pershot, conditional)
    return _append(circuit, "save_expval_var", qubits, label, [form, *_terms(operator)])


def set_statevector(circuit: QuantumCircuit, vector: Any) -> QuantumCircuit:
    """Appends an instruction that replaces the state of all qubits by ``vector``.

    Args:
        circuit: changed in place.
        vector: ``(2**num_qubits,)`` amplitudes of unit norm; bit j of the index is qubit j. In a transpiled circuit the
            qubits have the order of the circuit before.

    Returns:
        The same circuit.

    Raises:
        LoweringError: the vector has another number of qubits than the circuit.
    """
    qubits = _all_qubits(circuit)
    instruction = SetStatevector(vector)
    if instruction.num_qubits != len(qubits):
        raise LoweringError(
            f"circuit {circuit.name!r} has {len(qubits)} qubits, but the state has {len(instruction.params[0])} "
            f"amplitudes. Give {1 << len(qubits)}."
        )
    circuit.append(instruction, qubits)
    return circuit


def _mean(unnormalized: bool) -> str:
    return "accum" if unnormalized else "average"


def _form(plain: str, pershot: bool, conditional: bool) -> str:
    return ("c_" if conditional else "") + ("list" if pershot else plain)


def _terms(operator: Any) -> list[Any]:
    """Returns the Pauli labels and real factors of ``operator`` in turn."""
    if isinstance(operator, (str, Pauli)):
        observable = SparsePauliOp(operator)
    elif isinstance(operator, SparsePauliOp):
        observable = operator
    elif isinstance(operator, SparseObservable):
        return _sparse_terms(operator)
    else:
        observable = SparsePauliOp.from_operator(Operator(operator))
    _check_finite(observable.coeffs)
    observable = observable.simplify()
    _check_hermitian(observable.coeffs)
    pairs = zip(observable.paulis.to_labels(), observable.coeffs.real.tolist(), strict=True)
    return [part for pair in pairs for part in pair]


def _sparse_terms(operator: SparseObservable) -> list[Any]:
    """Returns labels of ``IXYZ01+-rl`` and real factors in turn."""
    _check_finite(operator.coeffs)
    operator = operator.simplify()
    _check_hermitian(np.asarray(operator.coeffs))
    terms: dict[str, complex] = {}
    for letters, qubits, factor in operator.to_sparse_list():
        label = ["I"] * operator.num_qubits
        for letter, qubit in zip(letters, qubits, strict=True):
            label[-1 - qubit] = letter
        terms["".join(label)] = factor
    split = split_projectors({label: factor.real for label, factor in terms.items()})
    return [part for pair in split.items() if pair[1] for part in pair] or ["I" * operator.num_qubits, 0.0]


def _check_finite(factors: Any) -> None:
    if not np.isfinite(factors).all():
        raise LoweringError("a factor of the observable is not finite. Give finite factors of Pauli strings")


def _check_hermitian(factors: Any) -> None:
    if np.any(np.abs(factors.imag) > 1e-12 * np.abs(factors).max(initial=1)):
        raise LoweringError("the observable is not Hermitian: a factor is not real. Give real factors of Pauli strings")


def _all_qubits(circuit: QuantumCircuit) -> list[Any]:
    """Returns all qubits, in the order of the circuit before a transpiler moved them."""
    qubits: list[Any] = circuit.qubits
    return [qubits[index] for index in final_order(circuit)]


def _append(
    circuit: QuantumCircuit, name: str, qubits: Sequence[Any] | None, label: str, params: Sequence[Any]
) -> QuantumCircuit:
    """Checks the label of a save and appends the save."""
    taken = {item.operation.label for item in circuit.data if item.operation.name in SAVES}
    if not isinstance(label, str) or not label or label in RESERVED_LABELS:
        reserved = ", ".join(sorted(RESERVED_LABELS))
        raise LoweringError(f"label {label!r} is not allowed for a saved state. Use a string other than {reserved}.")
    if label in taken:
        raise LoweringError(
            f"circuit {circuit.name!r} already saves a state under label {label!r}. Give each save its own label, "
            f"as {label + '_2'!r}."
        )
    chosen = _all_qubits(circuit) if qubits is None else list(qubits)
    letters = len(params[1]) if name.startswith("save_expval") else len(chosen)
    if letters != len(chosen):
        raise LoweringError(
            f"the observable is of {letters} qubits, but it is saved on {len(chosen)} of circuit {circuit.name!r}. "
            f"Give qubits=[...], as many as it has."
        )
    if name == "save_statevector":
        circuit.append(SaveStatevector(len(chosen), label, params[0]), chosen)
    else:
        circuit.append(SaveInstruction(name, len(chosen), label, params), chosen)
    return circuit
