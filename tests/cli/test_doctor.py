"""`qsim-ozaki doctor`, plots of counts, plans in notebooks."""

import json
import re

import numpy as np
import pytest
from qiskit import QuantumCircuit
from support.bell import bell

import qsim_ozaki.cli.doctor
from qsim_ozaki import OzakiBackend, plot_counts
from qsim_ozaki.cli.app import main
from qsim_ozaki.errors import QsimError

PATHS = {"tiles", "dense block", "Hadamards", "measurements"}


def run(arguments, code):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == code


def test_t57_the_doctor_checks_every_path_and_says_what_is_missing(capsys):
    run(["doctor", "--json"], 0)
    findings = json.loads(capsys.readouterr().out)["findings"]
    by_name = {finding["what"]: finding for finding in findings}
    checked = {f"cpu {precision}: {path}" for precision in ("double", "single") for path in PATHS}
    for name in checked | {"cpu: stacked rows", "cpu: gradient"}:
        assert by_name[name]["state"] == "ok", by_name[name]
        error = float(re.match(r"error (\S+), ", by_name[name]["detail"])[1])
        assert error <= (1e-5 if "single" in name else 1e-13)
    assert "Python" in by_name["versions"]["detail"]
    for name in ("CUDA driver", "CuPy"):
        assert by_name[name]["state"] == "ok" or "With an NVIDIA GPU" in by_name[name]["remedy"]
    run(["doctor"], 0)
    out = capsys.readouterr().out
    assert "stacked rows" in out
    assert "failed" not in out


def test_the_doctor_measures_on_request(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    run(["doctor", "--calibrate", "--json"], 0)
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert re.fullmatch(r".*, measured in \d+\.\d s", findings[0]["detail"])
    (file,) = tmp_path.rglob("devices.json")
    (record,) = json.loads(file.read_text()).values()
    assert record["bandwidth_bytes_per_s"] > 0
    by_name = {finding["what"]: finding for finding in findings}
    assert by_name["cpu: rates"]["detail"] == "measured here"


def test_a_wrong_path_is_found(monkeypatch, capsys):
    monkeypatch.setattr(qsim_ozaki.cli.doctor, "_dense", lambda: QuantumCircuit(1, global_phase=object))
    monkeypatch.setattr(qsim_ozaki.cli.doctor, "_stacked_difference", lambda: 0.5)
    run(["doctor", "--json"], 2)
    by_name = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert by_name["cpu double: dense block"]["state"] == "failed"
    assert by_name["cpu: stacked rows"]["state"] == "failed"
    assert "5.0e-01" in by_name["cpu: stacked rows"]["detail"]
    assert "report it" in by_name["cpu: stacked rows"]["remedy"]
    assert by_name["cpu double: tiles"]["state"] == "ok"


def test_counts_are_plotted(tmp_path):
    counts = {"00": 600, "11": 300, "01": 60, "10": 40}
    figure = plot_counts(counts, str(tmp_path / "counts.png"), top=3)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["00", "01", "11", "others"]
    assert [bar.get_height() for bar in axes.patches] == [600, 60, 300, 40]
    assert (tmp_path / "counts.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(QsimError, match="no counts to plot"):
        plot_counts({})


def test_run_plots_its_counts(tmp_path):
    run(["run", "ghz:3", "--shots", "50", "--seed", "1", "--plot", str(tmp_path / "ghz.png")], 0)
    assert (tmp_path / "ghz.png").read_bytes().startswith(b"\x89PNG")


def test_a_plan_shows_itself_in_a_notebook():
    circuit = QuantumCircuit(4)
    circuit.h(range(4))
    circuit.append(bell(measured=False).to_gate(label="<b>"), [0, 1])
    plan = OzakiBackend().plan(circuit)
    page = plan._repr_html_()
    assert page.count("<tr>") == len(plan.steps) + 1
    text = plan.explain()
    for line in text.splitlines()[-2:]:
        assert line in page
    circuit.reset(0)
    circuit.h(range(4))
    both = OzakiBackend().plan(circuit, shots=1)._repr_html_()
    assert "<h4>segment 1</h4>" in both
    assert np.char.count(both, "<table>") == 2
