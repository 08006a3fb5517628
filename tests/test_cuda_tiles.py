"""When the CUDA engine has a generated kernel compiled, and what it runs meanwhile; the compiler is made up."""

import threading

import pytest

from qsim_ozaki import cuda_tiles, jit
from qsim_ozaki.errors import EngineError


@pytest.fixture
def compiled(monkeypatch):
    """Sources compiled so far; compilation waits for the test's gate."""
    sources, gate = [], threading.Event()

    def cubin(name, source, options):
        assert gate.wait(10)
        if source == "wrong":
            raise EngineError("does not compile")
        sources.append(source)
        return source.encode()

    monkeypatch.setattr(jit, "cubin", cubin)
    monkeypatch.setattr(jit, "is_cached", lambda name, source, options: source == "on disk")
    monkeypatch.setattr(jit, "function", lambda code, name: (code, name))
    sources.append(gate)
    return sources


def test_a_large_pass_is_compiled_behind_its_first_run(compiled):
    gate = compiled.pop()
    compiler = cuda_tiles.Compiler(90)
    assert compiler.function("pass", "double", pays=True) is None
    assert compiler.function("pass", "double", pays=True) is None
    gate.set()
    compiler.finish()
    assert compiler.function("pass", "double", pays=True) == (b"pass", "tile_straight")
    assert compiled == ["pass"]


def test_a_small_pass_is_compiled_when_it_repeats(compiled):
    compiled.pop().set()
    compiler = cuda_tiles.Compiler(90)
    for _ in range(cuda_tiles.REPEATS):
        assert compiler.function("pass", "double", pays=False) is None
        compiler.finish()
    assert compiled == []
    compiler.function("pass", "double", pays=False)
    compiler.finish()
    assert compiler.function("pass", "double", pays=False) is not None


def test_what_is_on_disk_is_used_at_once(compiled, monkeypatch):
    compiled.pop().set()
    assert cuda_tiles.Compiler(90).function("on disk", "single", pays=False) == (b"on disk", "tile_straight")
    asked = []
    monkeypatch.setattr(jit, "is_cached", lambda name, source, options: asked.append(source))
    compiler = cuda_tiles.Compiler(90)
    for _ in range(cuda_tiles.REPEATS):
        assert compiler.function("not there", "single", pays=False) is None
    assert asked == ["not there"]  # a hash of the source and a look at the disk, once


def test_a_source_that_does_not_compile_leaves_the_interpreter(compiled):
    compiled.pop().set()
    compiler = cuda_tiles.Compiler(90)
    for _ in range(3):
        assert compiler.function("wrong", "double", pays=True) is None
        compiler.finish()
    compiler.function("right", "double", pays=True)
    compiler.finish()
    assert compiler.function("right", "double", pays=True) is not None


def test_the_end_waits_for_what_is_being_compiled_alone(compiled, monkeypatch):
    gate = compiled.pop()
    monkeypatch.setattr(cuda_tiles.os, "cpu_count", lambda: 2)
    compiler = cuda_tiles.Compiler(90)
    for source in ("first", "second", "third"):
        compiler.function(source, "double", pays=True)
    threading.Timer(0.2, gate.set).start()
    while compiler._queue.qsize() > 2:  # until the only thread has the first
        pass
    compiler.end()
    assert compiled == ["first"]
    assert not any(thread.is_alive() for thread in compiler._threads)
    assert compiler.function("first", "double", pays=True) is not None
    assert compiler.function("late", "double", pays=True) is None
