"""`qsim-ozaki bench gemm` and `bench hadamard`: every variant computes the same map; reports say what was measured."""

import json
import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from support import straight_host

from qsim_ozaki.bench import Experiment, GemmOptions
from qsim_ozaki.bench.blocks import gemm as bench_gemm
from qsim_ozaki.bench.blocks import hadamard, hadamard_cuda, report
from qsim_ozaki.bench.blocks.experiment import Line
from qsim_ozaki.cli import app
from qsim_ozaki.errors import OptionError


@pytest.fixture(scope="module")
def gemm():
    """One real run, small."""
    seen = []
    found = bench_gemm.measure_gemm(GemmOptions("cpu", 9, (3, 5), repeats=2, threads=1, others=False), seen.append)
    assert [len({line.size for line in each.lines}) for each in seen] == [1, 2]
    return found


def line(variant, microseconds, **fields):
    values = {"size": 7, "accuracy": "double", "bytes": 1e6, "error": 1e-16} | fields
    return Line(variant=variant, seconds=tuple(1e-6 * each for each in microseconds), **values)


@pytest.fixture
def made_up():
    """An experiment with known numbers."""
    lines = (
        line("slow", [500, 600, 550], bytes=4e6),
        line("fast", [100, 120, 130], bytes=1e6, note="no gather"),
        line("part", [10], whole=False),
        line("other", [300], accuracy="34 bits", error=1e-10),
        line("third", [200], accuracy="34 bits", error=2e-10, bytes=9e5),
        Line(9, "large", "double", note="left out: too large"),
    )
    return Experiment("A title", "2026-11-30T01:00:00+00:00", "a processor", "qsim-ozaki bench gemm", 20, 2, 3, lines)


def test_every_way_to_multiply_gives_the_same_product(gemm):
    bounds = {"double": 2e-15, "34 bits": 1e-8}
    for each in gemm.lines:
        assert each.error <= bounds[each.accuracy], each
        assert len(each.seconds) == 2
        assert each.bytes > 0
    names = [each.variant for each in gemm.lines if each.size == 5]
    assert names[:2] == ["library product", "native block, in place"]
    assert len([name for name in names if name.startswith("emulated")]) == 2
    assert names[-4:] == [f"founding: {name}" for name in ("halves", "one level", "5 slices", "7 slices")]
    assert [each.whole for each in gemm.lines] == [not each.variant.startswith("founding") for each in gemm.lines]


def test_other_instruction_sets_are_measured_in_other_processes(monkeypatch):
    monkeypatch.delenv("QSIM_OZAKI_ISA", raising=False)
    sets = bench_gemm.SETS
    narrower = sets[sets.index(bench_gemm._native.ozaki_isa()) + 1 :]
    lines = bench_gemm.others(GemmOptions("cpu", 7, (3,), ("emulated",), 1, 1))
    found = [each.variant for each in lines]
    assert found == [f"emulated {name}, in place" for name in narrower for _ in range(2)]
    assert all(each.error <= 1e-9 and each.seconds for each in lines)
    (failed,) = bench_gemm._of_another_process(GemmOptions("cpu", 7, (3,)), {"QSIM_OZAKI_ISA": "abacus"}, "(abacus)")
    assert (failed.variant, failed.seconds) == ("another process (abacus)", ())
    assert "QSIM_OZAKI_ISA=abacus is not available here" in failed.note


def test_every_way_to_transform_gives_the_same_state():
    found = hadamard.measure_hadamard(GemmOptions("cpu", 12, (4, 8, 12), repeats=1, threads=1))
    bounds = {"double": 1e-15, "34 bits": 1e-9, "single": 1e-6}
    timed = [each for each in found.lines if each.seconds]
    for each in timed:
        assert each.error <= bounds[each.accuracy], each
    assert [each.variant for each in timed if each.size == 8] == [
        "FP64 fast transform",
        "H materialised, emulated, 16 moduli",
        "radix-128 Kronecker, emulated, 16 moduli",
        "H materialised, emulated, 9 moduli",
        "radix-128 Kronecker, emulated, 9 moduli",
        "FP32 fast transform",
    ]
    assert not [each for each in timed if each.size == 4 and "Kronecker" in each.variant]
    (missing,) = (each for each in found.lines if not each.seconds)
    assert (missing.size, missing.note) == (12, "left out: a matrix on 12 qubits; the limit here is 11")


def test_the_reference_transform_is_the_matrix(rng):
    columns = (rng.normal(size=(16, 3)) + 1j * rng.normal(size=(16, 3))).astype(np.clongdouble)
    expected = hadamard.hadamard(4) @ columns
    assert np.max(np.abs(hadamard.transformed(columns) - expected)) < 1e-14
    assert hadamard.blocks_of(tuple(range(14)), 7) == [tuple(range(7)), tuple(range(7, 14))]
    assert [len(part) for part in hadamard.blocks_of(tuple(range(10)), 7)] == [5, 5]


@pytest.mark.skipif(straight_host.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("parts", [[(0, 1, 2, 3, 4, 5, 6), (7, 8, 9, 10, 11, 12)], [(12, 3, 9)]])
def test_the_tf32_kernel_transforms(rng, parts):
    from support import kernels_host

    state = rng.normal(size=1 << 13) + 1j * rng.normal(size=1 << 13)
    amps = kernels_host.Launcher.cupy.asarray(state.astype(np.complex64))
    hadamard_cuda.apply(kernels_host.Launcher(), amps, parts)
    expected = state.reshape((2,) * 13)
    for q in (q for part in parts for q in part):
        expected = np.moveaxis(np.tensordot(hadamard.hadamard(1), expected, (1, 12 - q)), 0, 12 - q)
    error = np.linalg.norm(amps - expected.reshape(-1)) / np.linalg.norm(state)
    assert 2.0**-14 < error < 2.0**-10  # an input's 11 bits, no more and no less


def test_conclusions_name_the_fastest_whole_variant_and_why(made_up):
    assert made_up.conclusions() == [
        "7 qubits, double: fast wins, 5.00 times slow: the other moves 4.0 times its bytes, at 10 and 8 GB/s",
        "7 qubits, 34 bits: fast wins, 2.00 times third: by less arithmetic, for the other moves 0.9 times its bytes, "
        "at 10 and 4.5 GB/s",
    ]


def test_the_report_as_table_markdown_json_and_plot(made_up, tmp_path):
    pytest.importorskip("matplotlib")
    files = [str(tmp_path / name) for name in ("e.json", "e.md", "e.png")]
    report.write_experiment(made_up, *files)
    record = json.loads((tmp_path / "e.json").read_text())
    assert [each["least_seconds"] for each in record["lines"]] == pytest.approx([5e-4, 1e-4, 1e-5, 3e-4, 2e-4, None])
    assert [each["median_seconds"] for each in record["lines"]][:2] == pytest.approx([5.5e-4, 1.2e-4])
    assert record["conclusions"] == made_up.conclusions()
    text = (tmp_path / "e.md").read_text()
    assert "| 7 | fast | double | 100 | +20 % | 1.0 | 10.0 | 1.0e-16 | no gather |" in text
    assert "| 9 | large | double | - | - | - | - | - | left out: too large |" in text
    assert "Written by `qsim-ozaki bench gemm`. a processor, 2 threads; 2026-11-30 01:00" in text
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    out = StringIO()
    report.show_experiment(made_up, Console(file=out))
    assert re.search(r"fast +│ double +│ +100 │ +\+20 %", out.getvalue())
    assert made_up.conclusions()[1][:30] in out.getvalue()


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(OptionError, match=r"on 9 qubits of 12 was asked for; the limit is 8. Use more --qubits"):
        bench_gemm.measure_gemm(GemmOptions("cpu", 12, (9,)))
    with pytest.raises(OptionError, match="group 'fast' was asked for; there are native, library, emulated, founding"):
        bench_gemm.measure_gemm(GemmOptions(only=("fast",)))
    with pytest.raises(OptionError, match="H on 13 of 12 qubits was asked for; ask for 1 to 12, or more --qubits"):
        hadamard.measure_hadamard(GemmOptions("cpu", 12, (13,)))


def test_commands(capsys, tmp_path):
    file = tmp_path / "e.json"
    words = ["gemm", "--qubits", "7", "--size", "3", "--only", "native", "--repeats", "1", "--threads", "1", "--alone"]
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", *words, "--json", str(file)])
    assert not stop.value.code
    assert "native block, in place" in capsys.readouterr().out
    record = json.loads(file.read_text())
    assert record["command"] == (
        "qsim-ozaki bench gemm --engine cpu --qubits 7 --size 3 --only native --repeats 1 --threads 1 --seed 7"
    )
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", "hadamard", "--qubits", "6", "--size", "4", "--repeats", "1"])
    assert not stop.value.code
    assert "FP64 fast transform" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        app.main(["bench", "gemm", "--qubits", "12", "--size", "9"])
    assert stop.value.code == 1
    assert "the limit is 8" in capsys.readouterr().err


def test_the_least_and_the_median_of_repeats(gemm):
    found = replace(gemm.lines[0], seconds=(3.0, 1.0, 2.0))
    assert (found.least, found.median) == (1.0, 2.0)
