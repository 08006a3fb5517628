"""Products of Pauli matrices and projectors on states, against dense linear algebra."""

from functools import reduce

import numpy as np
import pytest
from support.random_ops import random_state

from qsim_ozaki.ir import applied, expectations, mean_and_variance, placed, still

PAULI = {"I": np.eye(2), "X": np.array([[0, 1], [1, 0]]), "Y": np.array([[0, -1j], [1j, 0]]), "Z": np.diag([1, -1])}
MATRICES = PAULI | {
    letter: (np.eye(2) + sign * PAULI[axis]) / 2
    for letters, sign in (("0+r", 1), ("1-l", -1))
    for letter, axis in zip(letters, "ZXY", strict=True)
}


def dense(terms):
    return sum(weight * reduce(np.kron, (MATRICES[letter] for letter in label)) for label, weight in terms)


def random_terms(rng, width, count):
    return [("".join(rng.choice(list(MATRICES), width)), float(rng.normal())) for _ in range(count)]


@pytest.mark.parametrize("num_qubits", range(1, 7))
def test_values_and_images_of_terms_with_projectors(rng, num_qubits):
    for count in (1, 4, 12):
        states = np.stack([random_state(rng, num_qubits) for _ in range(3)])
        terms = random_terms(rng, num_qubits, count)
        observable = still((placed(label, range(num_qubits)), weight) for label, weight in terms)
        images = states @ dense(terms).T
        np.testing.assert_allclose(applied(states, observable, 2), images, atol=1e-13)
        want = (states.conj() * images).sum(axis=1).real
        np.testing.assert_allclose(expectations(states, [observable], 2)[:, 0], want, atol=1e-13)
        single = expectations(states.astype(np.complex64), [observable], 1)[:, 0]
        np.testing.assert_allclose(single, want, atol=1e-5)


@pytest.mark.parametrize("num_qubits", range(1, 5))
def test_mean_and_variance_with_projectors_and_idle_qubits(rng, num_qubits):
    for _ in range(8):
        places = [int(place) for place in rng.permutation([*range(num_qubits), -1, -1])]
        state = random_state(rng, num_qubits)
        vector = np.zeros(1 << len(places), complex)
        for index in range(vector.size):
            ones = [place for bit, place in enumerate(places) if index >> bit & 1]
            if -1 not in ones:
                vector[index] = state[sum(1 << place for place in ones)]
        terms = random_terms(rng, len(places), 6)
        matrix = dense(terms)
        want = np.vdot(vector, matrix @ vector).real
        image = matrix @ vector - want * vector
        mean, variance = mean_and_variance(state, terms, places, threads=1)
        assert mean == pytest.approx(want, abs=1e-13)
        assert variance == pytest.approx(np.vdot(image, image).real, abs=1e-13)
        observable = still((placed(label, places), weight) for label, weight in terms)
        assert expectations(state[None], [observable], 1)[0, 0] == pytest.approx(want, abs=1e-13)
