"""The benchmark on tiny circuits: what it reports, and that every simulator's state is compared. No time is judged."""

import json
import os
import re
import signal
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from qiskit.quantum_info import Statevector
from rich.console import Console
from support.devices import DEVICE, with_memory

from qsim_ozaki.bench import BenchOptions, Report, measure_circuits
from qsim_ozaki.bench import report as bench_report
from qsim_ozaki.bench.peers import PEERS, UnsupportedError
from qsim_ozaki.bench.process import Process
from qsim_ozaki.bench.record import OURS, Model, Row, Timing
from qsim_ozaki.bench.runner import FAMILIES
from qsim_ozaki.bench.worker import Ours, TimedEngine, Worker, difference
from qsim_ozaki.circuits import FAMILIES as CIRCUITS
from qsim_ozaki.circuits import build
from qsim_ozaki.cli import app
from qsim_ozaki.engines import select
from qsim_ozaki.errors import OptionError, QsimError
from qsim_ozaki.ir import Device, Rates

INSTALLED = [name for name, row in PEERS.items() if row.versions() is not None]


@pytest.fixture(scope="module")
def report():
    """One real run, small."""
    options = BenchOptions(families=("qft", "dense5"), qubits=(6,), peers=("aer", "numpy"), repeats=2, threads=1)
    seen = []
    found = measure_circuits(options, seen.append)
    assert [len(each.rows) for each in seen] == [1, 2]
    return found


def timing(simulator, seconds, precision="double", **fields):
    return Timing(simulator, precision, "default", tuple(seconds), 0.001, error=1e-15, fidelity=1.0, **fields)


@pytest.fixture
def made_up():
    """A report with known numbers."""
    step = {"what": "TilePass", "qubits": "0-3", "bound_by": "memory", "predicted_seconds": 0.01, "seconds": 0.008}
    model = Model(0.01, 0.008, 2.5, 8e7, 1.6e8, ({**step, "bytes": 8e7, "flops": 1.6e8},))
    wrong = replace(timing("qulacs", [0.001]), error=0.5)
    timings = (
        timing(OURS, [0.012, 0.010, 0.011], model=model),
        timing("aer", [0.044]),
        wrong,
        Timing("lightning.qubit", "double", note="left out: 9.0 times the best peer at 20 qubits"),
        Timing("numpy", "double", note="not supported: for dense blocks only"),
    )
    device = replace(
        with_memory(DEVICE, bandwidth_bytes_per_s=2e10), rates={"double": Rates(4e10), "single": Rates(8e10)}
    )
    ceilings = json.loads(json.dumps(asdict(device)))
    hardware = {"processor": "a processor", "cores": 2, "memory_bytes": 2**34}
    return Report(
        "2026-11-29T20:30:00+00:00", hardware, 2, 3, 7, ceilings, {OURS: "0.1"}, "bench", (Row("qft", 22, 9, timings),)
    )


def test_every_simulator_computes_the_same_state(report):
    assert [row.family for row in report.rows] == ["qft", "dense5"]
    for row in report.rows:
        compared = [t for t in row.timings if t.error is not None]
        assert {t.precision for t in compared} == {"double", "single"}
        assert OURS in {t.simulator for t in compared}
        assert all(t.agrees and t.fidelity > 1 - 1e-6 for t in compared)
        assert row.num_gates == len(build(row.family, 6, 7).data)
    assert not report.disagreements
    names = {t.simulator for t in report.rows[1].timings if t.seconds}
    assert names == {OURS, *({"aer", "numpy"} & set(INSTALLED))}
    assert not any(t.seconds for t in report.rows[0].timings if t.simulator == "numpy")


def test_report_has_the_repeats_and_the_model(report):
    for row in report.rows:
        for precision in report.precisions:
            ours = row.ours(precision)
            assert len(ours.seconds) == 2
            assert ours.median >= ours.model.kernel_seconds > 0
            assert ours.model.kernel_seconds == pytest.approx(sum(s["seconds"] for s in ours.model.steps), rel=1)
            assert ours.model.predicted_seconds == pytest.approx(sum(s["predicted_seconds"] for s in ours.model.steps))
    assert Device.from_record(report.ceilings).memory.bandwidth_bytes_per_s > 0


def test_json_has_its_schema(report, tmp_path):
    file = tmp_path / "out.json"
    bench_report.write_report(report, str(file), None, None)
    read = json.loads(file.read_text())
    assert read["schema"] == 2
    assert set(read) == {"schema", "date", "hardware", "threads", "repeats", "seed", "ceilings", "versions"} | {
        "command",
        "rows",
    }
    row = read["rows"][0]
    assert set(row) == {"family", "num_qubits", "num_gates", "timings", "speedup"}
    fields = {"simulator", "precision", "variant", "seconds", "convert_seconds", "others_share", "fidelity", "error"}
    for entry in row["timings"]:
        assert set(entry) == fields | {"note", "model", "median_seconds"}
    ours = next(entry for entry in row["timings"] if entry["simulator"] == OURS)
    steps = ours["model"]["steps"]
    assert set(steps[0]) == {"what", "qubits", "bound_by", "predicted_seconds", "seconds", "bytes", "flops"}
    assert ours["model"]["predicted_over_measured"] == pytest.approx(
        ours["model"]["predicted_seconds"] / ours["model"]["kernel_seconds"]
    )


def test_tables_say_what_was_measured(made_up):
    assert bench_report.summary_rows(made_up) == [
        ("qft", "22", "double", "11 ±9 %", "44* aer", "4.0", "1e-15")  # qulacs is faster, and wrong
    ]
    assert bench_report.model_rows(made_up) == [
        ("qft", "22", "double", "8", "1.25", "2.5", "10.0", "50 %", "20.0", "50 %", "memory")
    ]
    header, rows = bench_report.every_time(made_up)
    assert header == ("family", "qubits", OURS, "aer", "qulacs", "lightning.qubit", "numpy")
    assert rows == [("qft", "22", "11 ±9 %", "44*", "1* WRONG", "-", "-")]
    text = bench_report.report_markdown(made_up)
    assert "| qft | 22 | double | 11 ±9 % | 44* aer | 4.0 | 1e-15 |" in text
    assert "a processor, 2 cores, 16 GiB free, 2 threads" in text
    assert "in-place pass 20.0 GB/s, FMA 40 Gflop/s double and 80 single" in text


def test_terminal_shows_tables_and_notes(made_up):
    out = StringIO()
    bench_report.show_report(made_up, Console(file=out, width=140))
    text = out.getvalue()
    assert re.search(r"qft +│ +22 │ double +│ +11 ±9 % │ +44\* aer │ +4.0 │ 1e-15", text)
    assert "qft 22: lightning.qubit (double): left out: 9.0 times the best peer at 20 qubits" in text
    assert "qft 22: qulacs (double) differs from the reference state: error 5.0e-01" in text
    assert "dense blocks only" not in text


def test_plot_is_a_picture(made_up, tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "times.png"
    bench_report.write_report(made_up, None, None, str(file))
    assert file.read_bytes().startswith(b"\x89PNG")


def test_files_that_cannot_be_written_are_an_error(made_up, tmp_path):
    with pytest.raises(QsimError, match="cannot write"):
        bench_report.write_report(made_up, str(tmp_path / "no" / "out.json"), None, None)


def test_command_line(capsys, tmp_path):
    files = [f"--{kind}={tmp_path / kind}" for kind in ("json", "markdown")]
    few = ["--family=ghz", "--qubits=4", "--precision=double", "--peer=aer", "--repeats=1", "--threads=1"]
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", *few, *files])
    out, err = capsys.readouterr()
    assert not stop.value.code
    assert re.search(r"ghz +│ +4 │ double", out)
    assert "ghz 4: double" in err
    command = json.loads((tmp_path / "json").read_text())["command"]
    assert command == "qsim-ozaki bench --family ghz --qubits 4 --precision double --peer aer --repeats 1 --threads 1"
    assert f"Written by `{command}`" in (tmp_path / "markdown").read_text()


def test_a_report_is_read_back_as_it_was(report, made_up, tmp_path):
    for each in (report, made_up):
        file = tmp_path / "out.json"
        bench_report.write_report(each, str(file), None, None)
        assert bench_report.read_report(str(file)) == each


def test_recorded_times_are_shown_without_a_run(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("qsim_ozaki.bench.runner.measure_circuits", None)
    root = Path(__file__).parents[2]
    records = root / "benchmarks" / "records"
    out = {kind: tmp_path / kind for kind in ("json", "markdown")}
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", f"--from={records / 'cpu22.json'}", *(f"--{kind}={file}" for kind, file in out.items())])
    assert not stop.value.code
    assert re.search(r"qft +│ +22 │ double", capsys.readouterr().out)
    assert out["json"].read_text() == (records / "cpu22.json").read_text()
    assert out["markdown"].read_text() == (root / "docs" / "benchmarks" / "cpu22.md").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not what qsim-ozaki bench --json writes: KeyError"),
        ("[1]", "is not what qsim-ozaki bench --json writes: TypeError"),
        ("x", "is not what qsim-ozaki bench --json writes: JSONDecodeError"),
        ('{"schema": 7}', "schema 7, not 2"),
        (None, "No such file"),
    ],
)
def test_what_is_no_record_is_one_line(capsys, tmp_path, text, message):
    file = tmp_path / "record.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", "--from", str(file)])
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    with pytest.raises(SystemExit):
        app.main(["bench", "--from", str(file), "--family", "qft"])
    assert "Leave out --family" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (BenchOptions(families=("nope",)), "family 'nope' is not known"),
        (BenchOptions(precisions=("half",)), "precision 'half' is not known"),
        (BenchOptions(peers=("nobody",)), "peer 'nobody' is not known"),
        (BenchOptions(families=("dense8",), qubits=(7,)), "dense8 needs at least 8 qubits, not 7"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        measure_circuits(options)


def test_families_are_circuit_families():
    assert set(FAMILIES) <= CIRCUITS.keys()


@pytest.mark.parametrize("name", INSTALLED)
@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("dense8", "dense10")])
def test_peers_compute_what_qiskit_computes(name, family):
    circuit = build(family, 6, 3)
    for precision in PEERS[name].precisions:
        peer = PEERS[name].create(precision, 1)
        for variant in peer.variants(circuit):
            try:
                state = peer.run(peer.convert(circuit, variant))
            except UnsupportedError:
                continue
            fidelity, error = difference(state, Statevector(circuit).data)
            rounding = 2.0**-26 * len(circuit.data)  # of single precision, in families of thousands of gates
            assert error < (1e-12 if precision == "double" else 1e-5 + rounding), (variant, precision)
            assert fidelity == pytest.approx(1, abs=1e-5)


def test_difference_ignores_the_global_phase_and_nothing_else(rng):
    state = rng.normal(size=8) + 1j * rng.normal(size=8)
    state /= np.linalg.norm(state)
    fidelity, error = difference(state * np.exp(0.7j), state)
    assert (fidelity, error) == (pytest.approx(1), pytest.approx(0, abs=1e-15))
    other = state.copy()
    other[3] *= -1
    overlap = 1 - 2 * abs(state[3]) ** 2
    fidelity, error = difference(other, state)
    assert fidelity == pytest.approx(overlap**2)
    assert error == pytest.approx(np.sqrt(2 - 2 * abs(overlap)))


def test_our_steps_are_timed_one_by_one():
    ours = Ours("double", 1)
    job = ours.convert(build("quantum_volume", 6, 7), "default")
    state = ours.run(job)
    assert difference(state, Statevector(build("quantum_volume", 6, 7)).data)[1] < 1e-13
    assert len(ours.engine.seconds) == len(ours.plan(job).steps)
    assert all(seconds > 0 for seconds in ours.engine.seconds)
    assert TimedEngine(select("cpu", threads=1)).name == "cpu"


def test_a_failing_order_is_an_answer():
    worker = Worker(OURS, "double", 1)
    assert worker.answer({"order": "circuit", "family": "nope", "num_qubits": 3, "seed": 1})["failed"].startswith(
        "ValueError"
    )
    assert worker.answer({"order": "circuit", "family": "ghz", "num_qubits": 3, "seed": 1}) == {
        "variants": ["default"],
        "num_gates": 3,
    }


def test_a_process_that_does_not_answer_ends():
    process = Process(OURS, "double", 1, {})
    assert process.begin()
    os.kill(process.child.pid, signal.SIGSTOP)
    assert process.ask("circuit", 0.4, family="ghz", num_qubits=3, seed=1) == {"failed": "no answer in 0.4 s"}
    assert process.child is None
    assert process.ask("run", 1.0, variant="default") == {"failed": "its process has ended"}
    unknown = Process("nobody", "double", 1, {})
    assert not unknown.begin()
    assert unknown.failure.startswith("KeyError")
