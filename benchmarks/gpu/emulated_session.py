"""Checks and times emulated FP64 on a GPU in one call of at most nine minutes; each part has a time limit.

usage: emulated_session.py OUT.json [PART ...]
       emulated_session.py --part PART LINES.jsonl

Parts, in order: compile, layers, written_back, faults, pipeline, times_26, times_27, times_28, auto, hadamard,
founding, ncu.
Every part is a process; OUT.json is written after each, and what a part that is stopped had found stays. Needs CuPy,
cachetools and this package installed; without platformdirs, compiled kernels are kept in /tmp.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

if importlib.util.find_spec("platformdirs") is None:  # for this process and those that it starts
    stand_in = Path(tempfile.gettempdir()) / "qsim-ozaki-stand-in"
    stand_in.mkdir(exist_ok=True)
    text = f"import pathlib\n\n\ndef user_cache_path(name):\n    return pathlib.Path({str(stand_in)!r}) / name\n"
    (stand_in / "platformdirs.py").write_text(text, encoding="utf-8")
    sys.path.append(str(stand_in))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(stand_in), *filter(None, [os.environ.get("PYTHONPATH")])])

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "gpu"))  # emulated_ways checks bit for bit

import emulated_profile
import emulated_ways
import numpy as np
from emulated_inputs import BITS_34, COUNTS, PARITY, build_all, haar_on, random_amps

from qsim_ozaki.bench import GemmOptions
from qsim_ozaki.bench.blocks import founding, founding_cuda
from qsim_ozaki.bench.blocks.maps import timer
from qsim_ozaki.engines import fill, select
from qsim_ozaki.engines.cuda import calibrate
from qsim_ozaki.engines.cuda.device import kernels
from qsim_ozaki.engines.cuda.device.kernels import DOUBLE, SINGLE
from qsim_ozaki.engines.cuda.ozaki.block import EmulatedBlock
from qsim_ozaki.engines.cuda.ozaki.pipeline import Pipeline, pipeline
from qsim_ozaki.engines.cuda.tuning import FINISHED
from qsim_ozaki.ir import DenseBlock, Kind, Op
from qsim_ozaki.ir import Path as Arithmetic
from qsim_ozaki.ozaki import moduli
from qsim_ozaki.planner import PlanOptions, arithmetic, cost, cost_dense

SECONDS = {
    "compile": 60,
    "layers": 30,
    "written_back": 60,
    "faults": 30,
    "pipeline": 20,
    "times_26": 80,
    "times_27": 30,
    "times_28": 40,
    "auto": 50,
    "hadamard": 30,
    "founding": 40,
    "ncu": 45,
}
ACCURACIES = {"parity": None, "34 bits": 4e-9}
CHECK_QUBITS, FAULT_QUBITS = 20, 14
FAULT_GROUPS, FAULTS_PER_GROUP = 20, 50


class Lines:
    """The lines of a part, on disk as they come."""

    def __init__(self, path):
        self.path = Path(path)

    def add(self, **values):
        """One line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")
        print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()), flush=True)


def compile_all(engine, lines):
    """Every instance that the other parts need, on all cores."""
    wanted = [
        ("ozaki_naive", {}),
        ("founding_naive", {"CRT": "0"}),
        ("hadamard_tf32", {}),
        ("ozaki_product", {"RAW": "1"}),
    ]
    for name in ("ozaki_founding", "dense_held", "dense_streamed"):
        wanted += [(name, instance) for instance in kernels.KERNELS[name].instances]
    for k in range(7, 14):
        for real, count in [*((DOUBLE, count) for count in COUNTS), (SINGLE, BITS_34)]:
            hows = {Pipeline(), pipeline(k, count), Pipeline(FINISHED.get(k, 0), 8)}
            wanted += [each for how in hows for each in how.kernels(1 << k - 7, count, real)]
    seconds = build_all(engine, wanted)
    lines.add(part="compile", instances=len(wanted), seconds=seconds)


def layers(engine, lines):
    """The founding design's layers against the CPU twin, bit for bit; the production product against the naive one."""
    rng = np.random.default_rng(2)
    left, right = rng.uniform(-1, 1, (300, 200)), rng.uniform(-1, 1, (200, 170))
    for form in (founding.halves(), founding.one_level(200), founding.slices(5), founding.slices(7)):
        planes = founding.planes(left, form), founding.planes(np.ascontiguousarray(right.T), form)
        same = {}
        for number, (product, sums) in enumerate(founding.sums(*planes, form)):
            if form.moduli and number % 5 == 0:
                found = founding_cuda.multiply(engine.launcher, *planes, form, "sums", number)
                residues = founding_cuda.multiply(engine.launcher, *planes, form, "residues", number)
                same["sums"] = same.get("sums", True) and bool(np.array_equal(found, sums))
                expected = founding.residues_of(sums, form.moduli[product.modulus])
                same["residues"] = same.get("residues", True) and bool(np.array_equal(residues, expected))
        doubles = founding_cuda.multiply(engine.launcher, *planes, form)
        same["doubles"] = bool(np.array_equal(doubles, founding.multiply(*planes, form)))
        error = float(np.max(np.abs(doubles - left.astype(np.longdouble) @ right.astype(np.longdouble))))
        lines.add(part="layers", form=form.name, error=error, **same)
    form, size = founding.halves(), 2048
    left, right = rng.uniform(-1, 1, (2, size, size))
    found = founding_cuda.multiply(engine.launcher, founding.planes(left, form), founding.planes(right.T, form), form)
    lines.add(part="layers", form=form.name, size=size, error=float(np.max(np.abs(found - left @ right))))


def exact_error(engine, block, amps, before, numbers):
    """Largest error of some columns over their norm, in units of 2**-53."""
    index = block.row_offset.astype(np.int64)[:, None] | engine.launcher.cupy.asarray(
        block._column_offsets(numbers).astype(np.int64)
    )
    exact = block.block.matrix.astype(np.clongdouble) @ before.astype(np.clongdouble)
    found = amps[index].get().astype(np.clongdouble)
    return float(np.max(np.abs(found - exact) / np.linalg.norm(before, axis=0))) * 2.0**53


def some_columns(engine, block, amps, n, k, rng):
    """Numbers of a few columns, and their amplitudes."""
    numbers = np.sort(rng.integers(0, 1 << n - max(k, 7), max(6 >> max(k - 8, 0), 1)))  # a host takes long
    index = block.row_offset.astype(np.int64)[:, None] | engine.launcher.cupy.asarray(
        block._column_offsets(numbers).astype(np.int64)
    )
    return numbers, amps[index].get()


def written_back(engine, lines):
    """One kernel against two, bit for bit, at every size it is built for, at random targets."""
    rng, n = np.random.default_rng(3), CHECK_QUBITS
    for k, columns in FINISHED.items():
        for count in COUNTS:
            for dtype, real in ((np.complex128, "double"), (np.complex64, "float")):
                if real == "float" and count != BITS_34:
                    continue
                matrix = haar_on(engine, k)
                targets = tuple(int(q) for q in rng.permutation(n)[:k])
                start = random_amps(engine, n, dtype)
                found, checks = [], []
                for how in (Pipeline(), Pipeline(columns, 8)):
                    block, amps = EmulatedBlock(engine.launcher, matrix, targets, {}, count, how), start.copy()
                    checks.append(block.run(amps, {"REAL": real}))
                    found.append(amps)
                numbers, before = some_columns(engine, block, start, n, k, rng)
                error = exact_error(engine, block, found[1], before, numbers)
                lines.add(
                    part="written_back", k=k, moduli=count, precision=real, columns=columns,
                    same=bool((found[0] == found[1]).all()), redone=[each[0] for each in checks], error=error,
                    bound=float(moduli.error_bound(count, max(k, 7))) * 2.0**53,
                )  # fmt: skip


def faults(engine, lines):
    """A thousand flipped residues, half in a block's own way, half by two kernels: found, and the state right."""
    rng, caught, right, trials = np.random.default_rng(4), 0, 0, 0
    for group in range(FAULT_GROUPS):
        count, k, n = int(rng.choice(COUNTS[:2])), int(rng.choice([7, 8])), FAULT_QUBITS
        matrix = haar_on(engine, k, group)
        targets = tuple(int(q) for q in rng.permutation(n)[:k])
        how = pipeline(k, count) if group % 2 else Pipeline()
        block = EmulatedBlock(engine.launcher, matrix, targets, {}, count, how)
        start = random_amps(engine, n, seed=group)
        expected = start.copy()
        EmulatedBlock(engine.launcher, matrix, targets, {}, PARITY).run(expected, DOUBLE)
        for _ in range(FAULTS_PER_GROUP):
            at = int(rng.integers(block.operand.size))
            modulus, old = int(block.block.scheme.moduli[at >> 2 * k + 1, 0]), int(block.operand[at])
            block.operand[at] = moduli.balanced(old + int(rng.integers(1, modulus)), modulus)
            amps = start.copy()
            redone, _ = block.run(amps, DOUBLE)
            block.operand[at] = old
            distance = float(engine.launcher.cupy.linalg.norm(amps - expected))
            caught, trials = caught + (redone > 0), trials + 1
            right += distance <= 32 * float(moduli.error_bound(count, k))
    lines.add(part="faults", trials=trials, caught=caught, right=right)


def one_time(engine, block, amps, where, rng):
    """Milliseconds of a block, what memory alone would take, the error of a few columns beside the bound."""
    (n, k), clock = where, timer(engine)
    numbers, before = some_columns(engine, block, amps, n, k, rng)
    redone, residual = block.run(amps, DOUBLE)
    step = partial(block.run, amps, DOUBLE)
    error = exact_error(engine, block, amps, before, numbers) if k < 12 or n == 26 else None
    seconds = [clock(step) for _ in range(5)]
    return {
        "ms": 1e3 * float(np.median(seconds)),
        "spread_ms": 1e3 * (max(seconds) - min(seconds)) / 2,
        "memory_ms": 1e3 * block.bytes_per_amplitude(16) * amps.size / 4.3e12,
        "error": error,
        "bound": float(moduli.error_bound(block.num_moduli, max(k, 7))) * 2.0**53,
        "redone": redone,
        "residual": residual,
    }


def times(n, engine, lines):
    """Matrices of every size by the library's product and emulated; errors beside the bound."""
    rng, cupy, clock = np.random.default_rng(5), engine.launcher.cupy, timer(engine)
    amps = random_amps(engine, n)
    for k in (8, 9, 10, 11, 12, 7, 6, 5, 4, 3, 13) if n == 26 else range(8, 13):
        matrix = haar_on(engine, min(k, 12))
        matrix = matrix if k < 13 else np.kron(matrix, haar_on(engine, 1))
        targets = tuple(int(q) for q in rng.permutation(n)[:k])
        on_device, by_columns = cupy.asarray(matrix), amps.reshape(1 << k, -1)
        line = {"part": f"times_{n}", "k": k, "n": n}
        if k >= 6:
            product = partial(cupy.matmul, on_device, by_columns)
            product()
            line["library_ms"] = 1e3 * float(np.median([clock(product) for _ in range(3)]))
        for count in COUNTS if k < 12 else (moduli.num_moduli_for(None, k), BITS_34):
            block = EmulatedBlock(engine.launcher, matrix, targets, {}, count)
            found = one_time(engine, block, amps, (n, k), rng)
            lines.add(**line, moduli=count, columns=block.how.columns, **found)
            del block
        del on_device, by_columns
        cupy.get_default_memory_pool().free_all_blocks()


def auto(engine, lines):
    """The planner's choice for one matrix, beside both paths in turn, on the calibrated device."""
    rng, device, matrices, worst = np.random.default_rng(6), calibrate.cuda_device(engine), {}, {}
    lines.add(part="auto", device=asdict(device))
    wanted = [(max(k, 7), moduli.num_moduli_for(accuracy, k)) for k in range(3, 13) for accuracy in ACCURACIES.values()]
    build_all(engine, [row for k, count in wanted for row in pipeline(k, count).kernels(1 << k - 7, count, DOUBLE)])
    for n in (20, 22, 24, 26, 28):
        state = engine.allocate(n, "double")
        fill(engine.launcher.cupy, state.amps, 1)
        for k in range(1, 13):
            if k not in matrices:
                matrices[k] = haar_on(engine, k)
            op = Op(Kind.UNITARY, tuple(int(q) for q in rng.permutation(n)[:k]), matrices[k])
            for row in choices(engine, state, op, device):
                lines.add(part="auto", n=n, k=k, **row)
                worst[row["accuracy"]] = max(worst.get(row["accuracy"], (0.0,)), (row["loss"], n, k))
            engine.forget()
        del state
    for accuracy, (loss, n, k) in worst.items():
        lines.add(part="auto", largest_loss=loss, accuracy=accuracy, n=n, k=k)


def choices(engine, state, op, device):
    """A row for each accuracy: the choice, its loss against the better path, times and predictions of both."""
    n, k = state.num_qubits, len(op.targets)
    emulates = k >= arithmetic.EMULATED_BLOCK_QUBITS
    counts = {name: moduli.num_moduli_for(accuracy, k) for name, accuracy in ACCURACIES.items()} if emulates else {}
    steps = {count: DenseBlock(op, Arithmetic.OZAKI, count) for count in counts.values()} | {0: DenseBlock(op)}
    seconds = in_turn(engine, state, steps)
    native = DenseBlock(op, prediction=cost_dense.predict_matrix(op, cost.Extent.whole(n), n, "double", device))
    times = {"native_ms": 1e3 * seconds[0], "predicted_native_ms": 1e3 * native.prediction.seconds}
    if not emulates:
        yield {"accuracy": "any", "chosen": "native", "loss": 0.0, **times}
    for name, count in counts.items():
        options = PlanOptions("double", "auto", ACCURACIES[name])
        chosen = arithmetic.dense_block(native, 2.0**n, n, options, device)
        # the planner leaves smaller matrices to tile passes
        taken = chosen.num_moduli if k >= arithmetic.NATIVE_BLOCK_QUBITS else 0
        emulated = cost_dense.predict_emulated(op, count, 2.0**n, n, "double", device)
        times |= {"emulated_ms": 1e3 * seconds[count], "predicted_emulated_ms": 1e3 * emulated.seconds}
        loss = seconds[taken] / min(seconds[0], seconds[count]) - 1
        yield {"accuracy": name, "moduli": count, "chosen": "emulated" if taken else "native", "loss": loss, **times}
    redone = engine.take_checks(state).redone
    assert not redone, f"{redone} columns of k={k}, n={n} were redone: their times are not the block's"


def in_turn(engine, state, steps):
    """Median seconds of each step alone on an idle GPU, one after the other several times."""
    clock, times = timer(engine), {name: [] for name in steps}
    for step in steps.values():
        engine.run_step(state, step)
    for _ in range(25 if state.num_qubits <= 24 else 5):
        for name, step in steps.items():
            times[name].append(clock(partial(engine.run_step, state, step)))
    return {name: float(np.median(values)) for name, values in times.items()}


def hadamard(engine, lines):
    """`qsim-ozaki bench hadamard --engine cuda`."""
    from qsim_ozaki.bench.blocks import hadamard as bench_hadamard

    found = bench_hadamard.measure_hadamard(GemmOptions("cuda", 25, (12, 14), repeats=5))
    for line in found.as_json()["lines"]:
        lines.add(part="hadamard", **line)
    lines.add(part="hadamard", conclusions=found.conclusions())


def forms(engine, lines):
    """The founding forms beside the production path, as `qsim-ozaki bench gemm --engine cuda` has them."""
    from qsim_ozaki.bench.blocks import gemm

    found = gemm.measure_gemm(GemmOptions("cuda", 24, (8, 10), repeats=3))
    for line in found.as_json()["lines"]:
        lines.add(part="founding", **line)
    lines.add(part="founding", conclusions=found.conclusions())


def kernels_once(engine, _lines):
    """One block of each kind, for the profiler."""
    emulated_profile.kernels_once(engine)


def ncu(_engine, lines):
    """Nsight Compute's figures of the main kernels."""
    command = [sys.executable, __file__, "--part", "kernels_once", str(lines.path.with_suffix(".none"))]
    emulated_profile.profile(command, lines)


def ways(engine, lines):
    """The package's own way beside one stream, bit for bit and in turn."""
    emulated_ways.compare(engine, lines)


PARTS = {
    "compile": compile_all,
    "layers": layers,
    "written_back": written_back,
    "faults": faults,
    "pipeline": ways,
    "times_26": partial(times, 26),
    "times_27": partial(times, 27),
    "times_28": partial(times, 28),
    "auto": auto,
    "hadamard": hadamard,
    "founding": forms,
    "ncu": ncu,
    "kernels_once": kernels_once,
}


def session(out, names):
    """Every part in a process of its own; the record so far after each."""
    record = {"command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%d %H:%M"), "parts": {}, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in names or SECONDS:
            file, start = Path(folder) / f"{name}.jsonl", time.perf_counter()
            command = [sys.executable, __file__, "--part", name, str(file)]
            try:
                code = subprocess.run(command, timeout=SECONDS[name], check=False).returncode
            except subprocess.TimeoutExpired:
                code = "stopped"
            record["parts"][name] = {"code": code, "seconds": round(time.perf_counter() - start, 1)}
            print(name, record["parts"][name], flush=True)
            if file.exists():
                record["rows"] += [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            Path(out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--part":
        PARTS[sys.argv[2]](select("cuda") if sys.argv[2] != "ncu" else None, Lines(sys.argv[3]))
    else:
        session(sys.argv[1], sys.argv[2:])
