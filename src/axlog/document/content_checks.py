"""Checks of names, texts, comments and instructions before they enter a document.

An update can contain strings that XML cannot: a control character, a name with a space, a comment
with `--`. They are refused here, so that a document can always be written and parsed again. lxml
checks the elements that it makes itself.
"""

from __future__ import annotations

import re
from functools import cache

from axlog.document.parser import Limits
from axlog.document.tree import NodeKind
from axlog.errors import LimitError, UpdateError

_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"[{_START}][{_START}0-9.\xb7\u0300-\u036f\u203f-\u2040-]*"
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_ASCII_NAME = re.compile("[A-Za-z_][A-Za-z_0-9.-]*")
_XMLNS = "http://www.w3.org/2000/xmlns/"


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """A regular expression, compiled when it is first used: these classes take milliseconds."""
    return re.compile(expression)


def _is_name(local: str) -> bool:
    name = _ASCII_NAME if local.isascii() else _compiled(_NAME)
    return name.fullmatch(local) is not None


def check_name(label: str, limits: Limits, is_attribute: bool = False) -> None:
    """Check an expanded name: `local` or `{address}local`."""
    address, brace, local = label.rpartition("}")
    is_expanded = not brace or (len(address) > 1 and address[0] == "{" and "}" not in address)
    if not is_expanded or not _is_name(local) or _compiled(_NOT_XML).search(address):
        raise UpdateError("AX303", f"{label!r} is not a name", expected="name or {address}name")
    if address[1:] == _XMLNS or (is_attribute and label == "xmlns"):
        raise UpdateError("AX303", "a namespace declaration is not an attribute")
    if len(local) > limits.name:
        raise LimitError("AX124", f"a name has {len(local)} characters, more than {limits.name}")


def check_text(text: str, limits: Limits, kind: int = NodeKind.TEXT) -> None:
    """Check the characters of a text, a comment, or the data of an instruction."""
    wrong = _compiled(_NOT_XML).search(text)
    if wrong is not None:
        raise UpdateError("AX303", f"XML does not allow the character U+{ord(wrong[0]):04X}")
    if kind == NodeKind.COMMENT and ("--" in text or text.endswith("-") or "\r" in text):
        raise UpdateError("AX303", "a comment cannot hold '--' or '\\r', or end with '-'")
    if kind == NodeKind.INSTRUCTION and re.search(r"\A[ \t\n]|\?>|\r", text):
        raise UpdateError(
            "AX303", "an instruction cannot hold '?>' or '\\r', or start with a space"
        )
    if len(text) > limits.text:
        raise LimitError(
            "AX123",
            f"a text has {len(text)} characters, more than {limits.text}",
            advice="raise it with limits=Limits(text=...)",
        )


def instruction_text(name: str, data: str) -> str:
    """The string that the tree stores for a processing instruction."""
    return f"{name} {data}" if data else name
