"""Pictures of states: bars as high as the probabilities, colours that are the phases, and what is refused."""

import numpy as np
import pytest
from matplotlib import colors
from qiskit import QuantumCircuit
from qiskit.quantum_info import DensityMatrix, Statevector

from qsim_ozaki import OzakiBackend, plot_counts, plot_state, save_statevector_dict
from qsim_ozaki.errors import QsimError

# the phases at which the colours are pure
PURE = {0: "#0072b2", np.pi / 2: "#009e73", np.pi: "#e69f00", 3 * np.pi / 2: "#cc4778"}


def drawn(figure):
    """(labels, heights, colours in hexadecimal) of the bars."""
    axes = figure.axes[0]
    bars = axes.patches
    labels = [label.get_text() for label in axes.get_xticklabels()]
    return labels, [bar.get_height() for bar in bars], [bar.get_facecolor() for bar in bars]


def random_state(rng, num_qubits):
    state = rng.normal(size=1 << num_qubits) + 1j * rng.normal(size=1 << num_qubits)
    return state / np.linalg.norm(state)


def test_bars_are_probabilities_in_the_order_of_the_bits(rng):
    state = random_state(rng, 4)
    for form in (state, list(state), Statevector(state), Statevector(state).to_dict()):
        labels, heights, _ = drawn(plot_state(form))
        assert labels == [format(index, "04b") for index in range(16)]
        np.testing.assert_allclose(heights, abs(state) ** 2, rtol=1e-12)


@pytest.mark.parametrize("turn", PURE)
def test_colours_are_phases_as_they_are(turn):
    amplitudes = np.exp(1j * (turn + np.array([0, np.pi / 2, np.pi, 3 * np.pi / 2]))) / 2
    _, _, faces = drawn(plot_state(amplitudes))
    order = list(PURE.values())
    start = order.index(PURE[turn])
    for face, pure in zip(faces, order[start:] + order[:start], strict=True):
        np.testing.assert_allclose(face, colors.to_rgba(pure), atol=0.01)


def test_a_colour_between_two_pure_ones_is_their_mean_and_the_map_is_cyclic():
    _, _, (between, below, above) = drawn(plot_state(np.array([np.exp(0.25j * np.pi), np.exp(-1e-9j), 1, 0])))
    mean = (np.array(colors.to_rgba(PURE[0])) + colors.to_rgba(PURE[np.pi / 2])) / 2
    np.testing.assert_allclose(between, mean, atol=0.01)
    np.testing.assert_allclose(below, above, atol=0.01)


def test_the_colour_bar_goes_from_0_to_2_pi(rng):
    bar = plot_state(random_state(rng, 2)).axes[1]
    assert [label.get_text() for label in bar.get_yticklabels()] == ["0", "π/2", "π", "3π/2", "2π"]
    np.testing.assert_allclose(bar.get_yticks(), np.linspace(0, 2 * np.pi, 5))
    assert bar.get_ylim() == (0, 2 * np.pi)


def test_the_most_probable_states_have_bars_and_the_others_one(rng):
    state = random_state(rng, 8)
    labels, heights, _ = drawn(plot_state(state, top=5))
    probabilities = abs(state) ** 2
    best = sorted(np.argsort(probabilities)[-5:])
    assert labels == [*(format(index, "08b") for index in best), "others"]
    np.testing.assert_allclose(heights, [*probabilities[best], 1 - probabilities[best].sum()], rtol=1e-9)


def test_a_state_of_many_blocks_is_searched_whole(monkeypatch, rng):
    state = random_state(rng, 8)
    want = drawn(plot_state(state, top=7))
    monkeypatch.setattr("qsim_ozaki.provider.plots.BLOCK", 16)
    assert drawn(plot_state(state, top=7))[0] == want[0]


def test_of_equally_probable_states_the_first_are_shown():
    circuit = QuantumCircuit(7)
    for qubit in range(7):
        circuit.h(qubit)
        circuit.rz(0.1 * qubit, qubit)
    state = np.asarray(Statevector(circuit))
    labels, heights, _ = drawn(plot_state(state, top=3))
    assert labels == ["0000000", "0000001", "0000010", "others"]
    assert heights[-1] == pytest.approx(125 / 128)


def test_a_high_bar_of_the_others_is_cut_off_and_names_its_value(rng):
    axes = plot_state(np.full(64, 1 / 8), top=4).axes[0]
    assert axes.get_ylim()[1] == pytest.approx(1.2 / 64)
    assert [text.get_text() for text in axes.texts] == ["0.938"]
    assert not plot_state(random_state(rng, 2)).axes[0].texts


def test_states_of_probability_0_have_no_bar():
    labels, heights, _ = drawn(plot_state(Statevector.from_label("01+")))
    assert labels == ["010", "011"]
    np.testing.assert_allclose(heights, [0.5, 0.5])
    assert drawn(plot_state(np.array([1.0])))[:2] == ([""], [1])


def test_saved_dicts_and_single_precision():
    circuit = QuantumCircuit(3)
    circuit.x(1)
    circuit.h(2)
    save_statevector_dict(circuit)
    saved = OzakiBackend().run(circuit).result().data()["statevector_dict"]
    assert drawn(plot_state(saved))[0] == ["010", "110"]
    data = OzakiBackend(precision="single").run(circuit).result().data()
    assert drawn(plot_state(data["statevector_dict"]))[0] == ["010", "110"]
    assert drawn(plot_state(np.array([0.6, 0.8j], np.complex64)))[1] == pytest.approx([0.36, 0.64])


def test_files_are_written_in_the_format_of_their_ending(tmp_path):
    plot_state([0.6, 0.8], str(tmp_path / "state.png"))
    plot_state([0.6, 0.8], str(tmp_path / "state.svg"))
    assert (tmp_path / "state.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "state.svg").read_bytes()


WRONG = [
    ([1, 0, 0], "got 3 amplitudes"),
    ([], "got 0 amplitudes"),
    ([[1, 0], [0, 1]], "cannot draw a list"),
    (DensityMatrix([1, 0]), "cannot draw a DensityMatrix"),
    ("01", "cannot draw a str"),
    (None, "cannot draw a NoneType"),
    ([[1], 0], "cannot draw a list"),
    ([1, np.nan], "holds NaN or infinity"),
    ([1, complex(0, np.inf)], "holds NaN or infinity"),
    ([0, 0], "amplitudes of the state to plot are 0"),
    ({}, "distinct basis states as keys"),
    ({"0": 1, "01": 0}, "distinct basis states as keys"),
    ({"0x1": 1, "0x01": 0}, "distinct basis states as keys"),
    ({-1: 1}, "distinct basis states as keys"),
    ({"0": "a"}, "cannot draw a dict"),
]


@pytest.mark.parametrize(("state", "message"), WRONG, ids=[repr(state)[:20] for state, _ in WRONG])
def test_a_wrong_state_is_refused(state, message):
    with pytest.raises(QsimError, match=message):
        plot_state(state)


@pytest.mark.parametrize("top", [0, -1, 1.5, True])
def test_a_wrong_number_of_bars_is_refused(top):
    with pytest.raises(QsimError, match="at least 1"):
        plot_state([1, 0], top=top)


@pytest.mark.parametrize("plot", [lambda file: plot_state([1, 0], file), lambda file: plot_counts({"0": 1}, file)])
def test_a_wrong_file_is_refused(tmp_path, plot):
    with pytest.raises(QsimError, match=r"format 'doc' are not written. Use one of .*png"):
        plot(str(tmp_path / "state.doc"))
    for name in (tmp_path / "none" / "state.png", tmp_path):
        with pytest.raises(QsimError, match="not a file in a folder that exists"):
            plot(str(name))
