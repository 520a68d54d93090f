"""The parser of XQuery's element constructors: XML in the text of a query, with `{...}` inside.

Text follows XML's rules, not the query's: references (`&amp;`), doubled braces for braces, white
space between tags dropped unless the prolog keeps it, namespaces declared by the tags (also for the
names in what they enclose). What a constructor shows is `template.py`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Constructor, Enclosed, Sequence, Written
from axlog.query.tokenizer import NCNAME
from axlog.query.xpath_parser import ExpressionParser

OPENS = re.compile(rf"<{NCNAME}")
_TAG = re.compile(rf"(?:({NCNAME}):)?({NCNAME})")
_ATTRIBUTE = re.compile(rf"\s+({NCNAME}(?::{NCNAME})?\s*=\s*)([\"'])")
_DECLARES = re.compile(rf"xmlns(?::({NCNAME}))?\s*=\s*(\"[^\"{{}}]*\"|'[^'{{}}]*')")
_PREDEFINED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9A-Fa-f]{1,6})|(\w+));")


@dataclass(frozen=True, slots=True)
class _Letters:
    """A piece of text; kept even if it is white space where it was written as no space."""

    text: str
    is_kept: bool


class ConstructorParser(ExpressionParser):
    """Parses constructors; `keeps_space` is what the prolog says of white space between tags."""

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.keeps_space = False
        self._written: dict[str, str] = {}  # namespaces that the constructors around declare
        self.names_size = 0  # characters of all names in constructors, each with its namespace

    def string_value(self, string: str, at: int) -> str:
        """A string literal of XQuery, which has references too."""
        return _ENTITY.sub(self._entity, string)

    def constructor(self) -> Constructor:
        """`<tag ...>...</tag>`, at its first character."""
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
            if not self._passes("/>"):
                self._need_raw(">")
                content = self._content(tag)
        self.namespaces, self._written = outer
        return Constructor(tag, tuple(declared.items()), attributes, tuple(content), at)

    def _declarations(self) -> dict[str, str]:
        """The namespaces that the tag declares, which its attributes may use before they stand."""
        found: dict[str, str] = {}
        for start, end in self._raw_attributes():
            declares = _DECLARES.fullmatch(self.text, start, end)
            if declares is not None:
                value = self.string_value(declares[2][1:-1], start)
                found[declares[1] or ""] = value
        return found

    def _raw_attributes(self) -> list[tuple[int, int]]:
        """Where the attributes of a tag stand, found without parsing what they enclose."""
        found = []
        at = self.offset
        name = _TAG.match(self.text, at)
        at = name.end() if name else at
        while (opened := _ATTRIBUTE.match(self.text, at)) is not None:
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
        """A name as written; a prefix that nothing around declares is declared here."""
        at = self.offset
        found = _TAG.match(self.text, at)
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
        while self._passes_space() and _TAG.match(self.text, self.offset):
            at = self.offset
            if re.compile(r"xmlns(?![\w.\-])").match(self.text, at):
                self._namespace_attribute()
                continue
            name = self._qualified(declared, is_element=False)
            self._passes_space()
            self._need_raw("=")
            self._passes_space()
            if name in found:
                raise self.refusal(f"the attribute {name} stands twice", at)
            found[name] = self._value()
        return tuple(found.items())

    def _namespace_attribute(self) -> None:
        found = _DECLARES.match(self.text, self.offset)
        if found is None:
            raise self.unsupported("a namespace that is computed", self.offset)
        self.offset = found.end()

    def _value(self) -> tuple[Written | Enclosed, ...]:
        quote = self._passes('"') or self._passes("'")
        if not quote:
            raise self.unexpected("a value in quotes")
        found: list[Written | Enclosed] = []
        text = ""
        while True:
            character = self._character()
            if character == quote:
                if not self._passes(quote):
                    return (*found, Written(text)) if text else tuple(found)
                text += quote
            elif character == "<":
                raise self.refusal("`<` stands in an attribute", self.offset - 1, advice="&lt;")
            elif character == "{" and not self._passes("{"):
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
            if isinstance(piece, _Letters):
                text, is_kept = text + piece.text, is_kept or piece.is_kept
                continue
            if text and (is_kept or text.strip(" \t\r\n")):
                found.append(Written(text))
            text, is_kept = "", self.keeps_space
            if piece is None:
                self._close(tag, start)
                return found
            found.append(piece)

    def _piece(self) -> _Letters | Written | Enclosed | Constructor | None:
        """What follows inside an element; None for its closing tag."""
        if self._passes("</"):
            return None
        if self.text.startswith("<", self.offset):
            return self._markup()
        character = self._character()
        if character == "{" and not self._passes("{"):
            return self._enclosed()
        return _Letters(self._plain(character, ""), character == "&")

    def _markup(self) -> Written | Constructor | _Letters:
        """What `<` opens inside an element: a CDATA section gives its text."""
        for opening, closing in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")):
            if self.text.startswith(opening, self.offset):
                start = self.offset
                end = self.text.find(closing, start + len(opening))
                if end < 0:
                    raise self.refusal(f"`{opening}` is not closed", start, advice=closing)
                self.offset = end + len(closing)
                if opening == "<![CDATA[":
                    return _Letters(self.text[start + len(opening) : end], True)
                return Written(self.text[start : self.offset], is_markup=True)
        if not OPENS.match(self.text, self.offset):
            raise self.refusal("`<` opens no element here", self.offset, advice="&lt; for the sign")
        return self.constructor()

    def _close(self, tag: str, start: int) -> None:
        if not self.text.startswith(tag, self.offset):
            raise self.refusal(f"<{tag}> is not closed here", start, expected=f"</{tag}>")
        self.offset += len(tag)
        self._passes_space()
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
        """What a character of text stands for: references, doubled braces, white space."""
        if character == "&":
            found = _ENTITY.match(self.text, self.offset - 1)
            if found is None:
                raise self.refusal("`&` begins no reference", self.offset - 1, advice="&amp;")
            self.offset = found.end()
            return self._entity(found)
        if character == "}" and not self._passes("}"):
            raise self.refusal("`}` closes nothing", self.offset - 1, advice="}} for the sign")
        return " " if character in to_spaces else character

    def _entity(self, found: re.Match[str]) -> str:
        decimal, hexadecimal, name = found.groups()
        if name in _PREDEFINED:
            return _PREDEFINED[name]
        code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else 0
        is_character = code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0x10FFFF
        if not is_character or code in (0xFFFE, 0xFFFF):
            raise QueryError(
                "AX207",
                f"{found.group()} stands for no character",
                place=place_at(self.text, min(found.start(), len(self.text))),
            )
        return chr(code)

    def _passes(self, symbol: str) -> str:
        if self.text.startswith(symbol, self.offset):
            self.offset += len(symbol)
            return symbol
        return ""

    def _passes_space(self) -> bool:
        start = self.offset
        while self.offset < len(self.text) and self.text[self.offset] in " \t\r\n":
            self.offset += 1
        return self.offset > start

    def _need_raw(self, symbol: str) -> None:
        if not self._passes(symbol):
            raise self.unexpected(f"`{symbol}`")
