"""The exceptions of the package.

In: nothing. Out: exception classes. Every message says what was asked, what the limit is and the way out.
"""


class QsimError(Exception):
    """Base of every error this package raises on purpose."""


class LoweringError(QsimError):
    """A circuit cannot be translated; the message names gate, qubits, circuit and remedy."""


class MixedStateError(LoweringError):
    """A circuit that was to have one final state measures, resets or branches before its end."""


class CapacityError(QsimError, MemoryError):
    """A state does not fit; the message gives needed bytes, available bytes and what would fit."""


class OptionError(QsimError, AttributeError, ValueError):
    """An option is unknown or its value is not allowed; the message names the nearest option or the allowed values."""


class ProgramError(QsimError, ArithmeticError):
    """A circuit's classical part cannot go on: a loop without end, a value that is not there or out of range."""


class EngineError(QsimError, RuntimeError):
    """An engine is not available or failed; the message carries the reason and the way out."""


class CancelledError(QsimError):
    """The run was cancelled between two steps."""


class TimeLimitError(QsimError, TimeoutError):
    """The run took longer than its timeout and was stopped between two steps."""
