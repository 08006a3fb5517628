"""Times steps of the CUDA engine on one GPU: single passes, dense blocks, sampling, plans that were made elsewhere.

usage: single_steps.py PLANS.pkl OUT.json [check passes circuits dense sample large ...]
PLANS.pkl comes from cuda_plans.py; tests/ has to be on the path, for its reference. Times are medians of device
events after a warm-up. One pass is the measured time of an in-place scaling of the same state, so `passes` compares
with the memory's own speed.
"""

import json
import pathlib
import pickle
import sys
import time
from functools import partial

import numpy as np
from support.reference import apply_op

from qsim_ozaki.bench.blocks.maps import random_vector
from qsim_ozaki.bench.gpu.state import run_steps
from qsim_ozaki.engines import fill, haar, probes
from qsim_ozaki.engines.cuda import calibrate
from qsim_ozaki.engines.cuda import engine as cuda
from qsim_ozaki.engines.cuda.calibrate import pass_seconds
from qsim_ozaki.ir import EMPTY, DenseBlock, HadamardPass, Kind, Op, Path, TilePass

RECORD = {"rows": []}


def row(**values):
    """One line of the record, printed as it is made."""
    RECORD["rows"].append(values)
    print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()), flush=True)


def relabelled(vector, position, n):
    """The vector with program qubit q moved from physical qubit position[q] to bit q."""
    axes = [n - 1 - position[n - 1 - a] for a in range(n)]
    return vector.reshape((2,) * n).transpose(axes).reshape(-1)


def check(engine, plans):
    """Whole plans at small widths against NumPy, both precisions."""
    for (name, n, precision, from_zero), (steps, _, _, ops, position) in plans.items():
        if n > 14:
            continue
        start = random_vector(n, 1) if not from_zero else np.eye(1, 1 << n, 0, complex)[0]
        state = engine.load(start, precision)
        run_steps(engine, state, steps)
        want = start
        for op in ops:
            want = apply_op(want, op)
        error = float(np.linalg.norm(relabelled(engine.vector(state), position, n) - want))
        limit = 1e-12 if precision == "double" else 1e-3
        key = {"circuit": name, "qubits": n, "precision": precision, "from_zero": from_zero}
        row(section="check", **key, error=error, ok=bool(error < limit))


def dense_ops(qubits, count):
    """``count`` random two-qubit unitaries on neighbours among ``qubits``."""
    places = [number % (len(qubits) - 1) for number in range(count)]
    return tuple(Op(Kind.UNITARY, qubits[place : place + 2], haar(4, number)) for number, place in enumerate(places))


def passes(engine, n=30):
    """Single tile passes: nothing, H on all tile qubits, at several places; batched transforms."""
    for precision in ("double", "single"):
        state = engine.allocate(n, precision)
        fill(engine.launcher.cupy, state.amps, 1)
        unit = pass_seconds(engine.launcher, state)
        key = {"section": "pass", "precision": precision, "qubits": n}
        row(**key, what="in-place scale", seconds=unit, bytes_per_s=2 * state.amps.nbytes / unit)
        tile = 12 if precision == "double" else 13
        line = tile - 9
        for base in (line, 9, 15, 21):
            qubits = (*range(line), *range(base, base + 9))
            for what, ops in (
                ("empty", probes.NOTHING),
                ("9 H", (Op(Kind.HADAMARD, qubits[line:], EMPTY),)),
                ("all H", (Op(Kind.HADAMARD, qubits, EMPTY),)),
                ("10 layers of rotations", probes.rotations(qubits, 10)),
                ("20 dense pairs", dense_ops(qubits, 20)),
            ):
                step = TilePass(tuple(qubits), tuple(ops))
                t = calibrate.step_seconds(engine, state, step)
                row(section="pass", what=what, base=base, precision=precision, qubits=n, seconds=t, passes=t / unit)
        step = HadamardPass(tuple(range(tile)))
        t = calibrate.step_seconds(engine, state, step)
        row(section="pass", what="batched transforms", precision=precision, qubits=n, seconds=t, passes=t / unit)


def circuits(engine, plans, n=30):
    """Whole plans at full width."""
    for precision in ("double", "single"):
        state = engine.allocate(n, precision)
        unit = pass_seconds(engine.launcher, state)
        for (name, width, prec, from_zero), (steps, predicted, planned, _, _) in plans.items():
            if width != n or prec != precision:
                continue
            fill(engine.launcher.cupy, state.amps, 1)
            start = time.perf_counter()
            run_steps(engine, state, steps)
            engine.launcher.cupy.cuda.Device().synchronize()
            first = time.perf_counter() - start
            engine.compiler.finish()
            t = calibrate.event_seconds(engine.launcher.cupy, partial(run_steps, engine, state, steps), 3)
            key = {"circuit": name, "qubits": n, "precision": precision, "from_zero": from_zero}
            forecast = {"planned_passes": planned, "predicted_seconds": predicted}
            row(section="circuit", **key, seconds=t, passes=t / unit, **forecast, first_run_seconds=first)


def dense(engine, n=28):
    """Dense blocks on low, high and spread targets."""
    for precision in ("double", "single"):
        state = engine.allocate(n, precision)
        fill(engine.launcher.cupy, state.amps, 1)
        unit = pass_seconds(engine.launcher, state)
        for k in range(2, 11):
            matrix = haar(1 << min(k, 8), k)
            if k > 8:
                matrix = np.kron(haar(1 << k - 8, 1), matrix)
            spread = sorted(int(q) for q in np.random.default_rng(k).permutation(n)[:k])
            for where, targets in (("low", range(k)), ("high", range(n - k, n)), ("spread", spread)):
                step = DenseBlock(Op(Kind.UNITARY, tuple(targets), matrix))
                t = calibrate.event_seconds(engine.launcher.cupy, partial(engine.run_step, state, step), 3)
                key = {"k": k, "targets": where, "qubits": n, "precision": precision}
                row(section="dense", **key, seconds=t, passes=t / unit, tflops=8 * 2.0 ** (k + n) / t / 1e12)
                if k >= 8 and precision == "double":
                    step = DenseBlock(step.op, Path.OZAKI, 15)
                    t = calibrate.event_seconds(engine.launcher.cupy, partial(engine.run_step, state, step), 3)
                    row(section="emulated", **key, seconds=t, passes=t / unit)


def sample(engine, n=28):
    """A million shots, marginals, the norm, and an Ising chain's energy beside one copy of the state to the host."""
    state = engine.allocate(n, "double")
    fill(engine.launcher.cupy, state.amps, 1)
    uniforms = np.random.default_rng(3).random(1_000_000)
    bits = [1 << q for q in range(n)]
    x, z = (np.array(masks, np.uint64) for masks in (bits + [0] * (n - 1), [0] * n + [3 * bit for bit in bits[:-1]]))
    for what, action in (
        ("norm", lambda: engine.norm(state)),
        ("million samples", lambda: engine.sample(state, uniforms)),
        ("marginal of 10", lambda: engine.probabilities(state, range(3, 13))),
        (f"{x.size} Pauli strings of {n + 1} flips", lambda: engine.pauli_values(state, x, z)),
        ("the state to the host", lambda: engine.vector(state)),
    ):
        action()
        start = time.perf_counter()
        action()
        row(section="sample", what=what, qubits=n, seconds=time.perf_counter() - start)


def rotation(q, angle):
    """RY of twice the angle."""
    c, s = np.cos(angle), np.sin(angle)
    return Op(Kind.UNITARY, (q,), np.array([[c, -s], [s, c]], complex))


def large(engine):
    """32 and 33 qubits: norm, known amplitudes, sampled marginals."""
    for n in (32, 33):
        state = engine.allocate(n, "double")
        angles = np.random.default_rng(n).uniform(0.2, 1.4, n)
        ops = [rotation(q, a) for q, a in enumerate(angles)]
        flips = [Op(Kind.PERMUTATION, (q + 1,), np.ones(2, complex), (q,), 1, np.array([1, 0])) for q in range(n - 1)]
        start = time.perf_counter()
        for first in range(3, n, 9):
            last = min(first + 9, n)
            own = tuple(ops[0 if first == 3 else first : last])
            engine.run_step(state, TilePass((0, 1, 2, *range(first, last)), own))
        low = flips[:11], flips[11:20], flips[20:29], flips[29:]
        for group in low:
            if group:
                mixed = sorted({op.targets[0] for op in group} | {0, 1, 2})
                engine.run_step(state, TilePass(tuple(mixed), tuple(group)))
        engine.launcher.cupy.cuda.Device().synchronize()
        seconds = time.perf_counter() - start
        norm = engine.norm(state)
        index = np.random.default_rng(5).integers(0, 1 << n, 1000)
        got = engine.launcher.cupy.asnumpy(state.amps[engine.launcher.cupy.asarray(index)])
        before = index ^ (index << 1 & ((1 << n) - 1))  # the chain of CX sums prefixes: undo it by differences
        want = np.ones(1000)
        for q, a in enumerate(angles):
            want = want * np.where(before >> q & 1, np.sin(a), np.cos(a))
        error = float(np.abs(got - want).max() * 2 ** (n / 2))
        shots = engine.sample(state, np.random.default_rng(6).random(100_000))
        top = float(((shots ^ shots << 1) >> (n - 1) & 1).mean())
        known = {"worst_amplitude_error": error, "top_marginal": top, "expected": float(np.sin(angles[-1]) ** 2)}
        row(section="large", qubits=n, seconds=seconds, norm=norm, **known)
        del state, shots  # the next one needs the memory


def main():
    """Runs the sections asked for and writes the record after each."""
    plans = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
    engine = cuda.create()
    runtime = engine.launcher.cupy.cuda.runtime
    RECORD.update(
        card=engine.launcher.device_name,
        date=time.strftime("%Y-%m-%d"),
        command="benchmarks/single_steps.py " + " ".join(sys.argv[3:]),
        versions={
            "cupy": engine.launcher.cupy.__version__,
            "numpy": np.__version__,
            "driver": runtime.driverGetVersion(),
            "runtime": runtime.runtimeGetVersion(),
        },
    )
    sections = {
        "check": lambda: check(engine, plans),
        "rates": lambda: row(section="rates", **calibrate.measure(engine)),
        "passes": lambda: passes(engine),
        "circuits": lambda: circuits(engine, plans),
        "dense": lambda: dense(engine),
        "sample": lambda: sample(engine),
        "large": lambda: large(engine),
    }
    for name in sys.argv[3:]:
        start = time.time()
        try:
            sections[name]()
        except Exception as error:  # a failing section must not lose the others' numbers
            row(section=name, failed=repr(error)[:500])
        engine.launcher.cupy.get_default_memory_pool().free_all_blocks()
        print(f"## {name} took {time.time() - start:.1f} s", flush=True)
        pathlib.Path(sys.argv[2]).write_text(json.dumps(RECORD, indent=1))


if __name__ == "__main__":
    main()
