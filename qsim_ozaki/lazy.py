"""Names of a package that are imported when they are first used (PEP 562).

In: a package and the modules of its public names. Out: its ``__getattr__`` and ``__dir__``. It imports nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def attach(package: str, public: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` of ``package``, which import a name's module when the name is first used.

    Args:
        package: dotted name.
        public: names by the module below ``package`` that defines them.
    """
    homes = {name: module for module, names in public.items() for name in names}

    def getattribute(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}. Public names are {', '.join(homes)}.")

    return getattribute, lambda: sorted(homes)
