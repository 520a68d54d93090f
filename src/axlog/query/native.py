"""The native pattern text: `match ... where ... return ...` to a Pattern (DESIGN section 4).

    match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]
                     [shipping/orders/order/oid/$x#t2]
    where t2 - t1 >= 50000 return $x

The law it keeps with the printer at the end of `pattern.py`: `parse_pattern(str(p)) == p` for every
valid pattern. What the text says beyond the design page's list:

- A path in a predicate starts at the node it stands on (`b`, `//c`, `./b`, `.//c`); a path of the
  query starts at the document node (`/a`, `//a`). Several paths are separated by commas.
- `path = 5` compares the string value of the path's last node, `. = 5` that of the node itself.
  `$x = 5` in a predicate is refused, as it could mean two things: `where $x = 5`, `$x[. = 5]`.
- `//` before an explicit axis or `@` is `descendant-or-self::node()`, as in XPath.
- A string stands in double or single quotes; that quote inside it is written twice. No backslashes.
- Numbers in `where` are exact seconds; `7us 200ms 5s 5m 2h 3d` are durations; `date "2024-05-01"`.
- A word is a keyword only where one can stand, so elements may have any name: `/match[or or and]`.
  Names of nodes and variables are letters, digits and `_`.
- The prefix `xml` is declared; the default namespace (key "") is for elements only.

Not handled: arithmetic on values, functions, positions, comments, `..`, `pre:*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from lark.exceptions import VisitError

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.query.grammar import Grammar, Wording
from axlog.query.native_builder import TreeBuilder
from axlog.query.normalize import check
from axlog.query.pattern import Pattern

_NAMESPACES = {"xml": "http://www.w3.org/XML/1998/namespace"}

_STEP = ("NAME", "EXPANDED_NAME", "STAR", "AT", "AXIS", "STRING", "VARIABLE", "TEXT_TEST")
GRAMMAR = Grammar(
    files("axlog.query") / "native.lark",
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
        Wording("`*`", ("STAR",)),
        Wording("a number", ("NUMBER",)),
        Wording("a duration", ("DURATION",)),
        Wording("a string", ("STRING",)),
        Wording('`date "..."`', ("_DATE",)),
        Wording("`+`, `-`", ("SIGN",)),
        Wording("`,`", ("_COMMA",)),
        Wording("`as`", ("_AS",)),
        Wording("a type such as `xs:decimal` or `xs:date`", ("TYPE",)),
        Wording("`where`", ("_WHERE",)),
        Wording("`return`", ("_RETURN",)),
        Wording("the end of the query", ("$END",)),
    ),
)


def parse_pattern(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Pattern:
    """The pattern that a native text writes, checked.

    >>> parse_pattern("match //a[b]#t return t.id")
    Traceback (most recent call last):
    ...
    axlog.errors.QuerySyntaxError: AX201: `#` cannot stand here (line 1, column 13)
        match //a[b]#t return t.id
                    ^
    expected: a comparison, `/`, `[`, `and`, `or`, `,`, `where`, `return` or the end of the query
    >>> print(parse_pattern("match //a#t[b = 5] return t.id"))
    match //a#t[b = 5] return t.id
    """
    return _parse(text, tuple(sorted((namespaces or {}).items())), limits)


@lru_cache(maxsize=512)
def _parse(text: str, namespaces: tuple[tuple[str, str], ...], limits: Limits) -> Pattern:
    builder = TreeBuilder(text, {**_NAMESPACES, **dict(namespaces)})
    try:
        pattern: Pattern = builder.transform(GRAMMAR.parse(text))
    except VisitError as wrapped:
        raise wrapped.orig_exc from None
    check(pattern, builder.places(), limits)
    return pattern
