"""The source `feed` against its definition: the published updates are the changes of the feed.

Items are considered in their order. An item is identified by its guid, else its link, else its
title, and by the number of items with the same name before it. From one version of the feed to the
next the source deletes exactly the items that are removed or have another text, inserts exactly
those that are new or have another text, and logs how many new items have a duplicate name. With
`only: additions` it inserts exactly the items that no earlier version had.

A case is a list of versions of one feed, in one dialect. Versions differ as real feeds do: texts
whose encoding was mangled and corrected, guids that are shared or missing, order, items that are
added, changed and removed. The model keeps the drawn items and never parses XML.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from axlog.connect.kinds import Origin
from axlog.connect.sources.feeds import FEED, FeedOptions

_WORDS = ("it’s", "«café»", "naïve — yes", "a & b", "<b>bold</b>", "&amp;", "plain", "x")
_TIMES = {
    "Thu, 08 Jan 2026 05:07:10 GMT": "2026-01-08T05:07:10+00:00",
    "2026-01-08T06:07:10+01:00": "2026-01-08T05:07:10+00:00",
    "some day": "some day",
}
HEADS = {
    "rss": ('<rss version="2.0"><channel><title>t</title>', "</channel></rss>"),
    "rdf": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns="http://purl.org/rss/1.0/"><channel/>',
        "</rdf:RDF>",
    ),
    "atom": ('<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>', "</feed>"),
}


@dataclass(frozen=True, slots=True)
class FeedItem:
    """A random item; None for a field that the feed omits."""

    guid: str | None
    link: str | None
    title: str | None
    summary: str | None = None
    published: str | None = None
    categories: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.guid or self.link or self.title or ""

    def fields(self) -> list[tuple[str, str]]:
        """The fields that a stream shows, as names and texts."""
        found = [("title", self.title), ("link", self.link)]
        if self.published is not None:
            found.append(("published", _TIMES[self.published]))
        found += [("category", each) for each in self.categories]
        found.append(("summary", self.summary))
        return [(name, text) for name, text in found if text is not None]

    def written(self, dialect: str) -> str:
        """The item in a dialect."""
        parts = []
        if dialect == "atom":
            parts.append(_tag("id", self.guid))
            parts.append("" if self.link is None else f"<link href={quoteattr(self.link)}/>")
            parts.append(_tag("title", self.title, ' type="html"'))
            parts.append(_tag("summary", self.summary))
            parts.append(_tag("published", self.published))
            parts += [f"<category term={quoteattr(each)}/>" for each in self.categories]
            return f"<entry>{''.join(parts)}</entry>"
        about = f" rdf:about={quoteattr(self.guid)}" if dialect == "rdf" and self.guid else ""
        if dialect == "rss":
            parts.append(_tag("guid", self.guid, ' isPermaLink="false"'))
        parts += [_tag("link", self.link), _tag("title", self.title)]
        parts += [_tag("description", self.summary), _tag("pubDate", self.published)]
        parts += [_tag("category", each) for each in self.categories]
        return f"<item{about}>{''.join(parts)}</item>"


def _tag(name: str, text: str | None, attributes: str = "") -> str:
    return "" if text is None else f"<{name}{attributes}>{escape(text)}</{name}>"


Version = tuple[FeedItem, ...]


@dataclass(frozen=True, slots=True)
class FeedCase:
    """Consecutive versions of a feed, in a dialect."""

    dialect: str
    versions: tuple[Version, ...]
    only: str = "all"


# Random cases -------------------------------------------------------------------------------------


def make_feed_case(random: Random) -> FeedCase:
    """A random case."""
    items = [random_item(random) for _ in range(random.randint(0, 5))]
    versions = [tuple(items)]
    for _ in range(random.randint(1, 5)):
        for _ in range(random.randint(0, 3)):
            _edit(random, items)
        versions.append(tuple(items))
    only = "all" if random.random() < 0.8 else "additions"
    return FeedCase(random.choice(tuple(HEADS)), tuple(versions), only)


def random_item(random: Random) -> FeedItem:
    return FeedItem(
        guid=random.choice((None, "1", "2", "3", "1#2", "tag:é")),
        link=random.choice((None, "http://e.example/1", "http://e.example/2?a=1&b=2")),
        title=random.choice((None, *_WORDS)),
        summary=random.choice((None, *_WORDS)),
        published=random.choice((None, *_TIMES)),
        categories=tuple(random.choices(_WORDS, k=random.randint(0, 2))),
    )


def _edit(random: Random, items: list[FeedItem]) -> None:
    """Change a feed as real feeds change."""
    if not items or random.random() < 0.2:
        items.insert(random.randint(0, len(items)), random_item(random))
        return
    at = random.randrange(len(items))
    one = items[at]
    match random.randrange(7):
        case 0:
            del items[at]
        case 1:
            random.shuffle(items)
        case 2:  # a shared guid, with another text or the same
            items.insert(random.randint(0, len(items)), replace(random_item(random), guid=one.guid))
        case 3:
            items.insert(at, one)
        case 4:
            items[at] = replace(one, guid=None)
        case 5:
            items[at] = replace(one, title=_recoded(random, one.title))
        case _:
            items[at] = replace(one, summary=_recoded(random, one.summary))


def _recoded(random: Random, text: str | None) -> str | None:
    """A text decoded with a wrong encoding, or corrected again."""
    if text is None:
        return random.choice(_WORDS)
    wrong = random.choice(("cp1252", "iso-8859-1"))
    try:
        if random.random() < 0.5:
            return _without_controls(text.encode("utf-8").decode(wrong))
        return text.encode(wrong).decode("utf-8")
    except UnicodeError:
        return random.choice(_WORDS)


def _without_controls(text: str) -> str:
    """The text without the control characters that XML forbids; it allows those from 128 on."""
    return "".join(c for c in text if c >= " ").strip() or "x"


def smaller_feeds(case: FeedCase) -> Iterator[FeedCase]:
    """Cases with one version or item less."""
    for at in range(len(case.versions)):
        yield replace(case, versions=case.versions[:at] + case.versions[at + 1 :])
    for name in {item for version in case.versions for item in version}:
        less = (tuple(item for item in version if item != name) for version in case.versions)
        yield replace(case, versions=tuple(less))


# The law ------------------------------------------------------------------------------------------

Known = dict[tuple[str, int], list[tuple[str, str]]]


def _known(version: Version) -> Known:
    """The items of a version by their identity."""
    seen: Counter[str] = Counter()
    found: Known = {}
    for item in version:
        seen[item.name] += 1
        found[item.name, seen[item.name]] = item.fields()
    return found


def check_feed(case: FeedCase) -> None:
    """Read the versions, and compare the published updates with the changes of the feed."""
    with TemporaryDirectory() as made:
        directory = Path(made)
        options = FeedOptions(url="feed.xml", interval=0, only=case.only)
        source = FEED.make(options, Origin(directory, stream="news"))
        try:
            _follow(case, directory, source)
        finally:
            source.close()


def _follow(case: FeedCase, directory: Path, source: Any) -> None:
    position: Any = None
    keys: dict[str, tuple[str, int]] = {}
    before: Known = {}
    for version in case.versions:
        head, tail = HEADS[case.dialect]
        text = head + "".join(item.written(case.dialect) for item in version) + tail
        (directory / "new.xml").write_text(text, encoding="utf-8")
        (directory / "new.xml").replace(directory / "feed.xml")  # a new file: it is read
        with _logged() as events:
            reading = source.read(position, 10_000)
        position = reading.position
        _same("refused", [each.error for each in reading.refused], [])
        deleted, inserted = [], {}
        for update in reading.updates:
            if update.action == "delete":
                deleted.append(keys.pop(update.content.split('"')[1]))
                continue
            tree = etree.fromstring(update.content)
            key, known = str(tree.get("key")), (str(tree.get("id")), int(tree.get("number", "1")))
            _same("a key that is free", key in keys, False)
            keys[key] = known
            inserted[known] = [(child.tag, child.text or "") for child in tree]
        now = _known(version)
        if case.only == "additions":
            wanted = {known: text for known, text in now.items() if known not in before}
            _same("deleted", deleted, [])
            gone = {known: text for known, text in before.items() if known not in now}
            told = now | gone
        else:
            wanted = {known: text for known, text in now.items() if before.get(known) != text}
            lost = [known for known, text in before.items() if now.get(known) != text]
            _same("deleted", sorted(deleted), sorted(lost))
            told = now
        _same("inserted", inserted, wanted)
        taken = [known for known in now if known[1] > 1 and known not in before]
        _same("duplicates logged", sum(events), len(taken))
        before = told


@contextmanager
def _logged() -> Iterator[list[int]]:
    """The number of duplicates in the logged events inside the block."""
    found: list[int] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "duplicate ids":
                found.append(getattr(record, "axlog_fields", {})["count"])

    handler = Keeping()
    logger = logging.getLogger("axlog.connect")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")
