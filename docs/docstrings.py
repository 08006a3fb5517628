"""Docstrings as the site shows them: a section ``Example:`` is code, as griffe reads ``Examples:``.

In: objects that griffe has parsed. Out: the same, their docstrings changed.
"""

from __future__ import annotations

from typing import Any

import griffe


class ExamplesAreCode(griffe.Extension):
    """Renames the section before griffe divides docstrings into sections."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace("\nExample:\n", "\nExamples:\n")
