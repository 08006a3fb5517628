"""The QASMBench files, where they lie beside the repository: amplitudes, counts, and errors of the too wide ones.

QSIM_OZAKI_QASMBENCH_QUBITS (12) is the widest file that is run.
"""

import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from qiskit import transpile
from qiskit.quantum_info import Statevector
from support.reference_dynamic import distribution

from qsim_ozaki import OzakiBackend, save_statevector
from qsim_ozaki.cli.load import load_circuit
from qsim_ozaki.errors import CapacityError, QsimError

FOLDER = Path(__file__).parents[3] / "shared" / "qasmbench"
MAX_QUBITS = int(os.environ.get("QSIM_OZAKI_QASMBENCH_QUBITS", "12"))
LIMIT_QUBITS = 24  # of the memory limit that the too wide files meet
# these files name a register that they never declare
BROKEN = {"vqe_uccsd_n4", "vqe_uccsd_n8"}
MID_CIRCUIT = {"cc_n12", "cc_n32", "cc_n64", "inverseqft_n4", "qec_sm_n5", "seca_n11", "square_root_n18"}
SHOTS = 4000


def width(path):
    return int(path.stem.rpartition("_n")[2])


def files(wanted):
    """Test parameters for the files that ``wanted`` accepts; one skipped parameter where the folder is absent."""
    paths = sorted(FOLDER.glob("*/*.qasm"), key=lambda path: (width(path), path.stem))
    chosen = [pytest.param(path, id=path.stem) for path in paths if wanted(path)]
    reason = "no ../shared/qasmbench beside the repository" if not paths else "no file of that width"
    return chosen or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))]


def fits(path):
    return width(path) <= MAX_QUBITS and path.stem not in BROKEN


@pytest.mark.parametrize("path", files(lambda path: fits(path) and path.stem not in MID_CIRCUIT))
def test_amplitudes(path):
    circuit = load_circuit(str(path)).remove_final_measurements(inplace=False)
    want = np.asarray(Statevector(circuit))
    save_statevector(circuit)
    got = np.asarray(OzakiBackend(threads=2).run(circuit, shots=1).result().data(0)["statevector"])
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("path", files(lambda path: fits(path) and path.stem not in MID_CIRCUIT))
def test_counts_of_a_file_follow_its_amplitudes(path):
    circuit = load_circuit(str(path))
    state = Statevector(circuit.remove_final_measurements(inplace=False))
    qubit_of = {}  # the qubit behind each classical bit, the last write wins
    for instruction in circuit.data:
        if instruction.operation.name == "measure":
            qubit_of[circuit.find_bit(instruction.clbits[0]).index] = circuit.find_bit(instruction.qubits[0]).index
    marginal = state.probabilities([qubit_of[bit] for bit in sorted(qubit_of)])
    expected = Counter()
    for index in np.flatnonzero(marginal > 1e-15).tolist():
        value = sum((index >> j & 1) << bit for j, bit in enumerate(sorted(qubit_of)))
        expected[format(value, f"0{circuit.num_clbits}b")] += marginal[index] * SHOTS
    result = OzakiBackend(threads=2, seed_simulator=11).run(circuit, shots=SHOTS).result()
    counts = {bits.replace(" ", ""): count for bits, count in result.get_counts().items()}
    assert sum(counts.values()) == SHOTS
    assert all(expected[bits] > 1e-9 for bits in counts), "an outcome that cannot happen"
    assert_same_distribution(counts, {bits: value for bits, value in expected.items() if value > 1e-9}, spread=1)


@pytest.mark.parametrize("path", files(lambda path: fits(path) and path.stem in MID_CIRCUIT))
def test_counts_of_mid_circuit_files_are_aers(path):
    aer = pytest.importorskip("qiskit_aer", reason="extra 'compare' is not installed")
    circuit = load_circuit(str(path))
    shots = 1000 if width(path) <= 12 else 200  # Aer runs every shot from the start
    counts = OzakiBackend(threads=2, seed_simulator=11).run(circuit, shots=shots).result().get_counts()
    simulator = aer.AerSimulator(method="statevector", seed_simulator=12)
    reference = simulator.run(transpile(circuit, simulator, optimization_level=0), shots=shots).result().get_counts()
    assert sum(counts.values()) == shots
    assert_same_distribution(counts, reference, spread=2)


@pytest.mark.parametrize("path", files(lambda path: fits(path) and path.stem in MID_CIRCUIT))
def test_exact_probabilities_of_mid_circuit_files_are_the_references(path):
    circuit = load_circuit(str(path))
    counts = OzakiBackend(threads=2).run(circuit, shots=None).result().data(0)["counts"]
    got = {int(text, 16): probability for text, probability in counts.items()}
    want = distribution(circuit)
    for value in got.keys() | want.keys():
        assert got.get(value, 0) == pytest.approx(want.get(value, 0), abs=1e-11), f"{value:b}"


def assert_same_distribution(counts, reference, spread):
    """Chi-square, rare outcomes taken together; ``spread`` is 1 for an exact reference, 2 for one that is a sample."""
    observed, expected = Counter(counts), Counter(reference)
    rare = [bits for bits in observed | expected if expected[bits] < 10]
    for table in (observed, expected):
        table["rare"] = sum(table.pop(bits, 0) for bits in rare)
    cells = [bits for bits in expected if expected[bits] > 0 or observed[bits] > 0]
    statistic = sum((observed[b] - expected[b]) ** 2 / (spread * max(expected[b], 1)) for b in cells)
    freedom = max(len(cells) - 1, 1)
    # Wilson-Hilferty: five standard deviations, so one false alarm in 3 million
    limit = freedom * (1 - 2 / (9 * freedom) + 5 * np.sqrt(2 / (9 * freedom))) ** 3
    assert statistic <= limit, f"chi-square {statistic:.1f} over {limit:.1f}: {observed} against {expected}"


@pytest.mark.parametrize("path", files(lambda path: width(path) > LIMIT_QUBITS and path.stem not in MID_CIRCUIT))
def test_a_file_too_wide_says_needed_and_available_bytes(path):
    circuit = load_circuit(str(path))
    backend = OzakiBackend(max_memory_bytes=16 << LIMIT_QUBITS)
    with pytest.raises(CapacityError) as error:
        backend.run(circuit, shots=1).result()
    message = str(error.value)
    needed = re.search(rf"{width(path)} qubits need (?:([\d.e+]+) (\wiB)|2\^(\d+) B)", message)
    assert needed, message
    if needed[3]:
        assert 2 ** int(needed[3]) == 16 << width(path), message
    else:
        size = float(needed[1]) * 1024 ** (1 + "KMGTPE".index(needed[2][0]))
        assert size == pytest.approx(16 << width(path), rel=0.2), message  # the message rounds
    assert re.search(rf" has [\d.]+ MiB available\. Use at most {LIMIT_QUBITS} qubits", message), message


@pytest.mark.parametrize("path", files(lambda path: path.stem in BROKEN))
def test_a_broken_file_is_named(path):
    with pytest.raises(QsimError, match=rf"{path.stem}\.qasm: not OpenQASM 2 .*'q' is not defined"):
        load_circuit(str(path))
