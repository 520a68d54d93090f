"""Printing small parts of query texts: words, quoted strings, sums of times."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d]\w*")


def quoted(text: str) -> str:
    """A string in quotation marks; quotation marks inside are doubled."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def is_word(text: str) -> bool:
    """Whether a name can be written without quotation marks."""
    return bool(_WORD.fullmatch(text))


def terms_text(terms: tuple[tuple[int, str], ...]) -> str:
    """A sum of names with integer coefficients: `t2 - 3*t1`."""
    text = ""
    for coefficient, name in terms:
        if text:
            text += " - " if coefficient < 0 else " + "
        elif coefficient < 0:
            text = "-"
        text += name if abs(coefficient) == 1 else f"{abs(coefficient)}*{name}"
    return text
