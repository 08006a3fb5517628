"""Guidance: the documented times, what a plan suggests, and workers that share one machine."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from qiskit import QuantumCircuit

from qsim_ozaki import OzakiBackend
from qsim_ozaki.bench.record import OURS
from qsim_ozaki.circuits import build
from qsim_ozaki.ir import Device
from qsim_ozaki.planner import plan_options
from qsim_ozaki.provider import prepare_circuit
from qsim_ozaki.runtime import plan_program

ROOT = Path(__file__).parents[2]
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def recorded(name):
    record = json.loads((ROOT / "benchmarks" / "records" / f"{name}.json").read_text())
    return record, Device.from_record(record["ceilings"])


def planned(family, num_qubits, device, seed=7, **options):
    used = OzakiBackend(**options).merged_options({})
    return plan_program(prepare_circuit(build(family, num_qubits, seed), used).code, device, plan_options(used))


def table(heading):
    """The rows of the first table of the guide's page on times after ``heading``: a dict per row."""
    lines = (ROOT / "docs" / "guide" / "plans_and_times.md").read_text().partition(heading)[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:] if len(row) == len(rows[0])]


def test_t66_the_documented_times_are_those_that_a_plan_predicts():
    _, device = recorded("cpu24")
    rows = table("## How long circuits take")
    assert [int(row["qubits"]) for row in rows] == [12, 16, 20, 24, 28, 30]
    for row in rows:
        num_qubits = int(row["qubits"])
        for family, text in list(row.items())[2:]:
            number, unit = text.split()
            made = planned(family, num_qubits, device)
            assert made.prediction.seconds == pytest.approx(float(number) * SECONDS[unit], rel=0.5), (
                family,
                num_qubits,
            )
        size, unit = row["memory"].split()
        assert made.memory_bytes == float(size) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]


@pytest.mark.parametrize("name", ["cpu22", "cpu24"])
def test_t66_predictions_are_near_what_was_measured(name):
    record, device = recorded(name)
    compared = 0
    for row in record["rows"]:
        if row["family"].startswith("dense"):  # many random matrices: minutes to make
            continue
        for timing in row["timings"]:
            if timing["simulator"] == OURS and timing["model"]:
                options = {"precision": timing["precision"]}
                made = planned(row["family"], row["num_qubits"], device, record["seed"], **options)
                ratio = made.prediction.seconds / timing["model"]["kernel_seconds"]
                assert 0.5 < ratio < 2, (row["family"], timing["precision"])
                compared += 1
    assert compared >= 16


def test_t66_a_plan_suggests_what_would_do_better():
    wide = QuantumCircuit(16)
    wide.h(range(16))
    wide.cx(0, 1)
    plan = OzakiBackend(max_memory_bytes=1 << 19).plan(wide)
    assert plan.suggestions == ("precision='single' fits: 512.0 KiB",)
    assert plan.explain().endswith("suggestion: precision='single' fits: 512.0 KiB")
    assert "<p>suggestion: precision=&#x27;single&#x27; fits" in plan._repr_html_()
    (text,) = OzakiBackend(max_memory_bytes=1 << 18).plan(wide).suggestions
    assert text == "use at most 14 qubits: no option makes 16 fit"
    dense = QuantumCircuit(14)
    dense.h(range(14))
    dense.unitary(np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0], range(6))
    backend = OzakiBackend(arithmetic="emulated")
    found = " ".join(backend.plan(dense).suggestions)
    times = re.search(r"arithmetic='auto' is predicted to take (.+?) instead of (.+? \w+)", found).groups()
    slow, fast = (float(t.split()[0]) * SECONDS[t.split()[1]] for t in times[::-1])
    assert slow > 1.3 * fast
    assert fast == pytest.approx(OzakiBackend().plan(dense).prediction.seconds, rel=0.01)
    assert not OzakiBackend(precision="single").plan(wide).suggestions


def test_t68_rows_go_to_whichever_worker_is_free():
    """What one machine shows of a scheduler: parts of unequal work on two workers, each result in its place."""
    short, long = QuantumCircuit(3), QuantumCircuit(12)
    for circuit in (short, long):
        circuit.h(range(circuit.num_qubits))
        circuit.measure_all()
    circuits = [long, *[short] * 6, long, short]
    backend = OzakiBackend(seed_simulator=2, shots=100)
    want = backend.run(circuits).result()
    done = []
    with ThreadPoolExecutor(2) as pool:
        job = backend.run(circuits, executor=pool, progress=lambda rows, _: done.append(rows))
        found = job.result()
    assert found.get_counts() == want.get_counts()
    assert done == list(range(1, 10))
