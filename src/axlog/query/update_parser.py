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
`intersect`, `except`, `!`, `=>`, casts, and the functions of `function_names`.
Precedence follows the recommendation.

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
from axlog.query.function_names import CLOCK, CONTEXT_FUNCTIONS, FUNCTIONS, TYPES
from axlog.query.path_patterns import prepare
from axlog.query.pattern import Test
from axlog.query.positions import place_at
from axlog.query.regex_matcher import check_regex
from axlog.query.syntax_tree import (
    Binary,
    Call,
    Clause,
    Constant,
    Context,
    Expression,
    External,
    Flwor,
    For,
    ForAt,
    Group,
    Path,
    Reference,
    Root,
    Sequence,
    SequenceType,
    Statement,
    Typed,
    Update,
)
from axlog.query.tokenizer import NCNAME, compiled
from axlog.query.xquery_parser import XQueryParser

_VALUE_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "is")
_COMPARISON = r"!=|<=|>=|<<|>>|=|<|>"
_TYPE_OPERATORS = ("cast as", "castable as", "treat as", "instance of")
_KINDS = (
    "attribute comment document-node element empty-sequence item node processing-instruction text"
)
_SEQUENCE_TYPE = rf"(?:xs:({NCNAME})|({_KINDS.replace(' ', '|')})\s*\(\s*\))"
_NODE = r"\s+nodes?(?![\w.\-:(])(?!\s+(?:into|as\s+(?:first|last)\s+into|before|after)\b)"
_OPERAND = r"(?:\s*<|\s+[$/(.@*\"']|\s+(?!and\b|or\b|union\b|eq\b|ne\b|lt\b|is\b)[^\W\d])"
_UPDATES = r"(insert|delete)(?![\w.\-:])|(replace)\s+(?:value\s+of\s+)?node\b|(rename)\s+node\b"
# The appendix of paper 5 prints `regions/*/*item` for `regions/*/item` (E6_L, X17_L, B5_L).
_PRINTED = rf"\*/\*(?!(?:and|or|div|idiv|mod|union)\b){NCNAME}"
_TRANSFORM = r"copy\s+\$"
_COMPUTED = (
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
        found = self.expression()
        if self.declared:
            found = Flwor(tuple(self.declared), found, found.at)
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
        elif self.match_at(r"\s*variable\s+\$[^;:=]*\bexternal\b", self.offset):
            self.take_word("variable")
            start = self.skip()
            name = self.need_variable()
            self.need_word("external")
            self.declared.append(External(name, Path(Root(start), (), start), start))
        elif self.match_at(r"\s*variable\s+\$[^\s:]+\s+as\b", self.offset):
            raise self.unsupported("a type of a variable", at, advice="leave `as ...` out")
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
        if self.match_at(r"if\s*\(", at):
            return self._choice(at)
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
            if not self.take_word("return") and not self.match_at(_UPDATES, self.skip()):
                raise self.unexpected("`for`, `let`, `where`, `return` or an update")
            found = Flwor(tuple(clauses), self.single(), at)
            if loops:
                del self._loops[-len(loops) :]
            return found

    def bindings(self, found: list[Clause], is_for: bool) -> None:
        start = self.offset
        if is_for:
            variable = self.need_variable()
            at = self.skip()
            if self.take_word("at"):
                position = self.need_variable()
                self.need_word("in")
                found.append(ForAt(variable, self.single(), at, position))
                if self.take(","):
                    self.bindings(found, is_for)
                return
        self.offset = start
        super().bindings(found, is_for)

    # operators, the loosest first

    def comparison(self) -> Expression:
        found = self._joined()
        at = self.skip()
        symbol = self.take_match(_COMPARISON)
        operator = symbol.group() if symbol else self.take_word(*_VALUE_COMPARISONS)
        if operator is None:
            return found
        return Binary(operator, found, self._joined(), at)

    def _joined(self) -> Expression:
        found = self._range()
        while True:
            at = self.skip()
            if not self.take("||"):
                return found
            found = Binary("||", found, self._range(), at)

    def _range(self) -> Expression:
        found = self._sum()
        at = self.skip()
        if self.take_word("to"):
            return Binary("to", found, self._sum(), at)
        return found

    def _sum(self) -> Expression:
        found = self._product()
        while True:
            at = self.skip()
            symbol = self.take("+", "-")
            if symbol is None:
                return found
            found = Binary(symbol, found, self._product(), at)

    def _product(self) -> Expression:
        found = self.union()
        while True:
            at = self.skip()
            symbol = self.take("*") or self.take_word("div", "idiv", "mod")
            if symbol is None:
                return found
            found = Binary(symbol, found, self.union(), at)

    def union(self) -> Expression:
        found = self.operand()
        while True:
            at = self.skip()
            is_union = not self.text.startswith("||", at) and (
                self.take("|") or self.take_word("union")
            )
            if not is_union:
                return found
            found = Binary("|", found, self.operand(), at)

    def operand(self) -> Expression:
        found = self._typed()
        while True:
            at = self.skip()
            word = self.take_word("intersect", "except")
            if word is None:
                return found
            found = Binary(word, found, self._typed(), at)

    def _typed(self) -> Expression:
        """`cast as`, `castable as`, `treat as` and `instance of`, the closest first."""
        found = self._arrows()
        for word in _TYPE_OPERATORS:
            at = self.skip()
            if self.take_word(word):
                found = Typed(word, found, self._type(word.startswith("cast")), at)
        return found

    def _type(self, is_atomic: bool) -> SequenceType:
        """A sequence type."""
        at = self.skip()
        found = self.take_match(_SEQUENCE_TYPE)
        if found is None or (found[1] is None and is_atomic):
            raise self.unexpected("a type such as xs:integer")
        if found[1] is not None and found[1] not in {*TYPES, "anyAtomicType", "numeric"}:
            known = ", ".join(f"xs:{name}" for name in sorted(TYPES))
            raise self.unsupported(f"the type xs:{found[1]}", at, expected=f"one of {known}")
        name = f"xs:{found[1]}" if found[1] else f"{found[2]}()"
        if name == "empty-sequence()":
            return SequenceType(name)
        return SequenceType(name, None, self.take(*"?" if is_atomic else "?*+") or "")

    def _arrows(self) -> Expression:
        """`value => function(more)` is `function(value, more)`."""
        found = self.signed()
        while self.take("=>"):
            at = self.skip()
            called = self.call(at)
            found = Call(called.name, (found, *called.arguments), at)
            check_regex(found.name, found.arguments, self.text)
        return found

    def signed(self) -> Expression:
        at = self.skip()
        sign = self.take("-", "+")
        if sign is None:
            return self._mapped()
        return Call(f"unary{sign}", (self.signed(),), at)

    def _mapped(self) -> Expression:
        """`items ! expression`, from left to right."""
        found = self.path()
        while self.sees("!") and not self.sees("!="):
            at = self.skip()
            self.take("!")
            found = Path(found, (Group(self.path(), at, is_map=True),), at)
        return found

    def call(self, at: int) -> Call:
        """A function call; statements know the functions and types of `function_names`."""
        prefix, name = self.take_name() or ("", "")
        written = f"{prefix}:{name}" if prefix else name
        is_known = (prefix in ("", "fn") and name in FUNCTIONS | CONTEXT_FUNCTIONS) or (
            prefix == "xs" and name in TYPES
        )
        if not is_known:
            if name in CLOCK and prefix in ("", "fn"):
                advice = "a value given to the statement: `declare variable $now external`"
                raise self.unsupported(f"{name}(), no function of the document,", at, None, advice)
            known = "one of " + ", ".join(f"{one}()" for one in sorted(FUNCTIONS))
            raise self.unsupported(f"the function {written}()", at, expected=known)
        arguments = self.arguments()
        check_regex(name, arguments, self.text)
        return Call(written if prefix == "xs" else name, arguments, at)

    # constructors and tests

    def primary(self, at: int) -> Context | Reference | Expression | None:
        for opening, closing, name in (("<!--", "-->", "comment"), ("<?", "?>", "instruction")):
            if self.text.startswith(opening, at):
                return self._markup_alone(at, opening, closing, name)
        computed = self.match_at(_COMPUTED, at)
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
