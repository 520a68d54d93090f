"""Split a text of XQuery Update statements at the semicolons between them.

A semicolon separates statements outside of strings, comments `(: :)` and element constructors.
Inside them it is content (`&lt;`, `<p>a; b</p>`). This module parses nothing else: each statement
goes to the parser of its language, which reports its errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_MARKUP = (
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>"
    r"""|<(?P<close>/)?[^\W\d][\w:.-]*(?:[^<>"']|"[^"]*"|'[^']*')*?(?P<empty>/)?>"""
)
_OUTSIDE = re.compile(rf"""\(:.*?:\)|"[^"]*"|'[^']*'|(?P<end>;)|{_MARKUP}""", re.DOTALL)
_IN_ELEMENT = re.compile(rf"(?P<end>;)|{_MARKUP}", re.DOTALL)  # here a quote is content


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a text in order, without empty ones.

    >>> list(statements("delete node /a; insert node <b>x; y</b> into /c;"))
    ['delete node /a', 'insert node <b>x; y</b> into /c']
    """
    return arriving([text])


def arriving(lines: Iterable[str]) -> Iterator[str]:
    """Yield the statements of lines, each as soon as the semicolon after it has arrived."""
    waiting = ""
    for line in lines:
        waiting += line
        if ";" in line:
            *complete, waiting = _split(waiting)
            yield from filter(None, complete)
    if waiting.strip():
        yield waiting.strip()


def _split(text: str) -> list[str]:
    """Return the complete statements of a text, and its unfinished rest as the last item."""
    found: list[str] = []
    start = at = depth = 0
    while part := (_IN_ELEMENT if depth else _OUTSIDE).search(text, at):
        at = part.end()
        if part["end"]:
            if not depth:
                found.append(text[start : part.start()].strip())
                start = at
        elif part["close"]:
            depth = max(0, depth - 1)
        elif part.group().startswith("<") and not part["empty"] and part.group()[1] != "!":
            depth += 1
    return [*found, text[start:]]
