"""Warnings that point to the user's line.

In: a message. Out: a Python warning. It may not stop anything.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn_user(message: str) -> None:
    """Warns with ``message``; Python shows it with the nearest line of the call that is outside this package."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "qsim_ozaki":
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)
