"""Statements that differ in their strings only: parsed once, run with the strings as variables.

One pass over a text replaces its strings by marks: strings of expressions, attributes and texts of
constructors. The rest, the skeleton, is the key of the cache. The first text with a skeleton is
parsed with a reference to a variable in place of each string; later ones are not parsed. If the
parser and the pass disagree about the strings, the skeleton is parsed in full each time.

Law: a statement by its template makes the operations that it makes by itself. Where it raises an
error, the caller runs the statement itself, because the template has other offsets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from axlog.document.name_expansion import refuse_growth
from axlog.document.parser import Limits
from axlog.errors import QueryError
from axlog.query.syntax_tree import (
    Context,
    Enclosed,
    Expression,
    Path,
    Reference,
    Statement,
    Written,
)
from axlog.query.update_parser import UpdateParser, parsed

_STRINGS = re.compile(
    r"""(\"[^\"&{}<>\x00-\x1f]*\"|'[^'&{}<>\x00-\x1f]*'"""
    r"""|>[^<>{}&\"'\x00-\x08\x0b-\x1f]*[^\s<>{}&\"'\x00-\x1f]"""
    r"""[^<>{}&\"'\x00-\x08\x0b-\x1f]*(?=</))"""
)
"""A string with its quotes, or a text with the end of the tag before it."""
_STATIC = re.compile(r"\b(?:matches|replace|tokenize|analyze-string)\s*\(|\(:|“")
"""Functions that check strings when they are parsed; and comments, which hide strings."""


@dataclass(frozen=True, slots=True)
class Template:
    """The statements of a skeleton, the variables of its strings, and the size of its names."""

    statements: tuple[Statement, ...]
    variables: tuple[str, ...]
    names_size: int


def instance_of(
    text: str, namespaces: tuple[tuple[str, str], ...], limits: Limits
) -> tuple[tuple[Statement, ...], dict[str, str]] | None:
    """The statements of a text with the values of their variables; None without a template.

    A text that is used often as it is is kept as it is: its paths have no holes, and constructors
    without variables are built once.
    """
    key = text, namespaces
    known = _TEXTS.get(key, 0)
    if known == OFTEN:
        known = _TEXTS[key] = _as_it_is(text, namespaces)
    if isinstance(known, Template):
        refuse_growth(known.names_size, _size(text, namespaces), limits)
        return known.statements, {}
    if len(text) > 2_000:
        return None
    if len(_TEXTS) >= MOST_TEMPLATES:
        _TEXTS.clear()
    _TEXTS[key] = known + 1
    if "\0" in text or _STATIC.search(text) is not None:
        return None
    parts = _STRINGS.split(text)
    strings = [each[1:] if each[0] == ">" else each[1:-1] for each in parts[1::2]]
    parts[1::2] = [each[0] for each in parts[1::2]]
    skeleton = "\0".join(parts)
    template = _TEMPLATES.get((skeleton, namespaces), _UNKNOWN)
    if template is _UNKNOWN:
        if len(_TEMPLATES) >= MOST_TEMPLATES:
            _TEMPLATES.clear()
        template = _TEMPLATES[skeleton, namespaces] = _template(text, namespaces)
    if template is None:
        return None
    refuse_growth(template.names_size, _size(text, namespaces), limits)
    return template.statements, dict(zip(template.variables, strings, strict=True))


MOST_TEMPLATES = 512
_UNKNOWN = Template((), (), 0)
_TEMPLATES: dict[tuple[str, tuple[tuple[str, str], ...]], Template | None] = {}
OFTEN = 8
"""After so many uses, a text is parsed as it is."""
_TEXTS: dict[tuple[str, tuple[tuple[str, str], ...]], Template | int] = {}
"""The texts that were used: how often, and later their statements."""


def _size(text: str, namespaces: tuple[tuple[str, str], ...]) -> int:
    return len(text) + sum(len(uri) for _, uri in namespaces)


def _as_it_is(text: str, namespaces: tuple[tuple[str, str], ...]) -> Template:
    parser = UpdateParser(text, dict(namespaces))
    return Template(parsed(parser), (), parser.names_size)


def _template(text: str, namespaces: tuple[tuple[str, str], ...]) -> Template | None:
    """The template of a text; None if its strings are more than strings."""
    parser = _TemplateParser(text, dict(namespaces))
    try:
        statements = parsed(parser)
    except (QueryError, RecursionError):
        return None
    spans = [
        (found.start() + (text[found.start()] == ">"), found.end())
        for found in _STRINGS.finditer(text)
    ]
    if sorted(parser.strings) != spans:
        return None
    return Template(statements, tuple(_name(start) for start, _ in spans), parser.names_size)


def _name(start: int) -> str:
    """The variable of the string at an offset; no variable of a text has such a name."""
    return f"string {start}"


class _TemplateParser(UpdateParser):
    """The parser of statements, with a variable in place of each string."""

    def __init__(self, text: str, namespaces: dict[str, str]) -> None:
        super().__init__(text, namespaces)
        self.strings: set[tuple[int, int]] = set()

    def primary(self, at: int) -> Context | Reference | Expression | None:
        if not self.text.startswith(('"', "'"), at) or self.take_string() is None:
            return super().primary(at)
        self.strings.add((at, self.offset))
        return Reference(_name(at), at)

    def written(self, text: str, start: int, end: int) -> Written | Enclosed:
        self.strings.add((start, end))
        return Enclosed(Path(Reference(_name(start), start), (), start))
