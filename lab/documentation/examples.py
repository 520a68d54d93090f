"""Examples with their results, as text for a page.

An example is a query with its rows, or a statement with the document after it. A refused example
shows its error, so that the page cannot promise unsupported constructs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from axlog.errors import AxlogError
from axlog.live.document import Document, parse
from axlog.live.view import View
from axlog.query.query import parse_query
from axlog.views.change import Row

SHOP = (
    '<shop><order nr="1"><oid>17</oid><client>INRIA</client><price>20</price><paid/></order>'
    '<order nr="2"><oid>18</oid><client>ENS</client><price>5</price></order>'
    "<shipped><oid>17</oid></shipped></shop>"
)
"""The document of most examples."""

MONITOR = (
    '<shop xmlns:ax="urn:axlog"><orders><ax:call stream="orders"/></orders>'
    '<shipped><ax:call stream="shipments"/></shipped></shop>'
)
MESSAGES = (
    ("orders", "<order><oid>17</oid></order>", 0.0),
    ("orders", "<order><oid>18</oid></order>", 10.0),
    ("shipments", "<order><oid>17</oid></order>", 60.0),
    ("shipments", "<order><oid>18</oid></order>", 61.0),
)
"""The messages of the streams of `MONITOR`: stream, message, time."""


@dataclass(frozen=True)
class Example:
    """A query and its document."""

    query: str
    document: str = SHOP
    messages: Sequence[tuple[str, str, float]] = ()
    namespaces: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    show: tuple[str, ...] = ("id", "val")

    def lines(self) -> list[str]:
        """The example as text."""
        written = _labelled("query", self.query.splitlines())
        if self.document not in (SHOP, MONITOR):
            written = [*_labelled("document", [self.document]), *written]
        return [*written, *_labelled(*self._found())]

    def _found(self) -> tuple[str, list[str]]:
        try:
            view = self._view()
            rows = view.rows()
        except AxlogError as error:
            return "refused", _refusal(error)
        if not view.columns:
            return "holds", ["yes" if rows else "no"]
        return "rows", [_shown(view, row) for row in rows] or ["none"]

    def _view(self) -> View:
        query = parse_query(self.query, dict(self.namespaces), self.language, self.show)
        if not self.messages:
            return parse(self.document).watch(query)
        doc = Document(self.document)
        view = doc.watch(query)
        for stream, message, time in self.messages:
            doc.feed(stream, message, at=time)
        return view


@dataclass(frozen=True)
class Statement:
    """A statement and the document that it changes."""

    statement: str
    document: str = "<a><b>1</b><c/></a>"

    def lines(self) -> list[str]:
        """The example as text."""
        written = _labelled("statement", self.statement.splitlines())
        document = parse(self.document)
        try:
            document.update(self.statement)
        except AxlogError as error:
            return [*written, *_labelled("refused", _refusal(error))]
        return [*written, *_labelled("gives", [document.xml()])]


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    first, *rest = lines or ("",)
    return [f"{label:11}{first}", *(f"{'':11}{line}" for line in rest)]


def _shown(view: View, row: Row) -> str:
    """A row: as the query's constructor writes it, or column by column."""
    if view.query.template is not None:
        return view.xml(row)
    said = "  ".join(f"{name} = {_plain(value)}" for name, value in row.to_dict().items())
    return said if row.count == 1 else f"{said}  ({row.count} derivations)"


def _plain(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and (value == "" or " " in value) else str(value)


def _refusal(error: AxlogError) -> list[str]:
    said = [f"{error.code}: {error.message}"]
    return [*said, f"try: {error.advice}"] if error.advice else said


def paragraph(text: str) -> list[str]:
    """Prose in lines of a page's width."""
    return wrap(text, 108, break_long_words=False, break_on_hyphens=False)


def block(examples: Sequence[Example | Statement]) -> list[str]:
    """Examples as one block of a page."""
    lines: list[str] = []
    for example in examples:
        lines += ["", *example.lines()] if lines else example.lines()
    return ["```text", *lines, "```"]
