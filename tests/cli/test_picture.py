"""``run --plot``: which picture, and errors before the run."""

import pytest
from qiskit import QuantumCircuit, qasm2
from qiskit.quantum_info import Statevector

import qsim_ozaki.provider
from qsim_ozaki import OzakiBackend
from qsim_ozaki.circuits import build
from qsim_ozaki.cli.app import main


@pytest.fixture
def drawn(monkeypatch):
    """What is given to the functions that draw."""
    calls = {}
    for name in ("plot_counts", "plot_state"):
        monkeypatch.setattr(qsim_ozaki.provider, name, lambda value, file, name=name: calls.update({name: value}))
    return calls


def run(*arguments, code=0):
    with pytest.raises(SystemExit) as left:
        main(["run", *map(str, arguments)])
    assert (left.value.code or 0) == code


def write(path, circuit):
    path.write_text(qasm2.dumps(circuit))
    return path


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_circuit_that_measures_nothing_shows_its_state_and_the_same_counts(drawn, tmp_path, capsys, precision):
    options = ("random_brickwork:4", "--seed", 3, "--precision", precision, "--top", 99)
    run(*options)
    rows = [line for line in capsys.readouterr().out.splitlines() if "%" in line]
    run(*options, "--plot", tmp_path / "state.png")
    assert [line for line in capsys.readouterr().out.splitlines() if "%" in line] == rows
    assert set(drawn) == {"plot_state"}
    want = Statevector(build("random_brickwork", 4))
    assert Statevector(drawn["plot_state"]).inner(want) == pytest.approx(1, abs=1e-5)


def test_a_circuit_that_measures_shows_its_counts(drawn, tmp_path):
    circuit = QuantumCircuit(2, 1)
    circuit.x(0)
    circuit.measure(0, 0)
    run(write(tmp_path / "measured.qasm", circuit), "--shots", 10, "--plot", tmp_path / "counts.png")
    assert drawn == {"plot_counts": {"1": 10}}


def test_a_circuit_whose_shots_differ_shows_its_counts(drawn, tmp_path):
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.reset(0)
    run(write(tmp_path / "reset.qasm", circuit), "--shots", 50, "--plot", tmp_path / "counts.png")
    assert set(drawn) == {"plot_counts"}
    assert set(drawn["plot_counts"]) == {"00", "10"}


def test_the_pictures_are_written(tmp_path):
    run("ghz:3", "--plot", tmp_path / "state.png")
    assert (tmp_path / "state.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_one_line_before_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(OzakiBackend, "run", None)
    empty = write(tmp_path / "empty.qasm", QuantumCircuit())
    for arguments, message in (
        (("ghz:3", "--plot", tmp_path / "state.doc"), "pictures of format 'doc' are not written"),
        (("ghz:3", "--plot", tmp_path / "none" / "state.png"), "not a file in a folder that exists"),
        (("ghz:3", "--plot", ""), "not a file in a folder that exists"),
        ((empty, "--plot", tmp_path / "state.png"), "so there is nothing to plot"),
    ):
        run(*arguments, code=1)
        text = capsys.readouterr().err
        assert message in text
        assert text.count("\n") == 1
