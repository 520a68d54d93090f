"""Opening a store: the durable widget of a directory, found there or made.

`axlog.open` is `open_store`. One process has a store open at a time: it holds the file `lock`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from logging import INFO, getLogger
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from axlog.document.loader import load
from axlog.document.parser import DEFAULT_LIMITS, Limits, Source
from axlog.document.serializer import serialise
from axlog.document.times import checked_times, start_of
from axlog.errors import StoreError
from axlog.live import log_records
from axlog.live.durable import DurableWidget
from axlog.live.log_records import Record
from axlog.live.recovery import Restored, restore
from axlog.query.query import Query
from axlog.reporting import report
from axlog.store.files import DiskFiles, Files
from axlog.store.log import POLICIES, Log

_events = getLogger("axlog.store")

COMPACT_AFTER = 50_000
"""Records between two snapshots, unless told otherwise."""


def open_store(
    path: str | Path,
    source: Source | None = None,
    views: Mapping[str, str | Query] | None = None,
    *,
    sync: str = "always",
    retain: bool = False,
    compact_after: int | None = COMPACT_AFTER,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> DurableWidget:
    """Open the durable widget in a directory, or make one there over `source`.

    Views that are named and not there yet are added; those that are there stay. Options of
    `Widget` are noted when the store is made and need not be given again.
    """
    if sync not in POLICIES:
        raise StoreError("AX875", f"sync={sync!r}", expected=" or ".join(POLICIES))
    directory = Path(path)
    lock = _lock(directory)
    began = perf_counter()
    try:
        made = start(DiskFiles(directory), source, views or {}, sync, retain, limits, options)
    except OSError as error:
        lock.close()
        raise _unusable(directory, error) from error
    except BaseException:
        lock.close()
        raise
    made._keep_open(directory, lock, compact_after)
    report(_events, INFO, "store opened", widget=made.name, seq=made.record, sync=sync,
           torn=made.torn and made.torn.size, seconds=round(perf_counter() - began, 3))  # fmt: skip
    return made


def start(
    files: Files,
    source: Source | None,
    views: Mapping[str, str | Query],
    sync: str,
    retain: bool,
    limits: Limits = DEFAULT_LIMITS,
    options: Mapping[str, Any] | None = None,
) -> DurableWidget:
    """The widget of a directory's files; without the lock and the snapshots of `open_store`."""
    texts = {name: _text(query) for name, query in views.items()}
    found = restore(files, DurableWidget, texts)
    if found is None:
        if source is None:
            raise StoreError("AX875", "there is no store yet", advice="give the document's source")
        given = dict(options or {})
        if given.get("collect") == "auto":
            raise StoreError(
                "AX875", 'collect="auto": a store keeps the whole document', expected="state or off"
            )
        starts = start_of(given.get("at"), checked_times(given.get("times", "seconds")))
        keeps = bool(given.get("keep_whitespace"))
        tree = load(source, limits=limits, keep_whitespace=keeps, time=starts)
        settings = log_records.settings_record(serialise(tree), given, limits)
        found = Restored(_made(settings, tree), settings)
    widget = found.widget
    assert isinstance(widget, DurableWidget)
    log = Log(files, sync)
    try:
        widget._attach(files, log, found, retain)
        for name, text in texts.items():
            if name not in widget.document.views:
                widget.watch(text, name)
    except Exception:
        log.close()
        raise
    return widget


def _made(settings: Record, tree: Any) -> DurableWidget:
    made = log_records.make_widget(settings, tree, DurableWidget)
    assert isinstance(made, DurableWidget)
    return made


def _text(query: str | Query) -> str:
    return query if isinstance(query, str) else query.text


def _lock(directory: Path) -> IO[bytes]:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / "lock").open("ab")
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StoreError(
            "AX874", f"{directory} is open in another process", advice="close it there first"
        ) from None
    return file


def _unusable(directory: Path, error: OSError) -> StoreError:
    return StoreError(
        "AX880",
        f"{directory} cannot hold a store: {error.strerror or error}",
        expected="a directory that this user can read and write",
        advice="name another directory, or change its permissions",
    )
