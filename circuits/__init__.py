"""Circuit families: one file each, one row each in `FAMILIES`, all built by ``build(name, num_qubits, seed)``.

In: a family's name, a width, a seed. Out: a `QuantumCircuit` without measurements, its known answer in the metadata.
It may import Qiskit and NumPy only, and a family's file only when that family is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qiskit import QuantumCircuit


@dataclass(frozen=True, slots=True)
class Family:
    """One row of `FAMILIES`.

    Attributes:
        function: name of the function, and of the file that holds it.
        about: one line for lists.
        min_qubits: the smallest width that makes sense.
        arguments: keyword arguments that make this row differ from the function's defaults.
    """

    function: str
    about: str
    min_qubits: int = 1
    arguments: Mapping[str, Any] = field(default_factory=dict)


FAMILIES: dict[str, Family] = {
    "ghz": Family("ghz", "GHZ state by a chain of CX"),
    "w_state": Family("w_state", "W state by a chain of controlled RY and CX"),
    "qft": Family("qft", "quantum Fourier transform of a random product state"),
    "phase_estimation": Family("phase_estimation", "phase of a PhaseGate, exact in the counting qubits", 2),
    "bernstein_vazirani": Family("bernstein_vazirani", "hidden string by one query", 2),
    "hidden_shift": Family("hidden_shift", "shift of a bent function by two queries (even widths)", 2),
    "grover": Family("grover", "up to 3 Grover iterations, 9 marked bits", 2),
    "iqp": Family("iqp", "Hadamards around random CZ and T powers"),
    "qaoa": Family("qaoa", "QAOA for MaxCut on a random 3-regular graph", 2),
    "hadamard": Family("hadamard_layers", "H on every qubit", 1, {"layers": 1}),
    "hadamard_layers": Family("hadamard_layers", "10 layers of H on every qubit, RZ on every qubit between them"),
    "quantum_volume": Family("quantum_volume", "quantum volume model, depth num_qubits // 2", 2),
    "random_brickwork": Family("random_brickwork", "20 layers of random rotations and a brick of CX or CZ", 2),
    "random_u_cz": Family("random_u_cz", "20 layers of random U on every qubit and a brick of CZ", 2),
    "supremacy_grid": Family("supremacy_grid", "8 cycles of sqrt(X, Y, W) and fSim on a grid"),
    "trotter_ising": Family("trotter_ising", "10 Trotter steps of the transverse-field Ising chain", 2),
    "efficient_su2": Family("efficient_su2", "RY, RZ and linear CX, 3 repetitions, random angles"),
    "uccsd": Family("uccsd", "24 double excitations of UCCSD as CX ladders", 4),
    "molecule_trotter": Family("molecule_trotter", "400 Pauli strings of a molecule as CX ladders", 4),
    "clifford_t": Family("clifford_t", "50 layers of H, S, X, 10 % T, and CX on random pairs", 2),
    "cuccaro_adder": Family("cuccaro_adder", "a register in superposition plus a number, by Toffoli and CX", 4),
    "transpiled": Family("transpiled", "qft on a line in {cx, rz, sx, x}"),
    "dense5": Family("dense_blocks", "20 random unitaries on 5 random qubits", 5, {"block_qubits": 5}),
    "dense8": Family("dense_blocks", "6 random unitaries on 8 random qubits", 8, {"block_qubits": 8}),
    "dense10": Family("dense_blocks", "3 random unitaries on 10 random qubits", 10, {"block_qubits": 10}),
}


def build(name: str, num_qubits: int, seed: int = 7) -> QuantumCircuit:
    """The circuit of family ``name`` on ``num_qubits`` qubits.

    Args:
        name: a key of `FAMILIES`.
        num_qubits: width, all qubits included.
        seed: of everything random in the circuit; the same seed gives the same circuit.

    Raises:
        ValueError: the family is unknown, or the width is not one it has.

    Example:
        >>> from qsim_ozaki.circuits import build
        >>> build("ghz", 3).num_qubits
        3
    """
    if name not in FAMILIES:
        raise ValueError(f"circuit family {name!r} is not known; there are {', '.join(FAMILIES)}")
    row = FAMILIES[name]
    if num_qubits < row.min_qubits:
        raise ValueError(f"{name} needs at least {row.min_qubits} qubits, not {num_qubits}")
    module = importlib.import_module(f"{__name__}.{row.function}")
    circuit: QuantumCircuit = getattr(module, row.function)(num_qubits, seed, **row.arguments)
    return circuit
