"""The answer to a query as a sequence of items, by the public API alone.

An item of `View.items` is a Python value. A string that begins with `<` is the XML of a node, and
other strings are values, attributes or texts: judges take both for what they may be. For dumps that
list nodes by kind and name, the ids of the rows tell them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from lxml import etree

import axlog
from axlog.evaluate.atoms import text_of
from axlog.query.query import checked_language
from axlog.query.template import Piece, PieceKind

SAXON = "saxon"


@dataclass(frozen=True, slots=True)
class Answer:
    """Items, or a truth value, or a number; `around` is the element around all items.

    `ids` are those of the nodes of the result, if it is nodes that axlog itself found. `refusal` is
    why axlog does not evaluate the query itself, if Saxon did.
    """

    items: tuple[Piece, ...] = ()
    truth: bool | None = None
    number: int | None = None
    around: tuple[str, str] = ("", "")
    ids: tuple[axlog.Id, ...] = ()
    refusal: str | None = None

    def values(self) -> list[str]:
        """The string values of the items."""
        if self.truth is not None:
            return [str(self.truth).lower()]
        if self.number is not None:
            return [str(self.number)]
        return [_string_value(item) for item in self.items]


def answer(text: str, document: axlog.Document, language: str | None = None) -> Answer:
    """Return the answer of a query on a document; raises the refusal or the error of the data."""
    view = document.watch(text, language=checked_language(language), on_value_error="reject")
    try:
        explained = view.explain()
        refusal = explained.reason if explained.maintainer == SAXON else None
        items = view.items()
        if len(items) == 1 and isinstance(items[0], bool):
            return Answer(truth=items[0], refusal=refusal)
        if len(items) == 1 and type(items[0]) is int:
            return Answer(number=items[0], refusal=refusal)
        pieces = tuple(_piece(item) for item in items)
        return Answer(pieces, ids=_ids(view), refusal=refusal)
    finally:
        document.unwatch(view.name)


def _ids(view: axlog.View) -> tuple[axlog.Id, ...]:
    """The ids of the nodes that a view shows, in its order; none if an item is no node."""
    column = next((each for each in ("node.id", "id") if each in view.columns), None)
    found = [] if column is None else [row[column] for row in view.rows()]
    return tuple(found) if all(isinstance(each, axlog.Id) for each in found) else ()


def _piece(item: Any) -> Piece:
    if isinstance(item, str):
        return Piece(PieceKind.XML if item.startswith("<") else PieceKind.VALUE, item)
    if isinstance(item, datetime | date | time):
        return Piece(PieceKind.VALUE, item.isoformat().replace("+00:00", "Z"))
    return Piece(PieceKind.VALUE, text_of(item))


def _string_value(piece: Piece) -> str:
    if piece.kind is not PieceKind.XML:
        return piece.text
    try:
        return "".join(parsed(piece.text).itertext())
    except etree.XMLSyntaxError:
        return piece.text  # a string that begins with `<`


def parsed(xml: str) -> Any:
    """A fragment as an lxml element around it."""
    return etree.fromstring(f"<result>{xml}</result>")
