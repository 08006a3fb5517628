"""The exceptions of the package.

In: messages. Out: exception classes. Every message states the request, the limit and the way out.
"""


class QsimError(Exception):
    """Base of every error this package raises on purpose."""


class LoweringError(QsimError):
    """A circuit cannot be translated; the message names the gate, the qubits, the circuit and a remedy."""


class MixedStateError(LoweringError):
    """A circuit that must have one final state measures, resets or branches before its end."""


class CapacityError(QsimError, MemoryError):
    """A state does not fit; the message gives the needed bytes, the available bytes and the widest state that fits."""


class OptionError(QsimError, AttributeError, ValueError):
    """An option is unknown or its value is not allowed; the message names the nearest option or the allowed values."""


class ProgramError(QsimError, ArithmeticError):
    """The classical part of a circuit cannot go on: a loop has no end, or a value is missing or out of range."""


class EngineError(QsimError, RuntimeError):
    """An engine is not available or failed; the message states the reason and the way out."""


class CancelledError(QsimError):
    """The run was cancelled between two steps."""


class TimeLimitError(QsimError, TimeoutError):
    """The run took longer than its timeout and was stopped between two steps."""
