"""Rewriting before planning: fewer and leaner operators with the same product.

In: unitary ops in order. Out: ops in order. It knows no device and never reorders ops that do not commute. The work is
done in C++ (`kernels/native/planner/fuse.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qsim_ozaki.ir import Op, OpList, Prepare


def fuse(ops: Iterable[Op], num_qubits: int, max_fused_qubits: int = 2) -> OpList:
    """The product of ``ops`` as fewer, cheaper ops.

    One-qubit gates are merged and split into diagonals, which cost next to nothing, around one real rotation; CX gates
    between rotations become CZ; small matrices absorb their neighbours.

    Args:
        ops: unitary operators in order.
        num_qubits: qubits they act on.
        max_fused_qubits: matrices on at most this many qubits absorb neighbouring gates.
    """
    return OpList(OpList.of(ops).native.fuse(num_qubits, max_fused_qubits))


def relabel_swaps(ops: Iterable[Op], position: Sequence[int]) -> tuple[OpList, tuple[int, ...]]:
    """``ops`` on physical qubits with every uncontrolled SWAP turned into a change of names.

    Args:
        ops: on program qubits.
        position: physical qubit of each program qubit before the first op.

    Returns:
        The other ops, and the physical qubit of each program qubit after the last.
    """
    moved, place = OpList.of(ops).native.relabel_swaps(list(position))
    return OpList(moved), tuple(place)


def absorb_product(
    ops: Iterable[Op], num_qubits: int, basis_states_only: bool = False
) -> tuple[Prepare, OpList, int, int]:
    """The product state that the leading one-qubit gates make of |0...0>, and the ops that are left.

    Args:
        ops: unitary operators in order.
        num_qubits: qubits they act on.
        basis_states_only: on each qubit the gates are left where they make it anything but |0> or |1>.

    Returns:
        The state, the other ops, the mask of the qubits that are neither |0> nor |1>, and that of those that are |1>.
    """
    factors, left, live, ones = OpList.of(ops).native.absorb_product(num_qubits, basis_states_only)
    return Prepare(factors.reshape(num_qubits, 2)), OpList(left), live, ones
