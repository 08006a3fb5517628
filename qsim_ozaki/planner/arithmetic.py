"""Which arithmetic a dense block uses: the candidates that are legal, what each costs, and the least.

In: a native block, what was asked, a `Device`. Out: a `DenseBlock`. Accuracy is a matter of legality, never of cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import DenseBlock, Device, Path, format_seconds
from qsim_ozaki.ozaki import MAX_MODULI, MAX_TARGETS, error_bound, num_moduli_for
from qsim_ozaki.planner.cost_dense import predict_emulated

NATIVE_BLOCK_QUBITS = 7  # matrices from this size on make a step of their own: arithmetic hides the pass
EMULATED_BLOCK_QUBITS = 3  # least that is emulated where that was asked for


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked of dense blocks.

    Attributes:
        precision: of the state.
        arithmetic: ``"auto"``, ``"native"`` or ``"emulated"``.
        accuracy: error bound over a column's norm; None asks for parity with ``precision``.
    """

    precision: str = "double"
    arithmetic: str = "auto"
    accuracy: float | None = None


def least_block_qubits(arithmetic: str) -> int:
    """Matrices on at least this many qubits are steps of their own."""
    return EMULATED_BLOCK_QUBITS if arithmetic == "emulated" else NATIVE_BLOCK_QUBITS


def dense_block(native: DenseBlock, worked: float, num_qubits: int, asked: Asked, device: Device) -> DenseBlock:
    """``native`` or the same by emulation, whichever is legal and cheaper.

    Args:
        native: the block with its prediction.
        worked: amplitudes of columns that hold more than zeros.
        num_qubits: width of the state.
        asked: precision, arithmetic, accuracy.
        device: measured or made up.

    Raises:
        OptionError: ``"emulated"`` was asked for, and no number of moduli has a bound that meets the accuracy.
    """
    op, arithmetic = native.op, asked.arithmetic
    num_targets = len(op.targets)
    count = None if arithmetic == "native" else num_moduli_for(asked.accuracy, num_targets, asked.precision)
    if arithmetic == "emulated" and count is None:
        raise OptionError(_unattainable(asked.accuracy, num_targets))
    if count is None or (arithmetic == "auto" and not device.int8_ops_per_s):
        return native
    prediction = predict_emulated(op, count, worked, num_qubits, asked.precision, device)
    natively, emulated = (format_seconds(each.seconds) for each in (native.prediction, prediction))
    if arithmetic == "auto" and native.prediction.seconds <= prediction.seconds:
        return replace(native, reason=f"{native.reason}; emulated with {count} moduli {emulated}")
    bound = float(error_bound(count, num_targets))
    reason = f"{native.reason}, error <= {bound:.1e} of a column's norm, each column checked; native {natively}"
    return replace(native, path=Path.OZAKI, num_moduli=count, prediction=prediction, reason=reason, error_bound=bound)


def _unattainable(accuracy: float | None, num_targets: int) -> str:
    """Why nothing emulated will do, and the way out."""
    block = f"a matrix on {num_targets} qubits"
    if num_targets > MAX_TARGETS:
        return (
            f"arithmetic='emulated': {block} was asked for; the limit is {MAX_TARGETS} qubits. Use arithmetic='auto'."
        )
    least = float(error_bound(MAX_MODULI, num_targets))
    return (
        f"arithmetic='emulated', accuracy={accuracy:.3g}: the least proved bound for {block} is {least:.2e}. Ask for "
        f"accuracy={2 * least:.0e}, or use arithmetic='auto'."
    )
