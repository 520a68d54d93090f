"""The parser of constructors: XML inside a query.

A constructor is XML with `{...}` for expressions. Its text follows the rules of XML, not those of
the query: there are references (`&amp;`), braces are doubled, and white space between tags is
dropped unless the prolog preserves it. The namespaces that a tag declares also apply to the names
in the expressions that it encloses. `template.py` defines the result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from axlog.errors import QueryError
from axlog.query.positions import place_at
from axlog.query.syntax_tree import Constructor, Enclosed, Sequence, Written
from axlog.query.tokenizer import NCNAME, QNAME, compiled
from axlog.query.xpath_parser import XPathParser

TAG_START = rf"<{NCNAME}"
_ATTRIBUTE = rf"\s+({NCNAME}(?::{NCNAME})?\s*=\s*)([\"'])"
_NAMESPACE = rf"xmlns(?::({NCNAME}))?\s*=\s*(\"[^\"{{}}]*\"|'[^'{{}}]*')"
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_REFERENCE = r"&(?:#(\d{1,7})|#x([0-9A-Fa-f]{1,6})|(\w+));"


@dataclass(frozen=True, slots=True)
class _Text:
    """A piece of text in a constructor.

    White space is kept if `is_kept`: it is written as a reference or in a CDATA section.
    """

    text: str
    is_kept: bool


class ConstructorParser(XPathParser):
    """XPath with constructors.

    `keeps_space` is the prolog's setting for white space between tags. `names_size` counts the
    characters of all names in constructors, namespaces included.
    """

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.keeps_space = False
        self.names_size = 0
        self._written: dict[str, str] = {}  # namespaces declared by the enclosing constructors

    def string_value(self, string: str, at: int) -> str:
        """The value of a string literal; in XQuery it may contain references."""
        return compiled(_REFERENCE).sub(self._referenced, string)

    def written(self, text: str, start: int, end: int) -> Written | Enclosed:
        """A whole attribute, or the only text of an element, between two offsets."""
        return Written(text)

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
        text, start = "", self.offset
        while True:
            character = self._character()
            if character == quote:
                if not self._take_raw(quote):
                    if text and not found:
                        return (self.written(text, start - 1, self.offset),)
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
        first = self.offset
        while True:
            start = self.offset
            piece = self._piece()
            if isinstance(piece, _Text):
                text, is_kept = text + piece.text, is_kept or piece.is_kept
                continue
            if text and (is_kept or text.strip(" \t\r\n")):
                is_alone = piece is None and not found
                found.append(self.written(text, first, start) if is_alone else Written(text))
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
        if not self.match_at(TAG_START, self.offset):
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
