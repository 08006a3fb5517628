"""Caches: the values used last, in memory; measured records and other data, in files.

In: keys, values and their sizes; bytes and paths. Out: the values. It computes none of them.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Hashable, Set
from pathlib import Path
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

Value = TypeVar("Value")


def _entry_bytes(entry: tuple[object, int]) -> int:
    return entry[1]


class LruCache(Generic[Value]):
    """Values by key, for any thread; the least recently used are dropped first.

    Args:
        max_bytes: of all entries together.
        max_entries: their number.
    """

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self._entries: LRUCache[Hashable, tuple[Value, int]] = LRUCache(max_bytes, getsizeof=_entry_bytes)
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """Bytes of all entries, as their callers gave them."""
        return int(self._entries.currsize)

    def get(self, key: Hashable) -> Value | None:
        """The value under ``key``, which becomes the most recently used one."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def add(self, key: Hashable, value: Value, num_bytes: int) -> Value:
        """Stores ``value``, unless another thread stored one under ``key`` before; returns the stored one.

        Args:
            key: all that the value depends on.
            value: may be shared by all threads.
            num_bytes: of key and value; an entry larger than the whole cache is returned, but not stored.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                return entry[0]
            if num_bytes > self.max_bytes or self.max_entries == 0:
                return value
            if len(self._entries) == self.max_entries:
                self._entries.popitem()
            self._entries[key] = (value, num_bytes)
        return value

    def __len__(self) -> int:
        return len(self._entries)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes ``data`` so that a reader sees the old file or the whole new one.

    A folder that cannot be written is no error: what is cached there is computed again by the next process.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
    except OSError:
        return


class DeviceRecords:
    """Measured records of devices by name: in this process, and in a JSON file of the user's cache folder.

    Args:
        file_name: inside that folder.
    """

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        self._records: dict[str, dict[str, Any]] = {}  # a home that cannot be written costs one measurement a process

    def record(self, name: str, fields: Set[str], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The record of the device called ``name``, measured where there is none yet.

        Args:
            name: of the device and of all else that the record depends on.
            fields: of the record; one that lacks some, or has others, is of another version and measured again.
            measure: makes the record.
        """
        if name not in self._records:
            from platformdirs import user_cache_path

            path = user_cache_path("qsim-ozaki") / self.file_name
            try:
                stored: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                stored = {}
            if set(stored.get(name, ())) != fields:
                stored[name] = measure()
                write_atomically(path, json.dumps(stored, indent=1).encode())
            self._records[name] = stored[name]
        return self._records[name]
