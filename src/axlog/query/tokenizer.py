"""Reading a query text by hand: white space, comments, names, strings, numbers, refusals.

XPath and XQuery are not parsed by the grammar of `grammar.py`: comments nest, `<` opens XML inside
a query, and what a word is depends on what stands around it. So a reader looks at the text where it
is (no tokens) and a parser on top of it decides. Refusals are worded as `grammar.py` words them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isinf

from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.grammar import MOST_CHARACTERS
from axlog.query.positions import place_at

MOST_BRACKETS = 50
"""How deep parentheses, predicates and constructors may be nested: parsing them is recursive."""

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_START = (
    r"A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D"
    r"\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
NCNAME = rf"[{_START}][{_START}\-.0-9\xB7\u0300-\u036F\u203F\u2040]*"
_NAME = re.compile(rf"(?:({NCNAME}):)?({NCNAME})")
_WORD_END = re.compile(rf"(?![{_START}\-.0-9\xB7:])")
_SPACE = re.compile(r"\s*")
_COMMENT_MARK = re.compile(r"\(:|:\)")
_STRING = re.compile(r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|“[^”]*”")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_THING = re.compile(r"[\w$@][\w.:-]*|[/:!<>=.|]+|\S")


def unsupported(
    text: str, at: int, what: str, expected: str | None = None, advice: str | None = None
) -> UnsupportedError:
    """The refusal of something that is well written but lies outside the fragment."""
    return UnsupportedError(
        "AX211",
        f"{what} is not supported",
        place=place_at(text, at),
        expected=expected,
        advice=advice,
    )


class Reader:
    """A text and how far it has been read."""

    most_brackets = MOST_BRACKETS

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        if len(text) > MOST_CHARACTERS:
            raise QueryError(
                "AX213",
                f"the query has {len(text):,} characters",
                expected=f"at most {MOST_CHARACTERS:,} characters",
                advice="split it into several views",
            )
        self.text = text
        self.offset = 0
        self.namespaces = {"xml": XML_NAMESPACE, **namespaces}
        self._depth = 0

    # moving on

    def skip(self) -> int:
        """Pass white space and comments; the offset of what follows."""
        text = self.text
        while True:
            found = _SPACE.match(text, self.offset)
            self.offset = found.end() if found else self.offset
            if not text.startswith("(:", self.offset):
                return self.offset
            self._skip_comment()

    def _skip_comment(self) -> None:
        start, depth, at = self.offset, 1, self.offset + 2
        while depth:
            mark = _COMMENT_MARK.search(self.text, at)
            if mark is None:
                raise self.refusal("the comment is not closed", start, advice="close it with :)")
            depth += 1 if mark.group() == "(:" else -1
            at = mark.end()
        self.offset = at

    def sees(self, symbol: str) -> bool:
        """Whether a symbol follows."""
        return self.text.startswith(symbol, self.skip())

    def take(self, *symbols: str) -> str | None:
        """Pass the first of these symbols that follows."""
        at = self.skip()
        for symbol in symbols:
            if self.text.startswith(symbol, at):
                self.offset = at + len(symbol)
                return symbol
        return None

    def take_word(self, *words: str) -> str | None:
        """Pass the first of these words that follows; `order by` may have any space inside."""
        at = self.skip()
        for word in words:
            found = re.compile(r"\s+".join(map(re.escape, word.split()))).match(self.text, at)
            if found and _WORD_END.match(self.text, found.end()):
                self.offset = found.end()
                return word
        return None

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Pass what a pattern matches here."""
        found = pattern.match(self.text, self.skip())
        if found is not None:
            self.offset = found.end()
        return found

    def need(self, symbol: str) -> None:
        """Pass a symbol that must follow."""
        if not self.take(symbol):
            raise self.unexpected(f"`{symbol}`")

    def need_word(self, word: str) -> None:
        if not self.take_word(word):
            raise self.unexpected(f"`{word}`")

    def is_at_end(self) -> bool:
        return self.skip() >= len(self.text)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Inside brackets: refused when they are nested too deeply."""
        self._depth += 1
        if self._depth > self.most_brackets:
            raise QueryError(
                "AX213",
                f"the query is nested more than {self.most_brackets} deep",
                place=place_at(self.text, self.offset),
                expected=f"at most {self.most_brackets} brackets inside each other",
            )
        yield
        self._depth -= 1

    # literals and names

    def take_string(self) -> str | None:
        """A string in quotes; printed papers set “these”, which nothing else begins with."""
        at = self.skip()
        found = _STRING.match(self.text, at)
        if found is None:
            if self.text.startswith(('"', "'"), at):
                quote = self.text[at]
                advice = f"close it with {quote}; inside the string, {quote} is written twice"
                raise self.refusal("the string is not closed", at, advice=advice)
            return None
        self.offset = found.end()
        quote = self.text[at]
        return found.group()[1:-1].replace(quote * 2, quote)

    def need_string(self, what: str) -> str:
        found = self.take_string()
        if found is None:
            raise self.unexpected(what)
        return found

    def take_number(self) -> float | None:
        at = self.skip()
        found = _NUMBER.match(self.text, at)
        if found is None:
            return None
        self.offset = found.end()
        if _NAME.match(self.text, self.offset):
            raise self.refusal("a name stands right behind a number", at, expected="a space")
        value = float(found.group())
        if isinf(value):
            raise QueryError("AX207", "the number is too large", place=place_at(self.text, at))
        return value

    def take_name(self) -> tuple[str, str] | None:
        """Prefix and local name: `a`, `p:a`."""
        found = self.take_match(_NAME)
        return None if found is None else (found[1] or "", found[2])

    def need_variable(self) -> str:
        """`$name`, as it is written."""
        self.need("$")
        found = self.take_name()
        if found is None:
            raise self.unexpected("the name of a variable")
        return ":".join(part for part in found if part)

    def expanded(self, prefix: str, local: str, at: int, is_element: bool = True) -> str:
        """The expanded name; the default namespace is for elements."""
        if not prefix and not is_element:
            return local
        uri = self.namespaces.get(prefix)
        if uri is None and prefix:
            raise QueryError(
                "AX206",
                f"the prefix {prefix} is not declared",
                place=place_at(self.text, at),
                expected="one of " + ", ".join(sorted(p for p in self.namespaces if p)),
                advice="declare it in the namespaces given with the query, or write Q{uri}name",
            )
        return f"{{{uri}}}{local}" if uri else local

    # refusals

    def refusal(
        self, message: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> QuerySyntaxError:
        place = place_at(self.text, at)
        return QuerySyntaxError("AX201", message, place=place, expected=expected, advice=advice)

    def unexpected(self, expected: str) -> QuerySyntaxError:
        """The refusal of whatever stands here."""
        at = self.skip()
        found = _THING.match(self.text, at)
        if found is None:
            message = "the query ends too early" if self.text.strip() else "the query is empty"
            return self.refusal(message, len(self.text.rstrip()), expected)
        return self.refusal(f"`{found.group()[:40]}` cannot stand here", at, expected)

    def unsupported(
        self, what: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> UnsupportedError:
        return unsupported(self.text, at, what, expected, advice)
