"""The README and the site as a new user meets them: their Python in order, their commands on small files.

A block that cannot run here says so where readers see it, in its title: "Not run by the tests: why".
"""

import importlib.util
import json
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit, qpy
from qiskit.circuit import Parameter

import qsim_ozaki
from qsim_ozaki import OzakiBackend, errors
from qsim_ozaki.bench import Report
from qsim_ozaki.circuits import FAMILIES
from qsim_ozaki.cli.app import main
from qsim_ozaki.provider.foreign_options import FOREIGN

ROOT = next(folder for folder in Path(__file__).parents if (folder / "README.md").is_file())
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
EXCUSE = re.compile(r' title="Not run by the tests: \w.{8,}"')
MAX_EXCUSED = 12


def blocks(page, *languages):
    """The code of the blocks that run, in order."""
    text = page.read_text()
    return [
        code for language, rest, code in BLOCK.findall(text) if language in languages and not EXCUSE.fullmatch(rest)
    ]


def title(page):
    return str(page.relative_to(ROOT))


def run_python(page):
    """The names that the blocks of a page leave behind."""
    names = {}
    for code in blocks(page, "python"):
        exec(compile(code, title(page), "exec"), names)
    return names


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=title)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(page)


def test_the_python_of_the_readme_gives_right_answers(capsys):
    names = run_python(README)
    printed = capsys.readouterr().out
    assert "{'" in printed
    assert "passes" in printed
    assert np.allclose(np.abs(names["data"]["state"].data) ** 2, [0.5, 0.5, 0, 0])
    assert names["evs"].shape == (50,)
    assert names["gradient"].shape == (names["ansatz"].num_parameters,)
    assert names["energy"] == pytest.approx(names["evs"][0], abs=1e-12)


def test_the_python_of_the_guide_gives_right_answers():
    data = run_python(ROOT / "docs" / "guide" / "saved_results.md")["data"]
    assert len(data["per shot"]) == 100
    assert set(data["by bits"]) <= {"0x0", "0x1"}
    primitives = run_python(ROOT / "docs" / "guide" / "primitives.md")
    assert primitives["evs"].shape == (2, 50)
    assert primitives["counts"].shape == (50,)
    rows = run_python(ROOT / "docs" / "guide" / "batches.md")
    assert rows["seen"][-1] == (50, 50)


def commands():
    """The different lines of all pages, without comments."""
    lines = (line for page in PAGES for code in blocks(page, "sh") for line in code.splitlines())
    return list(dict.fromkeys(shlex.join(shlex.split(line, comments=True)) for line in lines))


@pytest.mark.parametrize("line", commands(), ids=lambda line: " ".join(line.split()[:4]))
def test_a_command_runs(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE.qasm").write_text((ROOT / "examples" / "phase_estimation.qasm").read_text())
    (tmp_path / "bench.json").write_text(json.dumps(record("cpu22")))
    circuit = QuantumCircuit(1)
    circuit.ry(Parameter("theta"), 0)
    with (tmp_path / "FILE.qpy").open("wb") as file:
        qpy.dump(circuit, file)
    program, *arguments = shlex.split(line)
    assert program == "qsim-ozaki", "give the block a title that says why it is not run"
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert not left.value.code, capsys.readouterr().err
    assert capsys.readouterr().out


def test_few_blocks_are_not_run_and_say_why():
    excused = 0
    for page in PAGES:
        for language, rest, _ in BLOCK.findall(page.read_text()):
            assert language in ("python", "sh", "text"), f"{title(page)}: ```{language}"
            assert not rest or EXCUSE.fullmatch(rest), f"{title(page)}: {rest}"
            excused += bool(rest)
    assert excused <= MAX_EXCUSED


def test_the_readme_is_short_and_names_folders():
    lines = README.read_text().splitlines()
    assert len(lines) <= 150
    assert max(len(line) for line in lines) <= 110
    prose = re.sub(r"\]\([^)]*\)", "]", BLOCK.sub("", README.read_text()))
    assert not re.findall(r"[\w/]+\.(?:py|md|cpp|hpp|cu|cuh|json|toml)\b", prose)


def test_the_two_commands_come_first():
    first = BLOCK.search(README.read_text())
    install, test = first[3].splitlines()
    assert install.endswith(".venv/bin/qsim-ozaki run examples/phase_estimation.qasm")
    assert test == ".venv/bin/pip install '.[test]' && .venv/bin/pytest"
    assert (ROOT / "examples" / "phase_estimation.qasm").is_file()


def record(name):
    """A record of the benchmarks, in whichever folder it is kept."""
    (path,) = (ROOT / "benchmarks").rglob(f"{name}.json")
    return json.loads(path.read_text())


def span(numbers, digits):
    return f"{min(numbers):.{digits[0]}f} to {max(numbers):.{digits[1]}f} times"


def test_the_numbers_of_the_readme_are_those_of_the_records():
    cpu = Report.from_json(record("cpu22")).rows
    gpu = [row for row in Report.from_json(record("h200_custatevec")).rows if row.has("double")]
    from_zero = [row for row in gpu if row.num_qubits == 30 and row.family.endswith("from zero")]
    (block,) = [
        row
        for row in record("h200_ozaki")["rows"]
        if row["part"] == "times_26" and (row["k"], row["moduli"]) == (12, 16)
    ]
    claims = (
        f"{span([row.speedup('double') for row in cpu], (0, 0))} as fast as the best of Aer",
        f"{span([row.speedup('double') for row in from_zero], (0, 0))} as fast as cuStateVec's updater",
        f"{span([row.ours('double').model.ratio for row in cpu], (1, 1))} the measured times",
        f"{span([row['ratio'] for row in record('small_circuits')['rows']], (1, 0))} as fast as Aer's",
        f"{block['library_ms'] / block['ms']:.1f} times as fast as cuBLAS",
    )
    text = " ".join(README.read_text().split())
    assert [claim for claim in claims if claim not in text] == []


def test_every_public_name_and_error_is_in_the_reference():
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    documented = re.findall(r"^::: qsim_ozaki\.([\w.]+)$", text, re.MULTILINE)
    raised = [f"errors.{name}" for name, value in vars(errors).items() if isinstance(value, type)]
    assert sorted(documented) == sorted([*qsim_ozaki.__all__, *raised])


@pytest.fixture(scope="module")
def hooks():
    """The functions by which MkDocs writes tables into pages."""
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tables_of_the_site_hold_every_option_command_and_family(hooks):
    pages = {page.name: hooks.on_page_markdown(page.read_text()) for page in PAGES[1:]}
    assert [name for name, text in pages.items() if "{{" in text] == []
    assert re.findall(r"^\| `(\w+)` \| `", pages["options.md"], re.MULTILINE) == list(OzakiBackend().options)
    foreign = re.findall(r"^\| `([\w*]+)` \| (taken|ignored|refused) \| ", pages["coming_from_aer.md"], re.MULTILINE)
    assert dict(foreign) == {name: option.treatment for name, option in FOREIGN.items()}
    assert re.findall(r"^\| `(\w+)` \| \d", pages["circuits.md"], re.MULTILINE) == list(FAMILIES)
    listed = re.findall(r"^## `qsim-ozaki (\w+)`$", pages["command_line.md"], re.MULTILINE)
    assert listed == ["run", "plan", "compare", "batch", "doctor", "bench"]
    plan = type(OzakiBackend().plan(QuantumCircuit(1)))
    assert f"::: {plan.__module__}.{plan.__name__}" in pages["results.md"]
    assert pages["changelog.md"].endswith((ROOT / "CHANGELOG.md").read_text().partition("\n")[2] + "\n")


def test_extras_that_pages_name_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        name
        for page in PAGES
        for group in re.findall(r"(?:\.|qsim-ozaki)\[([\w,]+)\]", page.read_text())
        for name in group.split(",")
    }
    assert named
    assert named <= extras.keys()
