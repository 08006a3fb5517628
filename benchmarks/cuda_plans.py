"""Plans the benchmark circuits and writes their steps to a file, so that a GPU machine without Qiskit can run them.

usage: cuda_plans.py OUT.pkl [N ...]
"""

import json
import pickle
import sys
import time
from pathlib import Path

import numpy as np
from qiskit import QuantumCircuit
from qiskit.circuit.library import QFTGate, efficient_su2, quantum_volume

from qsim_ozaki.cost import Device
from qsim_ozaki.lower import lower
from qsim_ozaki.plan import PlanOptions, plan

# Rates as `qsim_ozaki.cuda_calibrate` measures them; memory is what a fresh card has free.
H200 = Device(**json.loads((Path(__file__).parent / "devices.json").read_text())["NVIDIA H200"])


def circuits(n, seed=7):
    """The circuits of the comparison, as other engines' benchmarks write them."""
    rng = np.random.default_rng(seed)
    c = QuantumCircuit(n)
    c.h(range(n))
    yield "hadamard", c
    c = QuantumCircuit(n)
    for _ in range(10):
        c.h(range(n))
        for q in range(n):
            c.rz(rng.uniform(0, 6.28), q)
    yield "hadamard_rz_10", c
    c = QuantumCircuit(n)
    for q in range(n):
        c.ry(rng.uniform(0, 3), q)
    c.append(QFTGate(n), range(n))
    yield "qft", c.decompose("qft")
    yield "quantum_volume", quantum_volume(n, n // 2, seed=seed)
    c = QuantumCircuit(n)
    for d in range(20):
        for q in range(n):
            c.u(*rng.uniform(0, 6.28, 3), q)
        for q in range(d % 2, n - 1, 2):
            c.cz(q, q + 1)
    yield "random_20", c
    c = QuantumCircuit(n)
    for _ in range(10):
        for q in range(n - 1):
            c.rzz(0.3, q, q + 1)
        for q in range(n):
            c.rx(0.2, q)
    yield "trotter_10", c
    c = efficient_su2(n, reps=3, entanglement="linear")
    yield "efficient_su2", c.assign_parameters(rng.uniform(0, 6.28, c.num_parameters))


def main():
    """Writes {(name, n, precision, from_zero): (steps, predicted seconds, passes)}."""
    out, widths = sys.argv[1], [int(a) for a in sys.argv[2:]] or [12, 20, 30]
    plans = {}
    for n in widths:
        for name, circuit in circuits(n):
            (ops,) = lower(circuit).body  # no measurement: one run of operators
            for precision in ("double", "single"):
                for from_zero in (False, True):
                    start = time.perf_counter()
                    p = plan(ops, n, H200, PlanOptions(precision=precision, from_zero=from_zero))
                    seconds = time.perf_counter() - start
                    forecast = p.prediction
                    key = (name, n, precision, from_zero)
                    plans[key] = (p.steps, forecast.seconds, forecast.passes, ops, p.final_position)
                    kinds = " ".join(type(s).__name__[0] for s in p.steps)
                    print(
                        *key,
                        f"{forecast.passes:.2f} passes {forecast.seconds * 1e3:.1f} ms, planned in {seconds:.2f} s:",
                        kinds,
                    )
    Path(out).write_bytes(pickle.dumps(plans))


if __name__ == "__main__":
    main()
