"""Each tutorial runs, its assertions hold, and the outputs in the repository are what it prints.

Outputs are kept in the notebooks, so that a page shows them without a run. Text is compared; a cell with the tag
`machine` prints times or names of the machine, and only its kinds of output are. `tests/notebooks.py` writes them anew.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import notebooks

import qsim_ozaki

NAMES = [
    "01_first_circuit",
    "02_reading_a_plan",
    "03_dynamic_circuits",
    "04_vqe_with_gradients",
    "05_parameter_batches",
    "06_a_gpu",
    "07_emulated_fp64",
]
MAX_BYTES = 100_000  # of a notebook with its pictures
PUBLIC = {"qsim_ozaki", "qsim_ozaki.circuits"}
OTHERS = {"qiskit", "numpy", "matplotlib", *sys.stdlib_module_names}


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def joined(text):
    return text if isinstance(text, str) else "".join(text)


def kinds(cell):
    """Of each output, the stream's name or the forms of its data."""
    return [output.get("name") or sorted(output["data"]) for output in cell["outputs"]]


def texts(cell):
    """Everything a cell prints, or shows as text or as a table."""
    outputs, forms = cell["outputs"], ("text/plain", "text/html")
    printed = [joined(output.get("text", "")) for output in outputs]
    shown = [joined(output.get("data", {}).get(form, "")) for output in outputs for form in forms]
    return printed + shown


def test_every_tutorial_is_tested():
    assert sorted(path.stem for path in notebooks.TUTORIALS.glob("*.ipynb")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_prints_what_it_shows(name, tmp_path):
    pytest.importorskip("nbclient", reason="extra 'test' is not installed")
    # the kernel takes the package that these tests take, and -P keeps folders of scripts off its path
    paths = [str(Path(qsim_ozaki.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    command = [sys.executable, "-P", notebooks.__file__, str(tmp_path), name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    stored = code_cells(read(notebooks.TUTORIALS / f"{name}.ipynb"))
    fresh = code_cells(read(tmp_path / f"{name}.ipynb"))
    for old, new in zip(stored, fresh, strict=True):
        assert "stderr" not in kinds(new), texts(new)
        assert kinds(old) == kinds(new), joined(new["source"])
        if "machine" not in new["metadata"].get("tags", []):
            assert texts(old) == texts(new)


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_clean(name):
    file = notebooks.TUTORIALS / f"{name}.ipynb"
    notebook = read(file)
    assert notebook["metadata"] == notebooks.METADATA
    assert file.stat().st_size < MAX_BYTES
    assert not re.search(r"/(home|root|work|tmp)/", file.read_text(encoding="utf-8"))
    assert notebook["cells"][0]["cell_type"] == "markdown"
    cells = code_cells(notebook)
    assert all(set(cell["metadata"]) <= {"tags"} for cell in cells)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), (
        "run the notebook from the top"
    )
    assert any("assert" in joined(cell["source"]) for cell in cells)
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell["outputs"])


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_uses_public_names_only(name):
    cells = code_cells(read(notebooks.TUTORIALS / f"{name}.ipynb"))
    source = "\n".join(joined(cell["source"]).replace("%matplotlib inline", "") for cell in cells)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module]
        else:
            continue
        for module in modules:
            assert module in PUBLIC or module.partition(".")[0] in OTHERS, module
        if modules == ["qsim_ozaki"]:
            assert {alias.name for alias in node.names} <= set(qsim_ozaki.__all__)
