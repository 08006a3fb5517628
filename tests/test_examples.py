"""Each example runs as it stands, in an interpreter of its own, and prints what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from qsim_ozaki.circuits import FAMILIES

EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of(name, folder):
    # -P and another folder: the installed package is meant, not the source tree beside the example
    command = [sys.executable, "-P", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    tested = {"quickstart.py", "compare_with_aer.py", "plan_and_explain.py"}
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


def test_plan_and_explain(tmp_path):
    out = output_of("plan_and_explain.py", tmp_path)
    predicted, measured = map(float, re.search(r"predicted (\S+) s, measured (\S+) s", out).groups())
    assert 0 < predicted < 60
    assert 0 < measured < 60
