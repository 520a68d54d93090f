"""An embedded key-value store: bytes to bytes, in order, on disk.

LMDB (extra `store`) behind the few operations that the engine needs. SQLite was measured on the
engine's own traffic (docs/tuning.md): reading by key took 2.6 times as long, reading and writing
back 2.5 times.

The store is scratch space. Its content can be computed again, so no write waits for the disk, and a
store is empty when it is opened. It is not durable: `log.py` is.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axlog.errors import SetupError

_FIRST_SIZE = 1 << 28
_COMMIT_AFTER = 2000
"""Writes between two commits: LMDB keeps the pages of an open transaction in memory."""


class KeyValueStore:
    """One file of keys and values; keys of at most 511 bytes."""

    def __init__(self, path: str | Path | None = None) -> None:
        try:
            import lmdb
        except ImportError:
            raise SetupError(
                "AX901", "lmdb is not installed", advice="pip install 'axlog[store]'"
            ) from None
        self._full: type[Exception] = lmdb.MapFullError
        self._own = Path(tempfile.mkdtemp(prefix="axlog-store-")) if path is None else None
        self.path = Path(path) if path is not None else Path(str(self._own))
        self.path.mkdir(parents=True, exist_ok=True)
        for left in ("data.mdb", "lock.mdb"):
            (self.path / left).unlink(missing_ok=True)
        self._size = _FIRST_SIZE
        self._environment: Any = lmdb.open(
            str(self.path), map_size=self._size, sync=False, metasync=False, lock=False
        )
        self._writing: Any = self._environment.begin(write=True)
        self._waiting: dict[bytes, bytes | None] = {}  # writes since the last commit

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        found: bytes | None = self._writing.get(key)
        return found

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key."""
        try:
            self._writing.put(key, value)
        except self._full:
            self._grow()
            self._writing.put(key, value)
        self._note(key, value)

    def delete(self, key: bytes) -> None:
        """Remove a key, if it exists."""
        try:
            self._writing.delete(key)
        except self._full:  # LMDB copies pages to remove a key
            self._grow()
            self._writing.delete(key)
        self._note(key, None)

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys that start with a prefix and their values, in order."""
        with self._writing.cursor() as cursor:
            if not cursor.set_range(prefix):
                return
            for key, value in cursor:
                if not key.startswith(prefix):
                    return
                yield key, value

    def _note(self, key: bytes, value: bytes | None) -> None:
        waiting = self._waiting
        waiting[key] = value
        if len(waiting) >= _COMMIT_AFTER:
            self._commit()

    def _commit(self) -> None:
        try:
            self._writing.commit()
        except self._full:
            self._grow(is_open=False)
            self._writing.commit()
        self._writing = self._environment.begin(write=True)
        self._waiting.clear()

    def _grow(self, is_open: bool = True) -> None:
        """Enlarge the file: restart the transaction and repeat its writes."""
        if is_open:
            self._writing.abort()
        self._size *= 2
        self._environment.set_mapsize(self._size)
        self._writing = self._environment.begin(write=True)
        for key, value in self._waiting.items():
            if value is None:
                self._writing.delete(key)
            else:
                self._writing.put(key, value)

    def close(self) -> None:
        """Close the file; delete it if the store was opened without a path."""
        if self._environment is None:
            return
        self._writing.abort()
        self._environment.close()
        self._environment = None
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def __del__(self) -> None:
        if getattr(self, "_environment", None) is not None:
            self.close()
