"""Times one whole `run` of small circuits, translation and planning included, beside Aer's, and writes a JSON record.

usage: small_circuits.py OUT.json

Each circuit ends with measurements and takes 100 shots. Aer gets it transpiled for its basis beforehand, which is not
timed; ours takes it as it is. Each time is the median of several blocks of runs in a row, the first of which does not
count; blocks of ours and of Aer's take turns, with a pause before ours: for a while after a run Aer's idle threads keep
their cores busy.
"""

import json
import platform
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import qiskit_aer
from qiskit import transpile

from qsim_ozaki import OzakiBackend
from qsim_ozaki.circuits import FAMILIES, build

WIDTHS = (4, 5, 6, 7, 8, 10, 12, 14, 16)
SHOTS = 100
BLOCKS, REPEATS = 3, 8
PAUSE_SECONDS = 0.1


def block(run, circuit):
    """How long ``run`` takes, result included, in milliseconds, several times."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        run(circuit, shots=SHOTS).result()
        times.append(1e3 * (time.perf_counter() - start))
    return times[1:]


def compare(name, num_qubits, ours, aer):
    """One row: both medians, in milliseconds; None where the family has no such width."""
    try:
        circuit = build(name, num_qubits)
    except ValueError:
        return None
    circuit.measure_all()
    for_aer = transpile(circuit, aer)
    own, others = [], []
    for _ in range(BLOCKS):
        time.sleep(PAUSE_SECONDS)
        own += block(ours.run, circuit)
        others += block(aer.run, for_aer)
    own, others = statistics.median(own), statistics.median(others)
    return {"family": name, "qubits": num_qubits, "ours_ms": own, "aer_ms": others, "ratio": others / own}


def main(path):
    """All families at all widths."""
    ours, aer = OzakiBackend(), qiskit_aer.AerSimulator(method="statevector")
    rows = []
    for num_qubits in WIDTHS:
        for name in FAMILIES:
            row = compare(name, num_qubits, ours, aer)
            if row:
                rows.append(row)
                print("{family:18} {qubits:3} ours {ours_ms:8.3f} ms  Aer {aer_ms:8.3f} ms  {ratio:6.2f}".format(**row))
    slower = [row for row in rows if row["ratio"] < 1]
    print(f"{len(rows)} circuits, {len(slower)} slower than Aer; least ratio {min(row['ratio'] for row in rows):.2f}")
    device = ours.run(build("ghz", 4), shots=1).result().results[0].metadata["device"]
    record = {
        "command": " ".join(sys.argv),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "python": platform.python_version(),
        "aer": qiskit_aer.__version__,
        "shots": SHOTS,
        "rows": rows,
    }
    Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
