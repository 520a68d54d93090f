"""Splitting a text of XQuery Update statements at the semicolons between them.

A semicolon separates statements outside of strings, comments `(: :)` and element constructors; in
those it is content (`&lt;`, `<p>a; b</p>`). Nothing else is understood here: each statement goes to
the parser of its language, which says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKUP = (
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>"
    r"""|<(?P<close>/)?[^\W\d][\w:.-]*(?:[^<>"']|"[^"]*"|'[^']*')*?(?P<empty>/)?>"""
)
_OUTSIDE = re.compile(rf"""\(:.*?:\)|"[^"]*"|'[^']*'|(?P<end>;)|{_MARKUP}""", re.DOTALL)
_IN_ELEMENT = re.compile(rf"(?P<end>;)|{_MARKUP}", re.DOTALL)  # here a quote is content


def statements(text: str) -> Iterator[str]:
    """The statements of a text, one after the other; empty ones are left out.

    >>> list(statements("delete node /a; insert node <b>x; y</b> into /c;"))
    ['delete node /a', 'insert node <b>x; y</b> into /c']
    """
    start = at = depth = 0
    while found := (_IN_ELEMENT if depth else _OUTSIDE).search(text, at):
        at = found.end()
        if found["end"] and not depth:
            if statement := text[start : found.start()].strip():
                yield statement
            start = at
        elif found["close"]:
            depth = max(0, depth - 1)
        elif found.group().startswith("<") and not found["empty"] and found.group()[1] != "!":
            depth += 1
    if statement := text[start:].strip():
        yield statement
