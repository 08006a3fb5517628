"""The interpreter exits in silence, whoever still holds objects of the package."""

import os
import subprocess
import sys

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
    done = subprocess.run([sys.executable, "-c", HELD % held], capture_output=True, text=True, env=clean)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_developers_are_told_of_leaks():
    debug = os.environ | {"QSIM_OZAKI_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", HELD % "backend"], capture_output=True, text=True, env=debug)
    assert done.returncode == 0
    assert "nanobind: leaked" in done.stderr


def test_a_state_machine_that_holds_a_backend(tmp_path):
    (tmp_path / "test_machine.py").write_text(MACHINE)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "test_machine.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "leaked" not in done.stdout + done.stderr
