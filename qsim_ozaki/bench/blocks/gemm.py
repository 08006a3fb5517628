"""The block experiment: a Haar-random matrix on k qubits of a random state, native, by a library, by each emulation.

In: options. Out: an `Experiment`. It prints nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import qsim_ozaki._native as _native
from qsim_ozaki.bench.blocks import founding
from qsim_ozaki.bench.blocks.experiment import Experiment, Line, Variant, environment, now, renamed
from qsim_ozaki.bench.blocks.maps import BITS_34, BlockMap, make_engine, random_vector
from qsim_ozaki.engines import Engine, haar
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline
from qsim_ozaki.engines.cuda.tuning import FINISHED
from qsim_ozaki.errors import OptionError
from qsim_ozaki.ozaki import moduli

SETS = ("vnni", "avx2", "portable")  # of instructions, widest first, and what the extension is told to use them
TOLD = {"vnni": "avx512", "avx2": "avx2", "portable": "portable"}
ONLY = ("native", "library", "emulated", "founding")
MAX_SIZE = 13
CHILD_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class GemmOptions:
    """The maps, sizes and engine that are measured.

    Attributes:
        engine: ``"cpu"`` or ``"cuda"``.
        num_qubits: of the state.
        sizes: qubits of the matrix.
        only: groups of variants, of `ONLY`.
        repeats: counted steps of each.
        threads: of the CPU engine, 0 for all cores.
        others: whether other processes measure what this one cannot: narrower instructions, cuBLAS' own emulation.
        seed: of matrices, targets and state.
    """

    engine: str = "cpu"
    num_qubits: int = 18
    sizes: tuple[int, ...] = (6, 8, 10)
    only: tuple[str, ...] = ONLY
    repeats: int = 5
    threads: int = 0
    others: bool = True
    seed: int = 7


def command(name: str, options: GemmOptions) -> list[str]:
    """The words after ``bench`` that repeat the run, without its files and other processes."""
    words = [name, "--engine", options.engine, "--qubits", str(options.num_qubits)]
    words += [word for size in options.sizes for word in ("--size", str(size))]
    words += [word for group in options.only if options.only != ONLY for word in ("--only", group)]
    return [*words, "--repeats", str(options.repeats), "--threads", str(options.threads), "--seed", str(options.seed)]


def check(options: GemmOptions) -> None:
    """Refuses what cannot be measured.

    Raises:
        OptionError: a group is not known, or a matrix is too large.
    """
    for group in options.only:
        if group not in ONLY:
            raise OptionError(f"a group {group!r} was asked for; there are {', '.join(ONLY)}")
    limit = min(MAX_SIZE, options.num_qubits - 4)
    for size in options.sizes:
        if not 1 <= size <= limit:
            raise OptionError(
                f"a matrix on {size} qubits of {options.num_qubits} was asked for; the limit is {limit}. "
                "Use more --qubits."
            )


def begin(title: str, name: str, options: GemmOptions, engine: Engine) -> Experiment:
    """An experiment that is about to be measured: no lines yet.

    Args:
        title: what is done.
        name: of the subcommand of ``qsim-ozaki bench``.
        options: of the experiment.
        engine: it applies the maps.
    """
    return Experiment(
        title,
        now(),
        engine.device_name,
        shlex.join(["qsim-ozaki", "bench", *command(name, options)]),
        options.num_qubits,
        engine.threads,
        options.repeats,
    )


def measure_gemm(options: GemmOptions, progress: Callable[[Experiment], None] = lambda _: None) -> Experiment:
    """Times every variant at every size, in turn; ``progress`` is called after each size.

    Raises:
        OptionError: what was asked for cannot be measured.
        EngineError: there is no such engine.
    """
    check(options)
    engine = make_engine(options.engine, options.threads)
    experiment = begin("A matrix on k qubits of a state", "gemm", options, engine)
    vector = random_vector(options.num_qubits, options.seed)
    for size in options.sizes:
        rng = np.random.default_rng(options.seed + size)
        targets = tuple(int(q) for q in rng.permutation(options.num_qubits)[:size])
        block = BlockMap(engine, haar(1 << size, options.seed), targets, vector)
        lines = block.trial().run(variants(block, options.only), options.repeats)
        if options.others:
            lines += others(replace(options, sizes=(size,), engine=str(engine.name)))
        experiment = replace(experiment, lines=(*experiment.lines, *lines))
        progress(experiment)
    return experiment


def counts(size: int) -> tuple[int, int]:
    """Moduli of a matrix on ``size`` qubits: for FP64 parity, and for about 34 bits."""
    parity = moduli.num_moduli_for(None, size)
    assert parity is not None  # sizes are at most MAX_SIZE
    return parity, BITS_34


def variants(block: BlockMap, only: tuple[str, ...]) -> list[Variant]:
    """The variants of one matrix."""
    size, out = len(block.targets), []
    depth = 2 << size  # of the real embedding
    if "library" in only:
        out.append(block.library())
    if "native" in only:
        out.append(block.native())
    if "emulated" in only and block.on_gpu:
        for count in counts(size):
            out.append(block.emulated_on_gpu(count, Pipeline()))
            if max(size, 7) in FINISHED:
                out.append(block.emulated_on_gpu(count, Pipeline(FINISHED[max(size, 7)], 8)))
    elif "emulated" in only:
        name = f"emulated {_native.ozaki_isa()}, in place"
        out += [block.emulated(count, name) for count in counts(size)]
    if "founding" in only:
        forms = [
            (founding.halves(), "34 bits"),
            (founding.one_level(depth), "34 bits"),
            (founding.slices(5), "34 bits"),
            (founding.slices(7), "double"),
        ]
        out += [
            block.by_form(form, accuracy)
            for form, accuracy in forms
            if len(form.bits) == 1 or depth <= founding.MAX_HALVES_DEPTH
        ]
    return out


def others(options: GemmOptions) -> list[Line]:
    """Measures what needs a process of its own: narrower instruction sets on a CPU, cuBLAS' emulation on a GPU."""
    lines: list[Line] = []
    if options.engine == "cuda" and "library" in options.only:
        changes = {"CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"}
        lines += _of_another_process(replace(options, only=("library",)), changes, "(cuBLAS' own emulation)")
    if options.engine == "cpu" and "emulated" in options.only and "QSIM_OZAKI_ISA" not in os.environ:
        emulated = replace(options, only=("emulated",))
        for name in SETS[SETS.index(_native.ozaki_isa()) + 1 :]:
            lines += _of_another_process(emulated, {"QSIM_OZAKI_ISA": TOLD[name]})
    return lines


def _of_another_process(options: GemmOptions, changes: Mapping[str, str], suffix: str = "") -> list[Line]:
    """The lines of ``options`` measured with these environment variables, marked by ``suffix``; why not, where not."""
    program = "import sys; from qsim_ozaki.bench.blocks.gemm import answer; answer(sys.argv[1])"
    command = [sys.executable, "-P", "-c", program, json.dumps(asdict(options))]
    done = subprocess.run(
        command, env=environment(**changes), capture_output=True, text=True, timeout=CHILD_SECONDS, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        return [Line(size, f"another process {suffix}".strip(), "double", note=reason) for size in options.sizes]
    return renamed(json.loads(done.stdout)["lines"], suffix)


def answer(words: str) -> None:
    """Measures the options that another process sent as JSON, and prints the experiment as JSON."""
    fields: dict[str, Any] = json.loads(words)
    fields |= {"sizes": tuple(fields["sizes"]), "only": tuple(fields["only"]), "others": False}
    print(json.dumps(measure_gemm(GemmOptions(**fields)).as_json()))
