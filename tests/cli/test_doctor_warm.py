"""`qsim-ozaki doctor --warm`: kernels are compiled before a run needs them."""

import json
import sys

import pytest

from qsim_ozaki.cli import doctor
from qsim_ozaki.cli.app import main
from qsim_ozaki.engines.cuda import architecture_here, warm
from qsim_ozaki.engines.cuda.device import nvrtc
from qsim_ozaki.engines.cuda.device.kernels import DOUBLE, KERNELS, Kernel
from qsim_ozaki.errors import EngineError

TABLE = {
    "prepare": KERNELS["prepare"],
    "late": Kernel("state/prepare.cu", "prepare", (DOUBLE,), (100,)),  # of a later architecture
    "alone": Kernel("state/prepare.cu", "prepare", ({},)),
}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache on disk, a short table of kernels, and no other checks."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(doctor, "examine", lambda: iter(()))
    for module in (warm, nvrtc):
        monkeypatch.setattr(module, "KERNELS", TABLE)
    return tmp_path / "qsim-ozaki" / "cubin"


class Library:
    """Compiles in no time, but for the kernel ``wrong``."""

    version = "1"

    def __init__(self, wrong=""):
        self.wrong, self.compiled = wrong, []

    def compile(self, source, name, options):
        if name == self.wrong:
            raise EngineError("does not compile:\n" + "numbered source\n" * 99)
        self.compiled.append(options[0])
        return nvrtc.Cubin(b"machine code")


def findings(capsys, *arguments, code=0):
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--warm", "--json", *arguments])
    assert left.value.code == code
    return [
        (row["what"], row["state"], row["detail"], row["remedy"])
        for row in json.loads(capsys.readouterr().out)["findings"]
    ]


def test_every_kernel_of_an_architecture_is_compiled_once(cache, monkeypatch, capsys):
    library = Library()
    monkeypatch.setattr(nvrtc, "nvrtc", lambda: library)
    (first,) = findings(capsys, "--architecture", "90")
    assert first[:2] == ("kernels for 9.0", "ok")
    assert first[2].startswith("3 compiled in ")
    assert first[2].endswith(", 0 were there")
    again, other = findings(capsys, "--architecture", "90", "--architecture", "103", "--architecture", "90")
    assert again[2].startswith("0 compiled in ")
    assert again[2].endswith(", 3 were there")
    assert other[0] == "kernels for 10.3"
    assert other[2].startswith("4 compiled in ")
    assert library.compiled == ["--gpu-architecture=sm_90"] * 3 + ["--gpu-architecture=sm_100"] * 4
    assert len(list(cache.iterdir())) == 7


def test_the_bar_is_told_of_every_kernel(cache, monkeypatch):
    monkeypatch.setattr(nvrtc, "nvrtc", Library)
    rows = []
    warmed = warm.compile_table(90, lambda done, total: rows.append((done, total)))
    assert (warmed.compiled, warmed.known) == (3, 0)
    assert rows == [(done, 3) for done in range(4)]


def test_a_kernel_that_does_not_compile_is_a_failure(cache, monkeypatch, capsys):
    monkeypatch.setattr(nvrtc, "nvrtc", lambda: Library("alone"))
    ((name, state, detail, remedy),) = findings(capsys, "--architecture", "90", code=2)
    assert (name, state, remedy) == ("kernels for 9.0", "failed", "The message says why.")
    assert detail.startswith("does not compile: numbered source")
    assert len(detail) == doctor.MAX_DETAIL


def test_an_architecture_that_nothing_is_built_for_is_a_failure(cache, capsys):
    ((_, state, detail, _),) = findings(capsys, "--architecture", "75", code=2)
    assert state == "failed"
    assert "7.5 is not supported" in detail


def test_without_a_gpu_the_user_names_the_architecture(cache, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineError, match="no GPU is usable here"):
        architecture_here()
    ((name, state, _, remedy),) = findings(capsys)
    assert (name, state) == ("kernels", "absent")
    assert "--architecture" in remedy


def test_an_architecture_needs_warm(capsys):
    with pytest.raises(SystemExit) as left:
        main(["doctor", "--architecture", "90"])
    assert left.value.code == 1
    assert "Use it with --warm" in capsys.readouterr().err


@pytest.mark.usefixtures("nvrtc")
def test_kernels_are_really_compiled_without_a_gpu(cache, capsys):
    ((_, state, detail, _),) = findings(capsys, "--architecture", "90")
    assert (state, detail[:12]) == ("ok", "3 compiled i")
    files = sorted(cache.iterdir())
    assert [file.name.partition("-")[0] for file in files] == ["alone", "prepare", "prepare"]
    assert all(file.read_bytes().startswith(b"\x7fELF") for file in files)
    code = nvrtc.cached_kernel("prepare", DOUBLE, 90)
    assert code in [file.read_bytes() for file in files]
