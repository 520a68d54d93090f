"""One update of a stream, as transported in files of JSON lines, over channels, through Spark.

    {"stream": "orders", "insert": "<order>...</order>", "at": 12.5}
    {"stream": "orders", "insert": {"order": {"oid": 17}}, "at": 12.5}
    {"stream": "orders", "delete": "match /order[oid = 17]"}
    {"stream": "orders", "retract": 3}
    {"stream": "orders", "end": true}

A JSON object to insert becomes XML by the rule of `json_messages.py`. `retract` takes back the
stream's message of this number: it is the delete of `message 3`. Any other object is rejected with
its place. Whether the stream may make the update is decided by
the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from axlog.document.parser import is_encodable
from axlog.document.times import Time
from axlog.errors import Place, StreamError

_EXPECTED = (
    '{"stream": NAME, "insert": XML, "at": TIME}, {"stream": NAME, "delete": PATTERN},'
    ' {"stream": NAME, "retract": NUMBER} or {"stream": NAME, "end": true}'
)
_RETRACTED = re.compile(r"message ([1-9][0-9]{0,17})")
ACTIONS = ("insert", "delete", "end")
LISTS = "updates"
"""The action of an update that no stream makes: its content is a list of updates of the document,
as JSON (`list_codec.py`). Only sources that a pipeline file names for this make one."""


@dataclass(slots=True, unsafe_hash=True)
class StreamUpdate:
    """One message of a stream: XML to insert, a pattern to delete, or the end.

    `origin` is the place where it was read, for dead letters and errors; it has no effect. An
    update is not changed after it was made; a frozen class would take four times as long to make.
    """

    stream: str
    action: str  # insert, delete, end
    content: str | bytes = ""
    at: Time | None = None
    origin: str = ""

    @classmethod
    def of(cls, written: Mapping[str, Any], place: Place | None = None) -> StreamUpdate:
        """Read an update from a JSON object."""
        from axlog.document.json_messages import to_xml

        if "retract" in written and "delete" not in written:
            written = _as_delete(written, place)
        actions = [action for action in ACTIONS if action in written]
        unknown = sorted(set(written) - {"stream", "at", *ACTIONS})
        if unknown or len(actions) != 1 or not isinstance(written.get("stream"), str):
            what = f"it has an unknown key {unknown[0]!r}" if unknown else "a key is missing"
            message = None if actions else "if the line is a message itself, set format: json"
            raise _refused(what if len(actions) < 2 else "it has two actions", place, message)
        (action,) = actions
        content, at = written[action], written.get("at")
        if action == "end" and content is not True:
            raise _refused('"end" is not true', place)
        if action == "insert" and isinstance(content, dict | list):
            content = to_xml(content)
        elif action != "end" and not isinstance(content, str):
            raise _refused(f"{action!r} is not a string", place)
        if isinstance(at, bool) or not isinstance(at, int | float | str | None):
            raise _refused('"at" is not a time', place)
        texts = [written["stream"], content if action != "end" else "", at]
        if not all(is_encodable(text) for text in texts if isinstance(text, str)):
            # It could not be sent to a subscriber, and would block the messages behind it.
            raise _refused("a text in it contains a lone surrogate", place)
        return cls(written["stream"], action, content if action != "end" else "", at)

    def plain(self) -> dict[str, Any]:
        """The update for JSON; `of` reads it back."""
        content = self.content
        if isinstance(content, bytes):
            content = content.decode()
        fields: dict[str, Any] = {
            "stream": self.stream,
            self.action: True if self.action == "end" else content,
        }
        if self.at is not None:
            fields["at"] = self.at
        return fields


def _as_delete(written: Mapping[str, Any], place: Place | None) -> dict[str, Any]:
    """A retraction as the delete of its message."""
    number = written["retract"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise _refused('"retract" is not the number of a message, from 1', place)
    rest = {key: value for key, value in written.items() if key != "retract"}
    return {**rest, "delete": f"message {number}"}


def retracted(content: str) -> int | None:
    """The number of the message that a delete takes back; None if it has a pattern.

    >>> retracted("message 3"), retracted("match /order")
    (3, None)
    """
    found = _RETRACTED.fullmatch(content)
    return None if found is None else int(found[1])


def read_line(line: str, number: int = 1, source: str | None = None) -> StreamUpdate:
    """Read an update from a line of JSON.

    >>> read_line('{"stream": "orders", "end": true}').action
    'end'
    """
    line = line.rstrip("\r\n")
    try:
        written = json.loads(line)
    except json.JSONDecodeError as error:
        place = _place(line, number, error.colno, source)
        raise _refused(f"it is not JSON: {error.msg}", place, _advice(line)) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, a number of 5,000 digits
        place = _place(line, number, 1, source)
        raise _refused(f"it cannot be read: {error}", place) from None
    place = _place(line, number, 1, source)
    if not isinstance(written, dict):
        raise _refused("it is not a JSON object", place)
    return StreamUpdate.of(written, place)


def _place(line: str, number: int, column: int, source: str | None) -> Place:
    """A place in a file of which only this line is available."""
    return Place(number, column, "\n" * (number - 1) + line if number < 10_000 else None, source)


def _advice(line: str) -> str | None:
    """Return a remedy for a line that is not JSON."""
    if line.lstrip("\ufeff \t").startswith("<"):
        return 'the line is XML: write it as {"insert": "<order/>"}, or use kind: directory'
    if "\t" in line or line.count(",") > 1:
        return "the line may be CSV: write one JSON object per line"
    return None


def _refused(what: str, place: Place | None, advice: str | None = None) -> StreamError:
    return StreamError(
        "AX410",
        f"the line is not an update: {what}",
        place=place,
        expected=_EXPECTED,
        advice=advice,
    )
