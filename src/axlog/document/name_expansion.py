"""The limit on the size of names with their namespaces.

A namespace is declared once and belongs to every name below it. A URI of one megabyte on three
thousand names expands to three gigabytes. So all names of a document, each with its namespace, may
have at most `Limits.expansion` times the bytes of the document.

`check_names` decides this from the bytes, before any name is expanded. Usually a bound suffices:
the longest URI times the number of names. Otherwise the names are counted one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from axlog.errors import LimitError

if TYPE_CHECKING:
    from axlog.document.parser import Limits

_SPACES = b" \t\r\n"
_QUOTES = b"\"'"


def check_names(content: bytes, limits: Limits, longest_default: int = 0) -> None:
    """Refuse a document whose names expand too much.

    `longest_default` is the length of the longest namespace that its DTD gives to elements.
    """
    if not fits(content, limits, longest_default):
        _Counter(len(content), limits).count(content)


def fits(content: bytes, limits: Limits, longest_default: int = 0) -> bool:
    """Whether the names certainly fit, by the longest namespace and the number of names."""
    size = len(content)
    if size <= 16 * limits.expansion and not longest_default:
        return (
            True  # worst case, half a URI and half names of four bytes: a sixteenth of the square
        )
    if not longest_default and (b"=" not in content or b"xmlns" not in content):
        return True  # one byte is found a hundred times faster than five
    longest = max(longest_default, _longest_address(content))
    names = content.count(b"<") + content.count(b":")  # elements, and attributes with a prefix
    return longest * names <= limits.expansion * size


def _longest_address(content: bytes) -> int:
    """An upper bound of the length of the longest declared namespace."""
    longest = 0
    at = content.find(b"xmlns")
    while at >= 0:
        equal = content.find(b"=", at)
        if equal < 0:
            break
        start = equal + 1
        while content[start : start + 1] in (b" ", b"\t", b"\r", b"\n"):
            start += 1
        quote = content[start : start + 1]
        if quote and quote in _QUOTES:
            end = content.find(quote, start + 1)
            longest = max(longest, (end if end >= 0 else len(content)) - start - 1)
        at = content.find(b"xmlns", equal + 1)
    return longest


class _Counter:
    """Counts the characters of all names, each with its namespace."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._size = size
        self._limits = limits
        self._total = 0
        self._scopes: list[dict[str, int]] = [{}]  # by prefix, the length of the namespace

    def count(self, content: bytes) -> None:
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        try:
            parser.Parse(content, True)
        except expat.ExpatError:
            return  # lxml reports the error with its place

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        scope = self._scopes[-1]
        declared = {
            key.partition(":")[2]: len(value)
            for key, value in attributes.items()
            if key == "xmlns" or key.startswith("xmlns:")
        }
        if declared:
            scope = {**scope, **declared}
        self._scopes.append(scope)
        self._total += _length(name, scope)
        self._total += sum(_length(key, scope) for key in attributes if ":" in key)
        refuse_growth(self._total, self._size, self._limits)

    def _end(self, _: str) -> None:
        self._scopes.pop()


def _length(name: str, scope: dict[str, int]) -> int:
    prefix, _, local = name.rpartition(":")
    return len(local) + scope.get(prefix, 0)


def expanded_size(element: Any) -> int:
    """The characters of an element's own names, each with its namespace."""
    return len(element.tag) + sum(map(len, element.attrib))


def scope_size(element: Any) -> int:
    """The characters of all namespaces in scope, which the element needs when written alone."""
    return sum(len(prefix or "") + len(address) for prefix, address in element.nsmap.items())


def refuse_growth(expanded: int, size: int, limits: Limits) -> None:
    """Refuse input that is far larger once its namespaces are expanded."""
    if expanded > limits.expansion * size:
        raise LimitError(
            "AX125",
            f"names with their namespaces are more than {limits.expansion} times as large as the"
            f" input of {size} bytes",
            advice="use shorter namespaces, or raise it with limits=Limits(expansion=...)",
        )
