"""Each example runs as it stands, in an interpreter of its own, and prints what it promises."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from qsim_ozaki.circuits import FAMILIES

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(name, folder):
    # -P and another folder: the installed package is meant, not the source tree beside the example
    command = [sys.executable, "-P", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    tested = {"quickstart.py", "compare_with_aer.py", "plan_and_explain.py", "vqe.py", "qaoa_sweep.py"}
    tested |= {"teleportation.py", "batch_script.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


def test_quickstart(tmp_path):
    out = output_of("quickstart.py", tmp_path)
    counts = {bits: int(count) for bits, count in re.findall(r"'([01]+)': (\d+)", out)}
    assert counts.keys() == {"00", "11"}
    assert sum(counts.values()) == 1000
    assert abs(counts["00"] - 500) < 100
    assert re.findall(r"\|(\d\d)>  0\.707107", out) == ["00", "11"]


def test_compare_with_aer(tmp_path):
    pytest.importorskip("qiskit_aer", reason="extra 'compare' is not installed")
    out = output_of("compare_with_aer.py", tmp_path)
    assert out.startswith("reference: Aer")
    differences = dict(re.findall(r"(\w+) +largest difference (\S+)", out))
    assert differences.keys() == FAMILIES.keys()
    assert max(map(float, differences.values())) < 1e-12


def test_vqe(tmp_path):
    out = output_of("vqe.py", tmp_path)
    energy, exact = map(float, re.search(r"energy (\S+), exact (\S+),", out).groups())
    assert abs(energy - exact) < 1e-6
    sampled, error = map(float, re.search(r"measure it: (\S+) \+- (\S+)", out).groups())
    assert abs(sampled - exact) < 6 * error


def test_qaoa_sweep(tmp_path):
    out = output_of("qaoa_sweep.py", tmp_path)
    points, mean, edges = re.search(r"(\d+) points, best mean cut (\S+) of (\d+) edges", out).groups()
    assert int(points) == 3200
    assert int(edges) / 2 < float(mean) < int(edges)
    assert float(mean) < int(re.search(r"samples: (\d+) edges", out)[1]) <= 12  # of the square of an 8-ring


def test_teleportation(tmp_path):
    out = output_of("teleportation.py", tmp_path)
    got, sent = map(float, re.search(r"P\(1\) = (\S+), sent (\S+)", out).groups())
    assert abs(got - sent) < 5 * (sent * (1 - sent) / 20_000) ** 0.5
    assert "4 pairs of outcomes" in out


def test_batch_script(tmp_path):
    out = output_of("batch_script.py", tmp_path)
    assert "the same counts" in out
    written = json.loads((tmp_path / "rows.json").read_text())
    assert len(written["results"]) == 300
    assert all(sum(row["data"]["counts"].values()) == 200 for row in written["results"])


def test_plan_and_explain(tmp_path):
    out = output_of("plan_and_explain.py", tmp_path)
    predicted, measured = map(float, re.search(r"predicted (\S+) s, measured (\S+) s", out).groups())
    assert 0 < predicted < 60
    assert 0 < measured < 60
