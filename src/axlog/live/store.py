"""`axlog.open`: open the durable document in a directory, or make one there.

`axlog.open` is `open_store`. Only one process at a time has a store open: it holds the file `lock`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Mapping
from logging import INFO, getLogger
from pathlib import Path
from time import perf_counter
from typing import IO, Any, Literal, TypeAlias

from axlog.document.loader import load
from axlog.document.parser import Source
from axlog.document.serializer import serialise
from axlog.document.skeleton import StreamNames, skeleton
from axlog.document.times import start_of
from axlog.errors import QueryError, StoreError
from axlog.live import log_records
from axlog.live.durable import DurableDocument
from axlog.live.log_records import Record
from axlog.live.options import DEFAULT_OPTIONS, Options
from axlog.live.recovery import Restored, restore
from axlog.query.query import Query
from axlog.reporting import report
from axlog.store.files import DiskFiles, Files
from axlog.store.log import POLICIES, Log

_events = getLogger("axlog.store")

Sync: TypeAlias = Literal["always", "batch", "off"]


def open_store(
    path: str | Path,
    source: Source | None = None,
    *,
    streams: StreamNames = (),
    views: Mapping[str, str | Query] | None = None,
    facts: Iterable[str] = (),
    options: Options = DEFAULT_OPTIONS,
    sync: Sync = "always",
    retain: bool = False,
) -> DurableDocument:
    """Open the durable document in a directory, or make one there from a source.

    Parameters:
        path: Directory of the store.
        source: As for `parse`, for a store that does not exist yet.
        streams: As for `Document`, for a store that does not exist yet and has no source.
        views: Views to watch, by name. Those that the store does not have are added; the others
            stay.
        facts: Declarations about the future. They are stored and need not be given again.
        options: How the document is kept. They are stored and need not be given again.
        sync: Sync the log `always` before an update returns, once a `batch` of a few milliseconds,
            or leave it to the operating system (`off`).
        retain: Keep the log before a snapshot, for `axlog replay` and for views that are added
            later to a document that does not keep its messages.

    >>> import axlog, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with axlog.open(directory, streams=["orders"]) as doc:
    ...     changes = doc.feed("orders", "<order>17</order>")
    >>> with axlog.open(directory) as doc:
    ...     print(doc.watch("//order/string()").items())
    ['17']
    """
    if streams:
        if source is not None:
            raise QueryError("AX211", "both a source and streams", expected="one of the two")
        source = skeleton(streams, options.limits, options.namespaces)
    if sync not in POLICIES:
        raise StoreError("AX875", f"sync={sync!r}", expected=" or ".join(POLICIES))
    directory = Path(path)
    lock = _lock(directory)
    began = perf_counter()
    try:
        made = start(DiskFiles(directory), source, views or {}, sync, retain, facts, options)
    except OSError as error:
        lock.close()
        raise _unusable(directory, error) from error
    except BaseException:
        lock.close()
        raise
    made._keep_open(directory, lock)
    report(_events, INFO, "store opened", document=made.name, seq=made.record, sync=sync,
           torn=made.torn and made.torn.size, seconds=round(perf_counter() - began, 3))  # fmt: skip
    return made


def start(
    files: Files,
    source: Source | None,
    views: Mapping[str, str | Query],
    sync: str,
    retain: bool,
    facts: Iterable[str] = (),
    options: Options = DEFAULT_OPTIONS,
) -> DurableDocument:
    """Open or make the document in `files`, without a lock and without automatic snapshots."""
    texts = {name: _text(query) for name, query in views.items()}
    found = restore(files, DurableDocument, texts)
    if found is None:
        if source is None:
            raise StoreError("AX875", "there is no store yet", advice="give a source or streams")
        starts = start_of(options.at, options.times)
        tree = load(
            source, limits=options.limits, keep_whitespace=options.keep_whitespace, time=starts
        )
        settings = log_records.settings_record(serialise(tree), facts, options)
        found = Restored(_made(settings, tree), settings)
    document = found.document
    assert isinstance(document, DurableDocument)
    log = Log(files, sync)
    try:
        document._attach(files, log, found, retain)
        for name, text in texts.items():
            if name not in document.views:
                document.watch(text, name)
    except Exception:
        log.close()
        raise
    return document


def _made(settings: Record, tree: Any) -> DurableDocument:
    made = log_records.make_document(settings, tree, DurableDocument)
    assert isinstance(made, DurableDocument)
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
