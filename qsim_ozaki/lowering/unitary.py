"""Expands a unitary Qiskit instruction of any class into operators.

In: one operation and the qubits it acts on. Out: a list of `Op` whose product is the operation, global phase included.
It may not handle a circuit's classical side: measurement, reset and control flow belong to `lower`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    Barrier,
    ControlledGate,
    ControlModifier,
    Delay,
    InverseModifier,
    PowerModifier,
    Reset,
    library,
)
from qiskit.exceptions import QiskitError
from qiskit.quantum_info import Operator
from qiskit.synthesis import LieTrotter, SuzukiTrotter

import qsim_ozaki._native as _native
from qsim_ozaki.ir import EMPTY, ComplexArray, Kind, Op
from qsim_ozaki.lowering.gates import GATE_OF_CLASS, GATES, inverse_op, row_op, structured_op
from qsim_ozaki.lowering.site import Qubits, Site, UnboundError, matched, numbers
from qsim_ozaki.lowering.slots import SlotGate

MAX_MATRIX_QUBITS = 12  # of an opaque gate that only has a matrix: 4096 x 4096 entries take 256 MiB
MATRIX_FIRST_QUBITS = 3  # up to this width a gate's matrix is cheaper than its definition
MAX_POWER_QUBITS = 8  # of a power that is computed by its matrix, 256 x 256
MAX_REPEATED_OPS = 1_000_000  # of an integer power that repeats the operators
MAX_SHORT_OPS = 64  # of a repetition that is preferred to the power of a matrix
# Channels and readout errors as Qiskit and Aer name them.
NOISE_NAMES = frozenset({"kraus", "superop", "quantum_channel", "qerror_loc", "roerror"})
NEWTON_STEPS = 2  # 1e-5 to 1e-10 to 1e-20
PARITY_QUBITS = 6  # a Pauli rotation is one diagonal of at most 64 entries; CX gates fold further qubits into it


def unitary_ops(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    """Expands ``operation`` into operators, in order, whose product it is.

    Args:
        operation: any Qiskit operation without classical bits.
        qubits: program qubits in Qiskit's order.
        site: for messages.

    Raises:
        LoweringError: the operation is not unitary, has a number that is not finite, or has neither definition nor
            matrix.
    """
    base = getattr(operation, "base_class", type(operation))
    row = GATE_OF_CLASS.get(base)
    if row is not None:
        return [row_op(row, numbers(operation.params, site), qubits, getattr(operation, "ctrl_state", None))]
    composite = COMPOSITES.get(base)
    if composite is not None:
        ops = composite(operation, qubits, site)
        if ops is not None:
            return ops
    elif isinstance(operation, ControlledGate) and _is_its_base_controlled(operation):
        count = operation.num_ctrl_qubits
        try:
            inner = unitary_ops(operation.base_gate, qubits[count:], site)
        except UnboundError:  # Qiskit binds the definition of a controlled gate, but not that of its base gate
            return _by_definition(operation, qubits, site)
        return controlled(inner, qubits[:count], operation.ctrl_state)
    return _by_definition(operation, qubits, site)


def _is_its_base_controlled(operation: ControlledGate) -> bool:
    """Whether the operation equals its base gate with controls.

    It does not if it has ancillas, nor if it is a controlled CUGate: its base gate is named "u" but has four angles.
    """
    base = operation.base_gate
    if base is None or operation.num_qubits != operation.num_ctrl_qubits + base.num_qubits:
        return False
    row = GATE_OF_CLASS.get(base.base_class)
    return row is None or row.num_params == len(base.params)


def controlled(ops: Iterable[Op], controls: Qubits, ctrl_state: int) -> list[Op]:
    """Returns ``ops`` with more controls, which stand before the controls they have."""
    shift = len(controls)
    return [replace(op, controls=controls + op.controls, ctrl_state=ctrl_state | op.ctrl_state << shift) for op in ops]


def circuit_ops(circuit: QuantumCircuit, qubits: Qubits, site: Site) -> list[Op]:
    """Expands a unitary circuit, whose qubit i is ``qubits[i]``, into operators; it may have fewer qubits."""
    index = matched(circuit.qubits, qubits, "qubits", site)
    ops = phase_ops(circuit.global_phase, site)
    for instruction in circuit.data:
        targets = tuple([index[qubit] for qubit in instruction.qubits])
        if instruction.is_standard_gate():
            if instruction.name != "id":
                ops.append(row_op(GATES[instruction.name], numbers(instruction.params, site), targets))
        elif instruction.clbits or instruction.is_control_flow() or isinstance(instruction.operation, Reset):
            raise site.error(
                f"its definition holds {instruction.name!r}, which is not unitary",
                "Use it as an instruction, without control, inverse or power",
            )
        elif not isinstance(instruction.operation, (Barrier, Delay)):
            ops += unitary_ops(instruction.operation, targets, site)
    return ops


def phase_ops(angle: Any, site: Site) -> list[Op]:
    """Returns the global phase exp(i angle) as a list of one operator, empty if the angle is zero."""
    (value,) = numbers((angle,), site)
    return [row_op(GATES["global_phase"], (value,), ())] if value else []


def matrix_op(matrix: ArrayLike, qubits: Qubits, site: Site) -> Op:
    """Checks a user's matrix and returns the operator of the unitary matrix nearest to it.

    Args:
        matrix: ``(2**k, 2**k)`` complex; ``qubits[0]`` is bit 0 of its index.
        qubits: the k program qubits.
        site: for messages.

    Raises:
        LoweringError: the matrix has a wrong size, holds NaN or infinity, or is not unitary within Qiskit's tolerance,
            1e-5. Beyond 8 x 8 four random vectors check unitarity (Freivalds' check).
    """
    array = np.array(matrix, complex, order="C")  # a copy, because the user may change the matrix later
    size = 1 << len(qubits)
    if array.shape != (size, size):
        raise site.error(f"its matrix has shape {array.shape}", f"{len(qubits)} qubits need {(size, size)}")
    distance = float(_native.distance_from_unitary(array.reshape(-1), size))
    if distance <= _native.UNITARITY_TOLERANCE:
        site.deviation.add(distance)
        return structured_op(_nearest_unitary(array, distance), qubits, site.gate)
    if not np.isfinite(array).all():
        raise site.error("its matrix holds NaN or infinity", "Give finite entries")
    raise site.error(
        f"its matrix is not unitary: |U^dagger U - 1| is {distance:.1e}, "
        f"the tolerance {_native.UNITARITY_TOLERANCE:.0e}",
        "Give a unitary matrix",
    )


def _nearest_unitary(matrix: ComplexArray, distance: float) -> ComplexArray:
    """Returns the unitary matrix nearest to ``matrix``, whose entries of |U^dagger U - 1| are at most ``distance``.

    The Newton-Schulz iteration squares the distance, so that two steps suffice from 1e-5. A matrix in double precision
    stays as it is.
    """
    identity = np.eye(len(matrix))
    for _ in range(NEWTON_STEPS if distance > _native.UNITARY_ROUNDING else 0):
        matrix = matrix @ (1.5 * identity - 0.5 * (matrix.conj().T @ matrix))
    return matrix


def _by_definition(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    """Expands a gate without a rule: a small gate by its matrix, others by their definition, else by their matrix."""
    has_matrix = hasattr(operation, "to_matrix")
    if has_matrix and (hasattr(operation, "__array__") and len(qubits) <= MATRIX_FIRST_QUBITS):
        matrix = _matrix(operation)
        if matrix is not None:
            return [matrix_op(matrix, qubits, site)]
    definition = getattr(operation, "definition", None)
    if definition is None and hasattr(operation, "to_circuit"):
        definition = operation.to_circuit()
    if definition is not None:
        return circuit_ops(definition, qubits, site)
    if has_matrix and len(qubits) > MAX_MATRIX_QUBITS:
        raise site.error(
            f"it has no definition, and its matrix on {len(qubits)} qubits would take {16 << 2 * len(qubits)} bytes",
            f"Give it a definition; a matrix is taken up to {MAX_MATRIX_QUBITS} qubits",
        )
    matrix = _matrix(operation) if has_matrix else None
    if matrix is None and operation.name in NOISE_NAMES:
        raise site.error("noise is not simulated", "Remove the channel, or use a simulator of density matrices")
    if matrix is None:
        raise site.error(
            "the instruction is unknown: it has neither a definition nor a matrix",
            "Give it a definition, or a to_matrix() method; or remove it",
        )
    return [matrix_op(matrix, qubits, site)]


def _matrix(operation: Any) -> Any:
    """Returns ``operation.to_matrix()``, or None if Qiskit cannot compute it."""
    try:
        return np.asarray(operation.to_matrix())
    except QiskitError:
        return None


def _annotated(operation: AnnotatedOperation, qubits: Qubits, site: Site) -> list[Op]:
    """Expands a gate with modifiers, of which the last is the outermost.

    A control modifier adds controls to the operators; an inverse modifier inverts each operator and their order.
    """
    inner = list(operation.modifiers)
    if not inner:
        return unitary_ops(operation.base_op, qubits, site)
    outer = inner.pop()
    if isinstance(outer, PowerModifier) and inner and isinstance(inner[-1], ControlModifier):
        # (controlled U)^p = controlled (U^p)
        outer, inner = inner[-1], [*inner[:-1], outer]
    rest = AnnotatedOperation(operation.base_op, inner) if inner else operation.base_op
    if isinstance(outer, ControlModifier):
        count = outer.num_ctrl_qubits
        ctrl_state = outer.ctrl_state
        return controlled(unitary_ops(rest, qubits[count:], site), qubits[:count], ctrl_state)
    if isinstance(outer, InverseModifier):
        return [inverse_op(op) for op in reversed(unitary_ops(rest, qubits, site))]
    if isinstance(outer, PowerModifier):
        return _power(rest, qubits, outer.power, site)
    raise site.error(f"modifier {outer!r} is not known", "Use control, inverse and power modifiers")


def _power(operation: Any, qubits: Qubits, power: float, site: Site) -> list[Op]:
    """Expands ``operation ** power``: by repetition if that is short, else by the matrix (Qiskit's principal root)."""
    (power,) = numbers((power,), site)
    count = abs(int(power))
    ops = unitary_ops(operation, qubits, site)
    limit = MAX_REPEATED_OPS if len(qubits) > MAX_POWER_QUBITS else MAX_SHORT_OPS
    if power == int(power) and count * len(ops) <= limit:
        return (ops if power > 0 else [inverse_op(op) for op in reversed(ops)]) * count
    if len(qubits) > MAX_POWER_QUBITS:
        raise site.error(
            f"power {power} on {len(qubits)} qubits",
            f"Fractional powers, and more than {MAX_REPEATED_OPS} repeated operators, are taken up to "
            f"{MAX_POWER_QUBITS} qubits; give the power as a gate of its own",
        )
    exponent = int(power) if power == int(power) else power
    return [matrix_op(Operator(operation).power(exponent, assume_unitary=True).data, qubits, site)]


def _unitary(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    return [matrix_op(operation.params[0], qubits, site)]


def _diagonal(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    return [_diagonal_op(np.array(operation.params, complex), qubits, site)]


def _diagonal_op(data: ComplexArray, qubits: Qubits, site: Site) -> Op:
    if not np.isfinite(data).all():
        raise site.error("its diagonal holds NaN or infinity", "Give finite entries")
    distance = float(np.abs(np.abs(data) ** 2 - 1).max())
    if distance > _native.UNITARITY_TOLERANCE:
        raise site.error(
            f"its diagonal is not unitary: ||d|^2 - 1| is {distance:.1e}, "
            f"the tolerance {_native.UNITARITY_TOLERANCE:.0e}",
            "Give entries of absolute value 1",
        )
    site.deviation.add(distance)
    if distance > _native.UNITARY_ROUNDING:
        data = data / np.abs(data)
    data.setflags(write=False)
    return Op(Kind.DIAGONAL, qubits, data, name=site.gate)


def _permutation(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    """Expands a permutation, qubit ``pattern[k]`` to position k, into swaps: a plan only relabels qubits for them."""
    content = list(range(len(qubits)))  # content[k]: the qubit at position k
    ops = []
    for position, qubit in enumerate(operation.pattern.tolist()):
        source = content.index(qubit)
        if source != position:
            ops.append(row_op(GATES["swap"], (), (qubits[position], qubits[source])))
            content[source], content[position] = content[position], qubit
    return ops


def _pauli(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    letters = zip(reversed(operation.params[0]), qubits, strict=True)
    return [row_op(GATES[letter.lower()], (), (qubit,)) for letter, qubit in letters if letter != "I"]


def _qft(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    """Expands the QFT into H and controlled phases, from the highest qubit down, and swaps that reverse the qubits."""
    ops = []
    for j in reversed(range(len(qubits))):
        ops.append(row_op(GATES["h"], (), (qubits[j],)))
        ops += [row_op(GATES["cp"], (math.pi / (1 << (j - k)),), (qubits[k], qubits[j])) for k in reversed(range(j))]
    half = len(qubits) // 2
    return ops + [row_op(GATES["swap"], (), pair) for pair in zip(qubits[:half], qubits[: -half - 1 : -1], strict=True)]


def _multiplexer(operation: Any, qubits: Qubits, site: Site) -> list[Op] | None:
    """Expands a UCGate, which applies matrix j to the first qubit if the others read j.

    Returns None if Qiskit simplified the gate, up to a diagonal or to fewer controls.
    """
    matrices = operation.params
    if operation.up_to_diagonal or len(matrices) != 1 << (len(qubits) - 1):
        return None
    ops = [matrix_op(matrix, qubits[:1], site) for matrix in matrices]
    return _selected(ops, qubits[1:])


def _multiplexed_rotation(operation: Any, qubits: Qubits, site: Site) -> list[Op]:
    """Expands UCRX, UCRY and UCRZ, which rotate the first qubit by angle j if the others read j."""
    angles = numbers(operation.params, site)
    axis = operation.rot_axes.lower()
    if axis == "z":
        half = np.repeat(np.exp(0.5j * np.array(angles)), 2)
        half[::2] = half[::2].conj()
        return [_diagonal_op(half, qubits, site)]
    return _selected([row_op(GATES[f"r{axis}"], (angle,), qubits[:1]) for angle in angles], qubits[1:])


def _selected(ops: Sequence[Op], controls: Qubits) -> list[Op]:
    """Returns operators that apply ``ops[j]`` if ``controls`` read j."""
    return [controlled([op], controls, state)[0] for state, op in enumerate(ops)]


def _pauli_evolution(operation: Any, qubits: Qubits, site: Site) -> list[Op] | None:
    """Expands a product formula into exact exponentials of Pauli strings, in the order of its synthesis.

    Returns None for a synthesis other than Qiskit's product formulas, or terms that are not Pauli strings.
    """
    numbers(operation.params, site)
    synthesis = operation.synthesis
    if type(synthesis) not in (LieTrotter, SuzukiTrotter) or synthesis.atomic_evolution is not None:
        return None
    terms = synthesis.expand(operation)
    if not all(set(letters) <= set("IXYZ") for letters, _, _ in terms):
        return None
    ops = []
    for letters, indices, angle in terms:
        ops += _pauli_rotation(letters, tuple(qubits[index] for index in indices), numbers((angle,), site)[0])
    return ops


_R = math.sqrt(0.5)
_Y_TO_Z: ComplexArray = np.array([[_R, -1j * _R], [_R, 1j * _R]])  # V Y V^dagger = Z


def _pauli_rotation(letters: str, qubits: Qubits, angle: float) -> list[Op]:
    """Expands exp(-i angle/2 P): a change to the basis where P is Z...Z, a diagonal by parity, the change back."""
    letter_of = {qubit: letter for letter, qubit in zip(letters, qubits, strict=True) if letter != "I"}
    support = tuple(letter_of)
    x_qubits = tuple(qubit for qubit in support if letter_of[qubit] == "X")
    to_z = [Op(Kind.HADAMARD, x_qubits, EMPTY, name="h")] if x_qubits else []
    to_z += [structured_op(_Y_TO_Z, (qubit,), "y_to_z") for qubit in support if letter_of[qubit] == "Y"]
    if len(support) > PARITY_QUBITS:
        last = support[-1]
        to_z += [row_op(GATES["cx"], (), (qubit, last)) for qubit in support[PARITY_QUBITS - 1 : -1]]
        support = (*support[: PARITY_QUBITS - 1], last)
    signs = np.array([1 - 2 * (j.bit_count() & 1) for j in range(1 << len(support))])
    data = np.exp(-0.5j * angle * signs)
    data.setflags(write=False)
    return [*to_z, Op(Kind.DIAGONAL, support, data, name="pauli_rotation"), *(inverse_op(op) for op in reversed(to_z))]


COMPOSITES: dict[Any, Callable[[Any, Qubits, Site], list[Op] | None]] = {
    AnnotatedOperation: _annotated,
    library.UnitaryGate: _unitary,
    library.DiagonalGate: _diagonal,
    library.PermutationGate: _permutation,
    library.PauliGate: _pauli,
    library.QFTGate: _qft,
    library.UCGate: _multiplexer,
    library.UCRXGate: _multiplexed_rotation,
    library.UCRYGate: _multiplexed_rotation,
    library.UCRZGate: _multiplexed_rotation,
    library.UCPauliRotGate: _multiplexed_rotation,
    library.PauliEvolutionGate: _pauli_evolution,
    SlotGate: lambda operation, qubits, _: [operation.op(qubits)],
}
