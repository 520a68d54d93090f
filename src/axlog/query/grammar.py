"""A lark grammar with readable syntax errors.

The parser is LALR with a contextual lexer: a word is a keyword only where the grammar accepts one,
so elements may be called `or` or `where`, as in XPath. A syntax error gives the position, the token
found there, and the tokens that the grammar accepts there, in words; names of terminals never reach
the user. The length of texts is limited, and parsing takes linear time.

Importing this module imports lark, so only `native_parser.py` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from itertools import islice

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_interactive_parser import InteractiveParser

from axlog.errors import QuerySyntaxError
from axlog.query.grammar_tables import compute, load
from axlog.query.positions import place_at
from axlog.query.tokenizer import check_length

_LEXEME = re.compile(r"\w[\w.-]*|[/:!<>=.]+|\s*\S")


@dataclass(frozen=True)
class Wording:
    """The words for a group of terminals, used when the first one was expected."""

    words: str
    terminals: tuple[str, ...]


@dataclass(frozen=True)
class Grammar:
    """One language: its grammar file, its parse tables, and the words for its terminals.

    The files may lie in an archive: Spark's workers import axlog from its wheel.
    """

    file: Traversable
    tables: Traversable
    wordings: Sequence[Wording]
    string_terminal: str = "STRING"

    @cached_property
    def _lark(self) -> Lark:
        source = self.source
        return load(source, self.tables.read_text(encoding="utf-8")) or compute(source)

    @property
    def source(self) -> str:
        """The text of the grammar."""
        return self.file.read_text(encoding="utf-8")

    @cached_property
    def rules(self) -> frozenset[str]:
        """The names of nodes in parse trees; the description of the language covers all of them."""
        named = {
            rule.alias or rule.origin.name
            for rule in self._lark.rules
            if rule.alias or not (rule.options.expand1 or rule.origin.name.startswith("_"))
        }
        return frozenset(str(name) for name in named)

    @cached_property
    def terminals(self) -> dict[str, str]:
        """The regular expression of each terminal."""
        return {each.name: each.pattern.to_regexp() for each in self._lark.terminals}

    def parse(self, text: str) -> Tree[Token]:
        """The parse tree of a text; raises QuerySyntaxError."""
        check_length(text)
        try:
            return self._lark.parse(text)
        except UnexpectedInput as problem:
            raise self._refusal(text, problem) from None

    def _refusal(self, text: str, problem: UnexpectedInput) -> QuerySyntaxError:
        offset = _offset_of(text, problem)
        accepted = self._accepted(text)
        rest = text[offset:]
        expected, advice = self._in_words(accepted), None
        if not rest.strip():
            message = "the query ends too early" if text.strip() else "the query is empty"
        elif rest[0] in "\"'" and self.string_terminal in accepted:
            message, expected = "the string is not closed", None
            advice = f"close it with {rest[0]}; inside the string, {rest[0]} is written twice"
        else:
            found = _LEXEME.match(rest)
            message = f"unexpected `{(found.group() if found else rest)[:40].strip()}`"
        return QuerySyntaxError(
            "AX201",
            message,
            place=place_at(text, offset),
            expected=expected,
            advice=advice,
        )

    def _accepted(self, text: str) -> set[str]:
        """The terminals that the parser accepts where it failed.

        A failure reduces the parser's stack. So the tokens before the failure are parsed again, and
        the accepted terminals are read from that stack.
        """
        failing = self._lark.parse_interactive(text)
        taken = 0
        try:
            for token in _tokens(failing):
                failing.feed_token(token)
                taken += 1
        except UnexpectedInput:
            pass
        again = self._lark.parse_interactive(text)
        for token in islice(_tokens(again), taken):
            again.feed_token(token)
        accepts: Callable[[], set[str]] = again.accepts
        return accepts()

    def _in_words(self, accepted: set[str]) -> str | None:
        words: list[str] = []
        named: set[str] = set()
        for wording in self.wordings:
            first = wording.terminals[0]
            if first in accepted and first not in named:
                words.append(wording.words)
                named.update(wording.terminals)
        if len(words) < 2:
            return "".join(words) or None
        return ", ".join(words[:-1]) + " or " + words[-1]


def _tokens(parser: InteractiveParser) -> Iterator[Token]:
    lex: Callable[[object], Iterator[Token]] = parser.lexer_thread.lex
    return lex(parser.parser_state)


def _offset_of(text: str, problem: UnexpectedInput) -> int:
    token = getattr(problem, "token", None)
    if isinstance(token, Token) and token.type == "$END":
        return len(text.rstrip())
    offset = getattr(problem, "pos_in_stream", None)
    return offset if isinstance(offset, int) else 0
