"""The parser of XQuery Update: text to statements, with the tree of `syntax_tree.py`.

    insert node <phone>1</phone> as last into /site/people/person[@id = "person0"]
    for $p in //person where $p/phone return (delete nodes $p/phone, rename node $p as "user")
    let $c := doc("auction.xml") for $x in $c/site/people/person insert <name>Jim</name>
    delete //open_auction[not(bidder)]

The syntax is that of XQuery Update 1.0, and a shorter one without the word `node`: there
`insert ... into q` applies to every node of q, and `insert ...` alone inserts into the variable of
the enclosing `for`.

A statement has all expressions of a query. `expression_categories.py` refuses mixtures of updates
and values. Refused by name: recursive functions, `put`, revalidation (XUST0026), and a statement
that changes nothing. `evaluate.statements` defines the effect of a statement.
(Shorter syntax: paper 5, section 2.3 and appendix A.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from axlog.document.name_expansion import refuse_growth
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.query.depth import too_deep
from axlog.query.expression_categories import Category, classify
from axlog.query.path_patterns import prepare
from axlog.query.pattern import Test
from axlog.query.syntax_tree import (
    Expression,
    Flwor,
    For,
    Path,
    Reference,
    Statement,
    Update,
)
from axlog.query.tokenizer import NCNAME, compiled
from axlog.query.update_expressions import PLACES, UPDATES
from axlog.query.xquery_parser import XQueryParser

_OPERAND = r"(?:\s*<|\s+[$/(.@*\"']|\s+(?!and\b|or\b|union\b|eq\b|ne\b|lt\b|is\b)[^\W\d])"
# The appendix of paper 5 prints `regions/*/*item` for `regions/*/item` (E6_L, X17_L, B5_L).
_PRINTED = rf"\*/\*(?!(?:and|or|div|idiv|mod|union)\b){NCNAME}"


def parse_statements(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Statement]:
    """The statements of a text, separated by `;`.

    Expanding the constructed names by their namespaces may multiply the size of the input (the text
    and the namespaces given with it) by no more than it may for a document.

    >>> [type(s.expression).__name__ for s in parse_statements("delete //a; delete nodes //b")]
    ['Update', 'Update']
    """
    given = namespaces or {}
    try:
        found, names_size = _parse(text, tuple(sorted(given.items())))
    except RecursionError:
        raise too_deep(text, 0) from None
    refuse_growth(names_size, len(text) + sum(map(len, given.values())), limits)
    return list(found)


@lru_cache(maxsize=512)
def _parse(text: str, namespaces: tuple[tuple[str, str], ...]) -> tuple[tuple[Statement, ...], int]:
    """The statements, and the number of characters in all names that they construct."""
    parser = UpdateParser(text, dict(namespaces))
    return parsed(parser), parser.names_size


def parsed(parser: UpdateParser) -> tuple[Statement, ...]:
    """The statements of a parser's text."""
    found: list[Statement] = []
    while True:
        parser.prolog()
        expression = parser.statement()
        found.append(Statement(expression, parser.text, tuple(sorted(parser.namespaces.items()))))
        if parser.is_at_end():
            break
        if not parser.take(";"):
            raise parser.unexpected("`;`, `,` or the end of the statement")
        if parser.is_at_end():
            break
    prepare(found)
    return tuple(found)


class UpdateParser(XQueryParser):
    """The parser of statements."""

    most_brackets = 25  # a level costs twice as many Python frames as in a query for a view

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.allows_updates = True
        self._loops: list[str] = []  # the variables of the enclosing `for` clauses

    def statement(self) -> Expression:
        """One statement; checks that it updates, and that it mixes no updates and values."""
        at = self.skip()
        found = self.whole(self.expression())
        if classify(found, self.text) is Category.SIMPLE:
            raise self.unsupported(
                "a statement that changes nothing",
                at,
                expected="insert, delete, replace or rename",
                advice="a query, or watch(...), to read data",
            )
        return found

    # updates

    def is_update(self, found: re.Match[str]) -> bool:
        if super().is_update(found):
            return True
        after = self.text[found.end() : found.end() + 80]
        return compiled(_OPERAND).match(after) is not None

    def insertion(self, at: int) -> Update:
        is_standard = self.takes_node()
        source = self.single()
        place = self.take_word(*PLACES)
        if place is None:
            if is_standard or not self._loops:
                raise self.unexpected("`into`, `as first into`, `as last into`, `before`, `after`")
            target: Expression = Path(Reference(self._loops[-1], at), (), at)
            return Update("insert-last", (source, target), at, is_each=True)
        return Update(PLACES[place], (source, self.single()), at, is_each=not is_standard)

    # clauses

    def flwor(self, at: int) -> Expression:
        with self.nested():
            clauses = self.clauses()
            loops = [clause.variable for clause in clauses if isinstance(clause, For)]
            self._loops += loops
            if not self.take_word("return") and not self.match_at(UPDATES, self.skip()):
                raise self.unexpected("`for`, `let`, `where`, `return` or an update")
            found = Flwor(tuple(clauses), self.single(), at)
            if loops:
                del self._loops[-len(loops) :]
            return found

    # tests

    def node_test(self, axis: str, at: int) -> Test:
        if self.match_at(_PRINTED, max(at - 2, 0)):
            self.offset = at + 1
        return super().node_test(axis, self.offset)

    def take_string(self) -> str | None:
        """A string; typographic quotes are accepted, as the appendix of paper 5 prints them."""
        at = self.skip()
        if self.text.startswith("“", at):
            end = self.text.find("”", at)
            if end < 0:
                raise self.refusal("the string is not closed", at, advice="close it with ”")
            self.offset = end + 1
            return self.text[at + 1 : end]
        return super().take_string()
