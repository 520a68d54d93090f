"""The parser of XQuery Update: text to statements, with the tree of `syntax_tree.py`.

    insert node <phone>1</phone> as last into /site/people/person[@id = "person0"]
    for $p in //person where $p/phone return (delete nodes $p/phone, rename node $p as "user")
    let $c := doc("auction.xml") for $x in $c/site/people/person insert <name>Jim</name>
    delete //open_auction[not(bidder)]

The syntax is that of XQuery Update 1.0, and a shorter one without the word `node`: there
`insert ... into q` applies to every node of q, and `insert ...` alone inserts into the variable of
the enclosing `for`.

A view is maintained, so its query is limited to what a pattern expresses. A statement is evaluated
once, so it may use more: positions, `if`, computed constructors, arithmetic, `||`, `to`, `is`,
`intersect`, `except`, and the functions of `FUNCTIONS`. Precedence follows the recommendation.

`expression_categories.py` refuses mixtures of updates and values. Refused by name here:
`copy ... modify` (it changes no document), user-defined functions and types, `order by`, `put`,
revalidation (XUST0026). `evaluate.statements` defines the effect of a statement.
(Shorter syntax: paper 5, section 2.3 and appendix A.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from axlog.document.name_expansion import refuse_growth
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError
from axlog.query.expression_categories import Category, classify
from axlog.query.path_patterns import prepare
from axlog.query.pattern import Test
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Expression,
    Flwor,
    For,
    PartialName,
    Path,
    Reference,
    Statement,
    Update,
)
from axlog.query.tokenizer import NCNAME, compiled
from axlog.query.xquery_parser import XQueryParser

_NODE = r"\s+nodes?(?![\w.\-:(])(?!\s+(?:into|as\s+(?:first|last)\s+into|before|after)\b)"
_OPERAND = r"(?:\s*<|\s+[$/(.@*\"']|\s+(?!and\b|or\b|union\b|eq\b|ne\b|lt\b|is\b)[^\W\d])"
_UPDATES = r"(insert|delete)(?![\w.\-:])|(replace)\s+(?:value\s+of\s+)?node\b|(rename)\s+node\b"
# The appendix of paper 5 prints `regions/*/*item` for `regions/*/item` (E6_L, X17_L, B5_L).
_PRINTED = rf"\*/\*(?!(?:and|or|div|idiv|mod|union)\b){NCNAME}"
_TRANSFORM = r"copy\s+\$"
_PLACES = {
    "as first into": "insert-first",
    "as last into": "insert-last",
    "into": "insert-into",
    "before": "insert-before",
    "after": "insert-after",
}


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
    found, names_size = _parse(text, tuple(sorted(given.items())))
    refuse_growth(names_size, len(text) + sum(map(len, given.values())), limits)
    return list(found)


@lru_cache(maxsize=512)
def _parse(text: str, namespaces: tuple[tuple[str, str], ...]) -> tuple[tuple[Statement, ...], int]:
    """The statements, and the number of characters in all names that they construct."""
    parser = UpdateParser(text, dict(namespaces))
    found: list[Statement] = []
    while True:
        parser.prolog()
        expression = parser.statement()
        found.append(Statement(expression, text, tuple(sorted(parser.namespaces.items()))))
        if parser.is_at_end():
            break
        if not parser.take(";"):
            raise parser.unexpected("`;`, `,` or the end of the statement")
        if parser.is_at_end():
            break
    prepare(found)
    return tuple(found), parser.names_size


class UpdateParser(XQueryParser):
    """The parser of statements."""

    most_brackets = 25  # a level costs twice as many Python frames as in a query for a view

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self._loops: list[str] = []  # the variables of the enclosing `for` clauses
        self._revalidation: int | None = None

    def statement(self) -> Expression:
        """One statement; checks that it updates, and that it mixes no updates and values."""
        at = self.skip()
        for function in self.functions.values():
            if classify(function.body, self.text) is Category.UPDATING:
                raise QueryError(
                    "XUST0001",
                    f"the function {function.name}() updates",
                    place=place_at(self.text, function.at),
                    advice="the updates themselves, in the statement",
                )
        found = self.whole(self.expression())
        if classify(found, self.text) is Category.SIMPLE:
            raise self.unsupported(
                "a statement that changes nothing",
                at,
                expected="insert, delete, replace or rename",
                advice="a query, or watch(...), to read data",
            )
        return found

    # the prolog

    def declaration(self, at: int) -> None:
        if self.take_word("revalidation"):
            if self._revalidation is not None:
                raise QueryError(
                    "XUST0003", "revalidation is declared twice", place=place_at(self.text, at)
                )
            self._revalidation = at
            self.take_word("strict", "lax", "skip")
            rest = self.text[self.skip() :].lstrip(" ;\n\t")
            if not re.match(r"declare\s+revalidation\b", rest):
                raise QueryError(
                    "XUST0026",
                    "revalidation is not supported",
                    place=place_at(self.text, at),
                    advice="leave the declaration out",
                )
        elif self.take_word("updating"):
            raise self.unsupported("a user-defined function", at, advice="the updates themselves")
        else:
            super().declaration(at)

    # updates

    def single(self) -> Expression:
        at = self.skip()
        updates = self.match_at(_UPDATES, at)
        if updates is not None and self._is_keyword(updates):
            self.offset = updates.end(updates.lastindex or 0)
            match updates.group(updates.lastindex or 0):
                case "insert":
                    return self._insert(at)
                case "delete":
                    return self._delete(at)
                case "replace":
                    return self._replace(at)
                case _:
                    return self._rename(at)
        if self.match_at(_TRANSFORM, at):
            raise self.unsupported(
                "`copy ... modify ... return`, which changes no document,",
                at,
                advice="the updates of its `modify`, on the document",
            )
        return super().single()

    def _is_keyword(self, found: re.Match[str]) -> bool:
        """Whether `insert` or `delete` is a keyword here, and not the name of an element."""
        if found.group(1) is None:
            return True
        after = self.text[found.end() : found.end() + 80]
        return bool(compiled(_NODE).match(after) or compiled(_OPERAND).match(after))

    def _takes_node(self) -> bool:
        found = self.match_at(_NODE, self.offset)
        if found is None:
            return False
        self.offset = found.end()
        return True

    def _insert(self, at: int) -> Update:
        is_standard = self._takes_node()
        source = self.single()
        place = self.take_word(*_PLACES)
        if place is None:
            if is_standard or not self._loops:
                raise self.unexpected("`into`, `as first into`, `as last into`, `before`, `after`")
            target: Expression = Path(Reference(self._loops[-1], at), (), at)
            return Update("insert-last", (source, target), at, is_each=True)
        return Update(_PLACES[place], (source, self.single()), at, is_each=not is_standard)

    def _delete(self, at: int) -> Update:
        self._takes_node()
        return Update("delete", (self.single(),), at, is_each=True)

    def _replace(self, at: int) -> Update:
        is_value = self.take_word("value of") is not None
        self.need_word("node")
        target = self.single()
        self.need_word("with")
        name = "replace-value" if is_value else "replace-node"
        return Update(name, (self.single(), target), at)

    def _rename(self, at: int) -> Update:
        self.need_word("node")
        target = self.single()
        self.need_word("as")
        return Update("rename", (self.single(), target), at)

    # clauses

    def flwor(self, at: int) -> Expression:
        with self.nested():
            clauses = self.clauses()
            loops = [clause.variable for clause in clauses if isinstance(clause, For)]
            self._loops += loops
            if not self.take_word("return") and not self.match_at(_UPDATES, self.skip()):
                raise self.unexpected("`for`, `let`, `where`, `return` or an update")
            found = Flwor(tuple(clauses), self.single(), at)
            if loops:
                del self._loops[-len(loops) :]
            return found

    # tests

    def node_test(self, axis: str, at: int) -> Test | PartialName:
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
