"""When the CUDA engine has a generated kernel compiled, and what it runs meanwhile; the compiler is made up."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from qsim_ozaki.cache import LruCache
from qsim_ozaki.engines.cuda import passes as cuda_tiles
from qsim_ozaki.engines.cuda import tuning
from qsim_ozaki.engines.cuda.codegen import compiler as cuda_compiler
from qsim_ozaki.engines.cuda.codegen.program import NotStraightError
from qsim_ozaki.engines.cuda.device import background, nvrtc
from qsim_ozaki.engines.cuda.tile.layout import Tile
from qsim_ozaki.errors import EngineError
from qsim_ozaki.ir import EMPTY, Kind, Op, OpList


@pytest.fixture
def compiled(monkeypatch):
    """Sources compiled so far; compilation waits for the test's gate."""
    sources, gate = [], threading.Event()

    def cubin(name, source, options):
        assert gate.wait(60)
        if source == "wrong":
            raise EngineError("does not compile")
        sources.append(source)
        return source.encode()

    monkeypatch.setattr(nvrtc, "cubin", cubin)
    monkeypatch.setattr(nvrtc, "is_cached", lambda name, source, options: source == "on disk")
    monkeypatch.setattr(nvrtc, "function", lambda code, name: (code, name))
    sources.append(gate)
    return sources


def test_a_pass_is_compiled_behind_its_first_runs(compiled):
    gate = compiled.pop()
    compiler = cuda_compiler.Compiler(90)
    assert compiler.function("pass", "double") is None
    assert compiler.function("pass", "double") is None
    gate.set()
    compiler.finish()
    assert compiler.function("pass", "double") == (b"pass", "tile_straight")
    assert compiled == ["pass"]


@pytest.fixture
def passes(monkeypatch):
    """Names of what passes do: launches, generating the sources of a pass, packing it for the interpreter."""
    done = []

    def straight(tile, ops, num_qubits, precision, pairs):
        done.append("generate")
        if ops == "nothing straight":
            raise NotStraightError
        return ["first", "second"][: len(ops)]

    class Part:
        def __init__(self, launcher, compiler, program, precision):
            self.source = program

        def function(self):
            return self.source in ready and self.source

        def launch(self, function, state):
            done.append(function)

    def interpreter(launcher, program, precision):
        done.append("pack")
        return lambda state: done.append("interpret")

    ready = set()
    monkeypatch.setattr(cuda_tiles.straight, "straight", straight)
    monkeypatch.setattr(cuda_tiles, "_Specialised", Part)
    monkeypatch.setattr(cuda_tiles, "compile_tile", lambda *_: "program")
    monkeypatch.setattr(cuda_tiles, "_interpreter", interpreter)

    def runs(num_qubits, ops, count, now_ready=(), row=False):
        launch = cuda_tiles.tile_launch(
            SimpleNamespace(architecture=90),
            SimpleNamespace(function=lambda source, precision: source in ready),
            cuda_tiles.PassWork(Tile(tuple(range(12))), ops, num_qubits, "double", row),
        )
        done.clear()
        ready.clear()
        for number in range(count):
            if number == count - 1:
                ready.update(now_ready)
            launch(None)
        return list(done)

    return runs


def test_a_large_pass_is_generated_at_once_and_interpreted_until_all_of_it_is_compiled(passes):
    large, both = tuning.ONCE_QUBITS, ("first", "second")
    assert passes(large, "ab", 1, both) == ["generate", "first", "second"]
    assert passes(large, "ab", 2, both) == ["generate", "pack", "interpret", "first", "second"]
    assert passes(large, "ab", 2, ("first",)) == ["generate", "pack", "interpret", "interpret"]
    assert passes(large, "nothing straight", 2, both) == ["generate", "pack", "interpret", "interpret"]


def test_a_smaller_pass_is_generated_when_it_repeats_and_a_small_one_never(passes):
    interpreted = ["pack", *["interpret"] * tuning.RUNS_BEFORE_COMPILING]
    for width in (tuning.REPEAT_QUBITS, tuning.ONCE_QUBITS - 1):
        assert passes(width, "a", tuning.RUNS_BEFORE_COMPILING, ("first",)) == interpreted
        assert passes(width, "a", tuning.RUNS_BEFORE_COMPILING + 1, ("first",)) == [
            *interpreted,
            "generate",
            "first",
        ]
        assert passes(width, "a", tuning.RUNS_BEFORE_COMPILING + 2) == [
            *interpreted,
            "generate",
            "interpret",
            "interpret",
        ]
    assert passes(tuning.REPEAT_QUBITS - 1, "a", tuning.RUNS_BEFORE_COMPILING + 1, ("first",)) == [
        *interpreted,
        "interpret",
    ]


def test_a_pass_of_a_further_row_is_generated_at_once_on_the_largest_states_alone(passes):
    interpreted = ["pack", *["interpret"] * tuning.RUNS_BEFORE_COMPILING]
    assert passes(tuning.ROW_QUBITS, "a", 1, ("first",), row=True) == ["generate", "first"]
    for width in (tuning.ROW_QUBITS - 1, tuning.REPEAT_QUBITS):
        assert passes(width, "a", tuning.RUNS_BEFORE_COMPILING + 1, ("first",), row=True) == [
            *interpreted,
            "generate",
            "first",
        ]
    assert passes(tuning.REPEAT_QUBITS - 1, "a", 9, ("first",), row=True) == ["pack", *["interpret"] * 9]


def rows_of(count):
    """As many lists of one structure, with numbers of their own."""
    return [OpList.of([Op(Kind.DIAGONAL, (q,), np.exp([0j, 1j + row])) for q in range(2)]) for row in range(count)]


def test_a_pass_is_not_generated_while_one_like_it_waits_for_the_compiler(passes, monkeypatch):
    monkeypatch.setattr(cuda_tiles, "LAST_SOURCES", LruCache(1 << 20, 9))
    large, parts, rows = tuning.ONCE_QUBITS, ("first", "second"), rows_of(4)
    assert passes(large, rows[0], 1, parts[:1]) == ["generate", "pack", "interpret"]
    assert passes(large, rows[1], 1, parts[:1]) == ["pack", "interpret"]
    assert passes(large, rows[2], 2, parts) == ["pack", "interpret", "generate", *parts]
    assert passes(large, rows[3], 1, parts) == ["generate", *parts]
    other = OpList.of([*rows[3], Op(Kind.HADAMARD, (0,), EMPTY)])
    assert passes(large, other, 1) == ["generate", "pack", "interpret"]
    assert passes(large + 1, rows[3], 1) == ["generate", "pack", "interpret"]


def test_what_is_on_disk_is_used_at_once(compiled):
    compiled.pop().set()
    assert cuda_compiler.Compiler(90).function("on disk", "single") == (b"on disk", "tile_straight")


def test_a_source_that_does_not_compile_leaves_the_interpreter(compiled):
    compiled.pop().set()
    compiler = cuda_compiler.Compiler(90)
    for _ in range(3):
        assert compiler.function("wrong", "double") is None
        compiler.finish()
    compiler.function("right", "double")
    compiler.finish()
    assert compiler.function("right", "double") is not None


def test_the_end_waits_for_what_is_being_compiled_alone(compiled, monkeypatch):
    gate = compiled.pop()
    monkeypatch.setattr(background.os, "cpu_count", lambda: 2)
    compiler = cuda_compiler.Compiler(90)
    for source in ("first", "second", "third"):
        compiler.function(source, "double")
    threading.Timer(0.2, gate.set).start()
    while compiler.background.num_waiting > 2:  # until the only thread has the first
        pass
    compiler.background.end()
    assert compiled == ["first"]
    assert not any(thread.is_alive() for thread in compiler.background._threads)
    assert compiler.function("first", "double") is not None
    assert compiler.function("late", "double") is None


def test_the_first_kernels_are_compiled_ahead(monkeypatch):
    rows = []
    monkeypatch.setattr(
        nvrtc, "cached_kernel", lambda name, instance, arch: rows.append((name, *instance.values(), arch))
    )
    compiler = cuda_compiler.Compiler(80)
    compiler.compile_first("single")
    compiler.finish()
    assert sorted(rows) == [(name, "float", 80) for name in ("find_sample", "marginal", "prepare", "tile_exec")]


class Nvrtc:
    """Compiles as long as the test's gate is closed; ``failing`` is the number of compilations that fail."""

    version = "1"

    def __init__(self, failing=0):
        self.failing, self.begun, self.gate, self.sources = failing, threading.Event(), threading.Event(), []

    def compile(self, source, file, options):
        self.sources.append(source)
        self.begun.set()
        assert self.gate.wait(60)
        if len(self.sources) <= self.failing:
            raise EngineError("does not compile")
        return nvrtc.Cubin(source.encode())


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """The cache on disk; as a function, it installs an `Nvrtc`."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)

    def install(compiler):
        monkeypatch.setattr(nvrtc, "nvrtc", lambda: compiler)
        return compiler

    return install


@pytest.mark.parametrize("failing", [0, 1])
def test_a_thread_that_needs_what_another_compiles_waits_for_it(disk, failing):
    library, jobs, waiting = disk(Nvrtc(failing)), background.Background(), threading.Event()
    jobs.submit(lambda: nvrtc.cubin("a", "source", ()))
    assert library.begun.wait(60)

    def wait_for_it():
        waiting.set()
        codes.append(nvrtc.cubin("a", "source", ()))

    codes = []
    thread = threading.Thread(target=wait_for_it)
    thread.start()
    assert waiting.wait(60)
    library.gate.set()
    thread.join()
    jobs.finish()
    assert codes == [b"source"]
    assert library.sources == ["source"] * (1 + failing)
    assert nvrtc.cubin("a", "source", ()) == b"source"
    assert len(library.sources) == 1 + failing
    assert not nvrtc._compiled


def test_a_disk_that_cannot_be_written_costs_one_compilation_alone(disk, monkeypatch):
    library = disk(Nvrtc())
    library.gate.set()
    monkeypatch.setattr(nvrtc, "write_atomically", lambda path, code: None)
    assert [nvrtc.cubin("b", "source", ()) for _ in range(3)] == [b"source"] * 3
    assert library.sources == ["source"]
    nvrtc._compiled.clear()
