"""The changes of a view as a feed: RSS 2.0, Atom or JSON Feed.

The file is rewritten with the newest items; the server offers the same for channels at
`/channels/NAME/feed`. The id of an item is that of its change, the same whenever a batch is
repeated. Titles and links are templates: `title: "order {x} is late"`. Values of rows are text: the
writer of each format escapes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, Literal
from urllib.parse import quote

from lxml import etree
from pydantic import Field

from axlog.connect.kinds import LocalPath, Options, Origin, SinkKind
from axlog.connect.sinks.envelopes import change_id
from axlog.connect.sinks.file_state import State, beside
from axlog.connect.sinks.files import replace_file, unwritable
from axlog.connect.sources.poller import clean
from axlog.views.change import Change

ATOM = "http://www.w3.org/2005/Atom"
FORMATS = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "json": "application/feed+json",
}
_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a feed."""

    id: str
    title: str
    text: str
    time: str  # ISO 8601
    link: str | None = None


@dataclass(frozen=True, slots=True)
class About:
    """The title and links of a feed."""

    title: str
    link: str = "urn:axlog"
    description: str = ""


def filled(template: str, fields: Mapping[str, Any], *, for_address: bool = False) -> str:
    """Fill in the fields of a template; in addresses, quote them.

    >>> filled("order {x} is late", {"x": "17"})
    'order 17 is late'
    """

    def one(matched: re.Match[str]) -> str:
        value = fields.get(matched[1])
        text = matched[0] if value is None else str(value)
        return quote(text, safe="") if for_address and value is not None else text

    return _FIELD.sub(one, template)


def rss(about: About, items: Sequence[Item]) -> bytes:
    root = etree.Element("rss", version="2.0")
    channel = etree.SubElement(root, "channel")
    for name, value in asdict(about).items():
        _put(channel, name, value or about.title)
    for item in items:
        made = etree.SubElement(channel, "item")
        _put(made, "title", item.title)
        if item.link is not None:
            _put(made, "link", item.link)
        _put(made, "description", item.text)
        _put(made, "guid", item.id).set("isPermaLink", "false")
        _put(made, "pubDate", format_datetime(datetime.fromisoformat(item.time)))
    return etree.tostring(root, xml_declaration=True, encoding="utf-8")


def atom(about: About, items: Sequence[Item]) -> bytes:
    root = etree.fromstring(f'<feed xmlns="{ATOM}"/>')
    _put(root, "title", about.title)
    _put(root, "id", about.link)
    _put(root, "updated", max((item.time for item in items), default=_now()))
    _put(_put(root, "author", ""), "name", "axlog")
    for item in items:
        made = etree.SubElement(root, f"{{{ATOM}}}entry")
        _put(made, "id", f"urn:axlog:{item.id}")
        _put(made, "title", item.title)
        _put(made, "updated", item.time)
        if item.link is not None:
            etree.SubElement(made, f"{{{ATOM}}}link", href=clean(item.link))
        _put(made, "summary", item.text)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8")


def json_feed(about: About, items: Sequence[Item]) -> bytes:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": about.title,
        "home_page_url": about.link,
        "items": [
            {
                "id": item.id,
                "title": item.title,
                "content_text": item.text,
                "date_published": item.time,
                **({} if item.link is None else {"url": item.link}),
            }
            for item in items
        ],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1).encode()


RENDER = {"rss": rss, "atom": atom, "json": json_feed}


def _put(parent: etree._Element, name: str, text: str) -> etree._Element:
    space = etree.QName(parent).namespace
    made = etree.SubElement(parent, f"{{{space}}}{name}" if space else name)
    made.text = clean(text)
    return made


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class FeedOptions(Options):
    """Options of the sink `feed`."""

    path: LocalPath = Field(description="The file; {view} in it is the view's name.")
    format: Literal["rss", "atom", "json"] = Field(default="rss", description="Which format.")
    items: int = Field(
        default=50, ge=1, description="Maximum number of items; the newest are kept."
    )
    title: str = Field(default="{op} {row}", description="An item's title; {column} is filled in.")
    link: str | None = Field(default=None, description="An item's link; {column} is filled in.")
    about: str | None = Field(
        default=None, description="The feed's title (default: the view's name)."
    )
    home: str = Field(default="urn:axlog", description="The feed's own link.")


class FeedSink:
    """Writes a feed to a file."""

    exactly_once = True

    def __init__(self, options: FeedOptions, origin: Origin) -> None:
        self.path = origin.path(options.path)
        self.options = options
        self.run = origin.run
        names = ", ".join(view.name for view in origin.views)
        self.about = About(options.about or names or "axlog", options.home)
        self._state = State(beside(self.path), origin.run)
        self.items = [Item(**item) for item in self._state.kept or ()]

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Insert a batch's items before the others."""
        if self._state.has(batch):
            return
        made = [self._item(batch, at, change) for at, change in enumerate(changes)]
        self.items = [*reversed(made), *self.items][: self.options.items]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, RENDER[self.options.format](self.about, self.items))
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._state.keep(batch, [asdict(item) for item in self.items])

    def _item(self, batch: int, at: int, change: Change) -> Item:
        row = change.row.to_dict()
        text = ", ".join(f"{column}: {value}" for column, value in row.items()) or "it holds"
        fields = {**row, "op": change.op, "view": change.view, "row": text}
        link = self.options.link
        return Item(
            change_id(self.run, batch, at),
            filled(self.options.title, fields),
            text,
            _now(),
            None if link is None else filled(link, fields, for_address=True),
        )

    def close(self) -> None:
        """Nothing stays open."""


FEED = SinkKind(
    "feed",
    FeedOptions,
    FeedSink,
    "The newest changes as RSS 2.0, Atom or JSON Feed.",
    ops=frozenset({"insert", "update"}),
)
