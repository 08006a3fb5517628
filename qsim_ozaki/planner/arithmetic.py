"""The arithmetic of a dense block: the legal candidates, the cost of each, and the cheapest.

In: a native block, the options, a `Device`. Out: a `DenseBlock`. It may not trade accuracy for time: accuracy decides
only whether a candidate is legal.
"""

from __future__ import annotations

from dataclasses import replace

from qsim_ozaki.errors import OptionError
from qsim_ozaki.ir import DenseBlock, Device, Path, format_seconds
from qsim_ozaki.ozaki import MAX_MODULI, MAX_TARGETS, error_bound, num_moduli_for
from qsim_ozaki.planner.cost_dense import predict_emulated
from qsim_ozaki.planner.options import PlanOptions

NATIVE_BLOCK_QUBITS = 7  # matrices from this size on are steps of their own: their arithmetic hides the pass
EMULATED_BLOCK_QUBITS = 3  # smallest matrix that arithmetic="emulated" emulates


def least_block_qubits(arithmetic: str) -> int:
    """Returns the number of qubits from which on a matrix is a step of its own."""
    return EMULATED_BLOCK_QUBITS if arithmetic == "emulated" else NATIVE_BLOCK_QUBITS


def dense_block(native: DenseBlock, worked: float, num_qubits: int, options: PlanOptions, device: Device) -> DenseBlock:
    """Returns ``native`` or its emulated form, whichever is legal and cheaper.

    Args:
        native: the block with its prediction.
        worked: number of amplitudes in columns that hold more than zeros.
        num_qubits: number of qubits of the state.
        options: their precision, arithmetic and accuracy.
        device: a measured device, or one that a test makes up.

    Raises:
        OptionError: the arithmetic is ``"emulated"``, and no number of moduli has a bound that meets the accuracy.
    """
    op, arithmetic = native.op, options.arithmetic
    num_targets = len(op.targets)
    count = None if arithmetic == "native" else num_moduli_for(options.accuracy, num_targets, options.precision)
    if arithmetic == "emulated" and count is None:
        raise OptionError(_unattainable(options.accuracy, num_targets))
    if count is None or (arithmetic == "auto" and not device.int8_ops_per_s):
        return native
    prediction = predict_emulated(op, count, worked, num_qubits, options.precision, device)
    native_time, emulated_time = format_seconds(native.prediction.seconds), format_seconds(prediction.seconds)
    if arithmetic == "auto" and native.prediction.seconds <= prediction.seconds:
        return replace(native, reason=f"{native.reason}; emulated with {count} moduli {emulated_time}")
    bound = float(error_bound(count, num_targets))
    reason = f"{native.reason}, error <= {bound:.1e} of a column's norm, each column checked; native {native_time}"
    return replace(native, path=Path.OZAKI, num_moduli=count, prediction=prediction, reason=reason, error_bound=bound)


def _unattainable(accuracy: float | None, num_targets: int) -> str:
    """Returns the message that no emulation meets the accuracy, with the way out."""
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
