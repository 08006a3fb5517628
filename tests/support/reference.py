"""The slow, obvious reference: NumPy on explicit indices. It imports nothing of the package."""

import numpy as np

UNIT_ROUNDOFF = {"double": 2.0**-53, "single": 2.0**-24}
CONSTANT = 16  # roundings per op on an amplitude, with room: a matrix of 8 qubits adds 256 terms


def tolerance(num_ops, precision="double"):
    """Bound on the 2-norm of an error after ``num_ops`` ops on a state of norm 1."""
    return CONSTANT * max(num_ops, 1) * UNIT_ROUNDOFF[precision]


def bits_of(index, qubits):
    """The number whose bit j is bit ``qubits[j]`` of ``index``."""
    out = np.zeros_like(index)
    for j, qubit in enumerate(qubits):
        out |= ((index >> qubit) & 1) << j
    return out


def spread(value, qubits):
    """The index whose bit ``qubits[j]`` is bit j of ``value``, all others 0."""
    return sum(((value >> j) & 1) << qubit for j, qubit in enumerate(qubits))


def op_matrix(op):
    """The matrix on the targets, from the fields alone."""
    size, kind = 1 << len(op.targets), op.kind.name
    if kind == "DIAGONAL":
        return np.diag(op.data)
    if kind == "PAULI":
        letters = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
        string = np.eye(1)
        for letter in op.permutation:
            string = np.kron(letters[letter - 1], string)
        return op.data[0] * np.eye(size) + op.data[1] * string
    if kind == "PARITY":
        return np.diag(np.asarray(op.data)[np.bitwise_count(np.arange(size)) & 1])
    if kind == "UNITARY":
        return np.asarray(op.data)
    if kind == "PERMUTATION":
        out = np.zeros((size, size), complex)
        for column in range(size):
            out[op.permutation[column], column] = op.data[column]
        return out
    number = np.arange(size)
    return (1 - 2.0 * (np.bitwise_count(number[:, None] & number) & 1)) / np.sqrt(size)


def apply_op(state, op):
    """``op`` on ``state``: its matrix times the amplitudes of each value of the other qubits at which it acts."""
    state = np.array(state, complex)
    index = np.arange(state.size)
    if op.kind.name == "PAULI":
        moved = state
        for qubit, letter in zip(op.targets, op.permutation, strict=True):
            one = (index >> qubit) & 1
            moved = moved[index ^ (1 << qubit)] if letter < 3 else moved
            moved = moved * (1, 1j * (2 * one - 1), 1 - 2 * one)[letter - 1]
        return op.data[0] * state + op.data[1] * moved
    if op.kind.name == "PARITY":
        return state * op.data[np.bitwise_count(bits_of(index, op.targets)) & 1]
    base = index[(bits_of(index, op.targets) == 0) & (bits_of(index, op.controls) == op.ctrl_state)]
    places = np.array([spread(row, op.targets) for row in range(1 << len(op.targets))])[:, None] + base
    state[places] = op_matrix(op) @ state[places]
    return state


def apply_ops(state, ops):
    """All of ``ops`` in order."""
    for op in ops:
        state = apply_op(state, op)
    return state


def zero_state(num_qubits):
    """|0...0>."""
    state = np.zeros(1 << num_qubits, complex)
    state[0] = 1
    return state


def unitary_of(ops, num_qubits):
    """The matrix of ``ops``, column by column."""
    identity = np.eye(1 << num_qubits, dtype=complex)
    return np.stack([apply_ops(column, ops) for column in identity], axis=1)
