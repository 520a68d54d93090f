"""Parsers on mangled input: they return a value or raise an AxlogError, nothing else.

    read(mangle(sample))  is a value, or raises AxlogError

This holds for every parser of external input: XML, queries of three languages, statements, lists of
updates, patches, pipelines, lines, feeds, access logs, types, filters, and the files of a store.
For a log the law is stronger: whatever happened to its bytes, every record that is read is the one
that was written under that number, and a snapshot is read as it was written or not at all. Files
with correct checksums and invalid content (`forged`) are refused with an error, too.

A case that runs for `SECONDS` of processor time fails: nothing may hang.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from threading import current_thread, main_thread
from typing import Any

from axlog.connect.message_paths import MessagePath
from axlog.connect.sources.access_logs import read_call
from axlog.connect.sources.feeds import read_feed
from axlog.connect.sources.jsonl import read_update
from axlog.document.ids import Id
from axlog.document.list_codec import from_json, from_xml
from axlog.document.loader import load, read_forest
from axlog.document.schema_derivation import from_dtd
from axlog.document.schema_parser import parse_schema
from axlog.document.schema_sources import read_types
from axlog.document.stream_update import read_line
from axlog.document.times import microseconds
from axlog.errors import AxlogError
from axlog.evaluate.patches import read_patch
from axlog.future.keys import parse_fact
from axlog.live.document import Document, parse
from axlog.live.recovery import load_parts, restore, snapshot_parts
from axlog.live.store import start
from axlog.match.filters import Filter
from axlog.query.query import parse_query
from axlog.store.log import Log
from axlog.store.log_reader import read_log, segment_name
from axlog.store.snapshots import read_snapshot, snapshot_name, snapshots, write_snapshot
from lab.laws.mangling import mangled, smaller_bytes
from lab.laws.parser_samples import DOCUMENT, SAMPLES, STORE_UPDATES
from lab.stress.faulty_disk import FaultyFiles

SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Mangled:
    """Bytes for one parser."""

    parser: str
    data: bytes


def make_mangled(random: Random) -> Mangled:
    """A mangled sample of one parser."""
    parser = random.choice(tuple(PARSERS))
    return Mangled(parser, mangled(random, samples_of(parser)))


def check_mangled(case: Mangled) -> None:
    """Parse the bytes; only an AxlogError may be raised."""
    with within(SECONDS), suppress(AxlogError):
        PARSERS[case.parser](case.data)


def smaller_mangled(case: Mangled) -> Iterator[Mangled]:
    """Reduced cases."""
    return (replace(case, data=data) for data in smaller_bytes(case.data))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block exceeds this processor time, where the platform supports it."""
    if current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise AssertionError(f"it hangs: {seconds} seconds of the processor are over")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# Parsers ------------------------------------------------------------------------------------------


def _text(data: bytes) -> str:
    """Bytes as a text; bytes that are not UTF-8 become surrogates."""
    return data.decode("utf-8", "surrogateescape")


def _view(data: bytes) -> None:
    """Create a view: not only parsed, but maintained over a document, read, and updated."""
    document = parse(DOCUMENT)
    document.watch(_text(data), "v").rows()
    document.update("insert node <b><c>7</c></b> into /a")


def _statement(data: bytes) -> None:
    document = parse(DOCUMENT)
    document.update(_text(data))
    document.xml()


def _message(data: bytes) -> None:
    doc = Document(DOCUMENT, views={"v": "match //b/c/$x return $x"})
    doc.feed("s", data)
    doc.view("v").rows()


def _line(data: bytes) -> None:
    update = read_line(_text(data))
    doc = Document(DOCUMENT)
    if update.action == "insert":
        doc.feed(update.stream, update.content, update.at)
    elif update.action == "delete":
        doc.delete(update.stream, str(update.content), update.at)
    else:
        doc.end(update.stream, update.at)


def _pipeline(data: bytes) -> None:
    from axlog.pipeline.loader import check_text

    for problem in check_text(_text(data)).problems:
        str(problem.error)


def _facts(data: bytes) -> None:
    parse_fact(_text(data), {})


PARSERS: dict[str, Callable[[bytes], object]] = {
    "xml": lambda data: load(data),
    "forest": lambda data: read_forest(data),
    "message": _message,
    "pattern": lambda data: parse_query(_text(data), language="pattern"),
    "xpath": lambda data: parse_query(_text(data), language="xpath"),
    "xquery": lambda data: parse_query(_text(data), language="xquery"),
    "view": _view,
    "statement": _statement,
    "list-json": lambda data: from_json(_text(data)),
    "list-xml": lambda data: from_xml(_text(data)),
    "patch": lambda data: read_patch(load(DOCUMENT), data),
    "pipeline": _pipeline,
    "line": _line,
    "source-line": lambda data: read_update(data, "s", "line 1"),
    "feed": lambda data: read_feed(data, "feed"),
    "access-log": lambda data: read_call(_text(data)).xml(),
    "types": lambda data: parse_schema(_text(data)),
    "dtd": lambda data: from_dtd(_text(data), "a"),
    "types-source": lambda data: read_types(_text(data), "a"),
    "fact": _facts,
    "filter": lambda data: Filter.from_json(_text(data)),
    "id": lambda data: Id.parse(_text(data)),
    "time": lambda data: microseconds(_text(data)),
    "path": lambda data: MessagePath.parse(_text(data)),
    "log": lambda data: _check_log(data),
    "snapshot": lambda data: _check_snapshot(data),
    "forged-log": lambda data: _forged_log(data),
    "forged-snapshot": lambda data: _forged_snapshot(data),
}


# Files of a store ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Store:
    """A small store, created once: its log, its records, and the parts of a snapshot."""

    log: bytes
    records: tuple[bytes, ...]
    snapshot: bytes
    number: int
    parts: Mapping[str, bytes]


@cache
def _store() -> _Store:
    files = FaultyFiles(Random(0))
    doc = start(files, DOCUMENT, {"v": "match //b/c/$x return $x"}, "off", True)
    for update in STORE_UPDATES:
        update(doc)
    log = files.read(segment_name(1))
    records = tuple(record for _, batch in read_log(files) for record in batch)
    parts = snapshot_parts(doc, {"open": json.loads(records[0])["open"]}, {})
    number = len(records)
    write_snapshot(files, number, parts)
    return _Store(log, records, files.read(snapshot_name(number)), number, parts)


def samples_of(parser: str) -> tuple[bytes, ...]:
    """The samples of a parser."""
    if parser == "log":
        return (_store().log,)
    if parser == "snapshot":
        return (_store().snapshot,)
    if parser == "forged-log":
        return _store().records
    if parser == "forged-snapshot":
        return tuple(name.encode() + b"\0" + data for name, data in _store().parts.items())
    return tuple(sample.encode() for sample in SAMPLES[parser])


def _holding(name: str, data: bytes) -> FaultyFiles:
    files = FaultyFiles(Random(0))
    file = files.append_to(name)
    file.append(data)
    file.sync()
    return files


def _check_log(data: bytes) -> None:
    written = _store().records
    for first, batch in read_log(_holding(segment_name(1), data)):
        for number, record in enumerate(batch, first):
            known = written[number - 1] if 0 < number <= len(written) else None
            assert record == known, f"record {number} was never written: {record!r}"


def _check_snapshot(data: bytes) -> None:
    store = _store()
    parts = read_snapshot(_holding(snapshot_name(store.number), data), store.number)
    assert parts == store.parts, "the snapshot holds what was never written"


def _forged_log(data: bytes) -> None:
    """Records with correct checksums that axlog never wrote, each among good ones."""
    files = FaultyFiles(Random(0))
    log = Log(files, "off")
    records = _store().records
    log.append([data, *records[1:]] if b'"open"' in data else [*records[:2], data])
    log.close()
    found = restore(files, Document, {})
    if found is not None:
        _look(found.document)


def _forged_snapshot(data: bytes) -> None:
    """A snapshot with correct checksums and one part that axlog never wrote."""
    name, _, body = data.partition(b"\0")
    if name.decode("latin-1") not in _store().parts:
        return
    parts = {**_store().parts, name.decode(): body}
    files = FaultyFiles(Random(0))
    write_snapshot(files, _store().number, parts)
    (number,) = snapshots(files)
    _look(load_parts(read_snapshot(files, number), number).document)


def _look(doc: Document) -> Any:
    """Use the parsed value: an error in it may show only then."""
    doc.xml()
    for view in doc.views.values():
        view.rows()
    return doc.streams()
