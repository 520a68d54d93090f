"""The state of a bucket in Spark's state store, and the live engines that workers cache.

For each instance (a bucket's engine, or that of one document) the store has a header, a log with
the packets of every batch since the last snapshot, and that snapshot in chunks. A worker caches
live instances. A cached instance is used only if its version and its mark equal those of the store.
A mark is random for every version, so an engine of a failed attempt is never mistaken for the
stored one. An engine that is behind catches up from the log; otherwise it gets the state of the
snapshot, or is rebuilt from snapshot and log. A batch costs what it brings, and a restart costs the
state once.

The store also has the engine's totals, for progress, and the due times of its documents
(`timers.py`).

`Store` is the part of Spark's map states that is used here; tests pass dictionaries. Values are
packed (`packets.py`), as they were sent.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from axlog.runtime.gc_pause import note_dropped, note_made
from axlog.runtime.packet_rows import read_packet
from axlog.runtime.packets import pack, unpack
from axlog.runtime.timers import Due, Store

MOST_LIVE = 4096
"""Instances that a worker caches; others are rebuilt from the store when needed."""
CHUNK = 256 * 1024
SMALLEST_LOG = 64 * 1024
LONGEST_LOG = 64
"""A snapshot is taken when the log exceeds the last snapshot and these bytes, or these batches."""


@dataclass
class Head:
    """The header of an instance in the store."""

    version: int = 0
    mark: str = ""
    snapshot: int = 0  # the stored version
    chunks: int = 0  # of the snapshot
    size: int = 0  # of the snapshot, in bytes
    logged: int = 0  # bytes of log since
    due: int | None = None  # the time after which it has work without a message
    rows: int = 0
    waiting: int = 0
    heard: int = 0  # the batch of its bucket that it had last
    together: bool = False  # it reports with every batch

    @classmethod
    def read(cls, written: bytes | None) -> Head:
        return cls() if written is None else cls(**unpack(written))

    def packed(self) -> bytes:
        return pack(vars(self))


@dataclass
class Total:
    """The totals of a bucket, over all its instances."""

    instances: int = 0
    rows: int = 0
    waiting: int = 0
    state: int = 0  # bytes in the store

    @classmethod
    def read(cls, written: bytes | None) -> Total:
        return cls() if written is None else cls(**unpack(written))

    def move(self, before: Head, after: Head) -> None:
        """Add the difference that a batch made to one instance."""
        self.instances += not before.version
        self.rows += after.rows - before.rows
        self.waiting += after.waiting - before.waiting
        self.state += after.size + after.logged - before.size - before.logged


@dataclass
class _Live:
    version: int
    mark: str
    instance: Any


Live: TypeAlias = "OrderedDict[tuple[str, str], _Live]"
LIVE: Live = OrderedDict()
"""The live instances of a worker process, least recently used first."""


class Kept(Protocol):
    """What is carried from batch to batch: the engine of a bucket, or a final step."""

    @property
    def rows(self) -> int: ...
    @property
    def waiting(self) -> int: ...
    @property
    def due(self) -> int | None: ...
    @property
    def is_together(self) -> bool: ...
    def begin(self) -> None: ...
    def batch(self, packets: Any) -> Any: ...
    def state(self) -> Any: ...
    def restore(self, state: Any) -> None: ...
    def may_restore(self, state: Any) -> bool: ...


K = TypeVar("K", bound=Kept)


class Keeper(Generic[K]):
    """Carries the instances of one bucket from batch to batch."""

    def __init__(
        self,
        store: Store,
        run: str,
        make: Callable[[str], K],
        times: bool = False,
        begins: bool = False,
        live: Live = LIVE,
        read: Callable[[bytes], Any] | None = None,
    ) -> None:
        """`times`: there are many instances, so record their due times in the store.

        `begins`: a new instance emits the initial rows of its document. `read`: unpacks an input.
        """
        self._read = read or read_packet
        self._live = live
        self._store = store
        self._begins = begins
        self._run = run
        self._make = make
        self._due = Due(store) if times else None
        self.version = 0  # of the instance that had the last batch
        self._total: Total | None = None  # as read or written last

    def batch(
        self, name: str, written: Sequence[bytes], number: int = 0, head: Head | None = None
    ) -> tuple[Any, K]:
        """Apply the packed packets of a batch to an instance, and store the result.

        `number` is that of the batch in its bucket; `head` the header, if it was read.
        """
        head = self.head(name) if head is None else head
        before = replace(head)
        instance = self._take(name, head)
        if self._begins and not head.version:
            instance.begin()
        outcome = instance.batch([self._read(one) for one in written])
        self._record(name, head, written, instance)
        head.rows, head.waiting = instance.rows, instance.waiting
        head.heard, head.together = number, instance.is_together
        self._note_due(name, head, instance)
        self._store.put(f"head {name}", head.packed())
        self._count(before, head)
        self._keep(name, head, instance)
        self.version = head.version
        return outcome, instance

    def head(self, name: str = "") -> Head:
        """Return the header of an instance."""
        return Head.read(self._store.get(f"head {name}"))

    def due(self, passed: int) -> list[str]:
        """Return the instances that have work once this time has passed."""
        return [] if self._due is None else self._due.take(passed)

    @property
    def next(self) -> int | None:
        """Return the time after which some instance has work."""
        return self.head().due if self._due is None else self._due.first()

    def total(self) -> Total:
        """Return the totals of the engine, or of all documents."""
        if self._total is None:
            self._total = Total.read(self._store.get("total"))
        return self._total

    def _count(self, before: Head, after: Head) -> None:
        total = self.total()
        total.move(before, after)
        self._store.put("total", pack(vars(total)))

    def _note_due(self, name: str, head: Head, instance: K) -> None:
        due = instance.due
        if self._due is not None and due is not None and due != head.due:
            self._due.put(name, due)
        head.due = due

    # Live instances -------------------------------------------------------------------------------

    def _take(self, name: str, head: Head) -> K:
        """Return the instance at the version of the store and remove it from the cache until it is
        kept again.
        """
        live = self._live.pop((self._run, name), None)
        if live is not None and (live.version, live.mark) == (head.version, head.mark):
            return cast("K", live.instance)
        if live is not None and self._is_behind(name, live, head):
            instance, start = cast("K", live.instance), live.version
        else:
            instance, start = self._restored(name, head, live), head.snapshot
        for version in range(start + 1, head.version + 1):
            chunk = self._store.get(f"log {name} {version}")
            assert chunk is not None, f"the log lacks version {version} of {name!r}"
            instance.batch([self._read(one) for one in unpack(chunk)[1]])
        return instance

    def _is_behind(self, name: str, live: _Live, head: Head) -> bool:
        """Whether the log leads from a live instance to the version of the store."""
        if not head.snapshot < live.version < head.version:
            return False
        chunk = self._store.get(f"log {name} {live.version}")
        return chunk is not None and unpack(chunk)[0] == live.mark

    def _restored(self, name: str, head: Head, live: _Live | None) -> K:
        """Return an instance with the state of the snapshot: a live one from before it, or a new
        one, which costs more.
        """
        state: Any = None
        if head.chunks:
            parts = [self._store.get(f"part {name} {n}") or b"" for n in range(head.chunks)]
            state = unpack(b"".join(parts))
        instance: K
        if live is not None and state is not None and 0 < live.version < head.snapshot:
            instance = live.instance
            if instance.may_restore(state):
                instance.restore(state)
                return instance
        if live is not None:
            note_dropped()
        note_made()
        instance = self._make(name)
        if state is not None:
            instance.restore(state)
        return instance

    def _keep(self, name: str, head: Head, instance: K) -> None:
        self._live[self._run, name] = _Live(head.version, head.mark, instance)
        while len(self._live) > MOST_LIVE:
            self._live.popitem(last=False)
            note_dropped()

    # The store ------------------------------------------------------------------------------------

    def _record(self, name: str, head: Head, batch: Sequence[bytes], instance: K) -> None:
        """Append a batch to the log, or replace the log by a snapshot after it.

        A snapshot is written when the log would be longer than it, so the store has at most twice
        the state, and writing costs at most twice what is logged.
        """
        head.version += 1
        head.mark = os.urandom(8).hex()
        size = sum(map(len, batch))
        if self._is_long(head, size):
            self._write_snapshot(name, head, pack(instance.state()))
            return
        head.logged += size
        self._store.put(f"log {name} {head.version}", pack((head.mark, tuple(batch))))

    def _is_long(self, head: Head, more: int) -> bool:
        """Whether the log would be too long with another batch."""
        length = head.version - head.snapshot
        longest = max(LONGEST_LOG, head.size // SMALLEST_LOG)  # a large state is written rarely
        return head.logged + more > max(SMALLEST_LOG, head.size) or length > longest

    def _write_snapshot(self, name: str, head: Head, whole: bytes) -> None:
        parts = [whole[at : at + CHUNK] for at in range(0, len(whole), CHUNK)]
        for number, part in enumerate(parts):
            self._store.put(f"part {name} {number}", part)
        for number in range(len(parts), head.chunks):
            self._store.remove(f"part {name} {number}")
        for version in range(head.snapshot + 1, head.version):
            self._store.remove(f"log {name} {version}")
        head.snapshot, head.chunks, head.size, head.logged = head.version, len(parts), len(whole), 0


def forget_live() -> None:
    """Drop every live instance of this process."""
    LIVE.clear()
