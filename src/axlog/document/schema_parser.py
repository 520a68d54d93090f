"""The parser of schema texts; `str(schema)` writes them.

    root: a
    a -> |b| = 1 & |c| >= 0 & |w| >= 1
    b ->
    c ->
    call w root: c

A rule is a label, `->`, and a formula of counts, `&` (`and`), `or`, `not`, brackets (round or
curly); without a formula the label is a leaf. A count compares with a number or with another count:
`= != < <= > >=`. A symbol is a label (`Q{address}name` in a namespace), a service that a `call`
declares, `@name`, `text()`, or `dom`. A label called `dom` is written `Q{}dom`. `root: a, b` allows
either. A name before `root:` is the document's. `#` starts a comment.

Law: `parse_schema(str(schema)) == schema`. Every name must have a rule or be a declared service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from axlog.document.cardinality import (
    DOM,
    TEXT,
    All,
    Count,
    Formula,
    Negation,
    Some,
    label_text,
    symbols_of,
)
from axlog.document.schema import LEAF, Schema, UnorderedDTD
from axlog.errors import Place, SchemaError

DEEPEST = 100
"""Levels of brackets and negations in a formula."""
_NAME = r"(?:Q\{[^{}]*\})?[^\W\d][\w.\-]*"
_TOKEN = re.compile(
    rf"""\s+ | \#[^\n]*
    | (?P<count>\|\s*(?:text\(\)|@?{_NAME})\s*\|)
    | (?P<mark>->|<=|>=|!=|[=<>&|!(){{}}:,])
    | (?P<number>\d+)
    | (?P<name>{_NAME})""",
    re.VERBOSE,
)
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_WORDS = {"and": "&", "or": "|", "not": "!"}
_CLOSING = {"(": ")", "{": "}"}


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


def parse_schema(text: str, base: Schema | None = None) -> Schema:
    """Parse a schema; with a base, the rules of the text are added to it.

    A rule for a label of the base must hold in addition to the base's, and `root:` may be left out.

    >>> print(parse_schema("root: a   a -> |b| = 1 & |c| >= 0   b ->   c ->"))
    root: a
    a -> |b| = 1 & |c| >= 0
    b ->
    c ->
    """
    return _Parser(text).schema(base)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.at = 0
        self.depth = 0

    # Tokens

    def _tokens(self) -> Iterator[_Token]:
        offset = 0
        while offset < len(self.text):
            found = _TOKEN.match(self.text, offset)
            if found is None:
                raise self._error(offset, f"{self.text[offset]!r} is not allowed here")
            if found.lastgroup is not None:
                yield _Token(found.lastgroup, found[found.lastgroup], offset)
            offset = found.end()
        yield _Token("end", "", len(self.text))

    def _error(self, offset: int, message: str, expected: str | None = None) -> SchemaError:
        line = self.text.count("\n", 0, offset) + 1
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        place = Place(line, column, self.text)
        return SchemaError("AX701", message, place=place, expected=expected)

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def _ahead(self, steps: int) -> _Token:
        return self.tokens[min(self.at + steps, len(self.tokens) - 1)]

    def take(self, kind: str, text: str | None = None, expected: str | None = None) -> _Token:
        token = self.next
        if token.kind != kind or (text is not None and token.text != text):
            what = (
                f"`{token.text}` is not allowed here" if token.text else "the text ends too early"
            )
            raise self._error(token.offset, what, expected or text or f"a {kind}")
        self.at += 1
        return token

    def skip(self, *texts: str) -> bool:
        """Consume the next token if it is one of these."""
        token = self.next
        is_one = token.kind in ("mark", "name") and token.text in texts
        self.at += is_one
        return is_one

    # Parts

    def schema(self, base: Schema | None) -> Schema:
        name = None
        if self._ahead(1).text == "root" and self._ahead(2).text == ":":
            name = self.take("name").text
        document = self.type(needs_root=base is None)
        services: list[tuple[str, UnorderedDTD]] = []
        while self.next.kind != "end":
            self.take("name", "call", "a rule or `call`")
            token = self.take("name", expected="the name of a service")
            service = token.text
            if any(service == other for other, _ in services):
                raise self._error(token.offset, f"the service {service} is declared twice")
            services.append((service, self.type(needs_root=False)))
        return _resolved(_added(Schema(document, tuple(services), name), base))

    def type(self, needs_root: bool) -> UnorderedDTD:
        roots: list[str] = []
        if needs_root or (self.next.text == "root" and self._ahead(1).text == ":"):
            self.take("name", "root", "`root:`")
            self.take("mark", ":")
            roots.append(self.label())
            while self.skip(",", "|"):
                roots.append(self.label())
        rules: dict[str, Formula] = {}
        while self.next.kind == "name" and self._ahead(1).text == "->":
            token = self.next
            label = self.label()
            if label in rules:
                raise self._error(token.offset, f"{label_text(label)} has two rules")
            self.take("mark", "->")
            rules[label] = self.formula() if self._starts_formula() else LEAF
        return UnorderedDTD(tuple(roots), tuple(rules.items()))

    def label(self) -> str:
        return _label(self.take("name", expected="a label").text)

    def _starts_formula(self) -> bool:
        token = self.next
        if token.kind == "name":
            return token.text == "not" and self._ahead(1).text != "->"
        return token.kind == "count" or token.text in ("(", "{", "!")

    def formula(self) -> Formula:
        parts = [self.conjunction()]
        while self._continues("|"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def conjunction(self) -> Formula:
        parts = [self.item()]
        while self._continues("&"):
            parts.append(self.item())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _continues(self, mark: str) -> bool:
        token = self.next
        if token.kind == "name" and self._ahead(1).text == "->":
            return False  # a rule for a label that is called `and` or `or`
        if _WORDS.get(token.text, token.text) == mark and token.kind in ("mark", "name"):
            self.at += 1
            return True
        return False

    def item(self) -> Formula:
        if self.depth >= DEEPEST:
            raise self._error(self.next.offset, f"it is nested over {DEEPEST} levels")
        self.depth += 1
        try:
            return self._item()
        finally:
            self.depth -= 1

    def _item(self) -> Formula:
        if self.skip("!", "not"):
            return Negation(self.item())
        opening = self.next.text
        if self.skip("(", "{"):
            if self.skip(_CLOSING[opening]):
                return LEAF
            inside = self.formula()
            self.take("mark", _CLOSING[opening])
            return inside
        symbol = self.symbol()
        operator = self.take("mark", expected="one of " + " ".join(_OPERATORS))
        if operator.text not in _OPERATORS:
            raise self._error(operator.offset, f"`{operator.text}` does not compare numbers")
        if self.next.kind == "count":
            return Count(symbol, operator.text, self.symbol())
        number = self.take("number", expected="a number or another count")
        if len(number.text) > 18:
            raise self._error(number.offset, "the number is too large")
        return Count(symbol, operator.text, int(number.text))

    def symbol(self) -> str:
        token = self.take("count", expected="a count such as `|b|`")
        inside = token.text.strip("|").strip()
        if inside.startswith("@"):
            return "@" + _label(inside[1:])
        return inside if inside in (TEXT, DOM) else _label(inside)


def _label(written: str) -> str:
    return written[1:].removeprefix("{}") if written.startswith("Q{") else written


def _added(schema: Schema, base: Schema | None) -> Schema:
    if base is None:
        return schema
    rules = dict(base.document.rules)
    for label, formula in schema.document.rules:
        rules[label] = All((rules[label], formula)) if label in rules else formula
    roots = schema.document.roots or base.document.roots
    services = {**dict(base.services), **dict(schema.services)}
    document = UnorderedDTD(roots, tuple(rules.items()))
    return Schema(document, tuple(services.items()), schema.name or base.name, base.lost)


# Names --------------------------------------------------------------------------------------------


def _resolved(schema: Schema) -> Schema:
    """The schema with services distinguished from labels; every name must be defined."""
    services = {service for service, _ in schema.services}
    document = _resolve(schema.document, set(schema.document.table), services, "the document")
    resolved = []
    for service, given in schema.services:
        labels = {*schema.document.table, *given.table}
        resolved.append((service, _resolve(given, labels, services, f"the service {service}")))
    return Schema(document, tuple(resolved), schema.name, schema.lost)


def _resolve(type_: UnorderedDTD, labels: set[str], services: set[str], of: str) -> UnorderedDTD:
    for both in sorted(labels & services):
        raise SchemaError(
            "AX702", f"{both} is a label and a service", advice="give one of them another name"
        )
    rules = tuple((label, _named(formula, services)) for label, formula in type_.rules)
    used = [*type_.roots, *(s for _, formula in rules for s in symbols_of(formula))]
    for symbol in used:
        if symbol not in labels and symbol not in (DOM, TEXT) and symbol[0] not in "?@":
            raise SchemaError(
                "AX702",
                f"the type of {of} uses {label_text(symbol)}, which has no rule",
                advice=f"write `{label_text(symbol)} ->` for a leaf, or declare `call {symbol}`",
            )
    return UnorderedDTD(type_.roots, rules)


def _named(formula: Formula, services: set[str]) -> Formula:
    match formula:
        case Count(symbol=symbol, operator=operator, than=than):
            symbol = f"?{symbol}" if symbol in services else symbol
            if isinstance(than, str) and than in services:
                than = f"?{than}"
            return Count(symbol, operator, than)
        case Negation(part=part):
            return Negation(_named(part, services))
        case All(parts=parts):
            return All(tuple(_named(part, services) for part in parts))
        case Some(parts=parts):
            return Some(tuple(_named(part, services) for part in parts))
