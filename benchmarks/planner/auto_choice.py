"""Times `auto` beside native and emulated for one matrix on k qubits, over k and n, at both accuracies.

usage: auto_choice.py OUT.json ENGINE [LEAST_N LARGEST_N [LARGEST_K]]

Plans and runs are the planner's own: a plan for each arithmetic, their runs in turn, the least of several. `auto` that
does what native (or emulated) does has that one's time: only the choice is compared. A row's `loss` is its time over
the better single path's, less one; the limit is 5 %.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from qsim_ozaki.bench.blocks.maps import make_engine, random_vector, timer
from qsim_ozaki.engines import haar
from qsim_ozaki.ir import DenseBlock, Kind, Op, Relabel
from qsim_ozaki.ir import Path as Arithmetic
from qsim_ozaki.planner import PlanOptions, plan

ACCURACIES = {"parity": None, "34 bits": 4e-9}
LIMIT = 0.05
REPEATS = {"cpu": 3, "cuda": 5}
SKIP_SECONDS = 20.0  # predicted for one run


def path_of(steps):
    """The arithmetic that a plan's matrix gets."""
    blocks = [step for step in steps if isinstance(step, DenseBlock)]
    return "emulated" if any(step.path is Arithmetic.OZAKI for step in blocks) else "native"


def run(engine, state, steps):
    """All steps an engine does."""
    for step in steps:
        if not isinstance(step, Relabel):
            engine.run_step(state, step)


def row(engine, state, k, accuracy, rng):
    """One line: seconds of both paths, what auto chose, its loss; None where one path takes too long."""
    n = state.num_qubits
    op = Op(Kind.UNITARY, tuple(int(q) for q in rng.permutation(n)[:k]), haar(1 << k, k))
    device, plans = engine.device(), {}
    for arithmetic in ("native", "emulated", "auto"):
        if arithmetic == "emulated" and k < 3:
            continue  # matrices this small are never emulated
        options = PlanOptions(arithmetic=arithmetic, accuracy=ACCURACIES[accuracy])
        plans[arithmetic] = plan([op], n, device, options).steps
    predicted = {name: sum(step.prediction.seconds for step in steps) for name, steps in plans.items()}
    if max(predicted.values()) > SKIP_SECONDS:
        return None
    clock = timer(engine)
    singles = [name for name in ("native", "emulated") if name in plans]
    for name in singles:
        run(engine, state, plans[name])
    times = {name: [] for name in singles}
    for _ in range(REPEATS[engine.name]):
        for name in singles:
            times[name].append(clock(lambda name=name: run(engine, state, plans[name])))
    seconds = {name: min(values) for name, values in times.items()}
    chosen = path_of(plans["auto"])
    best = min(seconds, key=seconds.get)
    return {
        "qubits": n,
        "targets": k,
        "accuracy": accuracy,
        "seconds": seconds,
        "predicted": predicted,
        "chosen": chosen,
        "best": best,
        "loss": seconds[chosen] / seconds[best] - 1,
    }


def main(path, name="cpu", least=20, largest=24, largest_targets=12):
    """The grid, then the record."""
    engine, rng = make_engine(name, 0), np.random.default_rng(5)
    record = {
        "command": " ".join(sys.argv),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": engine.device().name,
        "rows": [],
    }
    for n in range(int(least), int(largest) + 1):
        state = engine.load(random_vector(n, n), "double")
        for k in range(1, int(largest_targets) + 1):
            for accuracy in ACCURACIES:
                found = row(engine, state, k, accuracy, rng)
                if found:
                    record["rows"].append(found)
                    print(
                        f"n={n} k={k:2} {accuracy:8} chosen {found['chosen']:8} loss {100 * found['loss']:5.1f} %  "
                        + "  ".join(f"{key} {1e3 * value:.3g} ms" for key, value in found["seconds"].items()),
                        flush=True,
                    )
        Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    over = [found for found in record["rows"] if found["loss"] > LIMIT]
    print(f"{len(record['rows'])} rows, {len(over)} with a loss above {100 * LIMIT:.0f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
