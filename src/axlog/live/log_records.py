"""What a durable widget's log holds: one JSON object a record, and how it is carried out again.

    {"open": {source, options}}                        the first record of every store
    {"stream": s, "insert": xml | "delete": p | "end": true, "us": t, "latest": t}
    {"update": statement, "variables": {...}, "us": t} | {"advance": t}
    {"watch": name, "query": text, "language": l, "maintainer": m, "work": n}
    | {"forget": name}
    {"tune": exact}                                    filters for streams, worked out again
    {"publisher": name, "view": v} | {"published": name, "record": n} | {"unpublish": name}
    {"batch": [records]}                               told as one

Carrying a record out is a function of the widget's state alone, so replay comes to the same state,
the same changes and the same refusals. Times are in microseconds; bytes that are not UTF-8 go as
base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from typing import Any, TypeAlias

from lxml import etree

from axlog.document.parser import Element, Limits
from axlog.document.times import Time, microseconds
from axlog.errors import StoreError
from axlog.live.widget import Widget
from axlog.views.change import Change

Record: TypeAlias = dict[str, Any]

FORMAT = 2
"""Of records. In format 1, of version 0.1, the messages of every stream may bring calls."""
_OPTIONS = ("keep_whitespace", "namespaces", "on_error", "keep", "validate", "facts", "never",
            "times", "at")  # fmt: skip
_SAVED = (*_OPTIONS, "tune", "collect")
"""What snapshots of pipelines say too."""


def encode(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def decode(data: bytes, number: int) -> Record:
    """The record that bytes of the log say."""
    try:
        record = json.loads(data.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise StoreError("AX871", f"record {number} cannot be read: {error}") from None
    except RecursionError:
        raise StoreError("AX871", f"record {number} is nested without end") from None
    if not isinstance(record, dict):
        raise StoreError("AX871", f"record {number} is not an object")
    return record


_KINDS: dict[str, tuple[type, ...]] = {
    "open": (dict,), "stream": (str,), "insert": (str,), "delete": (str,), "us": (int,),
    "latest": (int,), "update": (str,), "variables": (dict, type(None)), "advance": (int,),
    "watch": (str,), "query": (str,), "language": (str, type(None)),
    "maintainer": (str, type(None)), "work": (int, type(None)), "forget": (str,),
    "publisher": (str,), "view": (str,),
    "published": (str,), "unpublish": (str,), "record": (int,), "batch": (list,),
    "format": (int,), "source": (str,), "options": (dict,), "limits": (dict,),
}  # fmt: skip
_NEEDS = {
    "open": (), "watch": ("query",), "publisher": ("view",), "published": ("record",),
}  # fmt: skip


def check_form(record: Any, number: int) -> None:
    """Refuse a record that no axlog wrote, though its checksum is right."""
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


def _check_settings(said: Record, number: int) -> None:
    check_form(said, number)
    if not {"source", "options", "limits"} <= said.keys():
        raise _no_record(number, "it does not say how the widget was made")
    limits, known = said["limits"], Limits.__dataclass_fields__
    if not all(name in known and type(value) is int for name, value in limits.items()):
        raise _no_record(number, "a limit is not known, or no number")
    spaces = said["options"].get("namespaces") or {}
    texts = [*spaces, *spaces.values()] if isinstance(spaces, dict) else [None]
    texts += said["options"].get("facts") or []
    if set(said["options"]) - set(_SAVED) or not all(isinstance(text, str) for text in texts):
        raise _no_record(number, "an option is not known, or no text")


def _no_record(number: int, why: str) -> StoreError:
    return StoreError("AX871", f"record {number} is none of axlog's: {why}")


def stream_record(
    stream: str, action: str, content: str | bytes | Element, at: Time | None
) -> Record:
    """A stream's update as a record."""
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
    """Bytes as a text, where a text means the same: one does not say its own encoding."""
    if not content.startswith(b"<?xml"):
        with suppress(UnicodeDecodeError):
            return content.decode(), True
    return base64.b64encode(content).decode("ascii"), False


def settings_record(source: str, options: Mapping[str, Any], limits: Limits) -> Record:
    """How the widget was made."""
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise StoreError(
            "AX875",
            f"a durable widget does not take the option {unknown[0]!r}",
            expected=", ".join(_OPTIONS),
        )
    said = {name: list(v) if name == "facts" else v for name, v in options.items()}
    if said.get("at") is not None:
        said["at"] = f"{microseconds(options['at'])}us"
    return settings_of(source, said, asdict(limits))


def settings_of(source: str, options: Mapping[str, Any], limits: Mapping[str, int]) -> Record:
    """The first record of a store, in the format of this version."""
    return {"open": {"format": FORMAT, "source": source, "options": options, "limits": limits}}


def make_widget(
    settings: Record, source: Any, kind: type[Widget] = Widget, types: Any = None
) -> Widget:
    """A widget as the first record says, over the source, or a tree that was loaded.

    Types are in no record: whoever has them gives them again.
    """
    said = settings["open"]
    made = kind(source, limits=Limits(**said["limits"]), types=types, **said["options"])
    if said.get("format", 1) < FORMAT:
        made.document.tree.any_calls = True
    return made


def moment(record: Record) -> Time | None:
    us = record.get("us")
    return None if us is None else Fraction(us, 1_000_000)


def carry_out(widget: Widget, record: Record) -> list[Change]:
    """Do what a record says; an error of ours if the widget refuses it, as it did then."""
    if "stream" in record:
        return _stream(widget, record)
    if "update" in record:
        variables = record.get("variables")
        return Widget.update(widget, record["update"], moment(record), variables)
    if "advance" in record:
        return Widget.advance(widget, Fraction(record["advance"], 1_000_000))
    if "watch" in record:
        options = {key: record.get(key) for key in ("language", "maintainer", "work")}
        Widget.watch(widget, record["query"], record["watch"], **options)
        return []
    if "tune" in record:
        widget.tuner.tune(bool(record["tune"]))
        return []
    if "forget" in record:
        widget.document.forget(record["forget"])
        return []
    raise StoreError("AX872", f"no record says {sorted(record)}")


def _stream(widget: Widget, record: Record) -> list[Change]:
    stream, at, latest = record["stream"], moment(record), record.get("latest")
    if "insert" in record:
        content: str | bytes = record["insert"]
        if record.get("base64"):
            content = base64.b64decode(content)
        return Widget._feed(widget, stream, content, at, latest)
    if "delete" in record:
        return Widget._delete(widget, stream, record["delete"], at, latest)
    return Widget._end(widget, stream, at, latest)
