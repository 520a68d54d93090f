"""The depth of syntax trees: walks of them are recursive, so a tree that is too deep is refused.

Brackets are counted while a text is parsed (`Tokenizer.nested`), but operators, arrows, casts and
clauses make a tree deep without brackets: `1 + 1 + 1 + ...`.
"""

from __future__ import annotations

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Binary, Call, Flwor, Quantified, Typed, field_names

MOST_DEPTH = 300
_HEAVY = (Binary, Quantified, Typed)
"""Nodes that count twice, and calls three times: a walk takes more frames for them."""


def check_depth(expression: object, text: str) -> None:
    """Refuse a tree that is deeper than `MOST_DEPTH`, with the place of the node that is too deep.

    A clause counts as deep as the clauses before it: the tuples of a clause are made from theirs.
    """
    waiting: list[tuple[object, int, int]] = [(expression, 0, 0)]
    while waiting:
        node, depth, at = waiting.pop()
        if isinstance(node, tuple):
            waiting += [(each, depth, at) for each in node]
        elif (names := field_names(type(node))) is not None:
            at = getattr(node, "at", at)
            depth += 3 if isinstance(node, Call) else 2 if isinstance(node, _HEAVY) else 1
            if depth > MOST_DEPTH:
                raise too_deep(text, at)
            if isinstance(node, Flwor):
                waiting += [(each, depth + n, at) for n, each in enumerate(node.clauses)]
                waiting.append((node.returned, depth + len(node.clauses), at))
            else:
                waiting += [(getattr(node, each), depth, at) for each in names]


def too_deep(text: str, at: int) -> QueryError:
    """The error for a text whose tree is too deep."""
    return QueryError(
        "AX213",
        "the expression is nested too deep",
        place=place_at(text, at),
        expected="fewer operators or clauses in one expression",
        advice="split it with parentheses, functions such as sum(), or several queries;"
        " a view can be left to Saxon: maintainer='saxon'",
    )
