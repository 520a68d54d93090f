"""The fast path for plain XPath expressions, which one regular expression reads.

    /site//person[@id = 'p1'][name]/*

A plain path has steps down by name or `*`, and predicates on the existence or value of a child, a
descendant or an attribute. For all other texts, including names with prefixes and texts with
errors, the result is None, and the caller uses the parser.

Law: `plain(text, outputs, selected)` is None or the pattern that the parser gives.
"""

from __future__ import annotations

from collections.abc import Iterator

from axlog.query.pattern import (
    Axis,
    Comparison,
    Name,
    Output,
    Pattern,
    PatternNode,
    Wildcard,
)
from axlog.query.tokenizer import compiled

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_TEST = r"(?: ?(=|!=|<=|>=|<|>) ?([0-9]{1,9})| ?(=|!=) ?'([^'\[\]&]*)')?"
_PREDICATE = rf"\[(\.//|@)?({_NAME}){_TEST}\]"
_STEP = rf"(//?)({_NAME}|\*)((?:{_PREDICATE})*)"
_WHOLE = rf"(?:{_STEP})+"
_AXES = {"/": Axis.CHILD, "//": Axis.DESCENDANT}
_PLACES = {"": Axis.CHILD, "@": Axis.ATTRIBUTE, ".//": Axis.DESCENDANT}
_LONGEST = 300
"""Paths of at most this length cannot exceed a limit of the parser."""


def plain(text: str, outputs: tuple[Output, ...], selected: str) -> Pattern | None:
    """The pattern of a plain path, with its last step named; None if the text is not plain."""
    if len(text) > _LONGEST or compiled(_WHOLE).fullmatch(text) is None:
        return None
    steps = compiled(_STEP).findall(text)
    below: tuple[PatternNode, ...] = ()
    name: str | None = selected
    for slash, label, predicates, *_ in reversed(steps):
        test = Wildcard() if label == "*" else Name(label)
        branches = (*_branches(predicates), *below) if predicates else below
        below = (PatternNode(_AXES[slash], test, name, (), branches),)
        name = None
    return Pattern(below, outputs=outputs)


def _branches(predicates: str) -> Iterator[PatternNode]:
    for place, label, ordered, number, equal, text in compiled(_PREDICATE).findall(predicates):
        compared: tuple[Comparison, ...] = ()
        if ordered:
            compared = (Comparison(ordered, float(number)),)
        elif equal:
            compared = (Comparison(equal, text),)
        yield PatternNode(_PLACES[place], Name(label), None, compared)
