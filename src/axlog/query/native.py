"""The native pattern text: `match ... where ... return ...` to a Pattern.

    match /management[webstore/orders/order[client/"INRIA"][details/computer]/oid/$x#t1]
                     [shipping/orders/order/oid/$x#t2]
    where t2 - t1 >= 50000 return $x

Law, with the printer at the end of `pattern.py`: `parse_pattern(str(p)) == p` for every valid
pattern. Rules of the text:

- A path in a predicate starts at the predicate's node (`b`, `//c`, `./b`, `.//c`). A path of the
  query starts at the document node (`/a`, `//a`). Several paths are separated by commas.
- `path = 5` compares the string value of the path's last node, `. = 5` that of the node itself.
  `$x = 5` in a predicate is refused because it is ambiguous: write `where $x = 5` or `$x[. = 5]`.
- `//` before an explicit axis or `@` is `descendant-or-self::node()`, as in XPath.
- A string is written in double or single quotes; that quote inside it is written twice. There are
  no backslash escapes.
- Numbers in `where` are exact seconds; `7us 200ms 5s 5m 2h 3d` are durations; `date "2024-05-01"`.
- A word is a keyword only where a keyword is possible, so elements may have any name:
  `/match[or or and]`. Names of nodes and variables consist of letters, digits and `_`.
- The prefix `xml` is declared. The default namespace (key "") applies to elements only.

- Conditions on values in `where`, computed outputs, aggregates, `having`, `order by` and `limit`
  are steps after the pattern (`native_steps.py`).

Not handled: positions, comments, `..`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import UnsupportedError
from axlog.query.normalize import check
from axlog.query.pattern import Pattern
from axlog.query.steps import Step


def parse_pattern(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Pattern:
    """The pattern of a native text without steps, checked.

    >>> parse_pattern("match //a[b]#t return t.id")
    Traceback (most recent call last):
    ...
    axlog.errors.QuerySyntaxError: AX201: unexpected `#` (line 1, column 13)
        match //a[b]#t return t.id
                    ^
    expected: a comparison, `/`, `[`, `and`, `or`, `+`, `-`, `*`, `div`, \
`idiv`, `mod`, `,`, `where`, `return`, `order by`, `limit` or \
the end of the query
    >>> print(parse_pattern("match //a#t[b = 5] return t.id"))
    match //a#t[b = 5] return t.id
    """
    pattern, steps = parse_native(text, namespaces, limits)
    if steps:
        raise UnsupportedError(
            "AX211",
            "computed values, aggregates and order are not supported here",
            expected="a pattern: paths, constraints and plain outputs",
        )
    return pattern


def parse_native(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Pattern, tuple[Step, ...]]:
    """The pattern of a native text and the steps after it, checked.

    >>> pattern, steps = parse_native("match //a/$x return $x, count() as n")
    >>> [type(step).__name__ for step in steps]
    ['Compute', 'Group', 'Compute']
    """
    return _parse(text, tuple(sorted((namespaces or {}).items())), limits)


@lru_cache(maxsize=512)
def _parse(
    text: str, namespaces: tuple[tuple[str, str], ...], limits: Limits
) -> tuple[Pattern, tuple[Step, ...]]:
    # Imported here: lark is slow to import, and a program may use only XPath and XQuery.
    from axlog.query.native_parser import parse

    pattern, steps, places = parse(text, dict(namespaces))
    check(pattern, places, limits)
    return pattern, steps
