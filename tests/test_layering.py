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
        {"bench_blocks", "bench_gemm", "cuda_hadamard", "experiment", "moduli", "ops", "errors", "steps"},
        {"numpy"},
    ),
    "bench_gemm": (
        {"_native", "bench_blocks", "cpu_calibrate", "cuda_ozaki_pipeline", "cuda_tuning", "engine"}
        | {"errors", "experiment", "founding", "moduli"},
        {"numpy"},
    ),
    "bench_blocks": (
        {"cuda_calibrate", "cuda_founding", "cuda_ozaki", "cuda_ozaki_pipeline", "engine", "experiment"}
        | {"founding", "ops", "steps"},
        {"numpy"},
    ),
    "experiment_report": ({"bench_report", "experiment"}, {"rich", "matplotlib"}),
    "experiment": (set(), {"numpy"}),
    "sweep": (
        {"backend", "batch", "workers", "jsonable", "result", "sampling", "errors"},
        {"numpy", "pyarrow", "qiskit"},
    ),
    "doctor": (
        {"backend", "gradient", "engine", "cpu", "cpu_calibrate", "units", "errors", "_native"},
        {"numpy", "qiskit"},
    ),
    "plots": ({"errors"}, {"matplotlib"}),
    "jsonable": (set(), {"numpy"}),
    "source": ({"circuits", "errors"}, {"qiskit"}),
    "compare": ({"backend", "instructions", "errors"}, {"numpy", "qiskit", "qiskit_aer"}),
    "bench_cuda": (
        {"bench_blocks", "bench_cuda_row", "bench_custatevec", "bench_gpu", "bench_options", "calibrate_ops"}
        | {"bench_record", "circuits", "experiment", "jsonable", "plan", "cuda_calibrate", "cuda_layout"}
        | {"cuda_tiles", "device", "op_list", "ops", "errors", "steps"},
        {"numpy"},
    ),
    "bench_cuda_row": (
        {"bench_custatevec", "bench_gpu", "bench_record", "bench_worker", "circuits", "cuda"}
        | {"cuda_calibrate", "cuda_state", "fuse", "lower", "op_list", "ops", "plan"},
        set(),
    ),
    "bench_custatevec": ({"ops"}, {"numpy"}),  # cuquantum by name, when asked for
    "bench_gpu": ({"bench_blocks", "cuda_calibrate", "steps"}, {"numpy"}),
    "bench": (
        {"bench_options", "bench_process", "bench_record", "circuits", "experiment", "peers", "errors"},
        set(),
    ),
    "bench_options": ({"circuits", "errors"}, set()),
    "bench_process": (set(), set()),
    "bench_record": (set(), set()),
    "bench_report": ({"bench_record", "device", "errors"}, {"rich", "matplotlib"}),
    "bench_worker": (
        {"bench_process", "bench_record", "circuits", "engine", "execute", "explain", "instructions"}
        | {"options", "peers", "plan", "prepare", "program_plan", "steps"},
        {"numpy", "qiskit"},
    ),
    "peers": ({"errors"}, {"numpy", "qiskit"}),
    "saves": ({"instructions", "site", "program"}, {"numpy", "qiskit"}),
    "control": ({"classical", "expressions", "site", "program"}, {"qiskit"}),
    "classical": ({"durations", "expressions", "program", "errors"}, {"qiskit"}),
    "backend": (
        {"advice", "batch", "device", "engine", "errors", "gates", "instructions", "job", "options", "plan"}
        | {"prepare", "program_plan", "result", "sampling", "workers"},
        {"qiskit"},
    ),
    "advice": ({"code", "program_plan", "plan", "steps", "units", "device"}, set()),
    "workers": ({"batch", "engine", "stack", "device", "errors"}, {"qiskit"}),
    "batch": (
        {"bindings", "template", "stack", "prepare", "execute", "engine", "sampling", "saving", "vectors"}
        | {"cost", "device"},
        {"numpy", "qiskit"},
    ),
    "result": ({"sampling"}, {"qiskit"}),
    "bindings": ({"errors"}, {"numpy", "qiskit"}),
    "template": ({"angles", "bindings", "slots", "gates", "ops", "errors"}, {"numpy", "qiskit"}),
    "angles": ({"gates"}, {"numpy"}),
    "slots": ({"gates", "ops", "_native"}, {"numpy", "qiskit"}),
    "stack": ({"code", "op_list", "program", "sampling", "engine", "_native"}, {"numpy"}),
    "prepare": (
        {"lower", "link", "code", "execute", "readout", "saving", "plan", "program", "units", "device", "instructions"}
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
        {"evaluate", "observables", "pauli", "stack", "prepare", "plan", "engine", "sampling", "gates", "steps"},
        {"numpy", "qiskit"},
    ),
    "gradient": (
        {"evaluate", "observables", "pauli", "bindings", "stack", "plan", "engine", "units", "device", "errors"},
        {"numpy", "qiskit"},
    ),
    "evaluate": (
        {"observables", "template", "stack", "execute", "readout", "lower", "link", "code", "plan", "engine", "device"}
        | {"pauli", "op_list", "ops", "errors", "program"},
        {"numpy", "qiskit"},
    ),
    "observables": ({"pauli", "errors"}, {"numpy", "qiskit"}),
    "lower": (
        {"control", "classical", "saves", "expand", "site", "gates", "op_list", "ops", "errors", "_native", "program"},
        {"numpy", "qiskit"},
    ),
    "expand": ({"site", "slots", "gates", "ops", "errors", "_native"}, {"numpy", "qiskit"}),
    "site": ({"errors"}, {"qiskit"}),
    "instructions": ({"errors"}, {"numpy", "qiskit"}),
    "execute": (
        {"code", "placement", "plan", "plan_cache", "engine", "history", "readout", "saving", "sampling", "vectors"}
        | {"classical_values", "ops", "errors", "program", "steps"},
        {"numpy"},
    ),
    "readout": ({"code", "plan", "engine", "history", "sampling", "device", "errors"}, {"numpy"}),
    "saving": ({"engine", "history", "pauli", "vectors", "program", "device", "errors"}, {"numpy"}),
    "history": ({"engine", "sampling", "classical_values"}, {"numpy"}),
    "program_plan": (
        {"code", "placement", "plan", "plan_cache", "saving", "cost", "op_list", "ops", "device", "program", "steps"},
        set(),
    ),
    "placement": ({"vectors", "ops", "program"}, set()),
    "link": ({"code", "op_list", "ops", "errors", "program"}, set()),
    "code": ({"expressions", "op_list", "ops", "program"}, set()),
    "vectors": (set(), {"numpy"}),
    "sampling": ({"errors", "_native"}, {"numpy"}),
    "engine": ({"device", "ops", "errors", "steps"}, {"numpy"}),
    "plan_cache": ({"plan_pattern", "plan", "kept", "device", "op_list", "ops"}, set()),
    "plan_pattern": ({"plan", "choose", "kept", "device", "op_list", "ops", "steps"}, set()),
    "plan": (
        {"parts", "passes", "choose", "explain", "fuse", "late", "pairs", "cost", "device", "footprint", "units"}
        | {"op_list", "ops", "steps", "errors"},
        {"numpy"},
    ),
    "parts": ({"passes", "late", "footprint", "op_list"}, set()),
    "passes": ({"choose", "device", "cost_blocks", "op_list", "ops", "footprint", "steps"}, set()),
    "choose": ({"units", "cost_blocks", "steps", "moduli", "device", "errors"}, set()),
    "explain": ({"steps", "op_list", "device", "units"}, set()),
    "fuse": ({"op_list", "ops", "steps"}, set()),
    "late": ({"op_list"}, set()),
    "pairs": ({"ops"}, {"numpy"}),
    "cpu": (
        {"cpu_calibrate", "cpu_program", "engine", "steps", "device", "ozaki", "pauli", "op_list", "ops", "errors"}
        | {"_native", "units"},
        {"numpy"},
    ),
    "cpu_calibrate": ({"cpu_program", "device", "ops", "_native"}, {"numpy", "platformdirs"}),
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
            "device",
            "jit",
            "ops",
            "errors",
            "steps",
        },
        {"numpy", "cupy"},
    ),
    "cuda_stack": ({"_native", "cuda_records", "engine", "op_list", "ops"}, {"numpy"}),
    "cuda_calibrate": (
        {"calibrate_ops", "cuda_layout", "cuda_ozaki", "cuda_ozaki_pipeline", "cuda_ozaki_tables", "cuda_tiles"}
        | {"device", "jit", "ops", "steps", "work"},
        {"numpy", "platformdirs"},
    ),
    "calibrate_ops": ({"ops"}, {"numpy"}),
    "cuda_ozaki": (
        {"cuda_graph", "cuda_ozaki_pipeline", "cuda_ozaki_tables", "cuda_records", "cuda_tuning"}
        | {"errors", "launcher", "ops", "ozaki"},
        {"numpy"},
    ),
    "cuda_graph": (set(), set()),
    "cuda_ozaki_pipeline": ({"cuda_tuning"}, set()),
    "cuda_ozaki_tables": ({"cuda_records", "moduli", "ozaki"}, {"numpy"}),
    "cuda_hadamard": ({"cuda_records", "launcher", "op_list"}, {"numpy"}),
    "cuda_founding": ({"cuda_ozaki", "cuda_ozaki_tables", "founding", "launcher"}, {"numpy"}),
    "founding": ({"moduli", "_native"}, {"numpy"}),
    "cuda_measure": ({"cuda_kernels", "cuda_records", "cuda_state", "launcher", "op_list"}, {"numpy"}),
    "cuda_pauli": ({"cuda_kernels", "cuda_state", "launcher"}, {"numpy"}),
    "cuda_product": (
        {"cuda_kernels", "cuda_records", "cuda_shapes", "cuda_state", "cuda_tuning", "errors", "launcher"} | {"ops"},
        {"numpy"},
    ),
    "cuda_dense": ({"cuda_kernels", "cuda_records", "ops"}, {"numpy"}),
    "cuda_tiles": (
        {"cuda_compiler", "cuda_kernels", "cuda_layout", "cuda_program", "cuda_records", "cuda_shapes"}
        | {"cuda_state", "cuda_straight", "cuda_straight_program", "cuda_tuning", "kept", "launcher"}
        | {"op_list", "ops"},
        {"numpy"},
    ),
    "cuda_straight": (
        {"cuda_layout", "cuda_lower", "cuda_pairs", "cuda_records", "cuda_schedule", "cuda_shapes"}
        | {"cuda_straight_program", "cuda_tuning", "cuda_work", "cuda_writer", "op_list", "ops"},
        {"numpy"},
    ),
    "cuda_writer": (
        {"cuda_cores", "cuda_layout", "cuda_lower", "cuda_operands", "cuda_outer", "cuda_pairs"}
        | {"cuda_phases", "cuda_records", "cuda_schedule", "cuda_shapes", "cuda_source"}
        | {"cuda_straight_program", "cuda_work", "op_list", "ops"},
        {"numpy"},
    ),
    "cuda_outer": (
        {"cuda_layout", "cuda_lower", "cuda_operands", "cuda_schedule", "cuda_straight_program"} | {"op_list"},
        {"numpy"},
    ),
    "cuda_operands": ({"ops"}, {"numpy"}),
    "cuda_straight_program": (set(), {"numpy"}),
    "cuda_cores": ({"cuda_lower", "cuda_pairs", "cuda_work", "ops"}, {"numpy"}),
    "cuda_source": ({"cuda_layout", "cuda_lower", "cuda_schedule", "cuda_shapes"}, set()),
    "cuda_phases": ({"cuda_lower", "ops"}, {"numpy"}),
    "cuda_program": (
        {"cuda_layout", "cuda_lower", "cuda_records", "cuda_schedule", "cuda_shapes", "cuda_work"} | {"op_list", "ops"},
        {"numpy"},
    ),
    "cuda_layout": ({"cuda_lower", "cuda_schedule", "cuda_shapes", "cuda_work", "op_list"}, {"numpy"}),
    "cuda_schedule": ({"cuda_lower", "cuda_pairs", "cuda_search", "cuda_work", "op_list"}, set()),
    "cuda_work": ({"cuda_lower", "cuda_pairs", "op_list"}, set()),
    "cuda_search": ({"_native", "cuda_energy", "cuda_lower", "cuda_tuning", "kept"}, set()),
    "cuda_energy": ({"_native", "cuda_lower", "cuda_tuning"}, set()),
    "cuda_pairs": ({"cuda_lower", "cuda_records", "op_list", "ops"}, {"numpy"}),
    "cuda_lower": ({"_native", "cuda_records", "op_list", "ops"}, {"numpy"}),
    "ozaki": ({"jit", "moduli", "errors"}, {"numpy", "cupy"}),
    "jit": ({"kernels", "errors"}, {"cupy", "platformdirs"}),
    "cost_blocks": ({"cost", "op_list", "ops", "device", "footprint", "steps", "work"}, set()),
    "cost": ({"device", "footprint", "ops", "steps", "work"}, set()),
    "classical_values": ({"durations", "errors", "expressions"}, set()),
    "device": (set(), set()),
    "footprint": ({"device"}, set()),
    "program": ({"expressions", "ops"}, set()),
    "steps": ({"ops"}, set()),
    "units": ({"device"}, set()),
    "work": ({"op_list", "ops"}, set()),
    "gates": ({"op_list", "ops", "errors", "_native"}, {"numpy", "qiskit"}),
    "op_list": ({"ops", "_native"}, {"numpy"}),
    "ops": (set(), {"numpy"}),
    "expressions": ({"durations", "errors"}, set()),
    "durations": ({"errors"}, set()),
    "pauli": ({"_native"}, {"numpy"}),
    "moduli": (set(), set()),
    "cache": (set(), {"cachetools", "platformdirs"}),
    "errors": (set(), set()),
}
PUBLIC = {"qsim_ozaki", "qsim_ozaki.circuits"}  # what an example may import
UNUSUAL_ARGUMENTS = {
    "cli": "a command's arguments are its options",
    "cli_bench": "the same",
}  # files whose functions may take more than 7

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
                is_module = node.module == "qsim_ozaki" and alias.name in RULES.keys() | {
                    "circuits",
                    "kernels",
                    "_native",
                }
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
