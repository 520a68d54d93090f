"""The history of single rows: when each became possible, true, changed, was deleted, became never.

Changes give `true`, `updated`, `deleted` and `never` with their causes. No change says that a row
became possible: that is the time of the first message of a derivation, or, for rows that are not
there yet, the clock of the document when the page first listed them as possible.

Everything is bounded: rows that did not change for the longest time are dropped first.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from axlog.document.times import microseconds
from axlog.views.change import Change

ROWS, EVENTS = 5_000, 20
"""Maximum number of rows of a view with a history, and of events of a row."""
_STATES = {"insert": "true", "update": "updated", "delete": "deleted", "never": "never"}

Event = dict[str, Any]


def row_name(row: Mapping[str, Any], key: Sequence[str]) -> dict[str, Any]:
    """Return the values that identify a row in links: those of its key if the row shows them."""
    return {name: row[name] for name in key} if key and all(n in row for n in key) else dict(row)


def _text(name: Mapping[str, Any]) -> str:
    return json.dumps(name, ensure_ascii=False, sort_keys=True)


class RowHistory:
    """The histories of the rows of all views; its caller locks it."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], OrderedDict[str, list[Event]]] = {}

    def record(self, document: str, view: str, key: Sequence[str], change: Change) -> None:
        """Add a change to the history of its row."""
        envelope = change.to_dict()
        event: Event = {"state": _STATES[change.op], "time": envelope["time"],
                        "cause": envelope["cause"], "final": change.final}  # fmt: skip
        if change.before is not None:
            event["before"] = envelope["before"]
            event["row"] = envelope["row"]
        self._add(document, view, row_name(envelope["row"], key), event)

    def see_possible(
        self, document: str, view: str, key: Sequence[str], rows: Iterable[Mapping[str, Any]],
        clock: Any,
    ) -> None:  # fmt: skip
        """Record rows that are listed as possible, if they have no history yet."""
        known: Mapping[str, list[Event]] = self._rows.get((document, view)) or {}
        for row in rows:
            name = row_name(row, key)
            is_known = any(value is not None for value in name.values())
            if is_known and _text(name) not in known:
                event = {"state": "possible", "time": clock, "cause": None, "seen": True}
                self._add(document, view, name, event)

    def _add(self, document: str, view: str, name: Mapping[str, Any], event: Event) -> None:
        rows = self._rows.setdefault((document, view), OrderedDict())
        text = _text(name)
        events = rows.setdefault(text, [])
        events.append(event)
        if len(events) > EVENTS:
            del events[1]  # the first one says since when
        rows.move_to_end(text)
        if len(rows) > ROWS:
            rows.popitem(last=False)

    def of(self, document: str, view: str, name: Mapping[str, Any]) -> list[Event]:
        """Return the events of a row, oldest first."""
        rows = self._rows.get((document, view))
        return [] if rows is None else list(rows.get(_text(name), ()))


def with_parts(
    events: Sequence[Event], parts: Iterable[Mapping[str, Any]], *, is_true: bool = False
) -> list[Event]:
    """Add to a history the messages that brought the parts of a row.

    All of them made it possible; if they are a derivation, the last one made it true.
    """
    came: dict[str, Any] = {}
    for one in parts:
        if one["origin"] is not None and one["time"] is not None:
            came.setdefault(one["origin"], one["time"])
    found: list[Event] = [
        {"state": "possible", "time": time, "cause": {"kind": "message", "origin": origin}}
        for origin, time in sorted(came.items(), key=lambda item: microseconds(item[1]))
    ]
    last = found.pop() if is_true and found else None
    if last is not None and not any(event["state"] == "true" for event in events):
        found.append({**last, "state": "true"})
    known = [event for event in events if not (found and event.get("seen"))]
    ends = [event for event in known if event["state"] == "never"]
    if ends:  # what came later made it neither possible nor true
        end = microseconds(ends[-1]["time"])
        found = [event for event in found if microseconds(event["time"]) < end]
    return [*found, *known]
