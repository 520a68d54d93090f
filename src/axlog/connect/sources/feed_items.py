"""The items of RSS and Atom feeds, with their texts exactly as in the feed.

Dialects: RSS 0.9x and 2.0 (elements in no namespace or in Userland's), RSS 0.90 and 1.0 (RDF), Atom
0.3 and 1.0, with the modules Dublin Core and `content:encoded`. Nothing is repaired or sanitised: a
text that was decoded twice (`â€™` for `’`) is another text, and an item whose text changes from one
to the other has changed. Markup inside a text, escaped or not, is part of the text.

Only times are rewritten, as ISO 8601. A time that cannot be parsed stays unchanged.

Not handled: feeds that are not well-formed XML, and CDF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lxml import etree

from axlog.connect.channels.subscription_filters import is_element
from axlog.document.parser import Element
from axlog.errors import ConnectorError

_ATOM = frozenset({"http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#"})
_RSS = frozenset(
    {
        "",
        "http://purl.org/rss/1.0/",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss2",
    }
)
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DUBLIN_CORE = frozenset({"http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"})
_CONTENT = frozenset({"http://purl.org/rss/1.0/modules/content/"})


def items_of(root: Element, where: str) -> Iterator[Element]:
    """Return the items of a feed in their order; raise an error if the document is not a feed."""
    namespace, name = _name(root)
    is_rss = (name == "rss" and namespace in _RSS) or (name == "rdf" and namespace == _RDF)
    if not is_rss and not (name == "feed" and namespace in _ATOM):
        raise ConnectorError(
            "AX824",
            f"{where} is not a feed: its root is {root.tag!r}",
            expected="rss, rdf:RDF or feed (Atom)",
        )
    for child in _elements(root):
        if is_rss and _is(child, _RSS, "channel"):
            yield from (each for each in _elements(child) if _is(each, _RSS, "item"))
        elif _is(child, _RSS, "item") if is_rss else _is(child, _ATOM, "entry"):
            yield child


def identity_of(item: Element) -> str:
    """Return the identifier of an item: its guid or id, else its link, else its title, else
    nothing.
    """
    about = item.get(f"{{{_RDF}}}about", "").strip()
    for found in (*_texts(item, "guid", "id"), about, _link(item), *_texts(item, "title")):
        if found:
            return found
    return ""


def fields_of(item: Element) -> dict[str, Any]:
    """Return an item's fields by the names used in streams."""
    return {
        "title": next(_texts(item, "title"), None),
        "link": _link(item),
        "published": next(_times(item, "pubdate", "published", "issued"), None),
        "updated": next(_times(item, "updated", "modified", "date"), None),
        "author": list(_authors(item)),
        "category": list(_categories(item)),
        "summary": next(_texts(item, "description", "summary"), None),
        "content": list(_texts(item, "encoded", "content")),
    }


# Parts of an item ---------------------------------------------------------------------------------


def _texts(item: Element, *names: str) -> Iterator[str]:
    """Return the texts of an item's children with one of these names, in the order of the names."""
    for name in names:
        yield from (_text(child) for child in _children(item, name))


def _children(item: Element, name: str) -> Iterator[Element]:
    own = _ATOM if _name(item)[0] in _ATOM else _RSS
    modules = _MODULES.get(name, frozenset())
    for child in _elements(item):
        namespace, found = _name(child)
        if found == name and (namespace in own or namespace in modules):
            yield child


_MODULES = {
    "encoded": _CONTENT,
    "creator": _DUBLIN_CORE,
    "subject": _DUBLIN_CORE,
    "date": _DUBLIN_CORE,
    "issued": _DUBLIN_CORE,
    "modified": _DUBLIN_CORE,
    "updated": _ATOM,
    "published": _ATOM,
}
"""Names that a module adds to items of another dialect."""


def _link(item: Element) -> str | None:
    for child in _children(item, "link"):
        if child.get("href") is None and _text(child):
            return _text(child)
        if child.get("href") and child.get("rel", "alternate") == "alternate":
            return child.get("href", "").strip()
    for guid in _children(item, "guid"):
        if guid.get("isPermaLink", "true") == "true" and _text(guid):
            return _text(guid)
    return None


def _authors(item: Element) -> Iterator[str]:
    for child in (*_children(item, "author"), *_children(item, "creator")):
        name, email = next(_texts(child, "name"), ""), next(_texts(child, "email"), "")
        if name and email:
            yield f"{name} ({email})"
        else:
            yield name or email or _text(child)


def _categories(item: Element) -> Iterator[str]:
    for child in _children(item, "category"):
        yield child.get("term") or _text(child)
    yield from _texts(item, "subject")


def _times(item: Element, *names: str) -> Iterator[str]:
    return (_time(text) for text in _texts(item, *names))


def _time(written: str) -> str:
    """Return a time as ISO 8601 in UTC; an unparsable time unchanged."""
    readers: tuple[Callable[[str], datetime], ...] = (
        datetime.fromisoformat,
        parsedate_to_datetime,
    )
    for reader in readers:
        try:
            read = reader(written)
            aware = read if read.tzinfo is not None else read.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat()
        except (ValueError, OverflowError, IndexError, TypeError):
            continue
    return written


def _text(element: Element) -> str:
    """Return the text of an element without surrounding space; markup in it as canonical XML."""
    children = list(_elements(element))
    if element.get("type") == "xhtml" and len(children) == 1:
        return _text(children[0])  # Atom wraps such a text in a `div` that is not part of it
    parts = [element.text or ""]
    for child in element:
        if is_element(child):
            written = etree.tostring(child, method="c14n", exclusive=True, with_comments=False)
            parts.append(written.decode())
        parts.append(child.tail or "")
    return "".join(parts).strip()


def _elements(parent: Element) -> Iterator[Element]:
    return filter(is_element, parent.iterchildren())


def _is(element: Element, namespaces: frozenset[str], name: str) -> bool:
    namespace, found = _name(element)
    return found == name and namespace in namespaces


def _name(element: Element) -> tuple[str, str]:
    """Return the namespace, and the local name in lower case: dialects differ in spelling."""
    found = etree.QName(element)
    return found.namespace or "", found.localname.lower()
