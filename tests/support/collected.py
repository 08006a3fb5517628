"""A check of `collect_rotations`: operators before and after have one product."""

import numpy as np
from support.random_ops import random_state
from support.reference import apply_ops, tolerance

from qsim_ozaki.planner.fuse import collect_rotations


def assert_same_product(rng, ops, num_qubits, start, max_direction=6):
    """Returns the collected operators and the places at the end, which together are ``ops``."""
    moved, final = collect_rotations(ops, start, max_direction)
    state, index = random_state(rng, num_qubits), np.arange(1 << num_qubits)

    def at(places):
        return sum(((index >> q) & 1) << places[q] for q in range(num_qubits))

    placed = np.empty_like(state)
    placed[at(start)] = state
    error = np.linalg.norm(apply_ops(placed, moved)[at(final)] - apply_ops(state, ops))
    assert error <= tolerance(2 * len(ops)), f"error {error:.3g}"
    return list(moved), final
