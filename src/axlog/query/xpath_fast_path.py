"""The short way for plain paths: what most filters are, read in one go.

    /site//person[@id = 'p1'][name]/*

Steps down by name or `*`, predicates that ask for a child, a descendant, an attribute or its
value. Anything else, prefixes and everything wrong included, is None: the parser proper takes it.

Law: `plain(text, outputs)` is None or the pattern that the parser gives.
"""

from __future__ import annotations

import re
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

_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_TEST = r"(?: ?(=|!=|<=|>=|<|>) ?([0-9]{1,9})| ?(=|!=) ?'([^'\[\]&]*)')?"
_PREDICATE = rf"\[(\.//|@)?({_NAME}){_TEST}\]"
_STEP = rf"(//?)({_NAME}|\*)((?:{_PREDICATE})*)"
_WHOLE = re.compile(rf"(?:{_STEP})+")
_STEPS = re.compile(_STEP)
_PREDICATES = re.compile(_PREDICATE)
_AXES = {"/": Axis.CHILD, "//": Axis.DESCENDANT}
_PLACES = {"": Axis.CHILD, "@": Axis.ATTRIBUTE, ".//": Axis.DESCENDANT}
_LONGEST = 300
"""Characters of a path that is certain to meet no limit of the parser."""


def plain(text: str, outputs: tuple[Output, ...], selected: str) -> Pattern | None:
    """The pattern of a plain path, its last step under a name; None if it is not plain."""
    if len(text) > _LONGEST or _WHOLE.fullmatch(text) is None:
        return None
    steps = _STEPS.findall(text)
    below: tuple[PatternNode, ...] = ()
    name: str | None = selected
    for slash, label, predicates, *_ in reversed(steps):
        test = Wildcard() if label == "*" else Name(label)
        branches = (*_branches(predicates), *below) if predicates else below
        below = (PatternNode(_AXES[slash], test, name, (), branches),)
        name = None
    return Pattern(below, outputs=outputs)


def _branches(predicates: str) -> Iterator[PatternNode]:
    for place, label, ordered, number, equal, text in _PREDICATES.findall(predicates):
        compared: tuple[Comparison, ...] = ()
        if ordered:
            compared = (Comparison(ordered, float(number)),)
        elif equal:
            compared = (Comparison(equal, text),)
        yield PatternNode(_PLACES[place], Name(label), None, compared)
