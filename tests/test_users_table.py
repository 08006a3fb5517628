"""Every report of the users' cases by its id: the tests that show it, or why one machine without a GPU cannot."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent

# id, then where its tests are: a file's tests named after it (test_t01_...), one test, or all of a file (*);
# after --, what is left to other machines
TABLE = """
T01  batch primitives users_kinds
T02  users fuse::*
T04  users_scale  -- two devices: there is no such engine
T05  saves users_gpu  -- streams: a GPU
T06  users
T07  saves
T08  users
T10  users users_kinds
T11  users
T12  users dynamic
T14  users users_kinds primitives
T17  dynamic
T18  users
T19  users users_kinds
T21  users saves
T23  users
T25  users_gpu  -- the same registers on a GPU
T26  users_scale  -- several devices: there is no such engine
T27  users_scale users_gpu  -- a state of 32 qubits: a GPU with 40 GiB
T29  users users_kinds gradient batch::aers_form_of_parameter_binds
T30  users_scale ozaki::* cuda_ozaki::*
T31  users backend::an_error_in_the_run_comes_out_of_result_with_its_traceback
T32  dynamic
T33  dynamic
T35  dynamic expressions::*
T37  dynamic
T38  dynamic users_kinds
T40  users users_kinds
T41  users_scale  -- several GPUs: there is no such engine
T43  users executors::executors_give_the_same_rows  -- Dask: any executor will do
T44  batch_speed users_scale  -- the device's pool: a GPU
T45  batch_speed
T46  users batch users_scale
T48  users lower_refusals::*
T51  users backend::one_message_where_no_memory_is_enough
T52  users
T53  users_scale
T54  -- a second GPU: there is no engine for several
T55  users_gpu  -- 2^31 amplitudes and more: a GPU with 40 GiB
T56  users_gpu
T57  doctor users_gpu
T58  users_gpu
T60  users_gpu  -- kernels that run: a GPU
T61  dynamic
T62  batch_speed
T63  batch_speed
T64  batch_speed
T65  dynamic
T66  users_guidance
T68  users_guidance  -- CPU and GPU at once: a wish, and a GPU
T69  -- several nodes: there is no engine for them
T70  users_scale plan::a_block_is_emulated_from_its_predicted_crossing_on
T71  users_results primitives
T72  users_results primitives
T73  users_results primitives
T74  users_results
T75  transpile
T76  transpile
T77  users_results batch users_entries
T79  users_results users_entries
T80  users_results users_entries
T81  users_results users_entries
T83  users_results users_entries
T85  users_results
T86  saves users_entries
T87  users_results
T88  users_table  -- Qiskit's development branch
T89  dynamic users_entries qasmbench::*
"""
LINE = re.compile(r"(T\d\d)((?: +[a-z0-9_]+(?:::[a-z0-9_*]+)?)*)(?:  -- (.+))?")


def rows():
    """(id, places, what is left) of every line."""
    found = [LINE.fullmatch(line) for line in TABLE.strip().splitlines()]
    assert all(found)
    return [(match[1], match[2].split(), match[3] or "") for match in found]


def functions():
    """The names of the test functions in each file."""
    names = {}
    for path in TESTS.glob("test_*.py"):
        nodes = ast.walk(ast.parse(path.read_text()))
        names[path.stem.removeprefix("test_")] = {
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
        assert file in KNOWN, f"{case}: there is no tests/test_{file}.py"
        if not name:
            assert any(own.match(each) for each in KNOWN[file]), f"{case}: tests/test_{file}.py has no test of it"
        elif name != "*":
            assert f"test_{name}" in KNOWN[file], f"{case}: there is no test_{name} in tests/test_{file}.py"
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
    for file in re.search(r"tests/test_\{(.+)\}\.py", after)[1].split(","):
        assert file in KNOWN, file
