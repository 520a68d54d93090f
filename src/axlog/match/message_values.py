"""The texts and string values of a message's elements, for generated matchers.

The rules are those of `document/recorder.py`: whitespace-only texts beside elements do not count,
comments and instructions split texts, and calls and attributes are not part of a value. Not
handled: messages with `xml:space` or calls, and messages with comments or instructions for
relations that may find them. These are matched on a tree.
"""

from __future__ import annotations

from lxml import etree

from axlog.document.parser import Element
from axlog.document.recorder import SPACES
from axlog.document.tree import CALL_LABEL
from axlog.query.compile import Relation
from axlog.query.pattern import sees_markup


def texts(element: Element) -> list[str]:
    """The strings of an element's text nodes."""
    first = element.text
    if not len(element):
        return [first] if first else []
    found = [first] if first and first.strip(SPACES) else []
    for child in element:
        tail = child.tail
        if tail and tail.strip(SPACES):
            found.append(tail)
    return found


def all_texts(element: Element) -> list[str]:
    """The strings of all text nodes below an element, in no order."""
    found: list[str] = []
    for below in element.iter():
        if type(below.tag) is str:
            found += texts(below)
    return found


def value(element: Element) -> str:
    """The string value of an element."""
    if not len(element):
        return element.text or ""
    parts: list[str] = []
    first = element.text
    if first and first.strip(SPACES):
        parts.append(first)
    for child in element:
        if type(child.tag) is str:
            parts.append(value(child))
        tail = child.tail
        if tail and tail.strip(SPACES):
            parts.append(tail)
    return "".join(parts)


def short_value(element: Element, longest: int, before: str = "") -> str | None:
    """`before` and an element's string value; None once that is longer than `longest`."""
    text = element.text
    if text and (not len(element) or text.strip(SPACES)):
        before += text
        if len(before) > longest:
            return None
    for child in element:
        if type(child.tag) is str:
            if len(child):
                further = short_value(child, longest, before)
                if further is None:
                    return None
                before = further
            elif inside := child.text:  # without a call: most children are leaves
                before += inside
                if len(before) > longest:
                    return None
        tail = child.tail
        if tail and tail.strip(SPACES):
            before += tail
            if len(before) > longest:
                return None
    return before


def has_value(element: Element, wanted: str) -> bool:
    """Whether an element's string value is this one; a longer value is not built."""
    return short_value(element, len(wanted)) == wanted


def is_element(element: Element) -> bool:
    """Whether it is an element for tests: not a comment, instruction or call."""
    tag = element.tag
    return type(tag) is str and tag != CALL_LABEL


_MARKUP = etree.XPath(
    "boolean(descendant::comment() | descendant::processing-instruction()"
    " | preceding-sibling::node() | following-sibling::node())"
)


def has_markup(message: Element, content: bytes | None = None) -> bool:
    """Whether a message has comments or processing instructions, inside or beside its root."""
    if content is not None and not may_have_markup(content):
        return False
    return bool(_MARKUP(message))


def may_have_markup(content: bytes) -> bool:
    """Whether comments or processing instructions may be in the bytes of a message."""
    if content.find(b"!") < 0 and content.find(b"?") < 0:  # one byte is found much faster than two
        return False
    return content.find(b"<!") >= 0 or content.find(b"<?") >= 0


def finds_markup(relation: Relation) -> bool:
    """Whether comments or processing instructions can affect a relation."""
    return any(each.node is not None and sees_markup(each.node) for each in relation.walk())
