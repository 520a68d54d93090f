"""A durable state: a log of its changes, replaced by the whole state from time to time.

The checkpoint of an embedded run and the journal of a channel are state logs. A change is one
frame of the log (`log.py`): a crash leaves all of its records or none. The whole state is one frame
too. It starts with a title, the kind and version of the content:

    "axlog state\\n", kind, " ", version

The first frame of a log is the whole state at its beginning. Law: the state is that of the last
whole state and all changes after it. A whole state starts a new segment, and older segments are
removed once it is on disk, unless they are retained. A crash before that leaves the old segments,
which lead to the same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from axlog.errors import StoreError
from axlog.store.files import Files
from axlog.store.log import Log
from axlog.store.log_reader import read_log, segments

TITLE = b"axlog state\n"
"""How the first record of a log of states begins."""

SMALLEST = 1 << 20
"""Bytes of changes below which the whole state is not written again."""
TIMES = 2
"""The whole state is written when its changes are this many times larger."""


class StateLog:
    """A state log, open for writing by one process at a time."""

    def __init__(self, files: Files, kind: str, version: int, policy: str = "always") -> None:
        self._files = files
        self._head = TITLE + f"{kind} {version}".encode()
        self._log = Log(files, policy)
        self._whole = 0  # the first record of the last whole state
        self._size = 0  # its bytes
        self._since = 0  # the bytes of its changes
        try:
            self._find()
        except BaseException:
            self._log.close()
            raise

    @property
    def is_new(self) -> bool:
        """Whether there is no state yet: `replace` must be called before `append`."""
        return not self._whole

    @property
    def is_long(self) -> bool:
        """Whether its changes are so long that the whole state should be written."""
        return self._since > max(SMALLEST, TIMES * self._size)

    def _find(self) -> None:
        """Find the last whole state, and refuse other kinds and versions."""
        # Backwards: older segments may or may not still exist; compaction was deleting them.
        for first in reversed(segments(self._files)):
            self._size = self._since = 0
            for number, records in read_log(self._files, first - 1):
                size = sum(map(len, records))
                if number == first and records[0].startswith(TITLE):
                    self._check(records[0])
                    self._whole, self._size = first, size
                else:
                    self._since += size
            if self._whole:
                return
        if self._log.next > 1:
            raise StoreError("AX871", "the log has no whole state", expected="one at its beginning")

    def _check(self, head: bytes) -> None:
        if head != self._head:
            found = head.removeprefix(TITLE).decode("ascii", "replace")
            raise StoreError(
                "AX872",
                f"the log holds {found[:80]!r}",
                expected=self._head.removeprefix(TITLE).decode(),
                advice="open it with the axlog that wrote it",
            )

    def changes(self, *, retained: bool = False) -> Iterator[tuple[bytes, ...]]:
        """The records of the last whole state, then those of each change.

        `retained`: of all whole states and changes that are retained.
        """
        after = 0 if retained or self.is_new else self._whole - 1
        for _, records in read_log(self._files, after):
            yield records[1:] if records[0].startswith(TITLE) else records

    def append(self, records: Sequence[bytes], *, sync: bool = True) -> None:
        """Write a change."""
        self._log.append(records, sync=sync)
        self._since += sum(map(len, records))

    def replace(self, records: Sequence[bytes], *, retains: bool = False) -> None:
        """Write the whole state; drop everything before it unless it is retained."""
        self._log.rotate()
        self._whole = self._log.append([self._head, *records])
        self._log.sync()
        self._size, self._since = sum(map(len, records)), 0
        if not retains:
            self._log.drop_before(self._whole)

    def abandon(self) -> None:
        """Close the files as a killed process leaves them."""
        self._log.abandon()

    def close(self) -> None:
        """Close the log."""
        self._log.close()
