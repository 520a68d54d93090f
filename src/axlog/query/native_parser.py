"""The parser of the native pattern text: the grammar of `native.lark`, and words for its tokens.

It gives the pattern and the offsets of its names. `native.py` checks the scopes.
Importing this module imports lark.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from lark.exceptions import VisitError

from axlog.query.grammar import Grammar, Wording
from axlog.query.native_builder import PatternBuilder
from axlog.query.pattern import Pattern
from axlog.query.positions import Places
from axlog.query.steps import Step
from axlog.query.tokenizer import XML_NAMESPACE

_STEP = (
    "NAME",
    "EXPANDED_NAME",
    "STAR_NAME",
    "EXPANDED_STAR",
    "PREFIX_STAR",
    "STAR",
    "AT",
    "AXIS",
    "STRING",
    "VARIABLE",
    "TEXT_TEST",
)
GRAMMAR = Grammar(
    files("axlog.query") / "native.lark",
    files("axlog.query") / "native_tables.json",
    (
        Wording("the word `match`", ("_MATCH",)),
        Wording('a step (a name, `*`, `@name`, `"text"`, `$x`, an axis)', _STEP),
        Wording("a node name `#t`", ("NODE_NAME",)),
        Wording("a comparison", ("OPERATOR",)),
        Wording("`/`", ("SLASH", "DOUBLE_SLASH")),
        Wording("`[`", ("_LEFT",)),
        Wording("`]`", ("_RIGHT",)),
        Wording("`not(...)`", ("_NOT",)),
        Wording("`(`", ("_OPEN",)),
        Wording("`)`", ("_CLOSE",)),
        Wording("`and`", ("_AND",)),
        Wording("`or`", ("_OR",)),
        Wording("a variable `$x`", ("VARIABLE",)),
        Wording("the name of a node", ("IDENTIFIER",)),
        Wording("one of `.id`, `.val`, `.cont`, `.time`, `.label`", ("KIND",)),
        Wording("a number", ("NUMBER",)),
        Wording("a duration", ("DURATION",)),
        Wording("a string", ("STRING",)),
        Wording('`date "..."`', ("_DATE",)),
        Wording("`+`, `-`", ("SIGN",)),
        Wording("`*`, `div`, `idiv`, `mod`", ("TIMES", "STAR")),
        Wording("a function", ("FUNCTION",)),
        Wording("`if (...) then ... else ...`", ("IF",)),
        Wording("`then`", ("_THEN",)),
        Wording("`else`", ("_ELSE",)),
        Wording("`distinct`", ("DISTINCT",)),
        Wording("`by`", ("_BY",)),
        Wording("`,`", ("_COMMA",)),
        Wording("`as`", ("_AS",)),
        Wording("a type such as `xs:decimal` or `xs:date`", ("TYPE",)),
        Wording("`where`", ("_WHERE",)),
        Wording("`return`", ("_RETURN",)),
        Wording("`having`", ("_HAVING",)),
        Wording("`order by`", ("_ORDER",)),
        Wording("`ascending`, `descending`", ("DIRECTION",)),
        Wording("`limit`", ("_LIMIT",)),
        Wording("the end of the query", ("$END",)),
    ),
)


def parse(text: str, namespaces: Mapping[str, str]) -> tuple[Pattern, tuple[Step, ...], Places]:
    """The pattern of a text, its steps, and the offsets of the names in it."""
    builder = PatternBuilder(text, {"xml": XML_NAMESPACE, **namespaces})
    try:
        pattern, steps = builder.transform(GRAMMAR.parse(text))
    except VisitError as wrapped:
        raise wrapped.orig_exc from None
    return pattern, steps, builder.places()
