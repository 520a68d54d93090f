"""The document of streams that need no document of their own: an element and a call for each.

<document>
  <orders><ax:call xmlns:ax="urn:axlog" stream="orders"/></orders>
  <shipments><ax:call xmlns:ax="urn:axlog" stream="shipments"/></shipments>
</document>

The prefix is declared by each call: a declaration of the root would be in scope in every message,
and would be written with every element that a view returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from axlog.document.calls import Call
from axlog.document.content_checks import check_name
from axlog.document.message_key import KeyPath
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError, StreamError

StreamNames: TypeAlias = Sequence[str] | Mapping[str, Mapping[str, str]]
"""Names of streams, or their declarations by name: the attributes of their calls."""
ROOT = "document"
"""Name of the root element of a skeleton."""


def skeleton(
    streams: StreamNames,
    limits: Limits = DEFAULT_LIMITS,
    namespaces: Mapping[str, str] | None = None,
) -> str:
    """Return the XML of a document with an element and a call for each stream.

    >>> skeleton(["a"])
    '<document><a><ax:call xmlns:ax="urn:axlog" stream="a"/></a></document>'
    >>> skeleton({"a": {"most": "10"}})
    '<document><a><ax:call xmlns:ax="urn:axlog" stream="a" most="10"/></a></document>'
    """
    places: list[str] = []
    for stream, given in _declarations(streams).items():
        check_name(stream, limits)
        attributes = {"stream": stream, **given}
        if "replace" in given:  # calls know no prefixes
            attributes["replace"] = str(KeyPath.parse(given["replace"], namespaces or {}))
        Call.of(list(attributes.items()))  # raises for an unknown declaration
        call = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
        places.append(f'<{stream}><ax:call xmlns:ax="urn:axlog" {call}/></{stream}>')
    return f"<{ROOT}>{''.join(places)}</{ROOT}>"


def _declarations(streams: StreamNames) -> Mapping[str, Mapping[str, str]]:
    if isinstance(streams, str) or not streams:
        raise QueryError(
            "AX211", f"streams={streams!r}", expected="a list of stream names, or a source"
        )
    if isinstance(streams, Mapping):
        return streams
    twice = next((each for at, each in enumerate(streams) if each in streams[:at]), None)
    if twice is not None:
        raise StreamError("AX403", f"the stream {twice!r} is given twice")
    return {each: {} for each in streams}
