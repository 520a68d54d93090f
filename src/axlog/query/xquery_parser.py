"""The parser of XQuery: XPath, the prolog, the clauses of FLWOR expressions, constructors.

Functions of the prolog are expanded where they are called (`function_expansion.py`). Modules, maps,
arrays, `switch`, `typeswitch` and `try` are refused by name. Statements of XQuery Update have a
parser of their own on top of this one (`update_parser.py`).

A constructor is XML inside the query, with `{...}` for expressions. Its text follows the rules of
XML, not those of the query: there are references (`&amp;`), braces are doubled, and white space
between tags is dropped unless the prolog preserves it. The namespaces that a tag declares also
apply to the names in the expressions that it encloses. `template.py` defines the result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from axlog.errors import QueryError
from axlog.query.function_expansion import Function, expanded
from axlog.query.positions import place_at
from axlog.query.syntax_tree import (
    Call,
    Clause,
    Constant,
    Constructor,
    Context,
    Counted,
    Enclosed,
    Expression,
    External,
    Flwor,
    For,
    ForAt,
    GroupBy,
    Let,
    OrderBy,
    OrderKey,
    Path,
    Reference,
    Root,
    Sequence,
    SequenceType,
    Typed,
    Where,
    Written,
)
from axlog.query.tokenizer import NCNAME, QNAME, compiled
from axlog.query.xpath_parser import XPathParser

_BLOCK = r"(?:un)?ordered\s*\{"
_REFUSED = r"(typeswitch|switch)\s*\(|(try|validate|map|array)\s*\{|(function)\s*\("
_PROLOG = (
    r"xquery\s+(?:version|encoding)\b|module\s+namespace\b|import\s+(?:schema|module)\b|declare\s+"
    r"(?:namespace|default|variable|function|option|ordering|construction|copy-namespaces"
    r"|boundary-space|base-uri|context|decimal-format|%|updating|revalidation)\b"
)
_TAG_START = rf"<{NCNAME}"
_COMPUTED = (
    rf"(element|attribute|processing-instruction)\s+(?:({NCNAME}(?::{NCNAME})?)\s*)?\{{"
    rf"|(element|attribute|processing-instruction|text|comment|document)\s*\{{"
)
_ATTRIBUTE = rf"\s+({NCNAME}(?::{NCNAME})?\s*=\s*)([\"'])"
_NAMESPACE = rf"xmlns(?::({NCNAME}))?\s*=\s*(\"[^\"{{}}]*\"|'[^'{{}}]*')"
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE = r"&(?:#(\d{1,7})|#x([0-9A-Fa-f]{1,6})|(\w+));"


_CLAUSES = ("for", "let", "where", "group by", "order by", "stable order by", "count")
_CODEPOINT = "http://www.w3.org/2005/xpath-functions/collation/codepoint"


def looks_like_xquery(text: str) -> bool:
    """Whether a text begins as only XQuery can: `for $`, `let $`, a constructor, a prolog."""
    parser = XQueryParser(text, {})
    at = parser.skip()
    starts = (r"(?:for|let)\s*\$", _TAG_START, _BLOCK, _PROLOG, _COMPUTED)
    return any(parser.match_at(start, at) for start in starts)


def _converted(value: Expression, type_: SequenceType | None) -> Expression:
    return value if type_ is None else Typed("treat as", value, type_, value.at)


@dataclass(frozen=True, slots=True)
class _Text:
    """A piece of text in a constructor.

    White space is kept if `is_kept`: it is written as a reference or in a CDATA section.
    """

    text: str
    is_kept: bool


class XQueryParser(XPathParser):
    """The parser of XQuery views.

    `declared` holds the variables of the prolog, `keeps_space` its setting for white space between
    tags. `names_size` counts the characters of all names in constructors, namespaces included.
    """

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.declared: list[Clause] = []
        self.keeps_space = False
        self.names_size = 0
        self.functions: dict[tuple[str, int], Function] = {}
        self._written: dict[str, str] = {}  # namespaces declared by the enclosing constructors
        self._is_empty_greatest = False  # the default of `order by`

    def parse_query(self) -> Expression:
        """The prolog and the query; variables of the prolog become clauses before the query."""
        self.prolog()
        return self.whole(self.parse())

    def whole(self, found: Expression) -> Expression:
        """An expression with the variables and functions of the prolog."""
        if self.declared:
            found = Flwor(tuple(self.declared), found, found.at)
        return expanded(found, self.functions, self.text) if self.functions else found

    # the prolog

    def prolog(self) -> None:
        """The declarations before the query."""
        while True:
            at = self.skip()
            if not self.match_at(_PROLOG, at):
                return
            if self.take_word("xquery version", "xquery encoding"):
                self.need_string("a version")
                if self.take_word("encoding"):
                    self.need_string("an encoding")
            elif self.take_word("declare"):
                self.declaration(at)
            else:
                raise self.unsupported("a module", at, advice="a query without modules")
            self.need(";")

    def declaration(self, at: int) -> None:
        """One declaration of the prolog, after the word `declare`."""
        if self.take_word("namespace"):
            prefix = ":".join(part for part in self.take_name() or () if part)
            self.need("=")
            self.namespaces[prefix] = self.need_string("a namespace")
        elif self.take_word("default element namespace"):
            self.namespaces[""] = self.need_string("a namespace")
        elif self.take_word("default order"):
            empty = self.take_word("empty greatest", "empty least")
            self._is_empty_greatest = empty == "empty greatest"
        elif self.take_word("construction"):
            self.take_word("strip", "preserve")
        elif self.take_word("copy-namespaces"):
            self.take_word("preserve", "no-preserve")
            self.need(",")
            self.take_word("inherit", "no-inherit")
        elif self.take_word("default function namespace"):
            self.need_string("a namespace")
        elif self.take_word("option"):
            self.take_name()
            self.need_string("a value")
        elif self.take_word("boundary-space"):
            self.keeps_space = self.take_word("preserve", "strip") == "preserve"
        elif self.take_word("ordering"):  # rows are a set
            self.take_word("ordered", "unordered")
        elif self.take_word("variable"):
            start = self.skip()
            variable = self.need_variable()
            type_ = self.sequence_type() if self.take_word("as") else None
            if self.take_word("external"):
                self.declared.append(External(variable, Path(Root(start), (), start), start))
                if self.take(":="):
                    self.declared[-1] = Let(variable, self.single(), start)
                return
            self.need(":=")
            self.declared.append(Let(variable, _converted(self.single(), type_), start))
        elif self.take_word("function"):
            self._function(at)
        else:
            word = self.take_name() or ("", "this")
            raise self.unsupported(f"`declare {word[1]}`", at)

    def _function(self, at: int) -> None:
        """`declare function name($a as type, ...) as type { body }`, after the word `function`."""
        prefix, name = self.take_name() or ("", "")
        parameters: list[tuple[str, SequenceType | None]] = []
        self.need("(")
        while not self.take(")"):
            variable = self.need_variable()
            parameters.append((variable, self.sequence_type() if self.take_word("as") else None))
            if not self.sees(")"):
                self.need(",")
        result = self.sequence_type() if self.take_word("as") else None
        if self.take_word("external"):
            raise self.unsupported("an external function", at)
        body = self._block()
        written = f"{prefix}:{name}" if prefix else name
        if (written, len(parameters)) in self.functions:
            raise self.refusal(f"the function {written}() is declared twice", at)
        made = Function(written, tuple(parameters), result, body, at)
        self.functions[written, len(parameters)] = made

    def called(
        self, prefix: str, name: str, arguments: tuple[Expression, ...], at: int
    ) -> Expression:
        """A call; the functions of the prolog have a prefix and may be declared later."""
        if prefix and prefix not in ("fn", "xs") and prefix in {"local", *self.namespaces}:
            return Call(f"{prefix}:{name}", arguments, at)
        return super().called(prefix, name, arguments, at)

    # clauses

    def flwor(self, at: int) -> Expression:
        """The clauses of a FLWOR expression, and `return`."""
        with self.nested():
            clauses = self.clauses()
            self.need_word("return")
            return Flwor(tuple(clauses), self.single(), at)

    def clauses(self) -> list[Clause]:
        """All clauses before `return`, in any order; the caller reads the rest."""
        found: list[Clause] = []
        while True:
            at = self.skip()
            match self.take_word(*_CLAUSES):
                case "for":
                    self._for(found)
                case "let":
                    self._let(found)
                case "where":
                    found.append(Where(self.single(), at))
                case "group by":
                    found.append(self._group(at))
                case "order by" | "stable order by":
                    found.append(self._order(at))
                case "count":
                    found.append(Counted(self.need_variable(), at))
                case _:
                    return found

    def _for(self, found: list[Clause]) -> None:
        """The variables of one `for`."""
        while True:
            at = self.skip()
            variable = self.need_variable()
            if self.take_word("as"):
                self.sequence_type()
            allows_empty = self.take_word("allowing empty") is not None
            position = self.need_variable() if self.take_word("at") else None
            self.need_word("in")
            source = self.single()
            if position is None:
                found.append(For(variable, source, at, allows_empty))
            else:
                found.append(ForAt(variable, source, at, allows_empty, position))
            if not self.take(","):
                return

    def _let(self, found: list[Clause]) -> None:
        """The variables of one `let`."""
        while True:
            at = self.skip()
            variable = self.need_variable()
            type_ = self.sequence_type() if self.take_word("as") else None
            if not self.take_word("in"):  # as printed in paper 5, figure 3
                self.need(":=")
            found.append(Let(variable, _converted(self.single(), type_), at))
            if not self.take(","):
                return

    def _group(self, at: int) -> GroupBy:
        keys: list[tuple[str, Expression | None]] = []
        while True:
            variable = self.need_variable()
            if self.take_word("as"):
                self.sequence_type()
            keys.append((variable, self.single() if self.take(":=") else None))
            self._collation()
            if not self.take(","):
                return GroupBy(tuple(keys), at)

    def _order(self, at: int) -> OrderBy:
        keys: list[OrderKey] = []
        while True:
            value = self.single()
            is_descending = self.take_word("ascending", "descending") == "descending"
            empty = self.take_word("empty greatest", "empty least")
            greatest = self._is_empty_greatest if empty is None else empty == "empty greatest"
            keys.append(OrderKey(value, is_descending, greatest))
            self._collation()
            if not self.take(","):
                return OrderBy(tuple(keys), at)

    def _collation(self) -> None:
        at = self.skip()
        if self.take_word("collation") and self.need_string("a collation") != _CODEPOINT:
            raise self.unsupported("a collation", at, advice="leave it out: by code point")

    # expressions that can start a path

    def primary(self, at: int) -> Context | Reference | Expression | None:
        if self.match_at(_TAG_START, at):
            return self.constructor()
        if self.match_at(_BLOCK, at):  # rows are a set, so neither word changes the result
            self.take_word("ordered", "unordered")
            self.need("{")
            with self.nested():
                inside = self.expression()
            self.need("}")
            return inside
        refused = self.match_at(_REFUSED, at)
        if refused is not None:
            raise self.unsupported(f"`{refused.group()[:-1].strip()}`", at)
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

    # constructors

    def string_value(self, string: str, at: int) -> str:
        """The value of a string literal; in XQuery it may contain references."""
        return compiled(_REFERENCE).sub(self._referenced, string)

    def constructor(self) -> Constructor:
        """`<tag ...>...</tag>`, from its first character."""
        at = self.skip()
        self.offset += 1
        outer = self.namespaces, self._written
        declared = self._declarations()
        self.namespaces = {**self.namespaces, **declared}
        self._written = {**self._written, **declared}
        with self.nested():
            tag = self._qualified(declared, is_element=True)
            attributes = self._attributes(declared)
            content: list[Written | Enclosed | Constructor] = []
            if not self._take_raw("/>"):
                self._need_raw(">")
                content = self._content(tag)
        self.namespaces, self._written = outer
        return Constructor(tag, tuple(declared.items()), attributes, tuple(content), at)

    def _declarations(self) -> dict[str, str]:
        """The namespaces that the tag declares; attributes before a declaration may use it."""
        found: dict[str, str] = {}
        for start, end in self._raw_attributes():
            declares = compiled(_NAMESPACE).fullmatch(self.text, start, end)
            if declares is not None:
                value = self.string_value(declares[2][1:-1], start)
                found[declares[1] or ""] = value
        return found

    def _raw_attributes(self) -> list[tuple[int, int]]:
        """The offsets of a tag's attributes, found without parsing enclosed expressions."""
        found = []
        at = self.offset
        name = self.match_at(QNAME, at)
        at = name.end() if name else at
        while (opened := self.match_at(_ATTRIBUTE, at)) is not None:
            end = self._end_of_value(opened.end(), opened[2])
            found.append((opened.start(1), end))
            at = end
        return found

    def _end_of_value(self, at: int, quote: str) -> int:
        depth = 0
        while at < len(self.text):
            character = self.text[at]
            depth += {"{": 1, "}": -1}.get(character, 0)
            if character == quote and depth <= 0:
                return at + 1
            at += 1
        return at

    def _qualified(self, declared: dict[str, str], is_element: bool) -> str:
        """A name as written; its prefix is declared here unless an enclosing tag declares it."""
        at = self.offset
        found = self.match_at(QNAME, at)
        if found is None:
            raise self.unexpected("a name")
        self.offset = found.end()
        prefix = found[1] or ""
        self.names_size += len(self.expanded(prefix, found[2], at, is_element))
        uri = self.namespaces.get(prefix, "")
        if (prefix or is_element) and prefix != "xml" and self._written.get(prefix, "") != uri:
            declared[prefix] = self._written[prefix] = uri
        return found.group()

    def _attributes(
        self, declared: dict[str, str]
    ) -> tuple[tuple[str, tuple[Written | Enclosed, ...]], ...]:
        found: dict[str, tuple[Written | Enclosed, ...]] = {}
        while self._skip_space() and self.match_at(QNAME, self.offset):
            at = self.offset
            if self.match_at(r"xmlns(?![\w.\-])", at):
                self._namespace_attribute()
                continue
            name = self._qualified(declared, is_element=False)
            self._skip_space()
            self._need_raw("=")
            self._skip_space()
            if name in found:
                raise self.refusal(f"the attribute {name} is given twice", at)
            found[name] = self._value()
        return tuple(found.items())

    def _namespace_attribute(self) -> None:
        found = self.match_at(_NAMESPACE, self.offset)
        if found is None:
            raise self.unsupported("a computed namespace", self.offset)
        self.offset = found.end()

    def _value(self) -> tuple[Written | Enclosed, ...]:
        quote = self._take_raw('"') or self._take_raw("'")
        if not quote:
            raise self.unexpected("a value in quotes")
        found: list[Written | Enclosed] = []
        text = ""
        while True:
            character = self._character()
            if character == quote:
                if not self._take_raw(quote):
                    return (*found, Written(text)) if text else tuple(found)
                text += quote
            elif character == "<":
                at = self.offset - 1
                raise self.refusal("`<` is not allowed in an attribute", at, advice="&lt;")
            elif character == "{" and not self._take_raw("{"):
                found += [Written(text)] if text else []
                found.append(self._enclosed())
                text = ""
            else:
                text += self._plain(character, " \t\n\r")

    # content

    def _content(self, tag: str) -> list[Written | Enclosed | Constructor]:
        found: list[Written | Enclosed | Constructor] = []
        text, is_kept = "", self.keeps_space
        while True:
            start = self.offset
            piece = self._piece()
            if isinstance(piece, _Text):
                text, is_kept = text + piece.text, is_kept or piece.is_kept
                continue
            if text and (is_kept or text.strip(" \t\r\n")):
                found.append(Written(text))
            text, is_kept = "", self.keeps_space
            if piece is None:
                self._close(tag, start)
                return found
            found.append(piece)

    def _piece(self) -> _Text | Written | Enclosed | Constructor | None:
        """The next piece of an element's content; None for the closing tag."""
        if self._take_raw("</"):
            return None
        if self.text.startswith("<", self.offset):
            return self._markup()
        character = self._character()
        if character == "{" and not self._take_raw("{"):
            return self._enclosed()
        return _Text(self._plain(character, ""), character == "&")

    def _markup(self) -> Written | Constructor | _Text:
        """Markup inside an element; a CDATA section gives its text."""
        for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
            if self.text.startswith(opening, self.offset):
                start = self.offset
                end = self.text.find(closing, start + len(opening))
                if end < 0:
                    raise self.refusal(f"`{opening}` is not closed", start, advice=closing)
                self.offset = end + len(closing)
                if opening == "<![CDATA[":
                    return _Text(self.text[start + len(opening) : end], True)
                return Written(self.text[start : self.offset], is_markup=True)
        if not self.match_at(_TAG_START, self.offset):
            advice = "&lt; for the character"
            raise self.refusal("`<` does not open an element here", self.offset, advice=advice)
        return self.constructor()

    def _close(self, tag: str, start: int) -> None:
        if not self.text.startswith(tag, self.offset):
            raise self.refusal(f"<{tag}> is not closed here", start, expected=f"</{tag}>")
        self.offset += len(tag)
        self._skip_space()
        self._need_raw(">")

    def _enclosed(self) -> Enclosed:
        at = self.offset
        if self.take("}"):
            return Enclosed(Sequence((), at))
        with self.nested():
            inside = self.expression()
        self.need("}")
        return Enclosed(inside)

    # characters

    def _character(self) -> str:
        if self.offset >= len(self.text):
            raise self.refusal("the constructor is not closed", len(self.text.rstrip()))
        self.offset += 1
        return self.text[self.offset - 1]

    def _plain(self, character: str, to_spaces: str) -> str:
        """The text for one character: resolves references, doubled braces and white space."""
        if character == "&":
            found = self.match_at(_REFERENCE, self.offset - 1)
            if found is None:
                at = self.offset - 1
                raise self.refusal("`&` does not begin a reference", at, advice="&amp;")
            self.offset = found.end()
            return self._referenced(found)
        if character == "}" and not self._take_raw("}"):
            advice = "}} for the character"
            raise self.refusal("`}` has no matching `{`", self.offset - 1, advice=advice)
        return " " if character in to_spaces else character

    def _referenced(self, found: re.Match[str]) -> str:
        decimal, hexadecimal, name = found.groups()
        if name in _ENTITIES:
            return _ENTITIES[name]
        code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else 0
        is_character = code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0x10FFFF
        if not is_character or code in (0xFFFE, 0xFFFF):
            raise QueryError(
                "AX207",
                f"{found.group()} is not a valid character reference",
                place=place_at(self.text, min(found.start(), len(self.text))),
            )
        return chr(code)

    def _take_raw(self, symbol: str) -> str:
        if self.text.startswith(symbol, self.offset):
            self.offset += len(symbol)
            return symbol
        return ""

    def _skip_space(self) -> bool:
        start = self.offset
        while self.offset < len(self.text) and self.text[self.offset] in " \t\r\n":
            self.offset += 1
        return self.offset > start

    def _need_raw(self, symbol: str) -> None:
        if not self._take_raw(symbol):
            raise self.unexpected(f"`{symbol}`")
