"""The import rules and the size limits of the house, read from the sources themselves."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "qsim_ozaki").rglob("*.py"))
CIRCUITS = sorted((ROOT / "circuits").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
KERNELS = sorted(p for p in (ROOT / "kernels").rglob("*") if p.suffix in (".cpp", ".hpp", ".cu", ".cuh", ".h"))

VALUES = {"errors", "ir"}
RUN = VALUES | {"engines", "planner", "runtime", "_native"}
FACE = RUN | {"lowering", "estimation"}
# subpackage: (what of the package it may import, third parties it may import)
RULES = {
    "errors": (set(), set()),
    "cache": (set(), {"cachetools", "platformdirs"}),
    "lazy": (set(), set()),
    "ozaki": ({"errors", "_native"}, {"numpy"}),
    "ir": ({"errors", "_native"}, {"numpy"}),
    "lowering": (VALUES | {"_native"}, {"numpy", "qiskit"}),
    "planner": (VALUES | {"ozaki", "cache"}, {"numpy"}),
    "engines": (VALUES | {"ozaki", "cache", "_native", "kernels"}, {"numpy", "platformdirs"}),
    "engines.cuda": (VALUES | {"ozaki", "cache", "_native", "kernels"}, {"numpy", "platformdirs", "cupy"}),
    "runtime": (RUN - {"runtime"}, {"numpy"}),
    "estimation": (RUN | {"lowering"}, {"numpy", "qiskit"}),
    "provider": (FACE | {"lazy"}, {"numpy", "qiskit", "matplotlib", "rich", "IPython"}),
    "bench": (FACE | {"lazy", "provider", "ozaki", "circuits"}, {"numpy", "qiskit", "rich", "matplotlib"}),
    "cli": (
        FACE - {"planner"} | {"bench", "provider", "circuits"},
        {"numpy", "qiskit", "qiskit_aer", "qiskit_qasm3_import", "openqasm3", "typer", "rich", "pyarrow"},
    ),
    "circuit_methods": ({"lowering"}, set()),
    "__init__": ({"lazy", "circuit_methods", "lowering", "estimation", "provider"}, set()),
    "__main__": ({"cli"}, set()),
}  # fmt: skip
WITHOUT_FACE = {
    "errors",
    "cache",
    "lazy",
    "circuit_methods",
    "_native",
    "kernels",
    "circuits",
}  # single modules, and folders beside the package
PUBLIC = {"qsim_ozaki", "qsim_ozaki.circuits"}  # what an example may import
OPTIONS_ARE_ARGUMENTS = ("cli/app.py", "cli/bench.py")  # a command's arguments are its options


def name_of(path):
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def module_of(path):
    """Dotted name below the package; a subpackage's `__init__` is the subpackage."""
    parts = path.relative_to(ROOT / "qsim_ozaki").with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in PACKAGE}


def imported(path):
    """Dotted names that ``path`` imports anywhere; of `from package import module`, the module."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full.removeprefix("qsim_ozaki.") in MODULES.keys() | WITHOUT_FACE
                names.add(full if is_module else node.module)
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


def split(names):
    """(dotted modules of the package, without its name; top-level names of third parties)."""
    ours = {name.removeprefix("qsim_ozaki.") for name in names if name.startswith("qsim_ozaki.")}
    theirs = {name.partition(".")[0] for name in names} - {"qsim_ozaki"}
    return ours, theirs


def room(module):
    """The row of `RULES` that a module stands in."""
    return max((row for row in RULES if f"{module}.".startswith(f"{row}.")), key=len, default=None)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_subpackage_may_and_only_through_faces(module):
    row = room(module)
    assert row, f"{module} is in no subpackage of the table: say what it may import, and why none of these does its job"
    ours, theirs = split(imported(MODULES[module]))
    assert theirs <= RULES[row][1]
    for name in ours:
        top = name.partition(".")[0]
        if top == row.partition(".")[0]:
            continue
        assert top in RULES[row][0]
        is_face = name == top or top in WITHOUT_FACE or name in ("engines.cpu", "engines.cuda")
        assert is_face or row == "bench", f"{module} imports {name}: import it from qsim_ozaki.{top}"


def no_circle(graph):
    """Kahn's algorithm: modules that import each other are left over."""
    while ready := {module for module, needs in graph.items() if not needs & graph.keys() - {module}}:
        graph = {module: needs for module, needs in graph.items() if module not in ready}
    assert not graph, f"these import each other: {sorted(graph)}"


def test_subpackages_do_not_import_each_other_in_a_circle():
    no_circle({row: rule[0] for row, rule in RULES.items()})


@pytest.mark.parametrize("subpackage", sorted({module.partition(".")[0] for module in MODULES if "." in module}))
def test_modules_of_a_subpackage_do_not_import_each_other_in_a_circle(subpackage):
    modules = [module for module in MODULES if module.startswith(f"{subpackage}.")]
    no_circle({module: split(imported(MODULES[module]))[0] for module in modules})


@pytest.mark.parametrize("path", CIRCUITS, ids=name_of)
def test_circuits_import_qiskit_and_numpy_only(path):
    ours, theirs = split(imported(path))
    assert theirs <= {"qiskit", "numpy"}
    assert not ours


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_import_public_names_only(path):
    ours = {name for name in imported(path) if name.partition(".")[0] == "qsim_ozaki"}
    assert ours
    assert ours <= PUBLIC
    assert len(path.read_text().splitlines()) < 40


@pytest.mark.parametrize("path", PACKAGE + CIRCUITS + EXAMPLES + TESTS, ids=name_of)
def test_python_sizes(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        place = f"{name_of(path)}:{node.lineno} {node.name}"
        assert node.end_lineno - node.lineno < 50, f"{place} is longer than 50 lines"
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        count = sum(argument.arg not in ("self", "cls") for argument in arguments)
        assert count <= 7 or name_of(path).endswith(OPTIONS_ARE_ARGUMENTS), f"{place} takes {count} arguments"


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernel_sizes(path):
    assert len(path.read_text().splitlines()) <= 300


def test_there_are_files_to_check():
    assert len(PACKAGE) > 100
    assert len(CIRCUITS) > 15
    assert len(EXAMPLES) >= 3
    assert len(TESTS) > 80
    assert len(KERNELS) > 90


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_its_one_job(module):
    text = ast.get_docstring(ast.parse(MODULES[module].read_text()))
    assert text, f"{module} has no docstring"
    assert text.splitlines()[0].endswith("."), f"the first line of {module}'s docstring is no sentence"


PLANTED = [
    ("import cupy", "cupy"),
    ("def f():\n    from qsim_ozaki.provider.backend import OzakiBackend", "provider.backend"),
    ("from qsim_ozaki.engines import cpu", "engines.cpu"),
    ("from qsim_ozaki import errors", "errors"),
    ("if True:\n    import numpy.linalg as la", "numpy"),
]


@pytest.mark.parametrize(("source", "name"), PLANTED)
def test_a_planted_import_is_seen(tmp_path, source, name):
    path = tmp_path / "planted.py"
    path.write_text(source + "\n")
    ours, theirs = split(imported(path))
    assert ours | theirs == {name}


def test_a_planted_circle_is_seen():
    with pytest.raises(AssertionError, match=r"\['a', 'b'\]"):
        no_circle({"a": {"b", "c"}, "b": {"a"}, "c": set()})


def test_importing_the_package_imports_no_engine_and_no_gpu_library():
    modules = set()
    for name in ("__init__", "circuit_methods"):
        body = ast.parse((ROOT / "qsim_ozaki" / f"{name}.py").read_text()).body
        eager = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        modules |= {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in eager}
    own = {"qsim_ozaki", "qsim_ozaki.circuit_methods"}
    assert own <= modules
    assert {name.partition(".")[0] for name in modules - own} <= set(sys.stdlib_module_names)
    assert split(imported(ROOT / "qsim_ozaki" / "lazy.py")) == (set(), set())
