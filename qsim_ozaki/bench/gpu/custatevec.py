"""NVIDIA's cuStateVec beside this package on one GPU: its Ex updater for circuits, its apply_matrix for blocks.

In: operators; a state of its own, or one of ours. Out: that state, changed. It times nothing and chooses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qsim_ozaki.ir import HADAMARD_MATRIX, ComplexArray, Kind, Op

CUSTATEVEC = "custatevec"
# cudaDataType of the amplitudes, as CUDA's library_types.h numbers them
DATA_TYPES = {"double": 5, "single": 4}
DTYPES: dict[str, type[np.complexfloating]] = {"double": np.complex128, "single": np.complex64}
FUSIONS = (0, 4, 5, 6)  # widths of fused matrices, 0 for the library's own
FORMS = ("structured", "matrices")  # of gates: diagonals and controls as such, or a full matrix for each
MAX_MATRIX_QUBITS = 6  # more controls than that stay controls in either form


class Library:
    """The bindings of cuStateVec.

    Raises:
        Exception: whatever they raise where they, or the library, are not installed.
    """

    def __init__(self) -> None:
        self.sv = import_module("cuquantum.bindings.custatevec")
        self.ex = import_module("cuquantum.bindings.custatevecEx")
        self.version = ".".join(str(self.sv.get_property(part)) for part in range(3))
        self.handle = self.sv.create()


def find() -> tuple[Library | None, str]:
    """The library, or None and why."""
    try:
        return Library(), ""
    except Exception as error:  # no bindings, or bindings that find no library
        return None, f"{CUSTATEVEC} is not here: {type(error).__name__}: {error}"[:200]


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """One gate in the library's terms.

    Attributes:
        kind: of ``custatevecEx.MatrixType``.
        data: ``(2**k, 2**k)``, or ``(2**k,)`` where it is diagonal or antidiagonal; index bit b is ``targets[b]``.
        targets: k wires.
        controls: other wires.
        values: of each control at which the gate acts.
    """

    kind: str
    data: ComplexArray
    targets: tuple[int, ...]
    controls: tuple[int, ...] = ()
    values: tuple[int, ...] = ()


def gates(ops: Iterable[Op], form: str) -> list[Gate]:
    """Every operator as it stands, nothing fused: that is the library's part. A global phase rides in another gate.

    Args:
        ops: on wires.
        form: of `FORMS`.
    """
    out: list[Gate] = []
    phase = 1.0 + 0j
    for op in ops:
        if not op.qubits:
            phase *= complex(op.data[0])
        elif op.kind is Kind.HADAMARD:
            out += [
                _gate(Op(Kind.UNITARY, (q,), HADAMARD_MATRIX, op.controls, op.ctrl_state), form) for q in op.targets
            ]
        else:
            out.append(_gate(op, form))
    if phase != 1:
        place = next((number for number, gate in enumerate(out) if not gate.controls), None)
        if place is None:
            out.append(Gate("DIAGONAL", np.full(2, phase), (0,)))
        else:
            out[place] = replace(out[place], data=out[place].data * phase)
    return out


def _gate(op: Op, form: str) -> Gate:
    values = tuple(op.ctrl_state >> b & 1 for b in range(len(op.controls)))
    if form == "matrices" and len(op.qubits) <= MAX_MATRIX_QUBITS:
        return Gate("DENSE", full_matrix(op), op.qubits)
    if not op.targets:  # a phase where the controls are set
        return Gate("DIAGONAL", np.diag(full_matrix(op)), op.qubits)
    if op.kind is Kind.DIAGONAL:
        return Gate("DIAGONAL", op.data, op.targets, op.controls, values)
    matrix = op.matrix()
    if matrix.shape == (2, 2) and not np.diag(matrix).any() and matrix[0, 1] == matrix[1, 0]:
        # an order of the two entries that the bindings do not document does not matter
        return Gate("ANTI_DIAGONAL", np.diag(matrix[::-1]), op.targets, op.controls, values)
    return Gate("DENSE", matrix, op.targets, op.controls, values)


def full_matrix(op: Op) -> ComplexArray:
    """The matrix of ``op`` on its targets and controls, ``op.qubits[b]`` at index bit b."""
    out = np.eye(1 << len(op.qubits), dtype=complex)
    rows = np.arange(1 << len(op.targets)) | op.ctrl_state << len(op.targets)
    out[np.ix_(rows, rows)] = op.matrix()
    return out


class ExState:
    """A state that the library owns, |0...0> at first."""

    def __init__(self, library: Library, cupy: Any, num_qubits: int, precision: str) -> None:
        self.ex, self.cupy, self.num_qubits, self.precision = library.ex, cupy, num_qubits, precision
        kind, device = DATA_TYPES[precision], int(cupy.cuda.Device().id)
        config = self.ex.configure_state_vector_single_device(kind, num_qubits, num_qubits, device, 0)
        try:
            self.handle = self.ex.state_vector_create_single_process(config, 0, 0, 0)
        finally:
            self.ex.dictionary_destroy(config)
        self.zero()

    def zero(self) -> None:
        """|0...0>."""
        self.ex.state_vector_set_zero_state(self.handle)
        self.ex.state_vector_synchronize(self.handle)

    def restore_order(self) -> None:
        """Wire q is index bit q again; no amplitude moves."""
        self.ex.state_vector_reassign_wire_ordering(self.handle, list(range(self.num_qubits)), self.num_qubits)

    @property
    def amps(self) -> Any:
        """The amplitudes as a CuPy array, valid until the next operation."""
        cupy, dtype = self.cupy, np.dtype(DTYPES[self.precision])
        device, pointer, *_ = self.ex.state_vector_get_resources_from_device_sub_sv(self.handle, 0)
        memory = cupy.cuda.UnownedMemory(pointer, dtype.itemsize << self.num_qubits, self, device)
        return cupy.ndarray(1 << self.num_qubits, dtype, cupy.cuda.MemoryPointer(memory, 0))

    @property
    def wires(self) -> NDArray[np.int32]:
        """The wire at each index bit."""
        out = np.zeros(self.num_qubits, np.int32)
        name = self.ex.StateVectorProperty.WIRE_ORDERING
        self.ex.state_vector_get_property(self.handle, int(name), out.ctypes.data, out.nbytes)
        return out

    def close(self) -> None:
        """Gives the memory back."""
        self.ex.state_vector_destroy(self.handle)


class Updater:
    """Gates in the library's queue, where they stay: each `apply` does all of them."""

    def __init__(self, library: Library, chosen: Sequence[Gate], precision: str, fusion: int) -> None:
        self.ex, kind = library.ex, DATA_TYPES[precision]
        items = []
        if fusion:
            items.append(self.ex.SVUpdaterConfigItem(int(self.ex.SVUpdaterConfigName.DENSE_FUSION_SIZE), fusion))
        config = self.ex.configure_sv_updater(kind, items)
        try:
            self.handle = self.ex.sv_updater_create(config, 0)
        finally:
            self.ex.dictionary_destroy(config)
        self._data = [np.ascontiguousarray(gate.data, DTYPES[precision]) for gate in chosen]  # as long as the queue
        for gate, data in zip(chosen, self._data, strict=True):
            form, layout = int(self.ex.MatrixType[gate.kind]), int(library.sv.MatrixLayout.ROW)
            targets = list(gate.targets), len(gate.targets)
            controls = list(gate.controls) or 0, list(gate.values) or 0, len(gate.controls)
            self.ex.sv_updater_enqueue_matrix(self.handle, data.ctypes.data, kind, form, layout, 0, *targets, *controls)

    def apply(self, state: ExState) -> None:
        """All gates; returns when they are done, for what the library has put off is done only then."""
        self.ex.sv_updater_apply(self.handle, state.handle, 0, 0)
        self.ex.state_vector_synchronize(state.handle)

    def close(self) -> None:
        """Forgets the gates."""
        self.ex.sv_updater_destroy(self.handle)


def matrix_step(
    library: Library, cupy: Any, amps: Any, matrix: ComplexArray, targets: Sequence[int]
) -> Callable[[], None]:
    """A function that applies ``matrix`` to ``amps``, a CuPy array, in place; the matrix is on the device already.

    Args:
        library: that does it.
        cupy: its module.
        amps: ``(2**n,)``; their dtype says in which precision.
        matrix: ``(2**k, 2**k)``, index bit b is ``targets[b]``.
        targets: k qubits.
    """
    sv, precision = library.sv, "double" if amps.dtype == np.complex128 else "single"
    kind, layout, k, wires = DATA_TYPES[precision], int(sv.MatrixLayout.ROW), len(targets), list(targets)
    n = int(amps.size).bit_length() - 1
    compute = int(sv.ComputeType.COMPUTE_64F if precision == "double" else sv.ComputeType.COMPUTE_32F)
    unitary = cupy.asarray(np.ascontiguousarray(matrix, DTYPES[precision]))
    size = sv.apply_matrix_get_workspace_size(library.handle, kind, n, unitary.data.ptr, kind, layout, 0, k, 0, compute)
    work = cupy.empty(max(int(size), 1), np.uint8)
    place = (unitary.data.ptr, kind, layout, 0, wires, k, 0, 0, 0, compute, work.data.ptr, size)

    def step(_keep: tuple[Any, Any] = (unitary, work)) -> None:
        sv.apply_matrix(library.handle, amps.data.ptr, kind, n, *place)

    return step
