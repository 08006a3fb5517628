"""Aer's methods on `QuantumCircuit` after ``import qsim_ozaki``, in whatever order packages are imported."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import Pauli

from qsim_ozaki import OzakiBackend
from qsim_ozaki.circuit_methods import METHODS

PROGRAM = """
import sys
{imports}
from qiskit import QuantumCircuit
from qiskit.quantum_info import Pauli
circuit = QuantumCircuit(2)
circuit.h(0)
circuit.save_statevector("first")
circuit.save_probabilities_dict([0])
circuit.save_expectation_value(Pauli("Z"), [1])
from qsim_ozaki import OzakiBackend
data = OzakiBackend().run(circuit).result().data(0)
assert abs(data["first"].data[0] ** 2 - 0.5) < 1e-12
assert abs(data["probabilities"][1] - 0.5) < 1e-12
assert abs(data["expectation_value"] - 1) < 1e-12
assert not any(type(finder).__module__ == "qsim_ozaki.circuit_methods" for finder in sys.meta_path)
print(QuantumCircuit.save_statevector.__module__.partition(".")[0])
"""
LAZY = "assert not {'qiskit', 'numpy'} & sys.modules.keys()"


@pytest.mark.parametrize(
    ("imports", "owner"),
    [
        (f"import qsim_ozaki\n{LAZY}", "qsim_ozaki"),
        ("import qiskit\nimport qsim_ozaki", "qsim_ozaki"),
        ("from qsim_ozaki import OzakiBackend", "qsim_ozaki"),
        ("import qiskit_aer\nimport qsim_ozaki", "qiskit_aer"),
        ("import qsim_ozaki\nimport qiskit_aer", "qiskit_aer"),
        ("import qiskit.circuit\nimport qsim_ozaki\nimport qiskit_aer", "qiskit_aer"),
    ],
)
def test_any_order_of_imports(imports, owner):
    if "qiskit_aer" in imports:
        pytest.importorskip("qiskit_aer", reason="extra 'compare' is not installed")
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM.format(imports=imports)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [owner]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_signature_is_aers(method):
    library = pytest.importorskip("qiskit_aer.library", reason="extra 'compare' is not installed")

    def names_and_defaults(function):
        return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]

    assert names_and_defaults(method) == names_and_defaults(getattr(library, method.__name__))


ARGUMENTS = {
    "save_amplitudes": ([0, 3],),
    "save_amplitudes_squared": ([0, 3],),
    "save_probabilities": ([1, 0],),
    "save_probabilities_dict": ([1],),
    "save_density_matrix": ([0],),
    "save_expectation_value": (Pauli("ZX"), [0, 1]),
    "save_expectation_value_variance": (Pauli("ZX"), [0, 1]),
    "set_statevector": (np.array([0.6, 0, 0, 0.8j]),),
}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_a_method_saves_what_aers_saves_under_aers_label(method):
    import qiskit_aer.library as library

    results = []
    for function in (method, getattr(library, method.__name__)):
        circuit = QuantumCircuit(2)
        circuit.h(0)
        circuit.cx(0, 1)
        circuit.t(1)
        function(circuit, *ARGUMENTS.get(method.__name__, ()))
        circuit.rx(0.3, 0)
        results.append(OzakiBackend().run(circuit).result().data(0))
    ours, theirs = results
    if method.__name__ == "save_state":  # Aer's label of it is a placeholder for the name of the method
        theirs = dict(zip(ours, theirs.values(), strict=True))
    assert ours.keys() == theirs.keys()
    for label, value in ours.items():
        if isinstance(value, dict):
            assert value == theirs[label]
        else:
            np.testing.assert_array_equal(np.asarray(value), np.asarray(theirs[label]))
