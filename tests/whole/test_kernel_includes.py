"""Kernel sources include only what their folder's row allows, in one direction, by paths from the include root."""

import re
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").is_file())
KERNELS = ROOT / "kernels"  # of the checkout: a wheel leaves the extension's sources out
# folder -> other folders whose headers it may include; a folder's tuning.hpp lies above its subfolders
NATIVE = {
    "base": set(),
    "ir": {"base"},
    "planner": {"base", "ir"},
    "cpu": set(),
    "cpu/dispatch": {"base"},
    "cpu/state": {"base", "cpu"},
    "cpu/tile": {"base", "cpu", "cpu/dispatch", "cpu/state", "ir"},
    "cpu/stack": {"base", "cpu", "cpu/dispatch", "ir", "sampling"},
    "cpu/history": {"base", "cpu/state", "cpu/tile", "sampling"},
    "cpu/ozaki": {"base", "cpu", "cpu/dispatch"},
    "cpu/isa": {"cpu/dispatch", "cpu/stack", "cpu/tile"},
    "cuda": {"base"},
    "sampling": {"base"},
}
NATIVE["bind"] = set(NATIVE)
CUDA = {
    "common": set(),
    "state": {"common"},
    "tile": {"common"},
    "dense": {"common"},
    "ozaki": {"common"},
    "experiments": {"common", "ozaki"},
}


@pytest.mark.parametrize(("root", "rules"), [("native", NATIVE), ("cuda", CUDA)])
def test_includes_follow_the_table(root, rules):
    files = [path for path in (KERNELS / root).rglob("*") if path.suffix in (".cpp", ".hpp", ".cu", ".cuh")]
    assert {path.parent.relative_to(KERNELS / root).as_posix() for path in files} == set(rules)
    for path in files:
        folder = path.parent.relative_to(KERNELS / root).as_posix()
        for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE):
            assert (KERNELS / root / name).is_file(), f"{path}: {name} is not a path from {root}/"
            assert Path(name).parent.as_posix() in rules[folder] | {folder}, f"{path} includes {name}"


@pytest.mark.parametrize("rules", [NATIVE, CUDA])
def test_the_table_has_no_circle(rules):
    left = dict(rules)
    while ready := {folder for folder, needs in left.items() if not needs & left.keys()}:
        left = {folder: needs for folder, needs in left.items() if folder not in ready}
    assert not left


def test_every_source_of_the_extension_is_built():
    text = (KERNELS / "native" / "CMakeLists.txt").read_text()
    sources = {path.relative_to(KERNELS / "native").as_posix() for path in (KERNELS / "native").rglob("*.cpp")}
    assert sources == set(re.findall(r"[\w/]+\.cpp", text))
