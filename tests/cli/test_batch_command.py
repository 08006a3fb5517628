"""`qsim-ozaki batch`: files and grids, one line per row, resumed after any break."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit.library import efficient_su2
from qiskit.quantum_info import Statevector
from support.bell import bell

from qsim_ozaki import OzakiBackend
from qsim_ozaki.cli.app import main
from qsim_ozaki.cli.batch import grid_rows, make_sweep, read_rows, run_sweep
from qsim_ozaki.errors import QsimError
from qsim_ozaki.provider import to_jsonable

KILLS = int(os.environ.get("QSIM_OZAKI_KILLS", "3"))
ROWS = 500


def records(path):
    if path.suffix == ".parquet":
        import pyarrow.parquet

        maps = ("counts", "parameters")
        table = pyarrow.parquet.read_table(path).to_pylist()
        return [{key: dict(value) if key in maps else value for key, value in row.items()} for row in table]
    return sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda record: record["index"])


def same(path):
    """What must not differ from run to run."""
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records(path)]


def save(circuit, path):
    with path.open("wb") as file:
        qpy.dump(circuit, file)
    return str(path)


def test_a_grid_from_the_command_line(tmp_path, capsys):
    circuit = efficient_su2(1, reps=0, su2_gates=["ry"], parameter_prefix="a")
    file = save(circuit, tmp_path / "turn.qpy")
    out = tmp_path / "out.jsonl"
    main_exit(["batch", file, "--output", str(out), "--grid", f"a[0]=0:{np.pi}:3", "--shots", "20", "--seed", "3"])
    assert capsys.readouterr().out.endswith("out.jsonl: 3 rows run\n")
    rows = records(out)
    assert [row["parameters"]["a[0]"] for row in rows] == [0, np.pi / 2, np.pi]
    assert rows[0]["counts"] == {"0": 20}
    assert rows[2]["counts"] == {"1": 20}
    assert {row["seed"] for row in rows} == {3}
    main_exit(["batch", file, "--output", str(out), "--grid", f"a[0]=0:{np.pi}:3", "--shots", "20"])
    assert capsys.readouterr().out.endswith("out.jsonl: 0 rows run\n")
    assert records(out) == rows


def main_exit(arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 0, arguments


def test_several_files_and_rows_from_files(tmp_path):
    rows = [{"a[0]": 0.1, "a[1]": 0.2}, {"a[0]": 1.1, "a[1]": -0.2}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    with (tmp_path / "rows.csv").open("w") as file:
        writer = csv.DictWriter(file, ["a[0]", "a[1]"])
        writer.writeheader()
        writer.writerows(rows)
    assert read_rows(tmp_path / "rows.json") == read_rows(tmp_path / "rows.csv") == rows
    circuits = [bell(), efficient_su2(2, reps=0, su2_gates=["ry"], parameter_prefix="a").measure_all(inplace=False)]
    out = tmp_path / "out.jsonl"
    count = run_sweep(make_sweep(circuits, rows), out, OzakiBackend(seed_simulator=1, shots=50))
    assert count == 3
    found = records(out)
    assert [record["circuit"] for record in found] == ["bell", circuits[1].name, circuits[1].name]
    want = OzakiBackend(seed_simulator=1, shots=50).run(circuits, parameter_binds=[None, [[0.1, 0.2], [1.1, -0.2]]])
    assert [record["counts"] for record in found] == want.result().get_counts()


def test_grids():
    assert grid_rows(["a=0:1:3", "b=5,7"]) == [{"a": a, "b": b} for a in (0.0, 0.5, 1.0) for b in (5.0, 7.0)]
    assert grid_rows([]) == []
    for axis in ("a", "a=x", "=1,2", "a=0:1:0", "a=0:1"):
        with pytest.raises(QsimError, match="is no axis"):
            grid_rows([axis])


def test_what_a_sweep_refuses(tmp_path):
    circuit = efficient_su2(1, reps=0, su2_gates=["ry"], parameter_prefix="a").measure_all(inplace=False)
    with pytest.raises(QsimError, match=r"has parameters a\[0\]. Give --grid"):
        make_sweep([circuit], [])
    with pytest.raises(QsimError, match=r"no circuit has a parameter 'b'. They have: a"):
        make_sweep([circuit], [{"a[0]": 1, "b": 2}])
    with pytest.raises(QsimError, match="no value for"):
        make_sweep([circuit], [{}])
    (tmp_path / "bad.json").write_text("[1")
    with pytest.raises(QsimError, match=r"bad.json: .*Give CSV"):
        read_rows(tmp_path / "bad.json")
    out = tmp_path / "out.jsonl"
    run_sweep(make_sweep([circuit], [{"a[0]": 1}]), out, OzakiBackend(seed_simulator=1))
    with pytest.raises(QsimError, match="holds rows of other circuits, parameters, shots or precision"):
        run_sweep(make_sweep([circuit], [{"a[0]": 2}]), out, OzakiBackend(seed_simulator=1))
    with pytest.raises(QsimError, match="holds rows with seed 1"):
        run_sweep(make_sweep([circuit], [{"a[0]": 1}]), out, OzakiBackend(seed_simulator=2))
    out.write_text('{"index": 0}\n')
    with pytest.raises(QsimError, match="line 1: not a row"):
        run_sweep(make_sweep([circuit], [{"a[0]": 1}]), out, OzakiBackend())


def test_half_a_line_is_cut_off_and_its_row_run_again(tmp_path):
    circuit = efficient_su2(2, reps=1, parameter_prefix="a").measure_all(inplace=False)
    names = [parameter.name for parameter in circuit.parameters]
    rows = [dict.fromkeys(names, 0.1 * k) for k in range(6)]
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    seen = []
    run_sweep(make_sweep([circuit], rows), whole, OzakiBackend(seed_simulator=5), progress=lambda *n: seen.append(n))
    assert seen == [(done, 6) for done in range(1, 7)]
    lines = whole.read_bytes().splitlines(keepends=True)
    broken.write_bytes(lines[4] + lines[0] + lines[2][: len(lines[2]) // 2])
    assert run_sweep(make_sweep([circuit], rows), broken, OzakiBackend()) == 4
    assert same(broken) == same(whole)


def test_two_processes_do_not_write_one_file(tmp_path):
    import fcntl

    out = tmp_path / "out.jsonl"
    with out.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(QsimError, match="another process writes it"):
            run_sweep(make_sweep([bell()], []), out, OzakiBackend())


def test_parquet(tmp_path):
    out = tmp_path / "out.parquet"
    if not _installed("pyarrow"):
        with pytest.raises(QsimError, match="Parquet needs pyarrow: pip install pyarrow"):
            run_sweep(make_sweep([bell()], []), out, OzakiBackend())
        return
    import pyarrow.parquet

    run_sweep(make_sweep([bell(), bell()], []), out, OzakiBackend(seed_simulator=1, shots=30))
    table = pyarrow.parquet.read_table(out).to_pylist()
    assert [row["index"] for row in table] == [0, 1]
    want = OzakiBackend(seed_simulator=1, shots=30).run([bell(), bell()]).result().get_counts()
    assert [dict(row["counts"]) for row in table] == want
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet"]


def test_a_finished_parquet_file_is_kept(tmp_path):
    pytest.importorskip("pyarrow")
    out = tmp_path / "out.parquet"
    sweep = make_sweep([bell()], [])
    assert run_sweep(sweep, out, OzakiBackend(seed_simulator=1, shots=30)) == 1
    whole = out.read_bytes()
    out.with_name("out.parquet.jsonl").write_bytes(b"left by a kill between the two")
    assert run_sweep(sweep, out, OzakiBackend(shots=30)) == 0
    assert out.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet"]
    with pytest.raises(QsimError, match=r"out.parquet holds rows of other circuits, parameters, shots or precision"):
        run_sweep(sweep, out, OzakiBackend(shots=31))
    with pytest.raises(QsimError, match=r"out.parquet holds rows with seed 1"):
        run_sweep(sweep, out, OzakiBackend(seed_simulator=2, shots=30))
    out.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(QsimError, match=r"out.parquet: not the rows of a sweep"):
        run_sweep(sweep, out, OzakiBackend(shots=30))


def test_a_break_while_parquet_is_written_loses_nothing(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "out.parquet"
    sweep = make_sweep([bell(), bell()], [])

    def broken(table, where):
        where.write(b"PAR1 and half of the rest")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(parquet, "write_table", broken)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(sweep, out, OzakiBackend(seed_simulator=1, shots=30))
    assert not out.exists()
    assert run_sweep(sweep, out, OzakiBackend(shots=30)) == 0
    assert [row["seed"] for row in parquet.read_table(out).to_pylist()] == [1, 1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet"]


def _installed(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize(("processes", "ending"), [(0, "jsonl"), (2, "jsonl"), (0, "parquet")])
def test_a_killed_batch_resumes_without_losing_or_doubling_a_row(tmp_path, rng, processes, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    circuit = efficient_su2(13, reps=1, parameter_prefix="a")
    names = [parameter.name for parameter in circuit.parameters]
    rows = [dict(zip(names, row, strict=True)) for row in rng.uniform(-3, 3, (ROWS, len(names))).round(3).tolist()]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    file = save(circuit, tmp_path / "ansatz.qpy")

    def command(out):
        start = [
            sys.executable,
            "-P",
            "-m",
            "qsim_ozaki.cli.app",
            "batch",
            file,
            "--parameters",
            str(tmp_path / "rows.json"),
        ]
        return [*start, "--shots", "10", "--seed", "9", "--processes", str(processes), "--output", str(out)]

    undisturbed, killed = tmp_path / "undisturbed.jsonl", tmp_path / f"killed.{ending}"
    begin = time.monotonic()
    subprocess.run(command(undisturbed), check=True, capture_output=True)
    seconds = time.monotonic() - begin
    for _ in range(KILLS if not processes and ending == "jsonl" else max(1, KILLS // 4)):
        killed.unlink(missing_ok=True)
        with subprocess.Popen(command(killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            time.sleep(rng.uniform(0.3, 1) * seconds)
            running.send_signal(signal.SIGKILL)
        subprocess.run(command(killed), check=True, capture_output=True)
        assert len(records(killed)) == ROWS
        assert same(killed) == same(undisturbed)


def test_results_are_json(rng):
    circuit = QuantumCircuit(2)
    circuit.h(0)
    circuit.cx(0, 1)
    plain = json.loads(json.dumps(to_jsonable(OzakiBackend().run(circuit).result())))
    pairs = np.array(plain["results"][0]["data"]["statevector"])
    np.testing.assert_allclose(pairs[:, 0] + 1j * pairs[:, 1], np.asarray(Statevector(circuit)), atol=1e-15)
    measured = OzakiBackend(seed_simulator=1).run(bell(), memory=True).result()
    plain = json.loads(json.dumps(to_jsonable(measured)))
    assert plain["results"][0]["data"]["counts"] == measured.data(0)["counts"]
    assert plain["results"][0]["data"]["memory"] == measured.data(0)["memory"]
    odd = {1: np.float32(0.5), "z": 1 + 2j, "set": (np.int64(3), b"x"), "array": np.array([[1, 2]])}
    assert to_jsonable(odd) == {"1": 0.5, "z": [1.0, 2.0], "set": [3, "b'x'"], "array": [[1, 2]]}
