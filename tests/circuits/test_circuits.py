"""Every family against its known answer, with Qiskit's Statevector as the simulator."""

import itertools

import numpy as np
import pytest
from qiskit import QuantumCircuit
from qiskit.quantum_info import Clifford, Operator, Pauli, Statevector

from qsim_ozaki.circuits import FAMILIES, build
from qsim_ozaki.circuits.clifford_t import clifford_t
from qsim_ozaki.circuits.dense_blocks import dense_blocks
from qsim_ozaki.circuits.grover import grover
from qsim_ozaki.circuits.molecule_trotter import molecule_trotter
from qsim_ozaki.circuits.qaoa import qaoa
from qsim_ozaki.circuits.supremacy_grid import couplers, supremacy_grid
from qsim_ozaki.circuits.transpiled import transpiled
from qsim_ozaki.circuits.uccsd import uccsd

CLOSE = {"rtol": 0, "atol": 1e-13}
H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
Z = np.diag([1.0, -1.0])
X = np.array([[0.0, 1.0], [1.0, 0.0]])


def state_of(circuit):
    return np.asarray(Statevector(circuit))


def kron(factors):
    """Qubit 0 is the first factor and the least bit of the index."""
    out = np.ones(1)
    for factor in factors:
        out = np.kron(factor, out)
    return out


def bits(num_qubits):
    """(2**n, n): bit q of every index."""
    return (np.arange(2**num_qubits)[:, None] >> np.arange(num_qubits)) & 1


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_its_width_and_no_measurement(name):
    width = max(10, FAMILIES[name].min_qubits)
    circuit = build(name, width, seed=3)
    assert circuit.num_qubits == width
    assert circuit.num_clbits == 0
    assert not circuit.parameters
    assert circuit == build(name, width, seed=3)
    assert len({instruction.operation.name for instruction in circuit.data}) > 0
    rounding = 1e-16 * len(circuit.data)
    assert np.isclose(np.linalg.norm(state_of(circuit)), 1, rtol=0, atol=CLOSE["atol"] + rounding)


@pytest.mark.parametrize("name", [name for name, row in FAMILIES.items() if row.min_qubits < 5])
def test_smallest_width(name):
    width = FAMILIES[name].min_qubits
    assert np.isclose(np.linalg.norm(state_of(build(name, width))), 1, **CLOSE)


RANDOM = [
    "qft",
    "phase_estimation",
    "hidden_shift",
    "iqp",
    "quantum_volume",
    "random_brickwork",
    "efficient_su2",
    "uccsd",
    "molecule_trotter",
    "clifford_t",
    "cuccaro_adder",
    "transpiled",
    "dense5",
]


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_is_another_circuit(name):
    assert build(name, 8, seed=1) != build(name, 8, seed=2)


def test_unknown_family_and_width_are_named():
    with pytest.raises(ValueError, match=r"'qtf' is not known; there are ghz, .*qft"):
        build("qtf", 4)
    with pytest.raises(ValueError, match="dense8 needs at least 8 qubits, not 7"):
        build("dense8", 7)
    with pytest.raises(ValueError, match="even number of qubits, not 5"):
        build("hidden_shift", 5)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_ghz(n):
    want = np.zeros(2**n)
    want[[0, -1]] = 1 / np.sqrt(2)
    np.testing.assert_allclose(state_of(build("ghz", n)), want, **CLOSE)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_w_state(n):
    want = np.zeros(2**n)
    want[2 ** np.arange(n)] = 1 / np.sqrt(n)
    np.testing.assert_allclose(state_of(build("w_state", n)), want, **CLOSE)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_qft_is_the_fourier_matrix(n):
    circuit = build("qft", n)
    angles = circuit.metadata["angles"]
    product = kron([np.cos(a / 2), np.sin(a / 2)] for a in angles)
    x = np.arange(2**n)
    fourier = np.exp(2j * np.pi * np.outer(x, x) / 2**n) / np.sqrt(2**n)
    np.testing.assert_allclose(state_of(circuit), fourier @ product, **CLOSE)
    transform = circuit.copy()
    transform.data = transform.data[n:]
    np.testing.assert_allclose(Operator(transform).data, fourier, **CLOSE)


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (5, 1), (9, 2)])
def test_phase_estimation_reads_the_phase(n, seed):
    circuit = build("phase_estimation", n, seed)
    index = circuit.metadata["phase_numerator"] | 1 << (n - 1)
    assert np.isclose(abs(state_of(circuit)[index]), 1, **CLOSE)


def test_phase_estimation_of_a_wide_register_keeps_every_bit():
    circuit = build("phase_estimation", 80)
    assert circuit.metadata["phase_numerator"] >> 64
    assert circuit.num_qubits == 80


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (6, 1), (9, 2)])
def test_bernstein_vazirani_finds_the_string(n, seed):
    circuit = build("bernstein_vazirani", n, seed)
    assert np.isclose(abs(state_of(circuit)[int("1" + circuit.metadata["hidden_string"], 2)]), 1, **CLOSE)


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (6, 1), (8, 2)])
def test_hidden_shift_finds_the_shift(n, seed):
    circuit = build("hidden_shift", n, seed)
    assert np.isclose(state_of(circuit)[int(circuit.metadata["shift"], 2)], 1, **CLOSE)


@pytest.mark.parametrize(("n", "marked_bits", "iterations"), [(2, 2, 1), (4, 4, 3), (6, 4, 2), (10, 9, 3), (3, 1, 3)])
def test_grover_success_probability(n, marked_bits, iterations):
    circuit = grover(n, 5, iterations, marked_bits)
    marked = circuit.metadata["marked_qubits"]
    assert len(set(marked)) == marked_bits
    hit = bits(n)[:, marked].all(axis=1)
    got = (abs(state_of(circuit)) ** 2)[hit].sum()
    assert np.isclose(got, circuit.metadata["success_probability"], **CLOSE)
    angle = np.arcsin(2 ** (-marked_bits / 2))
    allowed = [np.sin((2 * k + 1) * angle) ** 2 for k in range(iterations + 1)]
    assert np.isclose(got, max(allowed), **CLOSE)


@pytest.mark.parametrize("n", [1, 4, 6])
def test_iqp_amplitudes_are_sums_of_phases(n):
    circuit = build("iqp", n)
    x = bits(n)
    exponent = x @ np.array(circuit.metadata["single"]) / 4
    for q, r, b in circuit.metadata["pairs"]:
        exponent = exponent + x[:, q] * x[:, r] * b / 2
    want = kron([H] * n) @ np.exp(1j * np.pi * exponent) / np.sqrt(2**n)
    np.testing.assert_allclose(state_of(circuit), want, **CLOSE)


def cut_values(n, edges):
    x = bits(n)
    return sum(x[:, q] ^ x[:, r] for q, r in edges)


@pytest.mark.parametrize(("n", "seed"), [(5, 0), (8, 1), (12, 2)])
def test_qaoa_of_one_layer_has_the_closed_form(n, seed):
    """Wang, Hadfield, Jiang, Rieffel, arXiv:1706.02998, theorem 1."""
    circuit = qaoa(n, seed, layers=1)
    edges, (gamma,), (beta,) = (circuit.metadata[key] for key in ("edges", "gammas", "betas"))
    neighbours = {q: {b if a == q else a for a, b in edges if q in (a, b)} for q in range(n)}
    want = 0.0
    for q, r in edges:
        d, e = len(neighbours[q]) - 1, len(neighbours[r]) - 1
        triangles = len(neighbours[q] & neighbours[r])
        want += 0.5 + np.sin(4 * beta) * np.sin(gamma) * (np.cos(gamma) ** d + np.cos(gamma) ** e) / 4
        spread = np.cos(gamma) ** (d + e - 2 * triangles) * (1 - np.cos(2 * gamma) ** triangles)
        want -= np.sin(2 * beta) ** 2 * spread / 4
    got = abs(state_of(circuit)) ** 2 @ cut_values(n, edges)
    assert np.isclose(got, want, rtol=0, atol=1e-12)


def test_qaoa_improves_with_layers():
    cuts = []
    for layers in (1, 2, 3):
        circuit = qaoa(12, 4, layers)
        edges = circuit.metadata["edges"]
        assert len(edges) == 18
        cuts.append(abs(state_of(circuit)) ** 2 @ cut_values(12, edges))
    assert 0.5 * 18 < cuts[0] < cuts[1] < cuts[2]


def test_hadamard_layers_keep_a_product():
    circuit = build("hadamard_layers", 5)
    factors = []
    for qubit in range(5):
        factor = H[:, 0].astype(complex)
        for row in circuit.metadata["angles"]:
            factor = H @ (np.exp(np.array([-0.5j, 0.5j]) * row[qubit]) * factor)
        factors.append(factor)
    np.testing.assert_allclose(state_of(circuit), kron(factors), **CLOSE)
    assert circuit.count_ops() == {"h": 50, "rz": 45}


def test_quantum_volume_has_heavy_outputs():
    """Haar-random circuits give heavy outputs with probability (1 + ln 2) / 2 = 0.847, arXiv:1612.05903."""
    heavy = []
    for seed in range(40):
        probabilities = abs(state_of(build("quantum_volume", 6, seed))) ** 2
        heavy.append(probabilities[probabilities > np.median(probabilities)].sum())
    assert abs(np.mean(heavy) - (1 + np.log(2)) / 2) < 0.03
    assert build("quantum_volume", 8).count_ops()["unitary"] == 16


def test_random_brickwork_spreads_like_porter_thomas():
    """Sum of p^2 is 2 / (N + 1) on average over Haar-random states."""
    second = [np.sum(abs(state_of(build("random_brickwork", 8, seed))) ** 4) for seed in range(20)]
    assert abs(np.mean(second) * 257 / 2 - 1) < 0.15


@pytest.mark.parametrize("n", [1, 2, 6, 9, 11])
def test_supremacy_couplers_cover_the_grid(n):
    patterns = [couplers(n, pattern) for pattern in "ABCD"]
    for pairs in patterns:
        touched = [q for pair in pairs for q in pair]
        assert len(touched) == len(set(touched))
    columns = int(np.ceil(np.sqrt(n)))
    grid = {(q, r) for q, r in itertools.combinations(range(n), 2) if (r == q + 1 and r % columns) or r == q + columns}
    assert set().union(*patterns) == grid
    assert sum(map(len, patterns)) == len(grid)


def test_supremacy_grid_gates():
    circuit = supremacy_grid(9, seed=2)
    axes = [[] for _ in range(9)]
    for instruction in circuit.data:
        if instruction.operation.name == "r":
            axes[circuit.find_bit(instruction.qubits[0]).index].append(instruction.operation.params[1])
    assert all(len(row) == 9 for row in axes)
    assert all(a != b for row in axes for a, b in itertools.pairwise(row))
    assert {a for row in axes for a in row} == {0.0, np.pi / 2, np.pi / 4}
    pair = next(i for i, x in enumerate(circuit.data) if x.operation.name == "xx_plus_yy")
    fsim = QuantumCircuit(2)
    fsim.append(circuit.data[pair].operation, [0, 1])
    fsim.append(circuit.data[pair + 1].operation, [0, 1])
    want = np.array([[1, 0, 0, 0], [0, 0, -1j, 0], [0, -1j, 0, 0], [0, 0, 0, np.exp(-1j * np.pi / 6)]])
    np.testing.assert_allclose(Operator(fsim).data, want, **CLOSE)


def test_trotter_ising_is_the_product_of_exponentials():
    n = 4
    x = bits(n)
    bonds = sum((1 - 2 * x[:, q]) * (1 - 2 * x[:, q + 1]) for q in range(n - 1))
    rotation = np.array([[np.cos(0.1), -1j * np.sin(0.1)], [-1j * np.sin(0.1), np.cos(0.1)]])
    state = np.zeros(2**n, complex)
    state[0] = 1
    for _ in range(10):
        state = kron([rotation] * n) @ (np.exp(-0.15j * bonds) * state)
    np.testing.assert_allclose(state_of(build("trotter_ising", n)), state, **CLOSE)


def test_efficient_su2_is_its_product():
    n = 3
    circuit = build("efficient_su2", n)
    angles = np.reshape(circuit.metadata["angles"], (4, 2, n))
    state = np.zeros(2**n, complex)
    state[0] = 1
    for layer, (ry, rz) in enumerate(angles):
        turn = [np.array([[np.cos(a / 2), -np.sin(a / 2)], [np.sin(a / 2), np.cos(a / 2)]]) for a in ry]
        phase = [np.diag([np.exp(-0.5j * a), np.exp(0.5j * a)]) for a in rz]
        state = kron(phase) @ kron(turn) @ state
        if layer < 3:
            for q in range(n - 1):
                index = np.arange(2**n)
                state = state[index ^ ((index >> q & 1) << (q + 1))]
    np.testing.assert_allclose(state_of(circuit), state, **CLOSE)


@pytest.mark.parametrize(("k", "blocks"), [(2, 4), (5, 20), (8, 6), (10, 3)])
def test_dense_blocks_are_unitary_and_wide(k, blocks):
    circuit = dense_blocks(10, 3, k)
    assert circuit.count_ops() == {"unitary": blocks}
    for instruction in circuit.data:
        matrix = instruction.operation.to_matrix()
        assert len(instruction.qubits) == k
        np.testing.assert_allclose(matrix @ matrix.conj().T, np.eye(2**k), rtol=0, atol=1e-12)
        assert abs(matrix).min() > 0


def annihilator(n, orbital):
    """The Jordan-Wigner matrix of an electron's annihilation on ``orbital``."""
    lower = np.array([[0.0, 1.0], [0.0, 0.0]])
    return np.diag(kron([Z.diagonal()] * orbital + [np.ones(2)] * (n - orbital))) @ np.kron(
        np.eye(2 ** (n - 1 - orbital)), np.kron(lower, np.eye(2**orbital))
    )


@pytest.mark.parametrize(("n", "excitations"), [(4, 3), (5, 2), (7, 6)])
def test_uccsd_is_the_product_of_its_excitations(n, excitations):
    """K = T - T^dagger has K^3 = -K, so exp(angle K) = 1 + sin(angle) K + (1 - cos(angle)) K^2."""
    circuit = uccsd(n, 5, excitations)
    assert len(circuit.metadata["excitations"]) == excitations
    state = np.zeros(2**n)
    state[2 ** (n // 2) - 1] = 1
    a = [annihilator(n, orbital) for orbital in range(n)]
    for i, j, p, q, angle in circuit.metadata["excitations"]:
        assert i < j < n // 2 <= p < q
        hop = a[q].T @ a[p].T @ a[j] @ a[i]
        k = hop - hop.T
        state = state + np.sin(angle) * (k @ state) + (1 - np.cos(angle)) * (k @ (k @ state))
    np.testing.assert_allclose(state_of(circuit), state, **CLOSE)
    assert build("uccsd", 12).count_ops()["rz"] == 24 * 8


@pytest.mark.parametrize("n", [4, 6])
def test_molecule_trotter_is_the_product_of_its_rotations(n):
    circuit = molecule_trotter(n, 3, strings=40)
    state = np.zeros(2**n, complex)
    state[2 ** (n // 2) - 1] = 1
    for label, angle in circuit.metadata["strings"]:
        assert label.count("Y") % 2 == 0
        state = np.cos(angle / 2) * state - 1j * np.sin(angle / 2) * (Pauli(label).to_matrix() @ state)
    np.testing.assert_allclose(state_of(circuit), state, **CLOSE)
    assert len(build("molecule_trotter", 8).metadata["strings"]) == 400


def test_clifford_t_is_clifford_but_for_a_tenth():
    assert Clifford(clifford_t(20, t_share=0.0)).num_qubits == 20
    counts = build("clifford_t", 20).count_ops()
    assert 60 < counts["t"] < 140  # of 1000 gates on one qubit
    assert counts["cx"] == 500


@pytest.mark.parametrize(("n", "seed"), [(4, 0), (6, 1), (9, 2), (10, 3)])
def test_cuccaro_adder_adds(n, seed):
    circuit = build("cuccaro_adder", n, seed)
    m = (n - 2) // 2
    want = np.zeros(2**n)
    for a in range(2**m):
        total = a + circuit.metadata["addend"]
        index = sum((a >> k & 1) << 2 * k + 1 | (total >> k & 1) << 2 * k + 2 for k in range(m))
        want[index | total >> m << 2 * m + 1] = 2 ** (-m / 2)
    np.testing.assert_allclose(state_of(circuit), want, **CLOSE)


@pytest.mark.parametrize("family", ["qft", "efficient_su2", "uccsd", "cuccaro_adder"])
def test_transpiled_is_its_family_on_a_line(family):
    n = 6
    circuit = transpiled(n, 3, family)
    assert circuit.count_ops().keys() <= {"cx", "rz", "sx", "x"}
    assert circuit.layout is None
    for instruction in circuit.data:
        places = [circuit.find_bit(qubit).index for qubit in instruction.qubits]
        assert len(places) == 1 or abs(places[0] - places[1]) == 1
    place = sum(((np.arange(2**n) >> q) & 1) << p for q, p in enumerate(circuit.metadata["qubits"]))
    np.testing.assert_allclose(state_of(circuit)[place], state_of(build(family, n, 3)), rtol=0, atol=1e-12)
