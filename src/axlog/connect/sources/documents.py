"""Any XML or JSON document at a path or address, and the differences between its versions.

With `record: NAME` (default: every child of the root) the stream follows the records:

    <record key="..." id="..."><paper>...</paper></record>

A changed or removed record is deleted, and a new or changed one inserted. Records are identified by
the path `by:` below them; without it by their whole content, equal ones by their number.

With `as: patch` every new version brings one tree with its differences, as an RFC 5261 patch
(`document/diff.py`): `<version number="2"><diff>...</diff></version>`. The first version brings the
whole document, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from lxml import etree
from pydantic import ConfigDict, Field

from axlog.connect.channels.subscription_filters import is_element
from axlog.connect.kinds import Origin, PathOrWeb, SourceKind
from axlog.connect.message_paths import MessagePath
from axlog.connect.sources.fetch import AddressOptions, Fetching
from axlog.connect.sources.formats import FormatOptions
from axlog.connect.sources.poller import (
    Alerter,
    AlerterOptions,
    Collection,
    Look,
    Thing,
    refusal,
    stream_of,
)
from axlog.document.loader import load
from axlog.document.name_expansion import refuse_growth
from axlog.document.parser import DEFAULT_LIMITS, Element, parse
from axlog.document.patch_writer import patch_of
from axlog.document.serializer import serialise
from axlog.document.stream_update import StreamUpdate
from axlog.errors import AxlogError

RECORD, VERSION = "record", "version"


class DocumentOptions(AlerterOptions, AddressOptions, FormatOptions):
    """Options of `document`."""

    model_config = ConfigDict(populate_by_name=True)

    url: PathOrWeb = Field(description="The document's address, or the path of a file.")
    form: Literal["records", "patch"] = Field(
        default="records", alias="as", description="The messages for a new version."
    )
    record: str | None = Field(
        default=None, description="The name of the records (default: the children of the root)."
    )
    by: str | None = Field(default=None, description="A path below a record to its identifier.")


class WatchedDocument(Collection):
    """A document that is polled."""

    def __init__(self, options: DocumentOptions, origin: Origin) -> None:
        super().__init__(stream_of(origin, "a document"), RECORD, options.only)
        self._fetching = Fetching(options.url, options, origin)
        self._options = options
        self._is_patch = options.form == "patch"
        self._record = options.record
        given = options.by
        self._by = None if given is None else MessagePath.parse(given, origin.namespaces)

    def look(self, state: Any, now: float) -> Look:
        state = state or {"fetched": {}, "version": 0, "known": None}
        content, fetched = self._fetching.fetch(state["fetched"])
        state = {**state, "fetched": fetched}
        if content is None:
            return Look(state=state)
        where = self._fetching.where
        try:
            content = self._as_one(content)
            if self._is_patch:
                updates, known = self._patched(state, content, now)
            else:
                things = self._records(parse(content).root, len(content))
                updates, known = self.compared(state["known"] or {}, things, now)
        except AxlogError as error:
            return Look(state=state, refused=[refusal(self.stream, content, where, error)])
        return Look(updates, {**state, "known": known, "version": state["version"] + 1})

    def _as_one(self, content: bytes) -> bytes:
        """Return the content as one XML document; the items of a JSON array are its children."""
        if self._options.format == "xml":
            return content
        made = self._options.messages(content, self._fetching.where)
        is_array = content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        return b"<items>" + b"".join(made) + b"</items>" if is_array else made[0]

    def _patched(
        self, state: dict[str, Any], content: bytes, now: float
    ) -> tuple[list[StreamUpdate], Any]:
        new = load(content)
        text = serialise(new)
        made = etree.Element(VERSION, number=str(state["version"] + 1))
        if state["known"] is None:
            made.append(parse(text).root)
        else:
            made.append(parse(patch_of(load(state["known"]), new)).root)
        xml = etree.tostring(made, encoding="unicode")
        return [StreamUpdate(self.stream, "insert", xml, now)], text

    def _records(self, root: Element, size: int) -> Iterator[Thing]:
        """Yield the records of a document; each by itself has all namespaces in scope."""
        written = 0
        found = root.iterchildren() if self._record is None else root.iter(self._record)
        for record in [each for each in found if is_element(each)]:
            tail, record.tail = record.tail, None
            identity = self._by.value(record) if self._by is not None else None
            if identity is None:
                identity = etree.tostring(record, method="c14n").decode()
            made = etree.Element(RECORD)
            xml = etree.tostring(record)
            written += len(xml)
            refuse_growth(written, size, DEFAULT_LIMITS)
            made.append(parse(xml).root)
            record.tail = tail
            yield _Record(identity, made) if self._by is None else Thing(identity, made)

    def close(self) -> None:
        self._fetching.close()


class _Record(Thing):
    """Whether a record is identified by its content alone, which is too long to show as a name."""

    __slots__ = ()
    is_named = False

    def xml(self) -> str:
        self.tree.set("key", self.key)
        return etree.tostring(self.tree, encoding="unicode", with_tail=False)


def _make(options: DocumentOptions, origin: Origin) -> Alerter:
    return Alerter(WatchedDocument(options, origin), options, origin)


DOCUMENT = SourceKind(
    "document",
    DocumentOptions,
    _make,
    "An XML or JSON document at a path or address, diffed by version.",
)
