"""Paths into a message, to its time or its key.

A path has child steps by name, optionally a last step `@name` for an attribute, or is `.` for the
root element. Prefixes are those that the pipeline file declares. The path starts below the
message's root element: `header/created`, `@at`, `ubl:IssueDate`. Its value is the string of the
first node that it matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from axlog.document.parser import Element
from axlog.errors import PipelineError

_STEP = re.compile(r"(@?)(?:([^\W\d][\w.\-]*):)?([^\W\d][\w.\-]*)")


@dataclass(frozen=True, slots=True)
class MessagePath:
    """A path from a message's root element to a value."""

    steps: tuple[str, ...]  # expanded names
    attribute: str | None = None

    @classmethod
    def parse(cls, text: str, namespaces: Mapping[str, str] | None = None) -> MessagePath:
        """Parse a path."""
        steps: list[str] = []
        attribute: str | None = None
        for step in text.strip().split("/"):
            if step == ".":
                continue
            matched = _STEP.fullmatch(step)
            if matched is None or attribute is not None:
                raise _refused(text, f"{step!r} is not a valid step of a path")
            label = _expanded(matched, namespaces or {}, text)
            if matched[1]:
                attribute = label
            else:
                steps.append(label)
        return cls(tuple(steps), attribute)

    def value(self, root: Element) -> str | None:
        """Return the string at the path in a message; None if there is none."""
        nodes = [root]
        for step in self.steps:
            nodes = [child for node in nodes for child in node.iterchildren(step)]
        for node in nodes:
            if self.attribute is None:
                return "".join(str(text) for text in node.itertext()).strip()
            found = node.get(self.attribute)
            if found is not None:
                return str(found)
        return None


def _expanded(matched: re.Match[str], namespaces: Mapping[str, str], text: str) -> str:
    is_attribute, prefix, name = matched.groups()
    if prefix is None:
        default = "" if is_attribute else namespaces.get("", "")
        return f"{{{default}}}{name}" if default else str(name)
    if prefix not in namespaces:
        raise _refused(text, f"the prefix {prefix!r} is not declared")
    return f"{{{namespaces[prefix]}}}{name}"


def _refused(text: str, why: str) -> PipelineError:
    return PipelineError(
        "AX852",
        f"{text!r} is not a path into a message: {why}",
        expected="header/created, order/@id, or . for the root element",
    )
