"""RSS and Atom feeds as streams: items added, changed or removed since the last poll.

    <item key="5ba1..." id="https://example.org/17">
      <title>...</title><link>...</link><published>2026-01-08T05:07:10+00:00</published>...
    </item>

A poll is a conditional request with the last validators, and publishes nothing if nothing is new.
The hardened parser parses the feed: a feed that declares entities or is not well-formed is rejected
as a whole, and the items stay as they were. `feed_items.py` knows the dialects. Items are
identified by their id, else their link, else their title. Items that share one are numbered
(`number="2"`); all are published, and the duplicate is logged. Texts stay unchanged: markup inside
is escaped, and a text with a mangled encoding is not repaired, so that its correction is a change.

Not handled: feeds that are not well-formed XML.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from axlog.connect.kinds import Origin, PathOrWeb, SourceKind
from axlog.connect.sources.feed_items import fields_of, identity_of, items_of
from axlog.connect.sources.fetch import AddressOptions, Fetching
from axlog.connect.sources.poller import (
    Alerter,
    AlerterOptions,
    Collection,
    Look,
    Thing,
    element,
    refusal,
    stream_of,
)
from axlog.document.loader import check_forest
from axlog.document.parser import parse
from axlog.errors import AxlogError

ITEM = "item"


class FeedOptions(AlerterOptions, AddressOptions):
    """Options of `feed`."""

    url: PathOrWeb = Field(description="The feed's address, or the path of a file.")


def read_feed(content: bytes, where: str) -> list[Thing]:
    """Return the items of a feed in their order."""
    root = parse(content, name=where).root
    check_forest(root)
    return [Thing(identity_of(i), element(ITEM, fields_of(i))) for i in items_of(root, where)]


class Feed(Collection):
    """A feed that is polled."""

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
            return Look(state=state, refused=[refusal(self.stream, content, where, error)])
        updates, items = self.compared(state["items"], things, now)
        return Look(updates, {**state, "items": items})

    def close(self) -> None:
        self._fetching.close()


def _make(options: FeedOptions, origin: Origin) -> Alerter:
    return Alerter(Feed(options, origin), options, origin)


FEED = SourceKind(
    "feed",
    FeedOptions,
    _make,
    "An RSS or Atom feed, polled for added, changed and removed items.",
)
