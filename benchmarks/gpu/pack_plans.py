"""Plans the benchmark circuits and writes their steps to a file, so that a GPU machine without Qiskit can run them.

usage: pack_plans.py OUT.pkl [N ...]
"""

import json
import pickle
import sys
import time
from pathlib import Path

from qsim_ozaki.circuits import build
from qsim_ozaki.ir import Device
from qsim_ozaki.lowering import lower
from qsim_ozaki.planner import PlanOptions, plan

# Rates as `qsim_ozaki.engines.cuda.calibrate` measures them; memory is what a fresh card has free.
DEVICES = Path(__file__).resolve().parents[2] / "tests" / "support" / "devices.json"
H200 = Device.from_record(json.loads(DEVICES.read_text())["NVIDIA H200"])


# names of the records kept so far, and the families of `qsim_ozaki.circuits`
FAMILIES = {
    "hadamard": "hadamard",
    "hadamard_rz_10": "hadamard_layers",
    "qft": "qft",
    "quantum_volume": "quantum_volume",
    "random_20": "random_u_cz",
    "trotter_10": "trotter_ising",
    "efficient_su2": "efficient_su2",
}


def circuits(n, seed=7):
    """The circuits of the comparison with their names."""
    for name, family in FAMILIES.items():
        yield name, build(family, n, seed)


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
