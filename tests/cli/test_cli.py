"""The command line, through its entry point."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit, qasm2, qasm3
from qiskit.quantum_info import Statevector

import qsim_ozaki.cli.compare
from qsim_ozaki import OzakiBackend
from qsim_ozaki.circuits import build
from qsim_ozaki.cli import app
from qsim_ozaki.cli.compare import compare
from qsim_ozaki.cli.load import load_circuit
from qsim_ozaki.errors import QsimError

EXAMPLE = Path(__file__).parents[2] / "examples" / "phase_estimation.qasm"


def call(capsys, *arguments):
    """(exit code, stdout, stderr) of one command."""
    with pytest.raises(SystemExit) as stop:
        app.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return stop.value.code or 0, out, err


def write(path, circuit):
    path.write_text(qasm2.dumps(circuit))
    return path


def test_run_shows_a_histogram(capsys):
    code, out, err = call(capsys, "run", EXAMPLE, "--shots", 4000, "--seed", 5, "--top", 3)
    assert (code, err) == (0, "")
    rows = re.findall(r"^([01]{6}) +(\d+) +([\d.]+) %  █", out, re.MULTILINE)
    assert len(rows) == 3
    # 64 / 3 = 21.33: sin^2(pi / 3) / (64 sin(pi / 3 / 64))^2 = 0.684
    assert rows[0][0] == format(21, "06b")
    assert abs(int(rows[0][1]) / 4000 - 0.684) < 0.04
    assert re.search(r"\.\.\. \d+ more outcomes, \d+ shots", out)
    assert "7 qubits" in out


def test_run_gives_the_same_counts_for_the_same_seed(capsys):
    runs = [json.loads(call(capsys, "run", EXAMPLE, "--json", "--seed", seed)[1]) for seed in (1, 1, 2)]
    assert runs[0]["counts"] == runs[1]["counts"]
    assert runs[0]["counts"] != runs[2]["counts"]
    assert sum(runs[0]["counts"].values()) == 1024
    assert runs[0]["seed"] == 1
    assert runs[0]["metadata"]["engine"] == "cpu"


@pytest.mark.parametrize("precision", ["double", "single"])
def test_run_passes_its_options_on(capsys, precision):
    options = ("--engine", "cpu", "--precision", precision, "--threads", 1, "--arithmetic", "native", "--json")
    code, out, _ = call(capsys, "run", "bernstein_vazirani:7", "--shots", 10, *options)
    assert code == 0
    hidden = build("bernstein_vazirani", 7).metadata["hidden_string"]
    assert json.loads(out)["counts"] == {"1" + hidden: 10}
    assert json.loads(out)["metadata"]["precision"] == precision


def test_run_measures_what_is_not_measured(capsys):
    code, out, _ = call(capsys, "run", "ghz:4", "--shots", 50)
    assert code == 0
    assert "measures nothing" in out
    assert set(re.findall(r"^([01]{4}) ", out, re.MULTILINE)) <= {"0000", "1111"}


def test_run_reads_openqasm_3(capsys, tmp_path):
    circuit = QuantumCircuit(2, 2)
    circuit.x(0)
    circuit.measure([0, 1], [1, 0])
    path = tmp_path / "flip.qasm"
    path.write_text("// a comment first\n" + qasm3.dumps(circuit))
    code, out, _ = call(capsys, "run", path, "--shots", 9, "--json")
    assert code == 0
    assert json.loads(out)["counts"] == {"10": 9}


def test_legacy_gates_of_qelib1_are_read(tmp_path):
    path = tmp_path / "legacy.qasm"
    path.write_text('OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[2];\nu0(1) q[0];\nh q[0];\nrxx(pi/2) q[0],q[1];\n')
    circuit = load_circuit(str(path))
    assert circuit.name == "legacy"
    assert [instruction.operation.name for instruction in circuit.data] == ["u0", "h", "rxx"]


ERRORS = [
    ("missing.qasm", None, r"missing\.qasm: No such file or directory\. Give an OpenQASM 2 or 3 file, or .* qft:20"),
    ("broken.qasm", "OPENQASM 2.0;\nqreg q[1];\nfoo q[0];", r"not OpenQASM 2 .*'foo' is not defined"),
    ("broken3.qasm", "OPENQASM 3.0;\nqubit[1] q;\nfoo q[0];", "not OpenQASM 3 as Qiskit reads it"),
    ("binary.qasm", b"\xff\xfe\x00", r"binary\.qasm: not a text file"),
    ("qtf:4", None, "circuit family 'qtf' is not known; there are ghz,"),
    ("dense8:4", None, "dense8 needs at least 8 qubits, not 4"),
]


@pytest.mark.parametrize("command", ["run", "plan", "compare"])
@pytest.mark.parametrize(("name", "content", "message"), ERRORS, ids=[row[0] for row in ERRORS])
def test_an_error_is_one_line_and_code_1(capsys, tmp_path, monkeypatch, command, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = call(capsys, command, name)
    assert (code, out) == (1, "")
    assert re.search(message, err)
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_wrong_option_value_is_one_line(capsys):
    code, out, err = call(capsys, "run", "ghz:3", "--precision", "dbl")
    assert (code, out) == (1, "")
    assert re.search(r"precision.*double", err)
    assert err.count("\n") == 1


def test_debug_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("QSIM_OZAKI_DEBUG", "1")
    with pytest.raises(QsimError, match="not known"):
        app.main(["run", "qtf:4"])


def test_plan_prints_and_does_not_run(capsys, monkeypatch):
    monkeypatch.setattr(OzakiBackend, "run", None)
    code, out, _ = call(capsys, "plan", "qft:28")
    assert code == 0
    free = r"[\d.]+ \w+ available"  # what others use changes between the two
    expected = OzakiBackend().plan(build("qft", 28)).explain()
    assert re.sub(free, "", out).strip() == re.sub(free, "", expected).strip()


def test_a_circuit_too_wide_for_memory_is_one_line_with_numbers(capsys):
    code, _, err = call(capsys, "run", "ghz:60")
    assert code == 1
    assert err.count("\n") == 1
    assert re.search(r"60 qubits need .*iB.*; .* has .*iB available\. Use at most \d+ qubits", err)


@pytest.mark.parametrize("aer", [True, False])
def test_compare_agrees(capsys, monkeypatch, aer):
    if aer:
        pytest.importorskip("qiskit_aer", reason="extra 'compare' is not installed")
    else:
        monkeypatch.setattr(qsim_ozaki.cli.compare.importlib.util, "find_spec", lambda name: None)
    code, out, _ = call(capsys, "compare", EXAMPLE)
    assert code == 0
    assert ("qiskit-aer" if aer else "Statevector") in out
    assert float(re.search(r"largest difference +(\S+)", out).group(1)) < 1e-12
    assert "first diverging gate  none" in out
    # the eigenstate is |1> on qubit 6, the register most likely reads 21
    assert re.search(r"^ *1010101  ", out, re.MULTILINE)


def test_compare_in_single_precision_and_json(capsys):
    code, out, _ = call(capsys, "compare", "random_brickwork:8", "--precision", "single", "--json")
    assert code == 0
    record = json.loads(out)
    assert 1e-12 < record["largest_difference"] < 1e-4
    assert abs(record["fidelity"] - 1) < 1e-5
    assert record["divergence"] is None
    state = np.asarray(Statevector(build("random_brickwork", 8)))
    for index, ours, reference in record["amplitudes"]:
        np.testing.assert_allclose(complex(*ours), state[index], atol=1e-5)
        np.testing.assert_allclose(complex(*reference), state[index], atol=1e-5)
    sizes = [abs(complex(*reference)) for _, _, reference in record["amplitudes"]]
    assert sizes == sorted(sizes, reverse=True)
    assert np.isclose(sizes[0], abs(state).max(), atol=1e-5)


@pytest.mark.parametrize("wrong", [0, 7, 19])
def test_compare_finds_the_first_diverging_gate(monkeypatch, wrong):
    """A run of ours that treats instruction number `wrong` as an X, at which the states part."""
    circuit = build("random_brickwork", 4)
    honest = qsim_ozaki.cli.compare._run_ours

    def mistaken(prefix, backend):
        changed = prefix.copy()
        if len(changed.data) > wrong:
            changed.data[wrong] = changed.data[wrong].replace(operation=QuantumCircuit(1).to_gate())
        return honest(changed, backend)

    changed = circuit.data[wrong]
    assert len(changed.qubits) == 1
    monkeypatch.setattr(qsim_ozaki.cli.compare, "_run_ours", mistaken)
    comparison = compare(circuit, OzakiBackend(), 1e-10)
    assert comparison.largest_difference > 1e-3
    assert comparison.divergence.position == wrong
    assert comparison.divergence.gate == changed.operation.name
    assert comparison.divergence.qubits == (circuit.find_bit(changed.qubits[0]).index,)
    assert "first diverging gate  instruction" in app.comparison_text("circuit", comparison)


def test_a_difference_makes_exit_code_2(capsys):
    code, _, _ = call(capsys, "compare", "random_brickwork:4", "--precision", "single", "--tolerance", 1e-12)
    assert code == 2


def test_compare_refuses_a_circuit_without_one_final_state(capsys, tmp_path):
    circuit = QuantumCircuit(1, 1)
    circuit.h(0)
    circuit.measure(0, 0)
    circuit.h(0)
    code, _, err = call(capsys, "compare", write(tmp_path / "mid.qasm", circuit))
    assert code == 1
    assert "mid: measure before the end of the circuit leaves no one final state to compare" in err


def test_histogram_of_many_outcomes():
    counts = {format(i, "05b"): 100 - i for i in range(32)}
    lines = app.histogram(counts, top=2, width=10).splitlines()
    assert lines == [
        "00000  100    3.7 %  ██████████",
        "00001   99    3.7 %  █████████▉",
        "... 30 more outcomes, 2505 shots, 92.6 %",
    ]


def test_a_long_run_shows_a_bar_and_ends(capsys, monkeypatch):
    monkeypatch.setattr(app, "LONG_RUN_SECONDS", 0.0)
    code, out, _ = call(capsys, "run", "qft:16", "--shots", 10)
    assert code == 0
    assert "16 qubits" in out


def test_the_module_imports_no_qiskit_for_help():
    program = "import sys, qsim_ozaki.cli; assert 'qiskit' not in sys.modules and 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", program], check=True, timeout=60)


def test_the_module_is_the_command():
    program = [sys.executable, "-P", "-m", "qsim_ozaki", "run", str(EXAMPLE), "--shots", "50", "--json"]
    done = subprocess.run(program, check=True, timeout=60, capture_output=True, text=True)
    assert sum(json.loads(done.stdout)["counts"].values()) == 50
