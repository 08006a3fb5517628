"""The gate table: one row per gate name, and the transpiler target made from it.

In: a gate's name and parameters. Out: its structure and data. Adding a gate is adding a row.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from qiskit.circuit import (
    Barrier,
    BoxOp,
    BreakLoopOp,
    ContinueLoopOp,
    Delay,
    ForLoopOp,
    IfElseOp,
    Measure,
    Parameter,
    Reset,
    Store,
    SwitchCaseOp,
    WhileLoopOp,
)
from qiskit.circuit import library as lib
from qiskit.transpiler import Target

from qsim_ozaki.ops import EMPTY, ComplexArray, IndexArray, Kind


@dataclass(frozen=True, slots=True)
class Gate:
    """One row of the table.

    Attributes:
        name: as Qiskit calls it.
        qiskit: its class there.
        num_targets: qubits of ``data``; in Qiskit's order the controls come first.
        kind: strongest structure that is true for all parameters.
        data: from the parameters to what `Op.data` holds, on the targets alone.
        num_controls: qubits that must all read 1.
        num_params: real parameters.
        permutation: PERMUTATION only.
    """

    name: str
    qiskit: type
    num_targets: int
    kind: Kind
    data: Callable[..., Any]
    num_controls: int = 0
    num_params: int = 0
    permutation: tuple[int, ...] | None = None


def constant(*values: complex) -> Callable[[], list[complex]]:
    """A function without parameters that gives ``values``."""
    return lambda: list(values)


def turn(angle: float) -> complex:
    """``exp(i angle)``."""
    return cmath.exp(1j * angle)


def half(angle: float) -> tuple[float, float]:
    """Cosine and sine of half an angle."""
    return math.cos(angle / 2), math.sin(angle / 2)


def phase(angle: float) -> list[complex]:
    """Diagonal of diag(1, exp(i angle))."""
    return [1, turn(angle)]


def rz(angle: float) -> list[complex]:
    """Diagonal of exp(-i angle Z / 2)."""
    return [turn(-angle / 2), turn(angle / 2)]


def rx(angle: float) -> list[list[complex]]:
    """exp(-i angle X / 2)."""
    c, s = half(angle)
    return [[c, -1j * s], [-1j * s, c]]


def ry(angle: float) -> list[list[complex]]:
    """exp(-i angle Y / 2)."""
    c, s = half(angle)
    return [[c, -s], [s, c]]


def r(angle: float, axis: float) -> list[list[complex]]:
    """Rotation about the axis (cos axis, sin axis, 0)."""
    c, s = half(angle)
    return [[c, -1j * turn(-axis) * s], [-1j * turn(axis) * s, c]]


def u(theta: float, phi: float, lam: float) -> list[list[complex]]:
    """Any one-qubit gate, its upper left entry real."""
    c, s = half(theta)
    return [[c, -turn(lam) * s], [turn(phi) * s, turn(phi + lam) * c]]


def cu(theta: float, phi: float, lam: float, gamma: float) -> ComplexArray:
    """``u`` times the phase exp(i gamma)."""
    return turn(gamma) * np.array(u(theta, phi, lam))


def sx(sign: int) -> list[list[complex]]:
    """Square root of X, or its inverse where ``sign`` is -1."""
    a, b = (1 + 1j * sign) / 2, (1 - 1j * sign) / 2
    return [[a, b], [b, a]]


def rv(x: float, y: float, z: float) -> list[list[complex]]:
    """Rotation about the vector (x, y, z) by its length."""
    angle = math.sqrt(x * x + y * y + z * z)
    c, s = half(angle)
    s = s / angle if angle else 0.0
    return [[c - 1j * z * s, -y * s - 1j * x * s], [y * s - 1j * x * s, c + 1j * z * s]]


def two_axis(angle: float, pauli: ComplexArray) -> ComplexArray:
    """exp(-i angle P / 2) for a product P of two Paulis."""
    c, s = half(angle)
    return c * np.eye(4) - 1j * s * pauli


def xx_yy(plus: bool, theta: float, beta: float) -> ComplexArray:
    """exp(-i theta/4 (XX +- YY)) with the phase ``beta`` on one qubit."""
    c, s = half(theta)
    out = np.eye(4, dtype=complex)
    low, high = (1, 2) if plus else (0, 3)
    out[low, low] = out[high, high] = c
    out[low, high] = -1j * s * turn(-beta)
    out[high, low] = -1j * s * turn(beta)
    return out


def ecr() -> ComplexArray:
    """Echoed cross-resonance gate."""
    matrix = np.array([[0, 1, 0, 1j], [1, 0, -1j, 0], [0, 1j, 0, 1], [-1j, 0, 1, 0]], complex)
    return matrix * math.sqrt(0.5)


XX = np.fliplr(np.eye(4)).astype(complex)
YY = np.fliplr(np.diag([-1, 1, 1, -1])).astype(complex)
ZX = np.kron([[0, 1], [1, 0]], [[1, 0], [0, -1]]).astype(complex)  # Z on target 0, X on target 1
X, SWAP = (1, 0), (0, 2, 1, 3)
DIAGONAL, PERMUTATION, HADAMARD, UNITARY = Kind.DIAGONAL, Kind.PERMUTATION, Kind.HADAMARD, Kind.UNITARY
ONE = constant(1, 1)

ROWS = [
    Gate("global_phase", lib.GlobalPhaseGate, 0, DIAGONAL, lambda a: [turn(a)], 0, 1),
    Gate("h", lib.HGate, 1, HADAMARD, constant()),
    Gate("x", lib.XGate, 1, PERMUTATION, ONE, permutation=X),
    Gate("y", lib.YGate, 1, PERMUTATION, constant(1j, -1j), permutation=X),
    Gate("z", lib.ZGate, 1, DIAGONAL, constant(1, -1)),
    Gate("s", lib.SGate, 1, DIAGONAL, constant(1, 1j)),
    Gate("sdg", lib.SdgGate, 1, DIAGONAL, constant(1, -1j)),
    Gate("t", lib.TGate, 1, DIAGONAL, constant(1, turn(math.pi / 4))),
    Gate("tdg", lib.TdgGate, 1, DIAGONAL, constant(1, turn(-math.pi / 4))),
    Gate("p", lib.PhaseGate, 1, DIAGONAL, phase, 0, 1),
    Gate("u1", lib.U1Gate, 1, DIAGONAL, phase, 0, 1),
    Gate("rz", lib.RZGate, 1, DIAGONAL, rz, 0, 1),
    Gate("sx", lib.SXGate, 1, UNITARY, lambda: sx(1)),
    Gate("sxdg", lib.SXdgGate, 1, UNITARY, lambda: sx(-1)),
    Gate("rx", lib.RXGate, 1, UNITARY, rx, 0, 1),
    Gate("ry", lib.RYGate, 1, UNITARY, ry, 0, 1),
    Gate("r", lib.RGate, 1, UNITARY, r, 0, 2),
    Gate("rv", lib.RVGate, 1, UNITARY, rv, 0, 3),
    Gate("u", lib.UGate, 1, UNITARY, u, 0, 3),
    Gate("u2", lib.U2Gate, 1, UNITARY, lambda phi, lam: u(math.pi / 2, phi, lam), 0, 2),
    Gate("u3", lib.U3Gate, 1, UNITARY, u, 0, 3),
    Gate("cx", lib.CXGate, 1, PERMUTATION, ONE, 1, permutation=X),
    Gate("cy", lib.CYGate, 1, PERMUTATION, constant(1j, -1j), 1, permutation=X),
    Gate("cz", lib.CZGate, 1, DIAGONAL, constant(1, -1), 1),
    Gate("ch", lib.CHGate, 1, HADAMARD, constant(), 1),
    Gate("cs", lib.CSGate, 1, DIAGONAL, constant(1, 1j), 1),
    Gate("csdg", lib.CSdgGate, 1, DIAGONAL, constant(1, -1j), 1),
    Gate("csx", lib.CSXGate, 1, UNITARY, lambda: sx(1), 1),
    Gate("cp", lib.CPhaseGate, 1, DIAGONAL, phase, 1, 1),
    Gate("cu1", lib.CU1Gate, 1, DIAGONAL, phase, 1, 1),
    Gate("crz", lib.CRZGate, 1, DIAGONAL, rz, 1, 1),
    Gate("crx", lib.CRXGate, 1, UNITARY, rx, 1, 1),
    Gate("cry", lib.CRYGate, 1, UNITARY, ry, 1, 1),
    Gate("cu3", lib.CU3Gate, 1, UNITARY, u, 1, 3),
    Gate("cu", lib.CUGate, 1, UNITARY, cu, 1, 4),
    Gate("swap", lib.SwapGate, 2, PERMUTATION, constant(1, 1, 1, 1), permutation=SWAP),
    Gate("iswap", lib.iSwapGate, 2, PERMUTATION, constant(1, 1j, 1j, 1), permutation=SWAP),
    Gate("dcx", lib.DCXGate, 2, PERMUTATION, constant(1, 1, 1, 1), permutation=(0, 2, 3, 1)),
    Gate("ecr", lib.ECRGate, 2, UNITARY, ecr),
    Gate("rxx", lib.RXXGate, 2, UNITARY, lambda a: two_axis(a, XX), 0, 1),
    Gate("ryy", lib.RYYGate, 2, UNITARY, lambda a: two_axis(a, YY), 0, 1),
    Gate("rzx", lib.RZXGate, 2, UNITARY, lambda a: two_axis(a, ZX), 0, 1),
    Gate("rzz", lib.RZZGate, 2, DIAGONAL, lambda a: [*rz(a), *rz(-a)], 0, 1),
    Gate("xx_minus_yy", lib.XXMinusYYGate, 2, UNITARY, lambda t, b: xx_yy(False, t, b), 0, 2),
    Gate("xx_plus_yy", lib.XXPlusYYGate, 2, UNITARY, lambda t, b: xx_yy(True, t, b), 0, 2),
    Gate("cswap", lib.CSwapGate, 2, PERMUTATION, constant(1, 1, 1, 1), 1, permutation=SWAP),
    Gate("ccx", lib.CCXGate, 1, PERMUTATION, ONE, 2, permutation=X),
    Gate("ccz", lib.CCZGate, 1, DIAGONAL, constant(1, -1), 2),
    Gate("c3sx", lib.C3SXGate, 1, UNITARY, lambda: sx(1), 3),
    Gate(
        "rccx", lib.RCCXGate, 3, PERMUTATION, constant(1, 1, 1, 1j, 1, -1, 1, -1j), permutation=(0, 1, 2, 7, 4, 5, 6, 3)
    ),
    Gate(
        "rcccx",
        lib.RC3XGate,
        4,
        PERMUTATION,
        constant(1, 1, 1, 1j, 1, 1, 1, -1, 1, 1, 1, -1j, 1, 1, 1, 1),
        permutation=(0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14, 7),
    ),
]
GATES = {row.name: row for row in ROWS}
BY_CLASS = {row.qiskit: row for row in ROWS}

# Whole operations that lowering takes apart by itself or through their definitions.
OTHERS = {
    "barrier": Barrier,
    "box": BoxOp,
    "break_loop": BreakLoopOp,
    "continue_loop": ContinueLoopOp,
    "diagonal": lib.DiagonalGate,
    "for_loop": ForLoopOp,
    "if_else": IfElseOp,
    "initialize": lib.Initialize,
    "mcphase": lib.MCPhaseGate,
    "mcx": lib.MCXGate,
    "multiplexer": lib.UCGate,
    "pauli": lib.PauliGate,
    "PauliEvolution": lib.PauliEvolutionGate,
    "permutation": lib.PermutationGate,
    "qft": lib.QFTGate,
    "state_preparation": lib.StatePreparation,
    "store": Store,
    "switch_case": SwitchCaseOp,
    "ucrx": lib.UCRXGate,
    "ucry": lib.UCRYGate,
    "ucrz": lib.UCRZGate,
    "unitary": lib.UnitaryGate,
    "while_loop": WhileLoopOp,
}


@lru_cache(maxsize=65536)
def gate_data(name: str, params: tuple[float, ...] = ()) -> ComplexArray:
    """What `Op.data` holds for the gate ``name``, read-only and shared between calls."""
    row = GATES[name]
    if row.kind is HADAMARD:
        return EMPTY
    data = np.ascontiguousarray(row.data(*params), complex)
    data.setflags(write=False)
    return data


@cache
def gate_permutation(name: str) -> IndexArray | None:
    """What `Op.permutation` holds for the gate ``name``."""
    permutation = GATES[name].permutation
    if permutation is None:
        return None
    out = np.array(permutation, np.int64)
    out.setflags(write=False)
    return out


def build_target() -> Target:
    """A target of any width with every row of the table and the composite operations, all ideal and all-to-all."""
    target = Target(num_qubits=None, description="qsim_ozaki: ideal, all-to-all, any width")
    for row in ROWS:
        parameters = [Parameter(f"{row.name}_{k}") for k in range(row.num_params)]
        target.add_instruction(row.qiskit(*parameters), None, name=row.name)
    target.add_instruction(lib.IGate(), None, name="id")
    target.add_instruction(Measure(), None, name="measure")
    target.add_instruction(Reset(), None, name="reset")
    target.add_instruction(Delay(Parameter("duration")), None, name="delay")
    for name, operation in OTHERS.items():
        target.add_instruction(operation, name=name)
    return target
