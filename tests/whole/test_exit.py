"""The interpreter exits in silence, whoever still holds objects of the package."""

import os
import subprocess
import sys
import textwrap

import pytest

HELD = """
import ctypes
from qiskit import QuantumCircuit
from qsim_ozaki import OzakiBackend
backend = OzakiBackend()
circuit = QuantumCircuit(2)
circuit.h(0)
circuit.measure_all()
kept = {"backend": backend, "job": backend.run(circuit), "plan": backend.plan(circuit)}
kept["result"] = kept["job"].result()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept[%r]))  # as a test runner that never lets go
"""

TEST = f"def test_holding():\n{textwrap.indent(HELD % 'backend', '    ')}"

MACHINE = """
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule
from qiskit import QuantumCircuit
from qsim_ozaki import OzakiBackend

class Machine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.backend = OzakiBackend()

    @rule()
    def run(self):
        circuit = QuantumCircuit(1)
        circuit.measure_all()
        assert self.backend.run(circuit).result().get_counts() == {"0": 1024}

Machine.TestCase.settings = settings(max_examples=3, stateful_step_count=3, deadline=None)
TestMachine = Machine.TestCase
"""


@pytest.mark.parametrize("held", ["backend", "job", "plan", "result"])
def test_objects_held_for_ever(held):
    clean = {name: value for name, value in os.environ.items() if name != "QSIM_OZAKI_DEBUG"}
    done = subprocess.run([sys.executable, "-P", "-c", HELD % held], capture_output=True, text=True, env=clean)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_developers_are_told_of_leaks():
    debug = os.environ | {"QSIM_OZAKI_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-P", "-c", HELD % "backend"], capture_output=True, text=True, env=debug)
    assert done.returncode == 0
    assert "nanobind: leaked" in done.stderr


def run_in_pytest(folder, program, debug):
    """Output of a test runner on ``program``, up to the end of its interpreter."""
    (folder / "test_program.py").write_text(program)
    environment = {name: value for name, value in os.environ.items() if name != "QSIM_OZAKI_DEBUG"}
    environment |= {"QSIM_OZAKI_DEBUG": "1"} if debug else {}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "test_program.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("debug", [False, True])
def test_a_test_that_holds_a_backend(tmp_path, debug):
    assert ("nanobind: leaked" in run_in_pytest(tmp_path, TEST, debug)) == debug


def test_a_state_machine_that_holds_a_backend(tmp_path):
    assert "leaked" not in run_in_pytest(tmp_path, MACHINE, debug=False)
