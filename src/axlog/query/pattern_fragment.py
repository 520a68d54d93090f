"""The fragment of XPath and XQuery that patterns express: what is outside is refused by name.

The compilers of patterns check an expression here first. A refusal is no error of the query: the
compiler of plans (`plan_compiler.py`) takes what patterns cannot express.
"""

from __future__ import annotations

from math import isinf

from axlog.query.syntax_tree import (
    Binary,
    Call,
    Constant,
    Counted,
    Expression,
    External,
    For,
    ForAt,
    Group,
    GroupBy,
    OrderBy,
    Typed,
    walk,
)
from axlog.query.tokenizer import unsupported

FUNCTIONS = frozenset(
    """boolean collection count data distinct-values doc document empty exists false id last not
    number position string true xs:string xs:double xs:decimal xs:integer xs:date xs:dateTime
    xs:time""".split()
)
"""The functions that patterns express, some of them only in places."""
OPERATORS = frozenset("and or | = != < <= > >= eq ne lt le gt ge".split())
INFIX_SYMBOLS = {
    "||": "joining strings by `||`",
    "=>": "the arrow `=>`",
    "<<": "`<<`",
    ">>": "`>>`",
}
INFIX_WORDS = {
    "div": "arithmetic",
    "idiv": "arithmetic",
    "mod": "arithmetic",
    "to": "a range (`to`)",
    "is": "comparing identities by `is`",
    "instance of": "`instance of`",
    "treat as": "`treat as`",
    "castable as": "`castable as`",
    "cast as": "`cast as`",
}
SETS = {"intersect": "`A[...]` with a predicate that says B", "except": "`A[not(...)]`"}
INSTEAD = {
    "contains": 'a comparison with the whole value: `. = "..."`',
    "starts-with": 'a comparison with the whole value: `. = "..."`',
    "local-name": "a test of the name: `self::name`",
    "name": "a test of the name: `self::name`",
    "sum": "maintain the rows and add them up",
}
"""Advice for functions that patterns do not express."""


def refuse_beyond(expression: Expression, text: str) -> None:
    """Raise AX211 for the first construct, in the order of writing, that patterns do not have."""
    beyond = [node for node in walk(expression) if _is_beyond(node)]
    if not beyond:
        return
    at, node = min(((_place(node), node) for node in beyond), key=lambda pair: pair[0])
    if isinstance(node, Constant):
        raise unsupported(text, at, "a number too large for a double")
    construct, advice = _named(node)
    raise unsupported(text, at, construct, advice=advice)


def _place(node: object) -> int:
    return int(getattr(node, "at", 0))


def _is_beyond(node: object) -> bool:
    match node:
        case Call(name=name):
            return name not in FUNCTIONS
        case Constant(value=float() as value):
            return isinf(value)
        case Binary(operator=operator):
            return operator not in OPERATORS
        case Group(is_map=True):
            return True
        case For(allows_empty=True):
            return True
    return isinstance(node, Typed | ForAt | GroupBy | OrderBy | Counted | External)


def _named(node: object) -> tuple[str, str | None]:
    """The construct in words, and advice."""
    match node:
        case Call(name="unary+" | "unary-"):
            return "arithmetic", "compare with a precomputed number"
        case Call(name="if"):
            return "a choice by `if`", "`or` and `and` in a predicate"
        case Call(name=name) if name.startswith("new-"):
            return "a computed constructor", "XQuery's <name>{...}</name>"
        case Call(name=name):
            return f"the function {name}()", INSTEAD.get(name)
        case Binary(operator=operator) if operator in SETS:
            return f"the set operation `{operator}`", SETS[operator]
        case Binary(operator=operator):
            known = {**INFIX_SYMBOLS, **INFIX_WORDS}
            return known.get(operator, "arithmetic"), "compare with a precomputed number"
        case Typed(operator=operator):
            return f"`{operator}`", None
        case Group():
            return "the map operator `!`", "a step: `a/b`"
        case ForAt():
            return "a position by `at`", "leave `at $i` out"
        case For():
            return "`allowing empty`", "a path in the return"
        case GroupBy():
            return "`group by`", None
        case OrderBy():
            advice = "leave it out: rows are a set, sort them by their columns where you show them"
            return "`order by`", advice
        case External():
            return "an external variable", None
    return "`count`", None
