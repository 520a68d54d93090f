"""Possible rows, reported by the engines in buckets to the live page.

They are computed on request (`maintain(outlook=N)`) and are not part of a batch's changes. An
engine for which they are expensive reports an earlier result. Rows without a known key are known to
every bucket of a view, and counted once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary, ref

from axlog.document.times import microseconds
from axlog.errors import AxlogError
from axlog.future.truth import Possible
from axlog.live.internals import maintained, maintained_view
from axlog.live.view import View
from axlog.runtime.bucket import Instance

_SHARE = 20
"""At most one part in this many of the time is spent on it."""
_LARGEST = 20_000
"""Maximum number of nodes of a document that is scanned for this."""


@dataclass
class Outlook:
    """The possible rows of a view, some of them, or the reason why they are missing."""

    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None


class Watcher:
    """Queries one instance, rarely enough to cost little."""

    def __init__(self, instance: Instance, most: int) -> None:
        self._instance = ref(instance)  # the worker's cache decides how long it lives
        self._most = most
        self._due = 0.0
        self._summary: dict[str, Any] = {}

    def summary(self) -> dict[str, Any]:
        """Return the possible rows of each view, for JSON."""
        now = time.monotonic()
        instance = self._instance()
        if now >= self._due and instance is not None:
            families = instance.families
            own = [name for name in instance.unit.views if name not in families]
            self._summary = {name: self._of(instance, instance.doc.view(name)) for name in own}
            reason = {"reason": "it is a family: its members are not examined"}
            self._summary |= dict.fromkeys(families, reason)
            self._due = now + max(0.5, _SHARE * (time.monotonic() - now))
        return self._summary

    def _of(self, instance: Instance, view: View) -> dict[str, Any]:
        if (
            maintained_view(view).prospects() is None
            and len(maintained(instance.doc).tree) > _LARGEST
        ):
            return {"reason": "this needs a scan of the document, which is large"}
        try:
            possible = view.possible()
        except AxlogError as error:
            return {"reason": error.message}
        unit = instance.unit
        outputs, own = unit.outputs, []
        everywhere = []
        for one in possible:
            key = [one.row.get(output) for output in outputs]
            if None in key:
                everywhere.append(one.to_dict())
            elif not outputs or unit.cells(key) == [instance.bucket]:
                own.append(one)
        own.sort(key=_until)
        return {
            "count": len(own),
            "rows": [one.to_dict() for one in own[: self._most]],
            "everywhere": everywhere[: self._most],
        }


def _until(one: Possible) -> tuple[bool, int]:
    return one.deadline is None, 0 if one.deadline is None else microseconds(one.deadline)


_WATCHERS: WeakKeyDictionary[Instance, Watcher] = WeakKeyDictionary()


def watcher_of(instance: Instance, most: int) -> Watcher:
    """Return the watcher of a live instance."""
    found = _WATCHERS.get(instance)
    if found is None:
        found = _WATCHERS[instance] = Watcher(instance, most)
    return found


def together(reports: Iterable[Mapping[str, Any]]) -> dict[str, Outlook]:
    """Merge the reports of its buckets for each view."""
    found: dict[str, Outlook] = {}
    everywhere: dict[str, dict[str, Any]] = {}
    for one in reports:
        for view, part in one.items():
            outlook = found.setdefault(view, Outlook())
            if part.get("reason") is not None:
                outlook.reason = part["reason"]
                continue
            outlook.count += part["count"]
            outlook.rows += part["rows"]
            known = everywhere.setdefault(view, {})
            known |= {json.dumps(row, sort_keys=True): row for row in part["everywhere"]}
    for view, rows in everywhere.items():
        found[view].count += len(rows)
        found[view].rows += rows.values()
    return found
