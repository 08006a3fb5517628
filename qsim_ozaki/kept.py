"""What was made lately, by what it depends on: for any thread, and no more than fits.

In: keys, and values with their sizes. Out: the values that were asked for last. It makes nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, those let go first that were asked for longest ago.

    Args:
        max_bytes: of all of them.
        max_entries: how many.
    """

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self.num_bytes = 0
        self._found: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        """What is kept under ``key``."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def add(self, key: Hashable, value: Value, num_bytes: int) -> Value:
        """Keeps ``value``, unless another thread was first; returns what there is for ``key``.

        Args:
            key: all that the value depends on.
            value: what all threads may have.
            num_bytes: of both.
        """
        with self._lock:
            kept, _ = self._found.setdefault(key, (value, num_bytes))
            if kept is value:
                self.num_bytes += num_bytes
            while len(self._found) > self.max_entries or self.num_bytes > self.max_bytes:
                self.num_bytes -= self._found.popitem(last=False)[1][1]
        return kept

    def __len__(self) -> int:
        return len(self._found)
