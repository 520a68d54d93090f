"""XQuery Update statements: text to the tree of `syntax_tree.py`, with updates in it (DESIGN 4).

    insert node <phone>1</phone> as last into /site/people/person[@id = "person0"]
    for $p in //person where $p/phone return (delete nodes $p/phone, rename node $p as "user")
    let $c := doc("auction.xml") for $x in $c/site/people/person insert <name>Jim</name>
    delete //open_auction[not(bidder)]

The syntax of XQuery Update 1.0, and that of P5 (2.3 and appendix A), which leaves `node` out: then
`insert ... into q` means every node of q, and `insert ...` alone goes into the variable of the
`for` around it. Statements have what queries for views must do without, as they are evaluated once:
positions, `if`, arithmetic, functions of strings, computed constructors.

What is updating and what is not may not be mixed: refused as the recommendation says (XUST0001).
Refused by name: `copy ... modify` (it changes no document), functions and types of one's own,
`order by`, `put`, revalidation (XUST0026). What a statement does is `evaluate.statements`'s to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from axlog.document.name_expansion import refuse_growth
from axlog.document.parser import DEFAULT_LIMITS, Limits
from axlog.errors import QueryError
from axlog.query.pattern import Test
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Constant,
    Context,
    Expression,
    Flwor,
    For,
    Let,
    Path,
    Reference,
    Root,
    Sequence,
)
from axlog.query.tokenizer import NCNAME
from axlog.query.update_expressions import Class, OperatorParser, classify

_NODE = re.compile(
    r"\s+nodes?(?![\w.\-:(])(?!\s+(?:into|as\s+(?:first|last)\s+into|before|after)\b)"
)
_OPERAND = re.compile(
    r"(?:\s*<|\s+[$/(.@*\"']|\s+(?!and\b|or\b|union\b|eq\b|ne\b|lt\b|is\b)[^\W\d])"
)
_UPDATES = re.compile(
    r"(insert|delete)(?![\w.\-:])|(replace)\s+(?:value\s+of\s+)?node\b|(rename)\s+node\b"
)
# P5's appendix prints `regions/*/*item` for `regions/*/item` (E6_L, X17_L, B5_L).
_PRINTED = re.compile(rf"\*/\*(?!(?:and|or|div|idiv|mod|union)\b){NCNAME}")
_TRANSFORM = re.compile(r"copy\s+\$")
_COMPUTED = re.compile(
    rf"(element|attribute|processing-instruction)\s+(?:({NCNAME}(?::{NCNAME})?)\s*)?\{{"
    rf"|(element|attribute|processing-instruction|text|comment|document)\s*\{{"
)
_PLACES = {
    "as first into": "insert-first",
    "as last into": "insert-last",
    "into": "insert-into",
    "before": "insert-before",
    "after": "insert-after",
}


@dataclass(frozen=True, slots=True)
class Update(Call):
    """An updating expression; `name` is the operation (as in `lists.EditKind`), the arguments are
    what it brings, if anything, and its targets. `is_each`: one for every target there is."""

    is_each: bool = False


@dataclass(frozen=True, slots=True)
class ForAt(For):
    """`for $x at $position in ...`."""

    position: str = ""


@dataclass(frozen=True, slots=True)
class External(Let):
    """`declare variable $x external`: what the caller gives, and if it does not, the document."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as written, the prefixes that its texts may use, and what it says."""

    expression: Expression
    text: str
    namespaces: tuple[tuple[str, str], ...]


def parse_statements(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Statement]:
    """The statements of a text, separated by `;`.

    The names that they construct may grow by their namespaces as those of a document may; the
    input is the text and the namespaces given with it.

    >>> [type(s.expression).__name__ for s in parse_statements("delete //a; delete nodes //b")]
    ['Update', 'Update']
    """
    given = namespaces or {}
    found, names_size = _parse(text, tuple(sorted(given.items())))
    refuse_growth(names_size, len(text) + sum(map(len, given.values())), limits)
    return list(found)


@lru_cache(maxsize=512)
def _parse(text: str, namespaces: tuple[tuple[str, str], ...]) -> tuple[tuple[Statement, ...], int]:
    """The statements, and the characters of all names that they construct."""
    parser = StatementParser(text, dict(namespaces))
    found: list[Statement] = []
    while True:
        parser.prolog()
        expression = parser.statement()
        found.append(Statement(expression, text, tuple(sorted(parser.namespaces.items()))))
        if parser.is_at_end():
            return tuple(found), parser.names_size
        if not parser.take(";"):
            raise parser.unexpected("`;`, `,` or the end of the statement")
        if parser.is_at_end():
            return tuple(found), parser.names_size


class StatementParser(OperatorParser):
    """Parses statements."""

    most_brackets = 25  # operators take twice the calls that paths do

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self._loops: list[str] = []  # the variables of the `for`s around
        self._revalidation: int | None = None

    def statement(self) -> Expression:
        """One statement, checked: it updates, and only where updates may stand."""
        at = self.skip()
        found = self.expression()
        if self.declared:
            found = Flwor(tuple(self.declared), found, found.at)
        if classify(found, self.text) is Class.SIMPLE:
            raise self.unsupported(
                "a statement that changes nothing",
                at,
                expected="insert, delete, replace or rename",
                advice="watch(...) or query for what only asks",
            )
        return found

    # the prolog

    def _declaration(self, at: int) -> None:
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
                    "there is no revalidation",
                    place=place_at(self.text, at),
                    advice="leave the declaration out",
                )
        elif re.compile(r"\s*variable\s+\$[^;:=]*\bexternal\b").match(self.text, self.offset):
            self.take_word("variable")
            start = self.skip()
            name = self.need_variable()
            self.need_word("external")
            self.declared.append(External(name, Path(Root(start), (), start), start))
        elif re.compile(r"\s*variable\s+\$[^\s:]+\s+as\b").match(self.text, self.offset):
            raise self.unsupported("a type of a variable", at, advice="leave `as ...` out")
        elif self.take_word("updating"):
            raise self.unsupported("a function of one's own", at, advice="the updates themselves")
        else:
            super()._declaration(at)

    # what stands where an expression may stand

    def single(self) -> Expression:
        at = self.skip()
        updates = _UPDATES.match(self.text, at)
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
        if _TRANSFORM.match(self.text, at):
            raise self.unsupported(
                "`copy ... modify ... return`, which changes no document,",
                at,
                advice="the updates of its `modify`, on the document",
            )
        if re.compile(r"if\s*\(").match(self.text, at):
            return self._choice(at)
        return super().single()

    def _is_keyword(self, found: re.Match[str]) -> bool:
        """Whether `insert` or `delete` is no name of an element here."""
        if found.group(1) is None:
            return True
        after = self.text[found.end() : found.end() + 80]
        return bool(_NODE.match(after) or _OPERAND.match(after))

    def _takes_node(self) -> bool:
        found = _NODE.match(self.text, self.offset)
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

    def _choice(self, at: int) -> Call:
        self.take_word("if")
        self.need("(")
        with self.nested():
            condition = self.expression()
            self.need(")")
            self.need_word("then")
            first = self.single()
            self.need_word("else")
            return Call("if", (condition, first, self.single()), at)

    # clauses

    def flwor(self, at: int) -> Expression:
        with self.nested():
            clauses = self.clauses()
            loops = [clause.variable for clause in clauses if isinstance(clause, For)]
            self._loops += loops
            if not self.take_word("return") and not _UPDATES.match(self.text, self.skip()):
                raise self.unexpected("`for`, `let`, `where`, `return` or an update")
            found = Flwor(tuple(clauses), self.single(), at)
            if loops:
                del self._loops[-len(loops) :]
            return found

    def _bindings(self, found: list[Clause], is_for: bool) -> None:
        start = self.offset
        if is_for:
            variable = self.need_variable()
            at = self.skip()
            if self.take_word("at"):
                position = self.need_variable()
                self.need_word("in")
                found.append(ForAt(variable, self.single(), at, position))
                if self.take(","):
                    self._bindings(found, is_for)
                return
        self.offset = start
        super()._bindings(found, is_for)

    # constructors and tests

    def primary(self, at: int) -> Context | Reference | Expression | None:
        for opening, closing, name in (("<!--", "-->", "comment"), ("<?", "?>", "instruction")):
            if self.text.startswith(opening, at):
                return self._markup_alone(at, opening, closing, name)
        computed = _COMPUTED.match(self.text, at)
        if computed is not None:
            return self._computed(computed, at)
        return super().primary(at)

    def _markup_alone(self, at: int, opening: str, closing: str, name: str) -> Call:
        end = self.text.find(closing, at + len(opening))
        if end < 0:
            raise self.refusal(f"`{opening}` is not closed", at, advice=closing)
        self.offset = end + len(closing)
        inside = self.text[at + len(opening) : end]
        if name == "comment":
            return Call("new-comment", (Constant(inside, at),), at)
        target, _, data = inside.partition(" ")
        return Call("new-processing-instruction", (Constant(target, at), Constant(data, at)), at)

    def _computed(self, found: re.Match[str], at: int) -> Call:
        kind, written = found.group(1) or found.group(3), found.group(2)
        arguments: list[Expression] = []
        self.offset = found.end() - 1
        if written is not None:
            arguments.append(Constant(written, at))
        elif kind in ("element", "attribute", "processing-instruction"):
            arguments.append(self._block())
        arguments.append(self._block())
        return Call(f"new-{kind}", tuple(arguments), at)

    def _block(self) -> Expression:
        self.need("{")
        at = self.skip()
        if self.take("}"):
            return Sequence((), at)
        with self.nested():
            inside = self.expression()
        self.need("}")
        return inside

    def _test(self, axis: str, at: int) -> Test:
        if _PRINTED.match(self.text, max(at - 2, 0)):
            self.offset = at + 1
        return super()._test(axis, self.offset)

    def take_string(self) -> str | None:
        """A string; P5's appendix prints some in typographic quotes."""
        at = self.skip()
        if self.text.startswith("“", at):
            end = self.text.find("”", at)
            if end < 0:
                raise self.refusal("the string is not closed", at, advice="close it with ”")
            self.offset = end + 1
            return self.text[at + 1 : end]
        return super().take_string()
