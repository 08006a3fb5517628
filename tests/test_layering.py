"""The import rules and the size limits of the house, read from the sources themselves."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# module: (modules of the package it may import, third parties it may import)
RULES = {
    "__init__": ({"backend", "gradient", "instructions", "jsonable", "plots", "primitives"}, set()),
    "__main__": ({"cli"}, set()),
    "cli": (
        {"backend", "cli_bench", "source", "compare", "doctor", "jsonable", "plots", "sweep", "errors"},
        {"typer", "rich", "qiskit"},
    ),
    "cli_bench": (
        {"bench", "bench_cuda", "bench_gemm", "bench_hadamard", "bench_record", "bench_report", "experiment"}
        | {"experiment_report", "errors"},
        {"typer"},
    ),
    "bench_hadamard": (
        {"bench_blocks", "bench_gemm", "cuda_hadamard", "experiment", "moduli", "ops", "errors"},
        {"numpy"},
    ),
    "bench_gemm": (
        {"bench_blocks", "cpu_calibrate", "cuda_ozaki", "cuda_ozaki_pipeline", "experiment", "founding", "moduli"}
        | {"errors", "_native"},
        {"numpy"},
    ),
    "bench_blocks": (
        {"cuda_calibrate", "cuda_founding", "cuda_ozaki", "cuda_ozaki_pipeline", "engine", "experiment"}
        | {"founding", "ops"},
        {"numpy"},
    ),
    "experiment_report": ({"bench_report", "experiment"}, {"rich", "matplotlib"}),
    "experiment": (set(), {"numpy"}),
    "sweep": (
        {"backend", "batch", "workers", "jsonable", "result", "sampling", "errors"},
        {"numpy", "pyarrow", "qiskit"},
    ),
    "doctor": (
        {"backend", "gradient", "engine", "cpu", "cpu_calibrate", "explain", "errors", "_native"},
        {"numpy", "qiskit"},
    ),
    "plots": ({"errors"}, {"matplotlib"}),
    "jsonable": (set(), {"numpy"}),
    "source": ({"circuits", "errors"}, {"qiskit"}),
    "compare": ({"backend", "instructions", "errors"}, {"numpy", "qiskit", "qiskit_aer"}),
    "bench_cuda": (
        {"bench_blocks", "bench_cuda_row", "bench_custatevec", "bench_gpu", "bench_options"}
        | {"bench_record", "circuits", "experiment", "jsonable", "plan", "cuda_calibrate", "cuda_layout"}
        | {"cuda_tiles", "cost", "op_list", "ops", "errors"},
        {"numpy"},
    ),
    "bench_cuda_row": (
        {"bench_custatevec", "bench_gpu", "bench_record", "bench_worker", "circuits", "lower", "plan", "fuse"}
        | {"cuda_calibrate", "op_list", "ops"},
        set(),
    ),
    "bench_custatevec": ({"ops"}, {"numpy"}),  # cuquantum by name, when asked for
    "bench_gpu": ({"bench_blocks", "cuda_calibrate", "ops"}, {"numpy"}),
    "bench": (
        {"bench_options", "bench_process", "bench_record", "circuits", "experiment", "peers", "errors"},
        set(),
    ),
    "bench_options": ({"circuits", "errors"}, set()),
    "bench_process": (set(), set()),
    "bench_record": (set(), set()),
    "bench_report": ({"bench_record", "errors"}, {"rich", "matplotlib"}),
    "bench_worker": (
        {
            "bench_process",
            "bench_record",
            "peers",
            "circuits",
            "engine",
            "execute",
            "explain",
            "instructions",
            "ops",
            "options",
        }
        | {"plan", "prepare", "program_plan"},
        {"numpy", "qiskit"},
    ),
    "peers": ({"errors"}, {"numpy", "qiskit"}),
    "saves": ({"instructions", "site", "ops"}, {"numpy", "qiskit"}),
    "control": ({"classical", "expressions", "site", "ops"}, {"qiskit"}),
    "classical": ({"durations", "expressions", "ops", "errors"}, {"qiskit"}),
    "backend": (
        {
            "advice",
            "batch",
            "engine",
            "program_plan",
            "plan",
            "prepare",
            "sampling",
            "instructions",
            "gates",
            "cost",
            "errors",
        }
        | {"job", "options", "result", "workers"},
        {"qiskit"},
    ),
    "advice": ({"code", "program_plan", "plan", "explain", "cost", "ops"}, set()),
    "workers": ({"batch", "engine", "stack", "cost", "errors"}, {"qiskit"}),
    "batch": (
        {"bindings", "template", "stack", "prepare", "execute", "engine", "sampling", "saving", "vectors"}
        | {"cost", "ops"},
        {"numpy", "qiskit"},
    ),
    "result": ({"sampling"}, {"qiskit"}),
    "bindings": ({"errors"}, {"numpy", "qiskit"}),
    "template": ({"angles", "slots", "code", "op_list", "gates", "ops", "errors"}, {"numpy", "qiskit"}),
    "angles": ({"gates"}, {"numpy"}),
    "slots": ({"gates", "ops", "_native"}, {"numpy", "qiskit"}),
    "stack": ({"code", "cost", "op_list", "ops", "sampling", "engine", "_native"}, {"numpy"}),
    "prepare": (
        {"lower", "link", "code", "execute", "readout", "saving", "plan", "explain", "cost", "ops", "instructions"}
        | {"result", "sampling", "errors"},
        {"numpy", "qiskit"},
    ),
    "job": ({"errors"}, {"qiskit"}),
    "options": ({"engine", "sampling", "errors"}, {"numpy", "qiskit"}),
    "averages": ({"backend", "instructions", "observables", "pauli", "sampling"}, {"numpy", "qiskit"}),
    "primitives": (
        {"averages", "backend", "estimate", "job", "options", "result", "sampling", "errors"},
        {"numpy", "qiskit"},
    ),
    "estimate": (
        {"evaluate", "observables", "pauli", "stack", "prepare", "plan", "engine", "sampling", "gates", "ops"},
        {"numpy", "qiskit"},
    ),
    "gradient": (
        {"evaluate", "observables", "pauli", "bindings", "stack", "plan", "engine", "explain", "cost", "errors"},
        {"numpy", "qiskit"},
    ),
    "evaluate": (
        {"observables", "template", "stack", "execute", "readout", "lower", "link", "code", "plan", "engine", "cost"}
        | {"pauli", "op_list", "ops", "errors"},
        {"numpy", "qiskit"},
    ),
    "observables": ({"pauli", "errors"}, {"numpy", "qiskit"}),
    "lower": (
        {"control", "classical", "saves", "expand", "site", "gates", "op_list", "ops", "errors", "_native"},
        {"numpy", "qiskit"},
    ),
    "expand": ({"site", "slots", "gates", "ops", "errors", "_native"}, {"numpy", "qiskit"}),
    "site": ({"errors"}, {"qiskit"}),
    "instructions": ({"errors"}, {"numpy", "qiskit"}),
    "execute": (
        {"code", "placement", "plan", "plan_cache", "engine", "history", "readout", "saving", "sampling", "vectors"}
        | {"expressions", "ops", "errors"},
        {"numpy"},
    ),
    "readout": ({"code", "plan", "engine", "history", "sampling", "cost", "errors"}, {"numpy"}),
    "saving": ({"engine", "history", "pauli", "vectors", "cost", "ops", "errors"}, {"numpy"}),
    "history": ({"engine", "sampling", "expressions"}, {"numpy"}),
    "program_plan": ({"code", "placement", "plan", "plan_cache", "saving", "cost", "op_list", "ops"}, set()),
    "placement": ({"vectors", "ops"}, set()),
    "link": ({"code", "op_list", "ops", "errors"}, set()),
    "code": ({"expressions", "op_list", "ops"}, set()),
    "vectors": (set(), {"numpy"}),
    "sampling": ({"errors", "_native"}, {"numpy"}),
    "engine": ({"cost", "ops", "errors"}, {"numpy"}),
    "plan_cache": ({"plan_pattern", "plan", "kept", "cost", "op_list", "ops"}, set()),
    "plan_pattern": ({"plan", "choose", "kept", "cost", "op_list", "ops"}, set()),
    "plan": (
        {"parts", "passes", "choose", "explain", "fuse", "late", "pairs", "cost", "op_list", "ops", "errors"},
        {"numpy"},
    ),
    "parts": ({"passes", "late", "cost", "op_list"}, set()),
    "passes": ({"choose", "cost", "cost_blocks", "op_list", "ops"}, set()),
    "choose": ({"cost", "cost_blocks", "explain", "moduli", "ops", "errors"}, set()),
    "explain": ({"cost", "op_list", "ops"}, set()),
    "fuse": ({"op_list", "ops"}, set()),
    "late": ({"op_list"}, set()),
    "pairs": ({"ops"}, {"numpy"}),
    "cpu": (
        {"cpu_calibrate", "cpu_program", "engine", "explain", "cost", "ozaki", "pauli", "op_list", "ops", "errors"}
        | {"_native"},
        {"numpy"},
    ),
    "cpu_calibrate": ({"cpu_program", "cost", "ops", "_native"}, {"numpy", "platformdirs"}),
    "cpu_program": ({"op_list", "ops", "_native"}, set()),
    "cuda": (
        {
            "cuda_layout",
            "cuda_tiles",
            "cuda_product",
            "cuda_dense",
            "cuda_measure",
            "cuda_pauli",
            "pauli",
            "op_list",
            "cuda_calibrate",
            "cuda_ozaki",
            "cuda_stack",
            "engine",
            "cost",
            "jit",
            "ops",
            "errors",
        },
        {"numpy", "cupy"},
    ),
    "cuda_stack": ({"engine", "ops", "_native"}, {"numpy"}),
    "cuda_calibrate": (
        {"calibrate_ops", "cuda_layout", "cuda_ozaki", "cuda_ozaki_pipeline", "cuda_ozaki_tables", "cuda_tiles"}
        | {"cost", "jit", "ops"},
        {"numpy", "platformdirs"},
    ),
    "calibrate_ops": ({"ops"}, {"numpy"}),
    "cuda_ozaki": (
        {"cuda_graph", "cuda_ozaki_pipeline", "cuda_ozaki_tables", "cuda_dense", "ozaki", "ops", "errors"},
        {"numpy"},
    ),
    "cuda_graph": (set(), set()),
    "cuda_ozaki_pipeline": (set(), set()),
    "cuda_ozaki_tables": ({"cuda_dense", "ozaki", "moduli", "ops"}, {"numpy"}),
    "cuda_hadamard": ({"cuda_dense"}, {"numpy"}),
    "cuda_founding": ({"cuda_ozaki", "cuda_ozaki_tables", "founding"}, {"numpy"}),
    "founding": ({"moduli", "_native"}, {"numpy"}),
    "cuda_measure": ({"cuda_dense", "jit"}, {"numpy"}),
    "cuda_pauli": ({"jit"}, {"numpy"}),
    "cuda_product": ({"cuda_dense", "cuda_layout", "ops", "errors"}, {"numpy"}),
    "cuda_dense": ({"cuda_program", "jit", "ops"}, {"numpy"}),
    "cuda_tiles": (
        {"cuda_straight", "cuda_straight_program", "cuda_program", "cuda_layout", "cuda_lower", "cuda_dense"}
        | {"jit", "kept", "op_list", "ops", "errors"},
        {"numpy"},
    ),
    "cuda_straight": (
        {"cuda_writer", "cuda_straight_program", "cuda_layout", "cuda_schedule", "cuda_work", "cuda_pairs"}
        | {"cuda_dense", "cuda_lower", "ops"},
        {"numpy"},
    ),
    "cuda_writer": (
        {"cuda_cores", "cuda_outer", "cuda_operands", "cuda_source", "cuda_straight_program", "cuda_phases"}
        | {"cuda_program", "cuda_layout", "cuda_schedule", "cuda_work", "cuda_pairs", "cuda_lower", "ops"},
        {"numpy"},
    ),
    "cuda_outer": (
        {"cuda_operands", "cuda_straight_program", "cuda_phases", "cuda_layout", "cuda_schedule", "cuda_lower"},
        {"numpy"},
    ),
    "cuda_operands": ({"ops"}, {"numpy"}),
    "cuda_straight_program": (set(), {"numpy"}),
    "cuda_cores": ({"cuda_program", "cuda_work", "cuda_pairs", "cuda_lower", "ops"}, {"numpy"}),
    "cuda_source": ({"cuda_layout", "cuda_schedule", "cuda_lower"}, set()),
    "cuda_phases": ({"cuda_program", "cuda_lower", "ops"}, {"numpy"}),
    "cuda_program": ({"cuda_layout", "cuda_schedule", "cuda_work", "cuda_lower", "ops", "errors"}, {"numpy"}),
    "cuda_layout": ({"cuda_schedule", "cuda_work", "cuda_lower"}, {"numpy"}),
    "cuda_schedule": ({"cuda_search", "cuda_work", "cuda_pairs", "cuda_lower"}, set()),
    "cuda_work": ({"cuda_pairs", "cuda_lower"}, set()),
    "cuda_search": ({"cuda_energy", "cuda_lower", "kept", "_native"}, set()),
    "cuda_energy": ({"cuda_lower", "_native"}, set()),
    "cuda_pairs": ({"cuda_lower", "ops"}, {"numpy"}),
    "cuda_lower": ({"op_list", "ops", "_native"}, {"numpy"}),
    "ozaki": ({"jit", "moduli", "errors"}, {"numpy", "cupy"}),
    "jit": ({"kernels", "errors"}, {"cupy", "platformdirs"}),
    "cost_blocks": ({"cost", "op_list", "ops"}, set()),
    "cost": ({"op_list", "ops", "moduli", "errors"}, {"numpy"}),
    "gates": ({"op_list", "ops", "errors", "_native"}, {"numpy", "qiskit"}),
    "op_list": ({"ops", "_native"}, {"numpy"}),
    "ops": ({"expressions", "errors"}, {"numpy"}),
    "expressions": ({"durations", "errors"}, set()),
    "durations": ({"errors"}, set()),
    "pauli": ({"_native"}, {"numpy"}),
    "moduli": (set(), set()),
    "kept": (set(), set()),
    "errors": (set(), set()),
}
PUBLIC = {"qsim_ozaki", "qsim_ozaki.circuits"}  # what an example may import
UNUSUAL_ARGUMENTS = {
    "cli": "a command's arguments are its options",
    "cli_bench": "the same",
}  # files whose functions may take more than 7

MODULES = RULES.keys() | {"circuits", "kernels", "_native"}
PACKAGE = sorted((ROOT / "qsim_ozaki").glob("*.py"))
CIRCUITS = sorted((ROOT / "circuits").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TESTS = sorted((ROOT / "tests").glob("*.py"))
SUFFIXES = (".cpp", ".hpp", ".cu", ".cuh", ".h")
KERNELS = sorted(path for path in (ROOT / "kernels").rglob("*") if path.suffix in SUFFIXES)


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def imported(path):
    """Dotted names that ``path`` imports anywhere; of `from package import name`, the module where name is one."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            for alias in node.names:
                is_module = node.module == "qsim_ozaki" and alias.name in MODULES
                names.add(f"{node.module}.{alias.name}" if is_module else node.module)
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


def split(names):
    """(modules of the package, top-level names of third parties)."""
    ours = {name.split(".")[1] for name in names if name.startswith("qsim_ozaki.")}
    theirs = {name.partition(".")[0] for name in names} - {"qsim_ozaki"}
    return ours, theirs


def test_there_are_files_to_check():
    assert len(PACKAGE) > 10
    assert len(CIRCUITS) > 15
    assert len(EXAMPLES) >= 3
    assert len(TESTS) > 5
    assert len(KERNELS) > 5


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_module_imports_only_what_its_row_allows(path):
    assert path.stem in RULES, (
        f"{path.name} has no row: say what it may import, and why no existing module does its job"
    )
    ours, theirs = split(imported(path))
    allowed_ours, allowed_theirs = RULES[path.stem]
    assert ours <= allowed_ours
    assert theirs <= allowed_theirs


def test_imports_go_one_way():
    """Kahn's algorithm: a table with a cycle would leave rows over."""
    left = {module: rule[0] & RULES.keys() for module, rule in RULES.items()}
    while ready := {module for module, needs in left.items() if not needs & left.keys()}:
        left = {module: needs for module, needs in left.items() if module not in ready}
    assert not left, f"these import each other: {sorted(left)}"


@pytest.mark.parametrize("path", CIRCUITS, ids=name_of)
def test_circuits_import_qiskit_and_numpy_only(path):
    assert imported(path) == set() or split(imported(path))[1] <= {"qiskit", "numpy"}
    assert split(imported(path))[0] == set()


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_import_public_names_only(path):
    ours = {name for name in imported(path) if name.partition(".")[0] == "qsim_ozaki"}
    assert ours <= PUBLIC
    assert ours
    assert len(path.read_text().splitlines()) < 40


def test_importing_the_package_imports_no_engine_and_no_gpu_library():
    source = (ROOT / "qsim_ozaki" / "__init__.py").read_text()
    eager = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in eager for alias in node.names} | {getattr(node, "module", "") for node in eager}
    assert not names & {"cupy", "qsim_ozaki._native", "qsim_ozaki.cpu", "_native", "cpu"}


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
        assert count <= 7 or path.stem in UNUSUAL_ARGUMENTS, f"{place} takes {count} arguments"


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_kernel_sizes(path):
    assert len(path.read_text().splitlines()) <= 300


PLANTED = [
    ("import cupy", "cupy"),
    ("def f():\n    from qsim_ozaki.backend import OzakiBackend", "backend"),
    ("from qsim_ozaki import cpu", "cpu"),
    ("if True:\n    import numpy.linalg as la", "numpy"),
]


@pytest.mark.parametrize(("source", "found"), PLANTED)
def test_a_planted_import_is_seen(tmp_path, source, found):
    path = tmp_path / "planted.py"
    path.write_text(source + "\n")
    ours, theirs = split(imported(path))
    assert ours | theirs == {found}
