"""The key of a message of a replacing stream: the value at its declared path.

A stream declared with `replace="vehicle/@id"` keeps one message for each key. The path starts below
the root element of the message. It has child steps by name and may end with `@name`, or it is `.`
for the root element. Names with a namespace are written `{uri}name`. A message of such a stream is
one tree, in which exactly one node is at the path: an attribute, or an element that holds nothing
but text. So `vehicle = $v` and `vehicle/$v` bind the key and nothing else. Keys are compared as
strings. (docs/meaning.md, Streams that replace)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axlog.document.parser import Element
from axlog.errors import InputError, StreamError

_STEP = re.compile(r"(@?)(\{[^{}]*\})?(?:([^\W\d][\w.\-]*):)?([^\W\d][\w.\-]*)")
_SLASH = re.compile(r"/(?![^{]*\})")
_EXPECTED = "vehicle/@id, order/number, or . for the root element"


@dataclass(frozen=True, slots=True)
class KeyPath:
    """A path from the root element of a message to its key."""

    steps: tuple[str, ...] = ()  # expanded names
    attribute: str | None = None

    @classmethod
    def parse(cls, text: str, namespaces: Mapping[str, str] | None = None) -> KeyPath:
        """Parse a path; raises AX105. Prefixes are resolved by `namespaces`.

        >>> KeyPath.parse("vehicle/@id")
        KeyPath(steps=('vehicle',), attribute='id')
        """
        if text.strip() == ".":
            return cls()
        steps = [_expanded(step, namespaces or {}, text) for step in _SLASH.split(text.strip())]
        if any(step.startswith("@") for step in steps[:-1]):
            raise _refused(text, "an attribute is not its last step")
        if steps[-1].startswith("@"):
            return cls(tuple(steps[:-1]), steps[-1][1:])
        return cls(tuple(steps))

    def __str__(self) -> str:
        last = () if self.attribute is None else (f"@{self.attribute}",)
        return "/".join((*self.steps, *last)) or "."

    def value(self, root: Element) -> str:
        """The key of a message; raises AX420 if it has none, several, or one with markup inside."""
        nodes = [root]
        for step in self.steps:
            nodes = [child for node in nodes for child in node.iterchildren(step)]
        if self.attribute is not None:
            found = [value for node in nodes if (value := node.get(self.attribute)) is not None]
        else:
            if any(len(node) for node in nodes):
                raise self._rejected("it contains more than text")
            found = [node.text or "" for node in nodes]
        if len(found) != 1:
            raise self._rejected(f"there are {len(found)}" if found else "there is none")
        return str(found[0])

    def value_of(self, forest: Sequence[Element]) -> str:
        """The key of a message by its trees; raises AX420 if it is not one tree."""
        if len(forest) != 1 or not isinstance(forest[0].tag, str):
            raise StreamError(
                "AX420",
                "a message of a stream that replaces is one element, with nothing beside it",
                advice="send the elements one by one",
            )
        return self.value(forest[0])

    def _rejected(self, why: str) -> StreamError:
        return StreamError(
            "AX420",
            f"the message has no key at {self}: {why}",
            expected="exactly one value: an attribute, or an element with text only",
        )


def _expanded(step: str, namespaces: Mapping[str, str], text: str) -> str:
    matched = _STEP.fullmatch(step)
    if matched is None:
        raise _refused(text, f"{step!r} is not a valid step")
    mark, space, prefix, name = matched.groups()
    if prefix is not None:
        if space is not None or prefix not in namespaces:
            raise _refused(text, f"the prefix {prefix!r} is not declared")
        space = f"{{{namespaces[prefix]}}}"
    elif space is None and not mark and namespaces.get(""):
        space = f"{{{namespaces['']}}}"
    return f"{mark}{'' if space in (None, '{}') else space}{name}"


def _refused(text: str, why: str) -> InputError:
    return InputError("AX105", f"replace={text!r} is not a path: {why}", expected=_EXPECTED)
