"""Every report of the users' cases by its id: the tests that show it, or why one machine without a GPU cannot."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent

# id, then where its tests are: a file's tests named after it (test_t01_...), one test, or all of a file (*);
# after --, what is left to other machines
TABLE = """
T01  provider/rows_of_a_job provider/primitives users/kinds
T02  users/reports planner/fuse::*
T04  users/scale  -- two devices: there is no such engine
T05  runtime/saved users/gpu  -- streams: a GPU
T06  users/reports
T07  runtime/saved
T08  users/reports
T10  users/reports users/kinds
T11  users/reports
T12  users/reports runtime/dynamic
T14  users/reports users/kinds provider/primitives
T17  runtime/dynamic
T18  users/reports
T19  users/reports users/kinds
T21  users/reports runtime/saved
T23  users/reports
T25  users/gpu  -- the same registers on a GPU
T26  users/scale  -- several devices: there is no such engine
T27  users/scale users/gpu  -- a state of 32 qubits: a GPU with 40 GiB
T29  users/reports users/kinds estimation/gradient provider/rows_of_a_job::aers_form_of_parameter_binds
T30  users/scale ozaki/ozaki::* engines/cuda/ozaki_gpu::*
T31  users/reports provider/backend::an_error_in_the_run_comes_out_of_result_with_its_traceback
T32  runtime/dynamic
T33  runtime/dynamic
T35  runtime/dynamic runtime/expressions::*
T37  runtime/dynamic
T38  runtime/dynamic users/kinds
T40  users/reports users/kinds
T41  users/scale  -- several GPUs: there is no such engine
T43  users/reports provider/executors::executors_give_the_same_rows  -- Dask: any executor will do
T44  provider/batch_cost users/scale  -- the device's pool: a GPU
T45  provider/batch_cost
T46  users/reports provider/rows_of_a_job users/scale
T48  users/reports lowering/refusals::*
T51  users/reports provider/backend::one_message_where_no_memory_is_enough
T52  users/reports
T53  users/scale
T54  -- a second GPU: there is no engine for several
T55  users/gpu  -- 2^31 amplitudes and more: a GPU with 40 GiB
T56  users/gpu
T57  cli/doctor users/gpu
T58  users/gpu
T60  users/gpu  -- kernels that run: a GPU
T61  runtime/dynamic
T62  provider/batch_cost
T63  provider/batch_cost
T64  provider/batch_cost
T65  runtime/dynamic
T66  users/guidance
T68  users/guidance  -- CPU and GPU at once: a wish, and a GPU
T69  -- several nodes: there is no engine for them
T70  users/scale planner/plan::a_block_is_emulated_from_its_predicted_crossing_on
T71  users/results provider/primitives
T72  users/results provider/primitives
T73  users/results provider/primitives
T74  users/results
T75  provider/transpile
T76  provider/transpile
T77  users/results provider/rows_of_a_job users/entries
T79  users/results users/entries
T80  users/results users/entries
T81  users/results users/entries
T83  users/results users/entries
T85  users/results
T86  runtime/saved users/entries
T87  users/results
T88  users/table  -- Qiskit's development branch
T89  runtime/dynamic users/entries whole/qasmbench::*
"""
LINE = re.compile(r"(T\d\d)((?: +[a-z0-9_/]+(?:::[a-z0-9_*]+)?)*)(?:  -- (.+))?")


def rows():
    """(id, places, what is left) of every line."""
    found = [LINE.fullmatch(line) for line in TABLE.strip().splitlines()]
    assert all(found)
    return [(match[1], match[2].split(), match[3] or "") for match in found]


def functions():
    """The names of the test functions in each file."""
    names = {}
    for path in TESTS.rglob("test_*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        names[path.relative_to(TESTS).with_suffix("").as_posix().replace("/test_", "/")] = {
            node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
    return names


KNOWN = functions()


@pytest.mark.parametrize(("case", "places", "left"), rows(), ids=[row[0] for row in rows()])
def test_every_case_has_its_tests(case, places, left):
    assert places or left, f"{case} has neither a test nor a reason"
    own = re.compile(rf"test_(t\d\d_)*{case.lower()}_")
    for place in places:
        file, _, name = place.partition("::")
        assert file in KNOWN, f"{case}: there is no tests/{file}.py"
        if not name:
            assert any(own.match(each) for each in KNOWN[file]), f"{case}: tests/{file}.py has no test of it"
        elif name != "*":
            assert f"test_{name}" in KNOWN[file], f"{case}: there is no test_{name} in tests/{file}.py"
    named = {file for file, names in KNOWN.items() if any(own.match(name) for name in names)}
    assert named == {place for place in places if "::" not in place}, f"{case}: files with tests of it"


def test_no_test_is_named_after_an_unknown_case():
    known = {case.lower() for case, _, _ in rows()}
    assert len(known) == len(rows())
    for names in KNOWN.values():
        for name in names:
            prefix = re.match(r"test_((?:t\d\d_)+)", name)
            assert not prefix or set(prefix[1].strip("_").split("_")) <= known, name


def test_t88_the_gate_runs_the_oldest_supported_qiskit():
    """The stated minimum is the version that the gate installs; it runs the tests that meet Qiskit everywhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (stated,) = re.findall(r"qiskit>=(\S+),<3", " ".join(project["dependencies"]))
    gate = (ROOT / ".ci" / "run").read_text()
    before, oldest, after = re.split(r"qiskit==(\S+)'", gate)
    assert oldest == stated
    assert "pytest" in before
    assert "pytest" in after
    places = re.findall(r"tests/(\w+)/test_\{(.+?)\}\.py", after)
    assert places
    for folder, files in places:
        for file in files.split(","):
            assert f"{folder}/{file}" in KNOWN, file
