"""The forms in which a program may give a message, made into the forms that documents read."""

from __future__ import annotations

import xml.etree.ElementTree as StandardTree
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from lxml import etree

from axlog.document.parser import Element, read

Message: TypeAlias = str | bytes | Element
"""A message as documents read it: XML of one or more trees, or an element."""

AnyMessage: TypeAlias = (
    Message
    | etree._ElementTree
    | StandardTree.Element
    | StandardTree.ElementTree
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
)
"""A message as programs give it: also ElementTree elements, trees, and JSON (`json_messages`)."""


def as_message(given: AnyMessage) -> Message:
    """Return a message in a form that documents read. JSON texts and values become XML.

    >>> as_message({"order": {"oid": "17"}}), as_message('{"order": {"oid": "17"}}')
    ('<order><oid>17</oid></order>', '<order><oid>17</oid></order>')
    """
    if isinstance(given, str):
        return _of_json(given) if given.lstrip()[:1] in ("{", "[") else given
    if isinstance(given, bytes):
        return _of_json(given) if given.lstrip()[:1] in (b"{", b"[") else given
    if isinstance(given, etree._Element):
        return given
    if isinstance(given, Mapping | list | tuple):
        return _of_json(given)
    return read(given).root  # type: ignore[arg-type]  # read() rejects other objects (AX103)


def _of_json(given: str | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    from axlog.document.json_messages import to_xml, xml_of_text

    return xml_of_text(given) if isinstance(given, str | bytes) else to_xml(given)
