"""Rewriting before planning: fewer and cheaper operators with the same product.

In: unitary operators in order. Out: operators in order. It may not know a device, or reorder operators that do not
commute. C++ does the work (`kernels/native/planner/fuse.cpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qsim_ozaki.ir import Op, OpList, Prepare


def fuse(ops: Iterable[Op], num_qubits: int, max_fused_qubits: int = 2) -> OpList:
    """Returns fewer, cheaper operators with the product of ``ops``.

    One-qubit gates are merged, then split into one real rotation between diagonals, which cost next to nothing. CX
    gates between rotations become CZ. Small matrices absorb their neighbours.

    Args:
        ops: unitary operators in order.
        num_qubits: number of qubits that they act on.
        max_fused_qubits: matrices on at most this many qubits absorb neighbouring gates.
    """
    return OpList(OpList.of(ops).native.fuse(num_qubits, max_fused_qubits))


def relabel_swaps(ops: Iterable[Op], position: Sequence[int]) -> tuple[OpList, tuple[int, ...]]:
    """Returns ``ops`` on physical qubits, where every uncontrolled SWAP only renames qubits.

    Args:
        ops: operators on program qubits.
        position: physical qubit of each program qubit before the first operator.

    Returns:
        The other operators, and the physical qubit of each program qubit after the last one.
    """
    relabelled, place = OpList.of(ops).native.relabel_swaps(list(position))
    return OpList(relabelled), tuple(place)


def collect_rotations(ops: Iterable[Op], position: Sequence[int], max_direction: int) -> tuple[OpList, tuple[int, ...]]:
    """Returns what `relabel_swaps` returns, with fewer Clifford gates.

    Clifford gates that undo each other around rotations leave rotations about Pauli strings: a ladder of CX gates in a
    changed basis is one `Kind.PAULI`. About a string of Z alone it is a factor by the parity of qubits,
    `Kind.PARITY`, which needs no qubit in the tile. CX gates there and back on a pair are one CX and a new name.

    Args:
        ops: operators on program qubits, fewer than 64 of them.
        position: physical qubit of each program qubit before the first operator.
        max_direction: most qubits with X or Y of a string; a rotation about one with more is written as a change of
            basis around a `Kind.PARITY`.
    """
    fewer, place = OpList.of(ops).native.collect_rotations(list(position), max_direction)
    return OpList(fewer), tuple(place)


def absorb_product(
    ops: Iterable[Op], num_qubits: int, basis_states_only: bool = False
) -> tuple[Prepare, OpList, int, int]:
    """Returns the product state that the leading one-qubit gates make of |0...0>, and the remaining operators.

    Args:
        ops: unitary operators in order.
        num_qubits: number of qubits that they act on.
        basis_states_only: the leading gates of a qubit are absorbed only if they make it |0> or |1>.

    Returns:
        The state, the remaining operators, the mask of the qubits that are neither |0> nor |1>, and the mask of the
        qubits that are |1>.
    """
    factors, remaining, live, ones = OpList.of(ops).native.absorb_product(num_qubits, basis_states_only)
    return Prepare(factors.reshape(num_qubits, 2)), OpList(remaining), live, ones
