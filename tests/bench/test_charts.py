"""The charts and tables of docs/benchmarks/ show what the records hold, and nothing older."""

import html
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from qsim_ozaki.bench import report as bench_report

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "benchmarks"


@pytest.fixture(scope="module")
def charts():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("charts", ROOT / "benchmarks" / "charts.py")
    module = sys.modules["charts"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["charts"]


def texts(file):
    return [html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", file.read_text())]


@pytest.fixture(scope="module")
def drawn(charts, tmp_path_factory):
    """The folder with charts and page drawn anew."""
    folder = tmp_path_factory.mktemp("charts")
    (folder / "index.md").write_text((PAGES / "index.md").read_text())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["charts.py", str(folder)])
        charts.main()
    return folder


@pytest.mark.parametrize("name", ["first_screen", "cpu", "h200"])
def test_a_chart_says_what_is_drawn_from_the_records(drawn, name):
    shown = texts(PAGES / f"{name}.svg")
    assert shown == texts(drawn / f"{name}.svg")
    assert any(re.search(r"\d{4}-\d\d-\d\d", text) for text in shown), "no date"
    assert any(re.search("AMD EPYC|NVIDIA H200", text) for text in shown), "no hardware"


def test_the_tables_are_those_of_the_records(charts):
    page = (PAGES / "index.md").read_text()
    assert page == charts.with_tables(page)
    for row in charts.cpu_rows():
        assert f"| {row.title} | {charts.row_cells(row)} |" in page


def test_the_charts_show_every_ratio(charts):
    assert len(charts.FIRST_SCREEN) == 5
    for name, rows in (("first_screen", charts.first_screen_rows()), ("cpu", charts.cpu_rows())):
        shown = " ".join(texts(PAGES / f"{name}.svg"))
        assert all(charts.ratio_text(row.ratio) in shown for row in rows)
    shown = texts(PAGES / "h200.svg")
    for row in (row for pair in charts.h200_rows() for row in pair):
        assert {charts.ratio_text(row.ratio), charts.seconds_text(row.other_seconds)} <= set(shown)


@pytest.mark.parametrize(("name", "num_qubits"), [("cpu24", 24), ("h200_custatevec", 30)])
def test_ratios_are_those_of_the_report(charts, name, num_qubits):
    record = charts.read(name)
    report = bench_report.read_report(str(charts.RECORDS / f"{name}.json"))
    speedups = {r.family: r.speedup("double") for r in report.rows if r.num_qubits == num_qubits and r.has("double")}
    pairs = [(family, "") for family in charts.CPU] if name == "cpu24" else []
    pairs = pairs or [(family, start) for family in charts.H200 for start in ("", " from zero")]
    for family, start in pairs:
        assert charts.compare(record, family, num_qubits, start=start).ratio == speedups[family + start]


def test_states_that_differ_are_not_drawn(charts):
    record = charts.read("cpu24")
    timing = next(t for t in record["rows"][0]["timings"] if t["precision"] == "double" and t["error"] is not None)
    timing["error"] = 1e-3
    with pytest.raises(ValueError, match="ghz on 24 qubits: the simulators' states differ"):
        charts.compare(record, "ghz", 24)
