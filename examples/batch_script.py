"""Many rows of parameters on several processes, reproducible row by row, written as JSON."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from qiskit.circuit.library import efficient_su2

from qsim_ozaki import OzakiBackend, to_jsonable

ROWS = 300

if __name__ == "__main__":  # worker processes import this file
    circuit = efficient_su2(8, reps=2)
    circuit.measure_all()
    rows = np.random.default_rng(7).uniform(-np.pi, np.pi, (ROWS, circuit.num_parameters))
    backend = OzakiBackend(seed_simulator=7, shots=200)

    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        result = backend.run(circuit, parameter_binds=rows, executor=pool).result()
    Path("rows.json").write_text(json.dumps(to_jsonable(result)))

    again = backend.run(circuit, parameter_binds=rows).result()
    same = all(result.get_counts(row) == again.get_counts(row) for row in range(ROWS))
    print(f"{len(result.results)} rows written to rows.json")
    print(f"here and on two processes: {'the same counts' if same else 'other counts'}")
