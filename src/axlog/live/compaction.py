"""Compaction: write a snapshot in a separate process, `python -m axlog.live.compaction`.

The process reads the store without its lock, replays the log up to a record and writes the
snapshot. It changes nothing else, so the process that has the store open keeps appending meanwhile.
A compaction that dies leaves a file that the next one removes.
"""

from __future__ import annotations

import sys

from axlog.errors import StoreError
from axlog.live.document import Document
from axlog.live.recovery import restore, snapshot_parts
from axlog.store.files import DiskFiles, Files
from axlog.store.snapshots import write_snapshot


def compact(files: Files, upto: int) -> None:
    """Write the snapshot of all records up to `upto`."""
    found = restore(files, Document, {}, until=upto)
    if found is None or found.record != upto:
        raise StoreError("AX875", f"the log does not reach record {upto}")
    write_snapshot(files, upto, snapshot_parts(found.document, found.settings, found.outboxes))


if __name__ == "__main__":
    compact(DiskFiles(sys.argv[1]), int(sys.argv[2]))
