"""RSS and Atom feeds as streams: what came, changed or left since the last poll (P3 2.3).

    <item key="5ba1..." id="https://example.org/17">
      <title>...</title><link>...</link><published>2026-01-08T05:07:10+00:00</published>...
    </item>

A poll asks with what the server said last, and publishes nothing if nothing is new. The feed is
parsed by the hardened parser first (a feed that declares entities or is not well-formed is refused
as a whole, and the items stay as they were); what passes is given to feedparser, which knows the
dialects. Items are told apart by their id, else their link. Texts stay texts: markup inside is
escaped.

Not handled: feeds that are not well-formed XML, which feedparser alone would read.
"""

from __future__ import annotations

import calendar
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from lxml import etree
from pydantic import Field

from axlog.connectors.alerters.alerter import (
    Alerter,
    AlerterOptions,
    Collection,
    Look,
    Thing,
    element,
    refusal,
    stream_of,
)
from axlog.connectors.alerters.fetching import AddressOptions, Fetching
from axlog.connectors.kinds import Origin, SourceKind
from axlog.document.reading import parse
from axlog.document.xml import check_forest
from axlog.errors import AxlogError, ConnectorError, SetupError

ITEM = "item"


class FeedOptions(AlerterOptions, AddressOptions):
    """Options of `feed`."""

    url: str = Field(description="The feed's address, or the path of a file.")


def read_feed(content: bytes, where: str) -> dict[str, Thing]:
    """The items of a feed, by their ids."""
    try:
        import feedparser  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise SetupError(
            "AX901", "feedparser is not installed", advice="pip install 'axlog[connectors]'"
        ) from None
    root = parse(content, name=where).root
    check_forest(root)  # its limits, before the other parser sees it
    # A stream, never a text: a text that looks like an address would be fetched.
    found = feedparser.parse(BytesIO(etree.tostring(root)))
    if not found.version:
        raise ConnectorError("AX824", f"{where} is not a feed: its root is {root.tag!r}")
    things: dict[str, Thing] = {}
    for entry in found.entries:
        identity = entry.get("id") or entry.get("link") or entry.get("title")
        if identity:
            things.setdefault(identity, Thing(identity, element(ITEM, _fields(entry))))
    return things


def _fields(entry: Any) -> dict[str, Any]:
    return {
        "title": entry.get("title"),
        "link": entry.get("link"),
        "published": _time(entry, "published"),
        "updated": _time(entry, "updated"),
        "author": entry.get("author"),
        "category": [tag.get("term") for tag in entry.get("tags", ())],
        "summary": entry.get("summary"),
        "content": [part.get("value") for part in entry.get("content", ())],
    }


def _time(entry: Any, name: str) -> str | None:
    """A time as ISO has it, or as the feed wrote it where that is no time."""
    # As a plain dictionary: feedparser's own `get` takes one time for the other, and warns.
    parsed = dict.get(entry, f"{name}_parsed")
    if parsed is None:
        written: str | None = dict.get(entry, name)
        return written
    return datetime.fromtimestamp(calendar.timegm(parsed), UTC).isoformat()


class Feed(Collection):
    """A feed that is watched."""

    def __init__(self, options: FeedOptions, origin: Origin) -> None:
        super().__init__(stream_of(origin, "a feed"), ITEM, options.only)
        self._fetching = Fetching(options.url, options, origin)

    def look(self, state: Any, now: float) -> Look:
        state = state or {"fetched": {}, "items": {}}
        content, fetched = self._fetching.fetch(state["fetched"])
        state = {**state, "fetched": fetched}
        if content is None:
            return Look(state=state)
        where = self._fetching.where
        try:
            things = read_feed(content, where)
        except AxlogError as error:
            if isinstance(error, SetupError):
                raise
            return Look(state=state, refused=[refusal(self.stream, content, where, error)])
        updates, items = self.compared(state["items"], things, now)
        return Look(updates, {**state, "items": items})

    def close(self) -> None:
        self._fetching.close()


def _make(options: FeedOptions, origin: Origin) -> Alerter:
    return Alerter(Feed(options, origin), options, origin)


FEED = SourceKind(
    "feed", FeedOptions, _make, "An RSS or Atom feed, polled: items that come and go."
)
