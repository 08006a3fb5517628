"""Text for bytes, seconds and widths, in plans and messages.

In: numbers. Out: text. It may not decide anything.
"""

from __future__ import annotations

import math

from qsim_ozaki.ir.device import max_qubits, state_bytes


def format_bytes(count: float) -> str:
    """Returns bytes with a binary unit, or as a power of two from 2**70 on, where no common unit exists."""
    if count >= 1 << 70:
        return f"2^{math.log2(count):.0f} B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if count < 1024 or unit == "EiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def short_bytes(count: float) -> str:
    """Returns bytes as `format_bytes` does, but without a decimal that is 0: 16 GiB."""
    return format_bytes(count).replace(".0 ", " ")


def too_wide(num_qubits: int, precision: str, device_name: str, memory_bytes: int) -> str:
    """Returns the message for a state that does not fit: bytes needed, bytes available, and the widest that fits."""
    most = {name: max_qubits(memory_bytes, name) for name in (precision, "single")}
    single = f", or precision='single' (up to {most['single']} qubits)" if precision == "double" else ""
    return (
        f"{num_qubits} qubits need {short_bytes(state_bytes(num_qubits, precision))} in {precision} precision; "
        f"{device_name} has {short_bytes(memory_bytes)} available. Use at most {most[precision]} qubits{single}."
    )


def format_seconds(seconds: float) -> str:
    """Returns seconds with a unit of fitting size."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return "0" if not seconds else f"{seconds * 1e9:.3g} ns"
