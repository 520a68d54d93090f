"""The parser of XQuery for the analysis of queries that another engine evaluates.

It reads what `XQueryParser` reads, calls of any function, and `switch`, `typeswitch`, `try`,
windows left out, maps and arrays as their members. Its tree is for `projection.py` only: it says
which nodes an expression reads and gives, not its value. Text that it cannot read is refused, and
then nothing is known about the query. Functions of the prolog are not expanded.

Calls that it makes: `choice` (one of its arguments), `switch` and `map` (its arguments are read,
and it gives them).
"""

from __future__ import annotations

from axlog.query.syntax_tree import (
    Call,
    Context,
    Expression,
    Flwor,
    Let,
    Reference,
    Sequence,
    SequenceType,
)
from axlog.query.tokenizer import NCNAME
from axlog.query.xquery_parser import XQueryParser

_FIXED = frozenset("fn xs math map array local err".split())
"""Prefixes whose meaning the analysis relies on."""
_NOT_OF_THE_DOCUMENT = frozenset(
    """available-environment-variables collection current-date current-dateTime current-time doc
    doc-available document document-uri environment-variable generate-id implicit-timezone json-doc
    load-xquery-module random-number-generator transform unparsed-text unparsed-text-available
    unparsed-text-lines uri-collection""".split()
)
"""Functions that read more than the document. Those that read files do not work in Saxon's process;
all of them make a query unfit for a view.
"""
_NAMED_FUNCTION = rf"(?:({NCNAME}):)?({NCNAME})\s*#\s*\d+"


class WholeXQueryParser(XQueryParser):
    """Reads a query whose functions and types need not be known."""

    def __init__(self, text: str, namespaces: dict[str, str], is_xpath: bool = False) -> None:
        super().__init__(text, namespaces)
        self._is_xpath = is_xpath

    def string_value(self, string: str, at: int) -> str:
        return string if self._is_xpath else super().string_value(string, at)

    def whole(self, found: Expression) -> Expression:
        """The query with the variables of its prolog; functions see none of them."""
        if _FIXED & self.namespaces.keys():
            raise self.unsupported("a namespace of the language", 0)
        if self.declared and self.functions:
            raise self.unsupported("variables and functions in one prolog", 0)
        return Flwor(tuple(self.declared), found, found.at) if self.declared else found

    def declaration(self, at: int) -> None:
        start = self.offset
        if self.take_word("default function namespace", "default collation"):
            raise self.unsupported("a default of functions", at)
        self.offset = start
        super().declaration(at)

    def called(
        self, prefix: str, name: str, arguments: tuple[Expression, ...], at: int
    ) -> Expression:
        written = f"{prefix}:{name}" if prefix else name
        if prefix in ("", "fn") and name in _NOT_OF_THE_DOCUMENT:
            raise self.unsupported(f"{name}(), no function of the document,", at)
        return Call(written, arguments, at)

    def primary(self, at: int) -> Context | Reference | Expression | None:
        for word, read in (
            (r"switch\s*\(", self._switch),
            (r"typeswitch\s*\(", self._typeswitch),
            (r"try\s*\{", self._try),
            (r"map\s*\{", self._map_members),
            (r"array\s*\{", self._array_members),
            (r"\[", self._square),
        ):
            if self.match_at(word, at):
                with self.nested():
                    return read(at)
        if self.match_at(_NAMED_FUNCTION, at):
            raise self.unsupported("a function as a value", at)
        return super().primary(at)

    def _switch(self, at: int) -> Expression:
        self.take_word("switch")
        parts = [self._operand()]
        while self.take_word("case"):
            parts.append(self.single())
            if not self.sees("case"):
                self.need_word("return")
                parts.append(self.single())
        self.need_word("default")
        self.need_word("return")
        parts.append(self.single())
        return Call("switch", tuple(parts), at)

    def _operand(self) -> Expression:
        self.need("(")
        found = self.expression()
        self.need(")")
        return found

    def _typeswitch(self, at: int) -> Expression:
        self.take_word("typeswitch")
        operand = self._operand()
        parts = [operand]
        while (word := self.take_word("case", "default")) is not None:
            variable = self.need_variable() if self.sees("$") else None
            if word == "case":
                if variable is not None:
                    self.need_word("as")
                self.sequence_type()
                while self.take("|"):
                    self.sequence_type()
            self.need_word("return")
            returned = self.single()
            if variable is not None:
                returned = Flwor((Let(variable, operand, at),), returned, at)
            parts.append(returned)
            if word == "default":
                break
        return Call("choice", tuple(parts), at)

    def _try(self, at: int) -> Expression:
        self.take_word("try")
        parts = [self._braced()]
        while self.take_word("catch"):
            self.take_match(r"[^{]*")
            parts.append(self._braced())
        return Call("choice", tuple(parts), at)

    def _braced(self) -> Expression:
        self.need("{")
        if self.take("}"):
            return Sequence((), self.offset)
        found = self.expression()
        self.need("}")
        return found

    def _map_members(self, at: int) -> Expression:
        self.take_word("map")
        self.need("{")
        parts: list[Expression] = []
        while not self.take("}"):
            parts.append(self.single())
            self.need(":")
            parts.append(self.single())
            if not self.sees("}"):
                self.need(",")
        return Call("map", tuple(parts), at)

    def _array_members(self, at: int) -> Expression:
        self.take_word("array")
        return Call("map", (self._braced(),), at)

    def _square(self, at: int) -> Expression:
        self.need("[")
        parts: list[Expression] = []
        while not self.take("]"):
            parts.append(self.single())
            if not self.sees("]"):
                self.need(",")
        return Call("map", tuple(parts), at)

    def sequence_type(self) -> SequenceType:
        """Any type; only whether it is atomic is used."""
        at = self.skip()
        prefix, name = self.take_name() or ("", "")
        if not name:
            raise self.unexpected("a type")
        written = f"{prefix}:{name}" if prefix else name
        if self.take("("):
            depth = 1
            while depth:
                mark = self.take("(", ")")
                if mark is None and self.take_match(r"[^()]+") is None:
                    raise self.refusal("the type is not closed", at)
                depth += {"(": 1, ")": -1}.get(mark or "", 0)
            written += "()"
        elif not written.startswith("xs:"):
            raise self.unsupported(f"the type {written}", at)
        occurrence = self.take_match(r"[?*+]")
        return SequenceType(written, None, occurrence.group() if occurrence else "")
