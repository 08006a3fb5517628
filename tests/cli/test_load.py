"""Files that the command line reads: their encodings, their qubits, their errors."""

import codecs
import re

import numpy as np
import pytest
from qiskit import QuantumCircuit, qasm2, qasm3, transpile
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit.quantum_info import Pauli, Statevector

import qsim_ozaki
from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2
from qsim_ozaki.cli import app
from qsim_ozaki.cli.load import load_circuit
from qsim_ozaki.errors import QsimError

HEAD_2 = 'OPENQASM 2.0;\ninclude "qelib1.inc";\n'
HEAD_3 = 'OPENQASM 3.0;\ninclude "stdgates.inc";\n'
BODIES = {HEAD_2: "qreg q[2];\nx q[1];\n", HEAD_3: "qubit[2] q;\nx q[1];\n"}
ENCODINGS = {
    "UTF-8": ("utf-8", b""),
    "UTF-8 with a mark": ("utf-8", codecs.BOM_UTF8),
    "UTF-16": ("utf-16-le", codecs.BOM_UTF16_LE),
    "UTF-16, big end first": ("utf-16-be", codecs.BOM_UTF16_BE),
    "UTF-32": ("utf-32-le", codecs.BOM_UTF32_LE),
    "Latin-1": ("latin-1", b""),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("head", BODIES, ids=["2", "3"])
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_is_read(tmp_path, name, head, line_end):
    encoding, mark = ENCODINGS[name]
    text = f"// für Émile\n{head}// à la fin\n{BODIES[head]}".replace("\n", line_end)
    path = tmp_path / "program.qasm"
    path.write_bytes(mark + text.encode(encoding))
    circuit = load_circuit(str(path))
    assert [(item.name, circuit.find_bit(item.qubits[0]).index) for item in circuit.data] == [("x", 1)]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"ab\0cd", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", codecs.BOM_UTF8 + b"\xe9"]
)
def test_a_file_that_is_no_text(tmp_path, content):
    path = tmp_path / "binary.qasm"
    path.write_bytes(content)
    with pytest.raises(QsimError, match=r"binary\.qasm: not a text file\. Give"):
        load_circuit(str(path))


def test_openqasm_3_without_a_version(tmp_path):
    path = tmp_path / "program.qasm"
    path.write_text('// no version\ninclude "stdgates.inc";\nqubit q;\nh q;\n')
    assert load_circuit(str(path)).count_ops() == {"h": 1}
    path.write_text('include "qelib1.inc";\nqreg qubits[1];\nh qubits[0];\n')
    assert load_circuit(str(path)).count_ops() == {"h": 1}


# (program, line, column, message), columns from 1 as editors count them
WRONG = {
    "2 syntax": (HEAD_2 + "qreg q[1];\n  h @q[0];\n", 4, 5, "encountered '@'"),
    "2 end": (HEAD_2 + "qreg q[1];\nh q[0]\n", 4, None, "unexpected end-of-file"),
    "2 index": (HEAD_2 + "qreg q[1];\nh q[3];\n", 4, 5, "index 3 is out-of-range"),
    "2 gate": (HEAD_2 + "qreg q[1];\n\n foo q[0];\n", 5, 2, "'foo' is not defined"),
    "2 include": ('OPENQASM 2.0;\ninclude "none.inc";\n', 2, 9, "unable to find 'none.inc'"),
    "version": ("OPENQASM 4.0;\n", 1, 10, "given 4.0"),
    "3 syntax": (HEAD_3 + "qubit[1] q;\n  h ((q[0];\nx q[0];\n", 4, 11, "no viable alternative"),
    "3 token": (HEAD_3 + "qubit[1] q;\n  h @q[0];\n", 4, 5, "no viable alternative"),
    "3 end": (HEAD_3 + "qubit[1] q;\nh q[0]\n", 5, 1, "unexpected end of file"),
    "3 index": (HEAD_3 + "qubit[1] q;\n\nx q[0];\n h q[3];\n", 6, 2, "index out of range"),
    "3 gate": (HEAD_3 + "qubit[1] q;\n  foo q[0];\n", 4, 3, "gate 'foo' is not defined"),
    "3 symbol": (HEAD_3 + "qubit[1] q;\n  h r;\n", 4, 5, "Undefined symbol 'r'"),
    "3 letter": (HEAD_3 + "qubit[1] q;\n  h ér;\n", 4, 5, "Undefined symbol 'ér'"),
    "3 angle": (HEAD_3 + "qubit[1] q;\nrx(true) q[0];\n", 4, 4, "angle-like"),
    "3 division": (HEAD_3 + "qubit[1] q;\nx q[0];\nrx(1/0) q[0];\nx q[0];\n", 5, 1, "division"),
    "3 twice": (HEAD_3 + "qubit[2] q;\ncx q[0], q[0];\n", 4, 1, "duplicate"),
    "3 register": (HEAD_3 + "qubit[2] q;\nqubit[2] q;\n", 4, 1, "already exists"),
    "3 size": (HEAD_3 + "qubit[-1] q;\n", 3, 1, "non-negative"),
    "3 include": ('OPENQASM 3.0;\ninclude "none.inc";\n', 2, 1, "imports not currently supported"),
    "3 unsupported": (HEAD_3 + "qubit[1] q;\ndef f() { }\n", 4, 1, "not supported"),
    "3 mixed": (HEAD_3 + "qubit[1] q;\ncx q[0], $1;\n", 4, 10, "Physical qubit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_one_line_with_file_line_and_column(capfd, tmp_path, monkeypatch, name):
    program, line, column, message = WRONG[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.qasm").write_text(program, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        app.main(["run", "wrong.qasm"])
    out, err = capfd.readouterr()
    assert (stop.value.code, out) == (1, "")
    assert err.count("\n") == 1
    place = re.match(r"error: wrong\.qasm: not OpenQASM [23] as Qiskit reads it: line (\d+), column (\d+): (.+)", err)
    assert place, err
    assert int(place[1]) == line
    assert column is None or int(place[2]) == column
    assert message in place[3]


def write(path, circuit):
    path.write_text(qasm3.dumps(circuit))
    return path


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_physical_qubits_of_every_transpiled_circuit(tmp_path, level):
    """A program written from a transpiled circuit: counts, state, plan, values."""
    circuit = QuantumCircuit(3, 3)
    circuit.h(0)
    circuit.cx(0, 2)
    circuit.ry(0.7, 1)
    circuit.cx(1, 0)
    moved = transpile(circuit, GenericBackendV2(5, seed=4), optimization_level=level, seed_transpiler=level)
    loaded = load_circuit(str(write(tmp_path / "moved.qasm", moved)))
    assert "$" in (tmp_path / "moved.qasm").read_text()
    want = Statevector(loaded)
    np.testing.assert_allclose(
        abs(np.asarray(OzakiBackend().run(loaded, shots=None).result().get_statevector())), abs(want.data), atol=1e-13
    )
    saved = qsim_ozaki.save_statevector(loaded.copy())
    np.testing.assert_allclose(np.asarray(OzakiBackend().run(saved).result().get_statevector()), want.data, atol=1e-13)
    observable = "Z" * loaded.num_qubits
    evs = EstimatorV2().run([(loaded, observable)]).result()[0].data.evs
    assert evs == pytest.approx(want.expectation_value(Pauli(observable)).real, abs=1e-13)
    assert OzakiBackend().plan(loaded).num_qubits <= 5
    measured = QuantumCircuit(3, 3)
    measured.compose(circuit, inplace=True)
    measured.measure([0, 1, 2], [2, 0, 1])
    moved = transpile(measured, GenericBackendV2(5, seed=4), optimization_level=level, seed_transpiler=level)
    program = qasm3.loads(qasm3.dumps(moved))
    exact = OzakiBackend().run(measured, shots=None).result().get_counts()
    counts = OzakiBackend().run(program, shots=None).result().get_counts()
    assert counts == pytest.approx(exact, abs=1e-12)
    drawn = SamplerV2(seed=1).run([program], shots=500).result()[0].data.c.get_counts()
    assert set(drawn) <= {key for key, value in exact.items() if value > 1e-12}


@pytest.mark.parametrize("command", ["run", "plan", "compare"])
def test_the_command_line_takes_physical_qubits(capsys, tmp_path, command):
    path = tmp_path / "physical.qasm"
    path.write_text(HEAD_3 + "bit[2] c;\nh $4;\ncx $4, $1;\nc[0] = measure $4;\nc[1] = measure $1;\n")
    with pytest.raises(SystemExit) as stop:
        app.main([command, str(path)])
    out, err = capsys.readouterr()
    assert (stop.value.code or 0, err) == (0, "")
    assert {"run": "11", "plan": "1 cx", "compare": "first diverging gate  none"}[command] in out


def test_openqasm_2_of_the_same_circuit_reads_the_same(tmp_path):
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cp(0.3, 0, 1)
    second, third = tmp_path / "second.qasm", tmp_path / "third.qasm"
    second.write_text(qasm2.dumps(circuit))
    third.write_text(qasm3.dumps(circuit))
    states = [Statevector(load_circuit(str(path))).data for path in (second, third)]
    np.testing.assert_allclose(states[0], states[1], atol=1e-15)
