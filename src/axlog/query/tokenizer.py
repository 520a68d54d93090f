"""The tokenizer of XPath, XQuery and XQuery Update: white space, comments, names, literals, errors.

The lark grammar of the native text (`grammar.py`) cannot read these languages: comments nest, `<`
opens XML inside a query, and only the context decides whether a word is a keyword. So the tokenizer
keeps the text and an offset, and the parser on top of it asks for the token that it wants next.
Syntax errors use the same words as those of `grammar.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import isinf

from axlog.errors import QueryError, QuerySyntaxError, UnsupportedError
from axlog.query.positions import place_at

MOST_CHARACTERS = 100_000
MOST_BRACKETS = 50
"""The deepest nesting of parentheses, predicates and constructors: parsing them is recursive."""

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_BEYOND_ASCII = (
    r"\xC0-\xD6\xD8-\xF6\xF8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D"
    r"\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_START = rf"A-Z_a-z{_BEYOND_ASCII}"
_INSIDE = r"\xB7\u0300-\u036F\u203F\u2040"
NCNAME = rf"[{_START}][{_START}\-.0-9{_INSIDE}]*"
QNAME = rf"(?:({NCNAME}):)?({NCNAME})"
_WORD_END = rf"(?![{_START}\-.0-9\xB7:])"
_SPACE = r"\s*"
_COMMENT_MARK = r"\(:|:\)"
_STRING = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'|“[^”]*”"
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LEXEME = r"[\w$@][\w.:-]*|[/:!<>=.|]+|\S"


@cache
def compiled(expression: str, is_ascii: bool = False) -> re.Pattern[str]:
    """A regular expression, compiled at its first use and kept.

    The character classes of XML names take milliseconds to compile, and a program that imports
    axlog may never parse a query. Only constants of the parsers may be passed. `is_ascii`: for
    texts in ASCII, for which the classes are short.
    """
    if is_ascii:
        expression = expression.replace(_BEYOND_ASCII, "").replace(_INSIDE, "")
    return re.compile(expression)


@cache
def _compiled_words(words: tuple[str, ...], is_ascii: bool) -> re.Pattern[str]:
    """One regular expression for words, each a group of it."""
    each = (r"\s+".join(map(re.escape, word.split())) for word in words)
    return compiled(rf"(?:{'|'.join(f'({word})' for word in each)}){_WORD_END}", is_ascii)


def check_length(text: str) -> None:
    """Refuse a text of more than `MOST_CHARACTERS` characters."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(
            "AX213",
            f"the query has {len(text):,} characters",
            expected=f"at most {MOST_CHARACTERS:,} characters",
            advice="split it into several views",
        )


def unsupported(
    text: str, at: int, construct: str, expected: str | None = None, advice: str | None = None
) -> UnsupportedError:
    """The error for a construct that is well formed but outside the supported fragment."""
    return UnsupportedError(
        "AX211",
        f"{construct} is not supported",
        place=place_at(text, at),
        expected=expected,
        advice=advice,
    )


class Tokenizer:
    """A text and the offset up to which it has been read."""

    most_brackets = MOST_BRACKETS
    allows_infinity = False  # whether a double that is too large is INF

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        check_length(text)
        self.text = text
        self._is_ascii = text.isascii()
        self.offset = 0
        self.namespaces = {"xml": XML_NAMESPACE, **namespaces}
        self._depth = 0

    # moving on

    def skip(self) -> int:
        """Skip white space and comments, and return the offset of the next token."""
        text = self.text
        first = text[self.offset : self.offset + 1]
        if first != "(" and not first.isspace():
            return self.offset
        space = compiled(_SPACE)
        while True:
            found = space.match(text, self.offset)
            self.offset = found.end() if found else self.offset
            if not text.startswith("(:", self.offset):
                return self.offset
            self._skip_comment()

    def _skip_comment(self) -> None:
        start, depth, at = self.offset, 1, self.offset + 2
        while depth:
            mark = compiled(_COMMENT_MARK).search(self.text, at)
            if mark is None:
                raise self.refusal("the comment is not closed", start, advice="close it with :)")
            depth += 1 if mark.group() == "(:" else -1
            at = mark.end()
        self.offset = at

    def is_at_end(self) -> bool:
        return self.skip() >= len(self.text)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one level of brackets, and refuse the text if there are too many levels."""
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

    # symbols, words, regular expressions

    def sees(self, symbol: str) -> bool:
        """Whether the symbol follows."""
        return self.text.startswith(symbol, self.skip())

    def take(self, *symbols: str) -> str | None:
        """Read the first of these symbols that follows."""
        at = self.skip()
        for symbol in symbols:
            if self.text.startswith(symbol, at):
                self.offset = at + len(symbol)
                return symbol
        return None

    def need(self, symbol: str) -> None:
        """Read a symbol that must follow."""
        if not self.take(symbol):
            raise self.unexpected(f"`{symbol}`")

    def take_word(self, *words: str) -> str | None:
        """Read the first of these words that follows; `order by` may have any space inside."""
        found = _compiled_words(words, self._is_ascii).match(self.text, self.skip())
        if found is None:
            return None
        self.offset = found.end()
        return words[(found.lastindex or 1) - 1]

    def need_word(self, word: str) -> None:
        """Read a word that must follow."""
        if not self.take_word(word):
            raise self.unexpected(f"`{word}`")

    def match_at(self, expression: str, at: int) -> re.Match[str] | None:
        """The match of a regular expression at an offset; nothing is read."""
        return compiled(expression, self._is_ascii).match(self.text, at)

    def take_match(self, expression: str) -> re.Match[str] | None:
        """Read the text that a regular expression matches here."""
        found = self.match_at(expression, self.skip())
        if found is not None:
            self.offset = found.end()
        return found

    # literals and names

    def take_string(self) -> str | None:
        """Read a string in quotes; typographic quotes, as printed papers have them, are accepted.

        No other token begins with a typographic quote.
        """
        at = self.skip()
        found = self.match_at(_STRING, at)
        if found is None:
            if self.text.startswith(('"', "'"), at):
                quote = self.text[at]
                advice = f"close it with {quote}; inside the string, {quote} is written twice"
                raise self.refusal("the string is not closed", at, advice=advice)
            return None
        self.offset = found.end()
        quote = self.text[at]
        return found.group()[1:-1].replace(quote * 2, quote)

    def need_string(self, expected: str) -> str:
        found = self.take_string()
        if found is None:
            raise self.unexpected(expected)
        return found

    def take_number(self) -> float | None:
        at = self.skip()
        found = self.match_at(_NUMBER, at)
        if found is None:
            return None
        self.offset = found.end()
        if self.match_at(QNAME, self.offset):
            raise self.refusal("a name directly follows a number", at, expected="a space")
        value = float(found.group())
        is_double = "e" in found.group().lower()
        if isinf(value) and not (is_double and self.allows_infinity):
            raise QueryError("AX207", "the number is too large", place=place_at(self.text, at))
        return value

    def take_name(self) -> tuple[str, str] | None:
        """Read a name as its prefix and its local name: `a`, `p:a`."""
        found = self.take_match(QNAME)
        return None if found is None else (found[1] or "", found[2])

    def need_variable(self) -> str:
        """Read `$name`, and return the name as it is written."""
        self.need("$")
        found = self.take_name()
        if found is None:
            raise self.unexpected("the name of a variable")
        return ":".join(part for part in found if part)

    def expanded(self, prefix: str, local: str, at: int, is_element: bool = True) -> str:
        """The expanded name; the default namespace applies to elements only."""
        if not prefix and not is_element:
            return local
        uri = self.namespaces.get(prefix)
        if uri is None and prefix:
            raise QueryError(
                "AX206",
                f"the prefix {prefix} is not declared",
                place=place_at(self.text, at),
                advice="declare it with the query (namespaces=, or -n PREFIX=URI on the command"
                " line), or write Q{uri}name",
            )
        return f"{{{uri}}}{local}" if uri else local

    # errors

    def refusal(
        self, message: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> QuerySyntaxError:
        place = place_at(self.text, at)
        return QuerySyntaxError("AX201", message, place=place, expected=expected, advice=advice)

    def unexpected(self, expected: str) -> QuerySyntaxError:
        """The error for the token that follows, when another one is expected."""
        at = self.skip()
        found = self.match_at(_LEXEME, at)
        if found is None:
            message = "the query ends too early" if self.text.strip() else "the query is empty"
            return self.refusal(message, len(self.text.rstrip()), expected)
        return self.refusal(f"unexpected `{found.group()[:40]}`", at, expected)

    def unsupported(
        self, construct: str, at: int, expected: str | None = None, advice: str | None = None
    ) -> UnsupportedError:
        return unsupported(self.text, at, construct, expected, advice)
