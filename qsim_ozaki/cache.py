"""Caches: recently used values in memory; measured records and other data in files.

In: keys, values and their sizes; bytes and paths. Out: the values. It may not compute a value itself.
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
    """Returns the bytes of a pair (value, bytes)."""
    return entry[1]


class LruCache(Generic[Value]):
    """A cache that drops the least recently used values first; any thread may use it.

    Args:
        max_bytes: limit for the bytes of all entries together.
        max_entries: limit for the number of entries.
    """

    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self.max_bytes = max_bytes
        self.max_entries = max_entries
        self._entries: LRUCache[Hashable, tuple[Value, int]] = LRUCache(max_bytes, getsizeof=_entry_bytes)
        self._lock = threading.Lock()

    @property
    def num_bytes(self) -> int:
        """The bytes of all entries, as the callers of `add` stated them."""
        return int(self._entries.currsize)

    def get(self, key: Hashable) -> Value | None:
        """Returns the value under ``key``, which becomes the most recently used one, or None."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def add(self, key: Hashable, value: Value, num_bytes: int) -> Value:
        """Stores ``value``, unless another thread stored one under ``key`` before; returns the stored value.

        Args:
            key: everything on which the value depends.
            value: a value that all threads may share.
            num_bytes: bytes of key and value; a value larger than the whole cache is returned, but not stored.
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
    """Writes ``data`` so that a reader sees either the old file or the whole new one.

    A folder that cannot be written is no error: the next process computes the cached data again.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)
    except OSError:
        return


class DeviceRecords:
    """Measured records of devices by name, held in this process and in a JSON file of the user's cache folder.

    Args:
        file_name: name of the file inside that folder.
    """

    def __init__(self, file_name: str) -> None:
        self.file_name = file_name
        # Where the home folder cannot be written, this spares a process a second measurement.
        self._records: dict[str, dict[str, Any]] = {}

    def record(self, name: str, fields: Set[str], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns the record of the device called ``name``, and measures it if there is none yet.

        Args:
            name: names the device and everything else on which the record depends.
            fields: names of the record's fields. A stored record with other fields comes from another version and is
                measured again.
            measure: measures the device and returns its record.
        """
        record = self.stored(name, fields)
        return self.store(name, measure()) if record is None else record

    def stored(self, name: str, fields: Set[str]) -> dict[str, Any] | None:
        """Returns the record of the device called ``name`` if this process or the file has it with these ``fields``."""
        record = self._records.get(name)
        if record is None:
            record = self._file_records().get(name)
            if record is None or set(record) != fields:
                return None
            self._records[name] = record
        return record

    def store(self, name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Stores ``record`` in this process and in the file; returns it."""
        self._records[name] = record
        records = self._file_records() | {name: record}
        write_atomically(self._path(), json.dumps(records, indent=1).encode())
        return record

    def _path(self) -> Path:
        from platformdirs import user_cache_path

        return Path(user_cache_path("qsim-ozaki")) / self.file_name

    def _file_records(self) -> dict[str, dict[str, Any]]:
        try:
            records: dict[str, dict[str, Any]] = json.loads(self._path().read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return records
