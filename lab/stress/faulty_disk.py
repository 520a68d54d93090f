"""A simulated disk that fails: it loses unsynced writes, is full, tears and fails writes.

`FaultyFiles` is a directory in memory that replaces `store.files.DiskFiles`. It guarantees what
file systems guarantee and no more: bytes survive a power failure once the file was synced, names
once the directory was. Other writes may survive completely, in part, with holes (pages reach the
disk in any order), or not at all. A plan decides when faults occur; `crash` returns the directory
as the next start finds it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from random import Random

PAGE = 512


class Crashed(BaseException):
    """The process died here; nothing after it runs."""


class _Content:
    """The bytes of a file: the durable ones, and those that the process sees."""

    def __init__(self, data: bytes = b"") -> None:
        self.seen = bytearray(data)
        self.safe = data


class FaultyFiles:
    """A directory on a failing disk; `fault` is called before every operation."""

    def __init__(self, random: Random, fault: Callable[[str], str | None] | None = None) -> None:
        self._random = random
        self._fault = fault or (lambda _: None)
        self._seen: dict[str, _Content] = {}
        self._safe: dict[str, _Content] = {}
        self.operations = 0

    @classmethod
    def holding(cls, files: Mapping[str, bytes]) -> FaultyFiles:
        """Return a directory with these files, all durable."""
        made = cls(Random(0))
        for name, data in files.items():
            made._seen[name] = made._safe[name] = _Content(data)
        return made

    def _ask(self, operation: str) -> str | None:
        """Return the fault of this operation: None, `crash`, `full`, `fail` or `tear`."""
        self.operations += 1
        fault = self._fault(operation)
        if fault == "crash":
            raise Crashed(operation)
        if fault == "fail":
            raise OSError(errno.EIO, "input/output error")
        return fault

    def stop_at(self, operation: int, fault: str = "crash") -> None:
        """Make this operation fail, and no other."""
        self._fault = lambda _: fault if self.operations == operation else None

    def names(self) -> list[str]:
        return sorted(self._seen)

    def read(self, name: str) -> bytes:
        return bytes(self._seen[name].seen)

    def append_to(self, name: str) -> FaultyFile:
        self._ask("open")
        content = self._seen.get(name)
        if content is None:
            content = self._seen[name] = _Content()
        return FaultyFile(self, content)

    def rename(self, old: str, new: str) -> None:
        self._ask("rename")
        self._seen[new] = self._seen.pop(old)

    def remove(self, name: str) -> None:
        self._ask("remove")
        self._seen.pop(name, None)

    def sync_directory(self) -> None:
        self._ask("sync")
        self._safe = dict(self._seen)

    def crash(self) -> FaultyFiles:
        """Return the directory after a power failure: all durable bytes, and some of the rest."""
        after = FaultyFiles(self._random)
        for name in {*self._seen, *self._safe}:
            known = self._safe.get(name)
            if name not in self._seen and self._random.random() < 0.5:
                known = None  # the removal reached the disk
            elif name in self._seen and (known is None or self._random.random() < 0.5):
                known = self._seen[name] if self._random.random() < 0.5 else known
            if known is not None:
                kept = _Content(self._survivor(known))
                after._seen[name] = after._safe[name] = kept
        return after

    def killed(self) -> FaultyFiles:
        """Return the directory after the process was killed: the system still has all writes."""
        after = FaultyFiles(self._random)
        for name, content in self._seen.items():
            after._seen[name] = after._safe[name] = _Content(bytes(content.seen))
        return after

    def _survivor(self, content: _Content) -> bytes:
        """Return the durable bytes, and of the pages after them some as written, some as zeros."""
        safe, seen = content.safe, bytes(content.seen)
        if seen[: len(safe)] != safe:
            return safe if self._random.random() < 0.5 else seen
        length = self._random.randint(len(safe), len(seen))
        kept = bytearray(seen[:length])
        for page in range(len(safe), length, PAGE):
            if self._random.random() < 0.3:
                end = min(page + PAGE, length)
                kept[page:end] = bytes(end - page)
        return bytes(kept)


class FaultyFile:
    """An open file of a faulty directory."""

    def __init__(self, files: FaultyFiles, content: _Content) -> None:
        self._files = files
        self._content = content

    def append(self, data: bytes) -> None:
        fault = self._files._ask("write")
        if fault in ("full", "tear"):
            self._content.seen += data[: self._files._random.randrange(len(data) + 1)]
            if fault == "tear":
                raise Crashed("write")
            raise OSError(errno.ENOSPC, "no space left on device")
        self._content.seen += data

    def sync(self) -> None:
        self._files._ask("sync")
        self._content.safe = bytes(self._content.seen)

    def cut(self, size: int) -> None:
        self._files._ask("cut")
        del self._content.seen[size:]

    def close(self) -> None:
        """Does not sync."""
