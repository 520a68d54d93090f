"""A copy of a store at a point in time, while its process runs.

Snapshots and all log segments but the last never change, and the last one only grows. A copy of
the files in the order manifest, snapshots, segments is therefore a state that a crash could have
left: the store opens from it with every record up to the last complete one in the copy. Compaction
may remove files and the process may close or open the log meanwhile; both replace the manifest, and
the copy is made again.

A directory inside is copied in the same way. Temporary files are left out. Every frame of the logs
and every snapshot of the copy is read and its checksum compared: a damaged store is refused, so
that damage is noticed while there still is an older copy.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from axlog.errors import StoreError
from axlog.store.files import DiskFiles
from axlog.store.log_reader import read_log, segments
from axlog.store.manifest import NAME, read_manifest
from axlog.store.snapshots import read_snapshot, snapshots

_TRIES = 20
_LEFT_OUT = (".tmp", ".lock", ".part")


def copy_store(source: Path, target: Path, *, check: bool = True) -> int:
    """Copy a store, a checkpoint or a journal to a new directory; return the number of bytes.

    The copy appears under its name when it is complete, on disk and, with `check`, correct.
    """
    if not source.is_dir():
        raise StoreError("AX878", f"{source} is not a directory with a store")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(
            "AX875", f"{target} exists and is not empty", advice="copy to a new directory"
        )
    if target.resolve().is_relative_to(source.resolve()):
        raise StoreError("AX875", f"{target} is inside of {source}")
    made = target.with_name(f"{target.name}.part")
    for _ in range(_TRIES):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        try:
            before = _manifests(source)
            size = _copy(source, made)
            if _manifests(source) == before:
                break
        except FileNotFoundError:
            continue  # compaction removed it
    else:
        shutil.rmtree(made, ignore_errors=True)
        raise StoreError("AX874", f"{source} changes faster than it can be copied")
    if check:
        try:
            check_files(made)
        except StoreError as error:
            shutil.rmtree(made, ignore_errors=True)
            raise StoreError(
                error.code,
                f"{source} is damaged, so it was not copied: {error.message}",
                advice="restore an older copy; --unchecked copies the files as they are",
            ) from error
    if target.exists():
        target.rmdir()
    made.rename(target)
    _sync(target.parent)
    return size


def check_files(directory: Path) -> None:
    """Read every frame and every snapshot of a store and of those inside; raise AX871 if damaged.

    The unfinished end that a crash leaves is no damage.
    """
    files = DiskFiles(directory)
    firsts, manifest = segments(files), read_manifest(files)
    if firsts or manifest is not None:  # a manifest without segments: the log is missing
        first = firsts[0] if firsts else manifest.segment if manifest else 1
        for _ in read_log(files, first - 1):
            pass
    for record in snapshots(files):
        read_snapshot(files, record)
    for inside in sorted(directory.iterdir()):
        if inside.is_dir():
            check_files(inside)


def _manifests(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob(NAME))}


def _copy(source: Path, target: Path) -> int:
    """Copy a directory: first the manifest, then the snapshots, then the segments in order."""
    size = 0
    entries = [each for each in source.iterdir() if not each.name.endswith(_LEFT_OUT)]
    order = sorted(entries, key=lambda each: (each.name != NAME, "log-" in each.name, each.name))
    for each in order:
        if each.is_dir():
            (target / each.name).mkdir()
            size += _copy(each, target / each.name)
        elif each.is_file():
            with each.open("rb") as read, (target / each.name).open("wb") as written:
                shutil.copyfileobj(read, written, 1 << 20)
                written.flush()
                os.fsync(written.fileno())
                size += written.tell()
            shutil.copymode(each, target / each.name)
    _sync(target)
    return size


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
