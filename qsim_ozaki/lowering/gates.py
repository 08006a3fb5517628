"""The gate table: one row per gate of Qiskit's standard library.

In: a gate's parameters. Out: its data (matrix, diagonal, or permutation and phases) and the `Op` made of it.
It may not see circuits, nor validate a user's input.
"""

from __future__ import annotations

import math
from cmath import exp
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from qiskit.circuit import (
    library,
)

import qsim_ozaki._native as _native
from qsim_ozaki.ir import EMPTY, KIND_OF_NUMBER, ComplexArray, IndexArray, Kind, Op

GateData: TypeAlias = tuple[ComplexArray, IndexArray | None]  # `Op.data`, `Op.permutation`
Entries: TypeAlias = tuple[complex, ...]  # the entries of `Op.data`, row by row
Params: TypeAlias = tuple[float, ...]

ANY = -1  # number of controls of a gate family whose width varies


@dataclass(frozen=True, slots=True)
class GateRow:
    """One gate of Qiskit's standard library.

    Attributes:
        name: Qiskit's name.
        classes: Qiskit's classes of the gate; the `Target` has the first one.
        num_targets: number of qubits that ``build`` describes; they follow the controls in Qiskit's order.
        num_controls: number of controls, which are the first qubits; `ANY` if the width varies.
        num_params: number of angles, in radians.
        kind: the strongest structure that holds at every angle.
        build: maps angles to the entries of ``Op.data`` on the targets alone, row by row.
        inverse: name of the row of the inverse gate, None if the library has no such gate.
        inverse_params: maps angles to the angles of the inverse gate.
        permutation: `Op.permutation` if ``kind`` is PERMUTATION.
    """

    name: str
    classes: tuple[Any, ...]
    num_targets: int
    num_controls: int
    num_params: int
    kind: Kind
    build: Callable[..., Entries]
    inverse: str | None
    inverse_params: Callable[..., Params]
    permutation: tuple[int, ...] = ()


def _frozen(values: Any) -> ComplexArray:
    array = np.array(values, complex)
    array.setflags(write=False)
    return array


def _constant(*values: complex) -> Callable[[], Entries]:
    """Returns the ``build`` of a gate without parameters."""
    return lambda: values


def _p(angle: float) -> Entries:
    return 1, exp(1j * angle)


def _rz(angle: float) -> Entries:
    half = exp(0.5j * angle)
    return half.conjugate(), half


def _rzz(angle: float) -> Entries:
    half = exp(0.5j * angle)
    return half.conjugate(), half, half, half.conjugate()


def _global_phase(angle: float) -> Entries:
    return (exp(1j * angle),)


def _half(angle: float) -> tuple[float, complex]:
    """Returns cos(angle/2) and -i sin(angle/2)."""
    return math.cos(angle / 2), -1j * math.sin(angle / 2)


def _rx(angle: float) -> Entries:
    c, s = _half(angle)
    return c, s, s, c


def _ry(angle: float) -> Entries:
    c, s = math.cos(angle / 2), math.sin(angle / 2)
    return c, -s, s, c


def _r(angle: float, phi: float) -> Entries:
    c, s = _half(angle)
    return c, s * exp(-1j * phi), s * exp(1j * phi), c


def _rv(x: float, y: float, z: float) -> Entries:
    """exp(-i (x X + y Y + z Z) / 2)."""
    angle = math.hypot(x, y, z)
    c, s = math.cos(angle / 2), math.sin(angle / 2) / angle if angle else 0.5
    return complex(c, -s * z), complex(-s * y, -s * x), complex(s * y, -s * x), complex(c, s * z)


def _u(theta: float, phi: float, lam: float) -> Entries:
    c, s = math.cos(theta / 2), math.sin(theta / 2)
    return c, -s * exp(1j * lam), s * exp(1j * phi), c * exp(1j * (phi + lam))


def _u2(phi: float, lam: float) -> Entries:
    h = math.sqrt(0.5)
    return h, -h * exp(1j * lam), h * exp(1j * phi), h * exp(1j * (phi + lam))


def _cu(theta: float, phi: float, lam: float, gamma: float) -> Entries:
    """exp(i gamma) times `_u`."""
    c, s = math.cos(theta / 2), math.sin(theta / 2)
    return (
        c * exp(1j * gamma),
        -s * exp(1j * (gamma + lam)),
        s * exp(1j * (gamma + phi)),
        c * exp(1j * (gamma + phi + lam)),
    )


def _rxx(angle: float) -> Entries:
    c, s = _half(angle)
    return c, 0, 0, s, 0, c, s, 0, 0, s, c, 0, s, 0, 0, c


def _ryy(angle: float) -> Entries:
    c, s = _half(angle)
    return c, 0, 0, -s, 0, c, s, 0, 0, s, c, 0, -s, 0, 0, c


def _rzx(angle: float) -> Entries:
    """exp(-i angle/2 X (x) Z), with Z on target 0."""
    c, s = _half(angle)
    return c, 0, s, 0, 0, c, 0, -s, s, 0, c, 0, 0, -s, 0, c


def _xx_minus_yy(angle: float, beta: float) -> Entries:
    c, s = _half(angle)
    return c, 0, 0, s * exp(-1j * beta), 0, 1, 0, 0, 0, 0, 1, 0, s * exp(1j * beta), 0, 0, c


def _xx_plus_yy(angle: float, beta: float) -> Entries:
    c, s = _half(angle)
    return 1, 0, 0, 0, 0, c, s * exp(-1j * beta), 0, 0, s * exp(1j * beta), c, 0, 0, 0, 0, 1


def _same(*params: float) -> Params:
    return params


def _negated(*params: float) -> Params:
    return tuple(-value for value in params)


def _first_negated(first: float, *others: float) -> Params:
    return (-first, *others)


def _inverse_u(theta: float, phi: float, lam: float, *gamma: float) -> Params:
    return (-theta, -lam, -phi, *_negated(*gamma))


def _inverse_u2(phi: float, lam: float) -> Params:
    return (-lam - math.pi, -phi + math.pi)


_R = math.sqrt(0.5)
_H = _constant()
_ONE = _constant(1, 1)
_Y = _constant(1j, -1j)
_Z = _constant(1, -1)
_S = _constant(1, 1j)
_SDG = _constant(1, -1j)
_T = _constant(1, complex(_R, _R))
_TDG = _constant(1, complex(_R, -_R))
_SX = _constant(0.5 + 0.5j, 0.5 - 0.5j, 0.5 - 0.5j, 0.5 + 0.5j)
_SXDG = _constant(0.5 - 0.5j, 0.5 + 0.5j, 0.5 + 0.5j, 0.5 - 0.5j)
_ONES = _constant(1, 1, 1, 1)
_ISWAP = _constant(1, 1j, 1j, 1)
_ECR = _constant(*(_R * z for z in (0, 1, 0, 1j, 1, 0, -1j, 0, 0, 1j, 0, 1, -1j, 0, 1, 0)))
_RCCX = _constant(1, 1, 1, 1j, 1, -1, 1, -1j)
_RCCCX = _constant(1, 1, 1, 1j, 1, 1, 1, -1, 1, 1, 1, -1j, 1, 1, 1, 1)

# Permutations: entry j is the place to which amplitude j goes.
_FLIP = (1, 0)
_EXCHANGE = (0, 2, 1, 3)
_TURN = (0, 2, 3, 1)
_TOFFOLI = (0, 1, 2, 7, 4, 5, 6, 3)
_TOFFOLI_3 = (0, 1, 2, 3, 4, 5, 6, 15, 8, 9, 10, 11, 12, 13, 14, 7)

_DIAGONAL, _PERMUTATION, _HADAMARD, _UNITARY = Kind.DIAGONAL, Kind.PERMUTATION, Kind.HADAMARD, Kind.UNITARY
_MCX = (library.MCXGate, library.C3XGate, library.C4XGate)

# Columns: name, classes, num_targets, num_controls, num_params, kind, build, inverse, inverse_params, permutation
ROWS: tuple[GateRow, ...] = (
    GateRow("id", (library.IGate,), 1, 0, 0, _DIAGONAL, _ONE, "id", _same),
    GateRow("x", (library.XGate,), 1, 0, 0, _PERMUTATION, _ONE, "x", _same, _FLIP),
    GateRow("y", (library.YGate,), 1, 0, 0, _PERMUTATION, _Y, "y", _same, _FLIP),
    GateRow("z", (library.ZGate,), 1, 0, 0, _DIAGONAL, _Z, "z", _same),
    GateRow("h", (library.HGate,), 1, 0, 0, _HADAMARD, _H, "h", _same),
    GateRow("s", (library.SGate,), 1, 0, 0, _DIAGONAL, _S, "sdg", _same),
    GateRow("sdg", (library.SdgGate,), 1, 0, 0, _DIAGONAL, _SDG, "s", _same),
    GateRow("t", (library.TGate,), 1, 0, 0, _DIAGONAL, _T, "tdg", _same),
    GateRow("tdg", (library.TdgGate,), 1, 0, 0, _DIAGONAL, _TDG, "t", _same),
    GateRow("sx", (library.SXGate,), 1, 0, 0, _UNITARY, _SX, "sxdg", _same),
    GateRow("sxdg", (library.SXdgGate,), 1, 0, 0, _UNITARY, _SXDG, "sx", _same),
    GateRow("p", (library.PhaseGate,), 1, 0, 1, _DIAGONAL, _p, "p", _negated),
    GateRow("u1", (library.U1Gate,), 1, 0, 1, _DIAGONAL, _p, "u1", _negated),
    GateRow("rz", (library.RZGate,), 1, 0, 1, _DIAGONAL, _rz, "rz", _negated),
    GateRow("rx", (library.RXGate,), 1, 0, 1, _UNITARY, _rx, "rx", _negated),
    GateRow("ry", (library.RYGate,), 1, 0, 1, _UNITARY, _ry, "ry", _negated),
    GateRow("r", (library.RGate,), 1, 0, 2, _UNITARY, _r, "r", _first_negated),
    GateRow("rv", (library.RVGate,), 1, 0, 3, _UNITARY, _rv, "rv", _negated),
    GateRow("u", (library.UGate,), 1, 0, 3, _UNITARY, _u, "u", _inverse_u),
    GateRow("u2", (library.U2Gate,), 1, 0, 2, _UNITARY, _u2, "u2", _inverse_u2),
    GateRow("u3", (library.U3Gate,), 1, 0, 3, _UNITARY, _u, "u3", _inverse_u),
    GateRow("cx", (library.CXGate,), 1, 1, 0, _PERMUTATION, _ONE, "cx", _same, _FLIP),
    GateRow("cy", (library.CYGate,), 1, 1, 0, _PERMUTATION, _Y, "cy", _same, _FLIP),
    GateRow("cz", (library.CZGate,), 1, 1, 0, _DIAGONAL, _Z, "cz", _same),
    GateRow("ch", (library.CHGate,), 1, 1, 0, _HADAMARD, _H, "ch", _same),
    GateRow("cs", (library.CSGate,), 1, 1, 0, _DIAGONAL, _S, "csdg", _same),
    GateRow("csdg", (library.CSdgGate,), 1, 1, 0, _DIAGONAL, _SDG, "cs", _same),
    GateRow("csx", (library.CSXGate,), 1, 1, 0, _UNITARY, _SX, None, _same),
    GateRow("cp", (library.CPhaseGate,), 1, 1, 1, _DIAGONAL, _p, "cp", _negated),
    GateRow("cu1", (library.CU1Gate,), 1, 1, 1, _DIAGONAL, _p, "cu1", _negated),
    GateRow("crz", (library.CRZGate,), 1, 1, 1, _DIAGONAL, _rz, "crz", _negated),
    GateRow("crx", (library.CRXGate,), 1, 1, 1, _UNITARY, _rx, "crx", _negated),
    GateRow("cry", (library.CRYGate,), 1, 1, 1, _UNITARY, _ry, "cry", _negated),
    GateRow("cu", (library.CUGate,), 1, 1, 4, _UNITARY, _cu, "cu", _inverse_u),
    GateRow("cu3", (library.CU3Gate,), 1, 1, 3, _UNITARY, _u, "cu3", _inverse_u),
    GateRow("swap", (library.SwapGate,), 2, 0, 0, _PERMUTATION, _ONES, "swap", _same, _EXCHANGE),
    GateRow("iswap", (library.iSwapGate,), 2, 0, 0, _PERMUTATION, _ISWAP, None, _same, _EXCHANGE),
    GateRow("dcx", (library.DCXGate,), 2, 0, 0, _PERMUTATION, _ONES, None, _same, _TURN),
    GateRow("ecr", (library.ECRGate,), 2, 0, 0, _UNITARY, _ECR, "ecr", _same),
    GateRow("rxx", (library.RXXGate,), 2, 0, 1, _UNITARY, _rxx, "rxx", _negated),
    GateRow("ryy", (library.RYYGate,), 2, 0, 1, _UNITARY, _ryy, "ryy", _negated),
    GateRow("rzz", (library.RZZGate,), 2, 0, 1, _DIAGONAL, _rzz, "rzz", _negated),
    GateRow("rzx", (library.RZXGate,), 2, 0, 1, _UNITARY, _rzx, "rzx", _negated),
    GateRow("xx_minus_yy", (library.XXMinusYYGate,), 2, 0, 2, _UNITARY, _xx_minus_yy, "xx_minus_yy", _first_negated),
    GateRow("xx_plus_yy", (library.XXPlusYYGate,), 2, 0, 2, _UNITARY, _xx_plus_yy, "xx_plus_yy", _first_negated),
    GateRow("ccx", (library.CCXGate,), 1, 2, 0, _PERMUTATION, _ONE, "ccx", _same, _FLIP),
    GateRow("ccz", (library.CCZGate,), 1, 2, 0, _DIAGONAL, _Z, "ccz", _same),
    GateRow("cswap", (library.CSwapGate,), 2, 1, 0, _PERMUTATION, _ONES, "cswap", _same, _EXCHANGE),
    GateRow("rccx", (library.RCCXGate,), 3, 0, 0, _PERMUTATION, _RCCX, "rccx", _same, _TOFFOLI),
    GateRow("rcccx", (library.RC3XGate,), 4, 0, 0, _PERMUTATION, _RCCCX, None, _same, _TOFFOLI_3),
    GateRow("c3sx", (library.C3SXGate,), 1, 3, 0, _UNITARY, _SX, None, _same),
    GateRow("mcx", _MCX, 1, ANY, 0, _PERMUTATION, _ONE, "mcx", _same, _FLIP),
    GateRow("mcphase", (library.MCPhaseGate, library.MCU1Gate), 1, ANY, 1, _DIAGONAL, _p, "mcphase", _negated),
    GateRow("global_phase", (library.GlobalPhaseGate,), 0, 0, 1, _DIAGONAL, _global_phase, "global_phase", _negated),
)
GATES: dict[str, GateRow] = {row.name: row for row in ROWS}
GATE_OF_CLASS: dict[type, GateRow] = {cls: row for row in ROWS for cls in row.classes}


@lru_cache(maxsize=4096)
def gate_data(name: str, *params: float) -> GateData:
    """Returns the data of gate ``name`` at ``params``, in radians; equal angles share one read-only array."""
    row = GATES[name]
    data = np.array(row.build(*params), complex)
    if row.kind is Kind.UNITARY:
        data = data.reshape(1 << row.num_targets, -1)
    data.setflags(write=False)
    if not row.permutation:
        return data, None
    permutation = np.array(row.permutation, np.int64)
    permutation.setflags(write=False)
    return data, permutation


def row_op(row: GateRow, params: Sequence[float], qubits: tuple[int, ...], ctrl_state: int | None = None) -> Op:
    """Returns the operator of a gate.

    Args:
        row: the gate's row.
        params: angles, in radians.
        qubits: in Qiskit's order, controls first.
        ctrl_state: as in Qiskit; None if all controls must read 1.
    """
    num_controls = len(qubits) - row.num_targets
    data, permutation = gate_data(row.name, *params)
    if not num_controls:
        return Op(row.kind, qubits, data, (), 0, permutation, row.name)
    state = (1 << num_controls) - 1 if ctrl_state is None else ctrl_state
    return Op(row.kind, qubits[num_controls:], data, qubits[:num_controls], state, permutation, row.name)


def structured_op(matrix: ComplexArray, targets: tuple[int, ...], name: str) -> Op:
    """Returns the operator of a unitary matrix, with the strongest structure that the matrix has.

    Args:
        matrix: ``(2**k, 2**k)`` complex128. It is not copied: nobody may write to it afterwards.
        targets: k qubits; ``targets[0]`` is bit 0 of the matrix index.
        name: of the operator.

    matrix_check.hpp defines which entries count as zero.
    """
    size = len(matrix)
    number, permutation = _native.structure_of(np.ascontiguousarray(matrix, complex).reshape(-1), size)
    kind = KIND_OF_NUMBER[number]
    if kind is Kind.DIAGONAL:
        return Op(kind, targets, _frozen(matrix.diagonal()), name=name)
    if kind is Kind.PERMUTATION:
        permutation.setflags(write=False)
        data = _frozen(matrix[permutation, np.arange(size)])
        return Op(kind, targets, data, permutation=permutation, name=name)
    if kind is Kind.HADAMARD:
        return Op(kind, targets, EMPTY, name=name)
    view = np.asarray(matrix, complex)[...]
    view.setflags(write=False)
    return Op(kind, targets, view, name=name)


def inverse_op(op: Op) -> Op:
    """Returns the inverse (conjugate transpose) of ``op``."""
    data, permutation = op.data, op.permutation
    if op.kind is Kind.HADAMARD:
        return op
    if op.kind is Kind.UNITARY:
        data = _frozen(data.conj().T)
    elif op.kind is Kind.DIAGONAL:
        data = _frozen(data.conj())
    else:
        assert permutation is not None
        permutation = np.argsort(permutation)
        permutation.setflags(write=False)
        data = _frozen(data[permutation].conj())
    return Op(op.kind, op.targets, data, op.controls, op.ctrl_state, permutation, op.name)
