"""The parser of XQuery views: what XQuery has beyond XPath, to the tree of `syntax_tree.py`.

The prolog, `for`, `let`, `where` and `return`, and (in `constructor_parser.py`) element
constructors. `order by`, `at $i`, types, `if`, computed constructors, functions and modules are
refused by name. Statements of XQuery Update have their own parser on top of this one.
"""

from __future__ import annotations

import re

from axlog.query.constructor_parser import OPENS, ConstructorParser
from axlog.query.syntax_tree import (
    Clause,
    Context,
    Expression,
    Flwor,
    For,
    Let,
    Reference,
    Where,
)

_BLOCK = re.compile(r"(?:un)?ordered\s*\{")
_REFUSED = re.compile(r"(typeswitch|switch)\s*\(|(try|validate|map|array)\s*\{|(function)\s*\(")
_PROLOG = re.compile(
    r"xquery\s+(?:version|encoding)\b|module\s+namespace\b|import\s+(?:schema|module)\b|declare\s+"
    r"(?:namespace|default|variable|function|option|ordering|construction|copy-namespaces"
    r"|boundary-space|base-uri|context|decimal-format|%|updating|revalidation)\b"
)


def looks_like_xquery(text: str) -> bool:
    """Whether a text begins as only XQuery can: `for $`, `let $`, a constructor, a prolog."""
    reader = QueryParser(text, {})
    at = reader.skip()
    starts = (re.compile(r"(?:for|let)\s*\$"), OPENS, _BLOCK, _PROLOG)
    return any(start.match(text, at) for start in starts)


class QueryParser(ConstructorParser):
    """Parses a whole query; `declared` are the variables that the prolog declares."""

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.declared: list[Clause] = []

    def query(self) -> Expression:
        """The prolog and the query; the prolog's variables are clauses in front."""
        self.prolog()
        found = self.whole()
        return Flwor(tuple(self.declared), found, found.at) if self.declared else found

    # the prolog

    def prolog(self) -> None:
        while True:
            at = self.skip()
            if not _PROLOG.match(self.text, at):
                return
            if self.take_word("xquery version", "xquery encoding"):
                self.need_string("a version")
                if self.take_word("encoding"):
                    self.need_string("an encoding")
            elif self.take_word("declare"):
                self._declaration(at)
            else:
                raise self.unsupported("a module", at, advice="a query of its own")
            self.need(";")

    def _declaration(self, at: int) -> None:
        if self.take_word("namespace"):
            prefix = ":".join(part for part in self.take_name() or () if part)
            self.need("=")
            self.namespaces[prefix] = self.need_string("a namespace")
        elif self.take_word("default element namespace"):
            self.namespaces[""] = self.need_string("a namespace")
        elif self.take_word("default order"):  # of no account without `order by`
            self.take_word("empty greatest", "empty least")
        elif self.take_word("boundary-space"):
            self.keeps_space = self.take_word("preserve", "strip") == "preserve"
        elif self.take_word("ordering"):  # rows are a set
            self.take_word("ordered", "unordered")
        elif self.take_word("variable"):
            start = self.skip()
            variable = self.need_variable()
            self.need(":=")
            self.declared.append(Let(variable, self.single(), start))
        else:
            word = self.take_name() or ("", "this")
            raise self.unsupported(f"`declare {word[1]}`", at)

    # clauses

    def flwor(self, at: int) -> Expression:
        with self.nested():
            clauses = self.clauses()
            self.need_word("return")
            return Flwor(tuple(clauses), self.single(), at)

    def clauses(self) -> list[Clause]:
        """`for`, `let` and `where` in any order; what may follow them is the caller's."""
        found: list[Clause] = []
        while True:
            at = self.skip()
            match self.take_word("for", "let", "where"):
                case "for":
                    self._bindings(found, is_for=True)
                case "let":
                    self._bindings(found, is_for=False)
                case "where":
                    found.append(Where(self.single(), at))
                case _:
                    self._refuse_clause(at)
                    return found

    def _bindings(self, found: list[Clause], is_for: bool) -> None:
        while True:
            at = self.skip()
            variable = self.need_variable()
            if self.take_word("as"):
                raise self.unsupported("a type of a variable", at, advice="leave `as ...` out")
            if is_for:
                if self.take_word("at"):
                    raise self.unsupported("a position by `at`", at, advice="leave `at $i` out")
                if self.take_word("allowing empty"):
                    raise self.unsupported("`allowing empty`", at, advice="a path in the return")
                self.need_word("in")
                found.append(For(variable, self.single(), at))
            else:
                if not self.take_word("in"):  # as P5's figure 3 has it
                    self.need(":=")
                found.append(Let(variable, self.single(), at))
            if not self.take(","):
                return

    def _refuse_clause(self, at: int) -> None:
        word = self.take_word("order by", "stable order by", "group by", "count")
        if word is None:
            return
        advice = None
        if word.endswith("order by"):
            advice = "leave it out: rows are a set, sort them by their columns where you show them"
        raise self.unsupported(f"`{word}`", at, advice=advice)

    # what stands where a path may start

    def primary(self, at: int) -> Context | Reference | Expression | None:
        if OPENS.match(self.text, at):
            return self.constructor()
        if _BLOCK.match(self.text, at):  # rows are a set: both mean what is inside
            self.take_word("ordered", "unordered")
            self.need("{")
            with self.nested():
                inside = self.expression()
            self.need("}")
            return inside
        refused = _REFUSED.match(self.text, at)
        if refused is not None:
            raise self.unsupported(f"`{refused.group()[:-1].strip()}`", at)
        return super().primary(at)
