"""Sums of Pauli strings on states against dense linear algebra, idle qubits and sharp observables included."""

import numpy as np
import pytest
from support.random_ops import random_state

from qsim_ozaki.ir import applied, expectations, mean_and_variance, placed, still

MATRICES = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}
PRECISIONS = [np.complex128, np.complex64]


def dense(terms):
    """The matrix of (label, weight); the label's last letter is for bit 0."""
    total = 0
    for label, weight in terms:
        matrix = np.eye(1)
        for letter in label:
            matrix = np.kron(matrix, MATRICES[letter])
        total = total + weight * matrix
    return total


def random_terms(rng, width, count):
    return [("".join(rng.choice(list("IXYZ"), width)), float(rng.normal())) for _ in range(count)]


def spread(state, places):
    """``state`` on the qubits ``places`` as the vector of all of them, -1 for one that stays |0>."""
    out = np.zeros(1 << len(places), complex)
    for index in range(out.size):
        ones = [place for bit, place in enumerate(places) if index >> bit & 1]
        if -1 not in ones:
            out[index] = state[sum(1 << place for place in ones)]
    return out


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("num_qubits", range(1, 7))
@pytest.mark.parametrize("idle", [0, 2])
def test_mean_and_variance_equal_dense_linear_algebra(rng, dtype, num_qubits, idle):
    for _ in range(8):
        state = random_state(rng, num_qubits).astype(dtype)
        places = [int(place) for place in rng.permutation([*range(num_qubits), *[-1] * idle])]
        terms = random_terms(rng, len(places), int(rng.integers(1, 12)))
        matrix, vector = dense(terms), spread(state.astype(complex), places)
        norm = np.vdot(vector, vector).real  # of a rounded state not 1
        want = np.vdot(vector, matrix @ vector).real
        image = matrix @ vector - want * vector
        mean, variance = mean_and_variance(state, terms, places, threads=2)
        assert mean == pytest.approx(want, abs=1e-12)
        assert variance == pytest.approx(np.vdot(image, image).real, abs=1e-12)
        square = np.vdot(vector, matrix @ matrix @ vector).real
        assert variance == pytest.approx(square - want**2, abs=1e-12 + 4 * want**2 * abs(norm - 1))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_states_of_several_chunks(rng, dtype):
    """Wider than what stays in a first-level cache: strings reach across chunks."""
    num_qubits = 12
    state = random_state(rng, num_qubits).astype(dtype)
    for count in (1, 3, 40):
        terms = random_terms(rng, num_qubits, count)
        image = np.zeros(state.size, complex)
        for label, weight in terms:
            image += weight * string_on(label, state)
        want = np.vdot(state.astype(complex), image).real
        for threads in (1, 3):
            mean, variance = mean_and_variance(state, terms, range(num_qubits), threads)
            assert mean == pytest.approx(want, abs=1e-12)
            assert variance == pytest.approx(np.vdot(image - want * state, image - want * state).real, abs=1e-12)


def string_on(label, state):
    tensor = state.astype(complex).reshape((2,) * len(label))
    for axis, letter in enumerate(label):
        tensor = np.moveaxis(np.tensordot(MATRICES[letter], tensor, (1, axis)), 0, axis)
    return tensor.reshape(-1)


def test_a_sharp_observable_has_no_variance(rng):
    terms = [("XXXX", 3.0), ("ZZII", -2.0), ("IIZZ", 1.0)]
    ghz = np.zeros(16, complex)
    ghz[[0, 15]] = np.sqrt(0.5)
    mean, variance = mean_and_variance(ghz, terms, range(4), threads=1)
    assert mean == pytest.approx(2, abs=1e-15)
    assert variance <= 1e-30


def test_observables_on_several_states_at_once(rng):
    states = np.stack([random_state(rng, 4) for _ in range(3)])
    groups = [random_terms(rng, 4, count) for count in (1, 5, 30)]
    observables = [still((placed(label, range(4)), weight) for label, weight in terms) for terms in groups]
    values = expectations(states, observables, threads=2)
    for column, (terms, observable) in enumerate(zip(groups, observables, strict=True)):
        images = states @ dense(terms).T
        np.testing.assert_allclose(applied(states, observable, 2), images, atol=1e-13)
        np.testing.assert_allclose(values[:, column], (states.conj() * images).sum(axis=1).real, atol=1e-13)
