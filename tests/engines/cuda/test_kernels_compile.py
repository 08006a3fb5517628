"""Every CUDA kernel, instance and architecture of the table compiles: no spills, no stack, no products in turn."""

import re

import conftest
import pytest

from qsim_ozaki.engines.cuda.device import kernels, nvrtc
from qsim_ozaki.errors import EngineError

pytestmark = pytest.mark.usefixtures("nvrtc")
ROWS = [
    pytest.param(name, dict(instance), arch, id=f"{name}-{'-'.join(instance.values()) or 'plain'}-sm_{arch}")
    for name, kernel in kernels.KERNELS.items()
    for instance in kernel.instances
    for arch in kernel.architectures
]


@pytest.mark.parametrize(("name", "instance", "architecture"), ROWS)
def test_compiles_without_spills(name, instance, architecture):
    cubin = nvrtc.compile_kernel(name, instance, architecture)
    assert cubin.code.startswith(b"\x7fELF")
    found = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", cubin.log)
    assert found, cubin.log
    assert set(found) == {("0", "0", "0")}, cubin.log
    assert "serialized" not in cubin.log, cubin.log  # each product after the one before


def test_what_gpu_tests_compile_first_is_in_the_table():
    names = {name for name, _ in conftest.kernels()}
    assert {"ozaki_wgmma", "ozaki_finish", "dense_held", "dense_streamed", "tile_exec"} <= names <= set(kernels.KERNELS)


def test_a_compile_error_shows_numbered_source(tmp_path, monkeypatch):
    (tmp_path / "collapse.cu").write_text("int a;\nnonsense here\n")
    monkeypatch.setattr(nvrtc, "SOURCES", tmp_path)
    monkeypatch.setitem(kernels.KERNELS, "collapse", kernels.Kernel("collapse.cu", "collapse"))
    with pytest.raises(EngineError, match=r"(?s)collapse.cu does not compile.*2 nonsense here"):
        nvrtc.compile_kernel("collapse", kernels.DOUBLE, 90)


@pytest.mark.parametrize("name", ["bits.cuh", "common/bits.cuh", "tile/deep/pairs.cu"])
def test_an_edited_source_in_any_folder_changes_the_cache_key(name, tmp_path, monkeypatch):
    monkeypatch.setattr(nvrtc, "SOURCES", tmp_path)
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    hashes = []
    for text in ("// one", "// two"):
        file.write_text(text)
        nvrtc.sources_hash.cache_clear()
        hashes.append(nvrtc.sources_hash())
    file.rename(tmp_path / "moved.cuh")
    nvrtc.sources_hash.cache_clear()
    hashes.append(nvrtc.sources_hash())
    nvrtc.sources_hash.cache_clear()
    assert len(set(hashes)) == 3


def test_an_unknown_architecture_names_the_known_ones():
    with pytest.raises(EngineError, match=r"7.5 is not supported.*8\.0.*12\.0"):
        nvrtc.nearest_architecture(75)
    assert nvrtc.nearest_architecture(87) == 86
    assert nvrtc.nearest_architecture(121) == 120
