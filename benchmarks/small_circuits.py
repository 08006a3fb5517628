"""Times one whole `run` of small circuits, translation and planning included, beside Aer's, and writes a JSON record.

usage: small_circuits.py OUT.json

Each circuit ends with measurements and takes 100 shots. Aer gets it transpiled for its basis beforehand, which is not
timed; ours takes it as it is. Each time is the median of several runs in a row after one that does not count, first
ours, then Aer's, with a pause before the next: for a while after a run Aer's idle threads keep their cores busy.
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

WIDTHS = (4, 6, 8, 10, 12, 14, 16)  # even: the hidden shift has no odd widths
SHOTS = 100
REPEATS = 15
PAUSE_SECONDS = 0.1


def median_ms(run, circuit):
    """How long ``run`` takes, result included."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        run(circuit, shots=SHOTS).result()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[1:])


def compare(name, num_qubits, ours, aer):
    """One row: both medians, in milliseconds."""
    circuit = build(name, num_qubits)
    circuit.measure_all()
    for_aer = transpile(circuit, aer)
    time.sleep(PAUSE_SECONDS)
    own, others = median_ms(ours.run, circuit), median_ms(aer.run, for_aer)
    return {"family": name, "qubits": num_qubits, "ours_ms": own, "aer_ms": others, "ratio": others / own}


def main(path):
    """All families at all widths."""
    ours, aer = OzakiBackend(), qiskit_aer.AerSimulator(method="statevector")
    rows = []
    for num_qubits in WIDTHS:
        for name, family in FAMILIES.items():
            if num_qubits >= family.min_qubits:
                rows.append(compare(name, num_qubits, ours, aer))
                print(
                    "{family:18} {qubits:3} ours {ours_ms:8.3f} ms  Aer {aer_ms:8.3f} ms  {ratio:6.2f}".format(
                        **rows[-1]
                    )
                )
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
