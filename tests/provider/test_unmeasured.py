"""Classical bits that nothing writes are 0 in the counts, with a warning, whatever the registers and options."""

import json

import numpy as np
import pytest
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import Clbit, Parameter
from qiskit.circuit.classical import expr

from qsim_ozaki import EstimatorV2, OzakiBackend, SamplerV2
from qsim_ozaki.cli import main

NOTE = "nothing is measured in"


def registers():
    return QuantumCircuit(QuantumRegister(1), ClassicalRegister(1, "a"), ClassicalRegister(2, "b"), [Clbit()])


CIRCUITS = [
    (lambda: QuantumCircuit(2, 2), "00"),
    (lambda: QuantumCircuit(0, 2), "00"),
    (lambda: QuantumCircuit(1, 1), "0"),
    (lambda: QuantumCircuit(1, 70), "0" * 70),
    (lambda: QuantumCircuit(ClassicalRegister(3)), "000"),
    (registers, "0 00 0"),
]


@pytest.mark.parametrize(("make", "key"), CIRCUITS)
@pytest.mark.parametrize("gates", [False, True])
def test_counts_memory_and_state(make, key, gates):
    circuit = make()
    if gates and circuit.num_qubits:
        circuit.h(0)
        circuit.reset(0)
        circuit.h(0)
    backend = OzakiBackend()
    with pytest.warns(UserWarning, match=NOTE) as notes:
        result = backend.run(circuit, shots=1 if gates else 5, memory=True).result()
    assert [note.filename for note in notes] == [__file__]
    shots = 1 if gates else 5
    assert result.get_counts() == {key: shots}
    assert result.get_memory() == [key] * shots
    assert np.asarray(result.data(0)["statevector"]).size == 1 << circuit.num_qubits
    if not gates:
        assert backend.run(circuit, shots=None).result().get_counts() == {key: 1.0}  # no samples, no warning


def test_rows_and_lists_warn_once():
    angle = Parameter("angle")
    circuit = QuantumCircuit(1, 1, name="first")
    circuit.rx(angle, 0)
    with pytest.warns(UserWarning, match=NOTE) as notes:
        result = OzakiBackend().run(circuit, parameter_binds=[{angle: [0.1, 0.2]}], shots=3).result()
    assert len(notes) == 1
    assert result.get_counts() == [{"0": 3}, {"0": 3}]
    np.testing.assert_allclose(result.data(1)["statevector"].probabilities(), [np.cos(0.1) ** 2, np.sin(0.1) ** 2])
    pair = [QuantumCircuit(1, 1, name="first"), QuantumCircuit(1, 1, name="second"), measured()]
    with pytest.warns(UserWarning, match="'first', 'second', so") as notes:
        OzakiBackend().run(pair).result()
    assert len(notes) == 1


def measured():
    circuit = QuantumCircuit(1, 1, name="third")
    circuit.measure(0, 0)
    return circuit


def saving():
    circuit = QuantumCircuit(1, 1)
    circuit.save_statevector()
    return circuit


def storing():
    circuit = QuantumCircuit(1, 1)
    circuit.store(circuit.clbits[0], True)
    return circuit


def computing():
    circuit = QuantumCircuit(1, 1)
    flag = circuit.add_var("flag", expr.lift(False))
    circuit.store(flag, expr.bit_not(flag))
    with circuit.if_test(flag):
        circuit.x(0)
    return circuit


def measuring_in_a_branch():
    circuit = QuantumCircuit(1, 1)
    with circuit.if_test((0, True)):
        circuit.measure(0, 0)
    return circuit


def saving_in_a_branch():
    circuit = QuantumCircuit(1, 1)
    with circuit.if_test((0, False)):
        circuit.save_statevector()
    return circuit


def measuring_in_a_gate():
    inner = QuantumCircuit(1, 1)
    inner.x(0)
    inner.measure(0, 0)
    circuit = QuantumCircuit(1, 1)
    circuit.append(inner.to_instruction(), [0], [0])
    return circuit


WRITING = [
    (measured, "0"),
    (saving, "0"),
    (storing, "1"),
    (computing, "0"),
    (measuring_in_a_branch, "0"),
    (saving_in_a_branch, "0"),
    (measuring_in_a_gate, "1"),
]


@pytest.mark.parametrize(("make", "key"), WRITING)
@pytest.mark.parametrize("level", [None, 1])
def test_circuits_that_measure_store_or_save_do_not_warn(make, key, level):
    backend = OzakiBackend()
    circuit = make() if level is None else transpile(make(), backend, optimization_level=level)
    assert backend.run(circuit, shots=4).result().get_counts() == {key: 4}


def branching():
    circuit = QuantumCircuit(1, 1)
    with circuit.if_test((0, True)):
        circuit.x(0)
    with circuit.switch(circuit.clbits[0]) as case, case(1):
        circuit.y(0)
    return circuit


def looping():
    circuit = QuantumCircuit(1, 1)
    with circuit.for_loop(range(3)):
        circuit.x(0)
    with circuit.while_loop((0, True)):
        circuit.y(0)
    return circuit


@pytest.mark.parametrize("make", [branching, looping])
@pytest.mark.parametrize("level", [None, 1])
def test_control_flow_alone_writes_nothing(make, level):
    backend = OzakiBackend()
    circuit = make() if level is None else transpile(make(), backend, optimization_level=level)
    with pytest.warns(UserWarning, match=NOTE):
        result = backend.run(circuit, shots=4).result()
    assert result.get_counts() == {"0": 4}


def test_plans_and_primitives_do_not_warn():
    circuit = QuantumCircuit(1, 1)
    circuit.x(0)
    backend = OzakiBackend()
    assert backend.estimate(circuit).fits
    assert backend.plan(circuit).explain()
    assert EstimatorV2(backend).run([(circuit, "Z")]).result()[0].data.evs == -1
    assert SamplerV2(backend).run([circuit], shots=3).result()[0].data.c.get_counts() == {"0": 3}


@pytest.mark.parametrize("shots", [5, None])
def test_neither_qubits_nor_bits(shots):
    result = OzakiBackend().run(QuantumCircuit(), shots=shots).result()
    assert result.get_counts() == {"": shots or 1}
    assert np.asarray(result.data(0)["statevector"]).tolist() == [1]


PROGRAMS = {
    "OPENQASM 2.0;": "",
    "OPENQASM 3.0;": "",
    "": "",
    "OPENQASM 2.0; creg c[2];": "00",
    "OPENQASM 3.0; bit[2] c;": "00",
    "OPENQASM 3.0; qubit[2] q;": "00",
    "OPENQASM 3.0; qubit[1] q; bit[2] c;": "0 00",
}


@pytest.mark.parametrize(("text", "key"), PROGRAMS.items())
def test_the_command_line(tmp_path, capsys, text, key):
    path = tmp_path / "program.qasm"
    path.write_text(text)
    main_ok(["run", str(path), "--shots", "6"])
    printed = capsys.readouterr().out
    assert "has no qubits" in printed or "measures nothing" in printed or "program is empty" in printed
    main_ok(["run", str(path), "--shots", "6", "--json"])
    assert json.loads(capsys.readouterr().out)["counts"] == {key: 6}
    main_ok(["batch", str(path), "--shots", "6", "--output", str(tmp_path / "rows.jsonl")])
    assert json.loads((tmp_path / "rows.jsonl").read_text())["counts"] == {key: 6}
    main_ok(["plan", str(path)])
    assert "total: 0.0 passes" in capsys.readouterr().out


def test_the_command_line_compares_no_state_of_no_qubits(tmp_path, capsys):
    path = tmp_path / "program.qasm"
    path.write_text("OPENQASM 3.0; bit[2] c;")
    with pytest.raises(SystemExit, match="1"):
        main(["compare", str(path)])
    assert capsys.readouterr().err == "error: program has no qubits, so there is no state to compare.\n"


def main_ok(arguments):
    with pytest.raises(SystemExit, match="0"):
        main(arguments)
