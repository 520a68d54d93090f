"""The records in the log of a durable document, each a JSON object, and how to apply them.

    {"open": {source, options}}                        the first record of every store
    {"stream": s, "insert": xml | "delete": p | "end": true, "us": t, "latest": t}
    {"update": statement, "variables": {...}, "us": t} | {"advance": t}
    {"lists": text, "reduce": true, "us": t}
    {"watch": name, "query": text, "language": l, "maintainer": m, "work": n,
     "on_value_error": "reject", "since": "now"}
    | {"change": name, "query": text, ...} | {"forget": name}
    {"tune": exact}                                    compute the streams' filters again
    {"collect": true}                                  drop what no view can need any more
    {"publisher": name, "view": v} | {"published": name, "record": n} | {"unpublish": name}
    {"batch": [records]}                               emitted as one

The effect of a record depends only on the document's state, so replay reaches the same state, the
same changes and the same rejections. Times are in microseconds. Bytes that are not UTF-8 are
base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from fractions import Fraction
from typing import Any, TypeAlias

from lxml import etree

from axlog.document.parser import Element, Limits
from axlog.document.times import Time, microseconds
from axlog.errors import StoreError
from axlog.evaluate.variables import read_back
from axlog.live.document import Document
from axlog.live.internals import maintained, streams_of
from axlog.live.options import DEFAULT_OPTIONS, Options
from axlog.store.state_log import TITLE
from axlog.views.change import Change

Record: TypeAlias = dict[str, Any]

FORMAT = 2
"""Format of records. In format 1 (version 0.1) the messages of every stream may bring calls."""
_OPTIONS = ("keep_whitespace", "namespaces", "on_error", "keep", "validate", "never", "times",
            "at", "retain_changes", "share", "collect")  # fmt: skip
"""The fields of `Options` that a store accepts. `limits` has its own place in the record."""
_SAVED = (*_OPTIONS, "facts", "tune", "cache", "memory", "on_violation")
"""The options that a record of this or an older version, or a snapshot of a pipeline, may have."""


def encode(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def decode(data: bytes, number: int) -> Record:
    """Return the record that bytes of the log encode."""
    try:
        record = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        if number == 1 and data.startswith(TITLE):
            raise StoreError(
                "AX871",
                "this is the checkpoint of a pipeline, not the store of a document",
                advice="`axlog backup` checks the files of a checkpoint and copies them",
            ) from None
        raise StoreError("AX871", f"record {number} cannot be read: {error}") from None
    except RecursionError:
        raise StoreError("AX871", f"record {number} is nested without end") from None
    if not isinstance(record, dict):
        raise StoreError("AX871", f"record {number} is not an object")
    return record


_KINDS: dict[str, tuple[type, ...]] = {
    "open": (dict,), "stream": (str,), "insert": (str,), "delete": (str,), "us": (int,),
    "latest": (int,), "update": (str,), "variables": (dict, type(None)), "advance": (int,),
    "lists": (str,),
    "watch": (str,), "change": (str,), "query": (str,), "language": (str, type(None)),
    "maintainer": (str, type(None)), "work": (int, type(None)), "forget": (str,),
    "on_value_error": (str,), "since": (str,),
    "publisher": (str,), "view": (str,),
    "published": (str,), "unpublish": (str,), "record": (int,), "batch": (list,),
    "format": (int,), "source": (str,), "options": (dict,), "limits": (dict,),
}  # fmt: skip
_NEEDS = {
    "open": (), "watch": ("query",), "change": ("query",), "publisher": ("view",),
    "published": ("record",),
}  # fmt: skip


def check_form(record: Any, number: int) -> None:
    """Raise for a record that axlog did not write, although its checksum is right."""
    if not isinstance(record, dict):
        raise _no_record(number, "a part of it is not an object")
    for key, value in record.items():
        kinds = _KINDS.get(key)
        if kinds is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise _no_record(number, f"its {key!r} is a {type(value).__name__}")
    for key, needed in _NEEDS.items():
        for other in needed if key in record else ():
            if other not in record:
                raise _no_record(number, f"it has {key!r} without {other!r}")
    for one in record.get("batch", ()):
        check_form(one, number)
    if "open" in record:
        _check_settings(record["open"], number)


def _check_settings(settings: Record, number: int) -> None:
    check_form(settings, number)
    if not {"source", "options", "limits"} <= settings.keys():
        raise _no_record(number, "it does not say how the document was made")
    limits, known = settings["limits"], Limits.__dataclass_fields__
    if not all(name in known and type(value) is int for name, value in limits.items()):
        raise _no_record(number, "a limit is not known, or no number")
    spaces = settings["options"].get("namespaces") or {}
    texts = [*spaces, *spaces.values()] if isinstance(spaces, dict) else [None]
    texts += settings["options"].get("facts") or []
    if set(settings["options"]) - set(_SAVED) or not all(isinstance(text, str) for text in texts):
        raise _no_record(number, "an option is not known, or no text")


def _no_record(number: int, why: str) -> StoreError:
    return StoreError("AX871", f"record {number} is none of axlog's: {why}")


def stream_record(
    stream: str, action: str, content: str | bytes | Element, at: Time | None
) -> Record:
    """Return the record of a stream's update."""
    record: Record = {"stream": stream}
    if isinstance(content, etree._Element):
        content = etree.tostring(content, encoding="unicode", with_tail=False)
    if isinstance(content, bytes):
        record[action], is_text = _as_text(content)
        if not is_text:
            record["base64"] = True
    else:
        record[action] = True if action == "end" else content
    if at is not None:
        record["us"] = microseconds(at)
    return record


def _as_text(content: bytes) -> tuple[str, bool]:
    """Return bytes as text, and True, if the text means the same; else as base64, and False.

    Bytes with an XML declaration stay bytes: it may name their encoding.
    """
    if not content.startswith(b"<?xml"):
        with suppress(UnicodeDecodeError):
            return content.decode(), True
    return base64.b64encode(content).decode("ascii"), False


def settings_record(source: str, facts: Iterable[str], options: Options) -> Record:
    """Return the first record of a store: its source, and options that are not the defaults."""
    saved: Record = {}
    for one in fields(Options):
        value = getattr(options, one.name)
        if one.name == "limits" or value == getattr(DEFAULT_OPTIONS, one.name):
            continue
        if one.name not in _OPTIONS:
            raise StoreError(
                "AX875",
                f"a durable document does not take the option {one.name!r}",
                expected=", ".join(_OPTIONS),
            )
        saved[one.name] = dict(value) if one.name == "namespaces" else value
    if "at" in saved:
        saved["at"] = f"{microseconds(saved['at'])}us"
    declared = list(facts)
    if declared:
        saved["facts"] = declared
    return settings_of(source, saved, asdict(options.limits))


def settings_of(source: str, options: Mapping[str, Any], limits: Mapping[str, int]) -> Record:
    """Return the first record of a store, in the format of this version."""
    return {"open": {"format": FORMAT, "source": source, "options": options, "limits": limits}}


def make_document(
    settings: Record, source: Any, kind: type[Document] = Document, types: Any = None
) -> Document:
    """Make a document as the first record says, over its source or a loaded tree.

    Types are not in the record: the caller passes them again.
    """
    opened = settings["open"]
    given = dict(opened["options"])
    facts = given.pop("facts", None) or ()
    options = Options(limits=Limits(**opened["limits"]), **given)
    made = kind(source, facts=facts, types=types, options=options)
    if opened.get("format", 1) < FORMAT:
        maintained(made).tree.any_calls = True
    return made


def moment(record: Record) -> Time | None:
    us = record.get("us")
    return None if us is None else Fraction(us, 1_000_000)


def carry_out(document: Document, record: Record) -> list[Change]:
    """Apply a record. Raises an `AxlogError` if the document rejects it, as the first time.

    Calls the methods of `Document` explicitly: those of a durable document would log it again.
    """
    if "stream" in record:
        return _stream(document, record)
    if "update" in record:
        given = record.get("variables") or {}
        variables = {name: read_back(value) for name, value in given.items()}
        return Document.update(document, record["update"], moment(record), variables)
    if "lists" in record:
        reduces = bool(record.get("reduce", True))
        return Document.apply(document, record["lists"], moment(record), reduce=reduces)
    if "advance" in record:
        return Document.advance(document, Fraction(record["advance"], 1_000_000))
    if "watch" in record or "change" in record:
        options: dict[str, Any] = {
            key: record.get(key) for key in ("language", "maintainer", "work")
        }
        options["on_value_error"] = record.get("on_value_error", "null")
        if "change" in record:
            return Document.change(document, record["change"], record["query"], **options)
        options["since"] = record.get("since", "start")
        Document.watch(document, record["query"], record["watch"], **options)
        return []
    if "tune" in record:
        streams_of(document).tuner.tune(bool(record["tune"]))
        return []
    if "collect" in record:
        streams_of(document).collect()
        return []
    if "forget" in record:
        Document.unwatch(document, record["forget"])
        return []
    raise StoreError("AX872", f"no record says {sorted(record)}")


def _stream(document: Document, record: Record) -> list[Change]:
    fed = streams_of(document)
    stream, at, latest = record["stream"], moment(record), record.get("latest")
    if "insert" in record:
        content: str | bytes = record["insert"]
        if record.get("base64"):
            content = base64.b64decode(content)
        return fed.feed(stream, content, at, latest)
    if "delete" in record:
        return fed.delete(stream, record["delete"], at, latest)
    return fed.end(stream, at, latest)
