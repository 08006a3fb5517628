"""The README as a new user meets it: its Python in order, its commands on a small file."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit import Parameter

from qsim_ozaki.cli import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
ELSEWHERE = ("ProcessPoolExecutor(8)",)  # blocks that need other machines


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_python_of_the_readme_runs_from_top_to_bottom(capsys):
    names = {}
    for block in blocks("python"):
        if not any(words in block for words in ELSEWHERE):
            exec(compile(block, "README.md", "exec"), names)
    assert "{'" in capsys.readouterr().out
    data = names["data"]
    assert np.allclose(np.abs(data["state"].data) ** 2, [0.5, 0.5, 0, 0])
    assert len(data["each"]) == 100
    assert set(data["by bits"]) <= {"0x0", "0x1"}
    assert names["evs"].shape == (2, 50)
    assert names["gradient"].shape == (names["ansatz"].num_parameters,)
    assert names["energy"] == pytest.approx(names["evs"][0, 0], abs=1e-12)
    assert names["counts"].shape == (50,)


def commands():
    lines = "".join(blocks("sh")).splitlines()
    elsewhere = (" bench --qubits", " --engine cuda")  # minutes, or a GPU
    return [line for line in lines if line.startswith("qsim-ozaki") and not any(words in line for words in elsewhere)]


@pytest.mark.parametrize("line", commands(), ids=lambda line: " ".join(line.split()[:4]))
def test_the_commands_of_the_readme_run(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE.qasm").write_text((ROOT / "examples" / "phase_estimation.qasm").read_text())
    (tmp_path / "bench.json").write_text((ROOT / "benchmarks" / "records" / "cpu22.json").read_text())
    circuit = QuantumCircuit(1)
    circuit.ry(Parameter("theta"), 0)
    with (tmp_path / "FILE.qpy").open("wb") as file:
        qpy.dump(circuit, file)
    with pytest.raises(SystemExit) as left:
        main(shlex.split(line, comments=True)[1:])
    assert not left.value.code, capsys.readouterr().err
    assert capsys.readouterr().out
