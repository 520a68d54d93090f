"""Which views of a system can ever have a row.

The rows that a view has or may get are what the streams it feeds can bring. The result is a least
fixpoint: start with nothing on the wires, and add to every document the rows that the views before
it have or may get, until nothing is new. A possible row with all values known is placed where it
would arrive. One with unknown values leaves its stream open, and so does a view whose possible rows
are undecided.

Law: for systems of views without `not`, a view is NEVER here only if no run of the system gives it
a row (the placed rows only add). It is exact for the joins inside a document if the possible rows
are known by value; what a join over two unknown rows of one view would exclude is not detected.
Views with `not` are analysed with their streams left open: their NEVER holds too. (Paper 2, remark
4.)
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from axlog.connect.channels.row_updates import row_xml
from axlog.document.parser import Element
from axlog.errors import UndecidedError
from axlog.future.grounding import has_not
from axlog.future.truth import Possible
from axlog.live.document import Document
from axlog.live.options import Options
from axlog.pipeline.documents import calls_of, document_of
from axlog.pipeline.model import PipelineModel
from axlog.query.query import Query
from axlog.query.truth import Truth
from axlog.runtime.instances import Instances
from axlog.runtime.systems import System, Wire, wires_of
from axlog.views.change import Row
from axlog.views.view_query import parse_view

MOST_ROWS = 200
"""Maximum rows of one view that are placed on its wires one by one."""


@dataclass(slots=True)
class _Brought:
    """What a view can bring: rows known by value, and whether anything else may come."""

    rows: dict[tuple[Any, ...], str] = field(default_factory=dict)
    is_open: bool = False

    def size(self) -> tuple[int, bool]:
        return len(self.rows), self.is_open


class Satisfiability:
    """The analysis of one system, with its initial documents."""

    def __init__(self, model: PipelineModel) -> None:
        self.model = model
        self.wires = wires_of(model)
        self.documents = {
            name: document_of(document, model.directory)
            for name, document in model.documents.items()
        }
        self.queries: dict[str, dict[str, Query]] = {
            name: {
                model.full_name(name, view): parse_view(
                    written.query, model.namespaces, written.language
                )
                for view, written in document.views.items()
            }
            for name, document in model.documents.items()
        }
        self.is_positive = not any(
            has_not(query.pattern) for views in self.queries.values() for query in views.values()
        )

    def verdicts(self) -> dict[str, Truth]:
        """Return for every view: TRUE it has a row at once, POSSIBLE it may get one, NEVER it
        cannot.
        """
        brought = {view: _Brought() for views in self.queries.values() for view in views}
        verdicts: dict[str, Truth] = {}
        while True:
            before = {view: each.size() for view, each in brought.items()}
            for name in self.documents:
                verdicts |= self._judge(name, brought)
            if before == {view: each.size() for view, each in brought.items()}:
                break
        at_once = _at_once(self.model)
        return {
            view: Truth.TRUE if view in at_once else min(verdict, Truth.POSSIBLE)
            for view, verdict in verdicts.items()
        }

    def _judge(self, name: str, brought: dict[str, _Brought]) -> dict[str, Truth]:
        """Return the verdicts of a document's views, and add what they can bring."""
        document = self._document(name, brought)
        found = {}
        for view in self.queries[name]:
            mine = document.view(view)
            _add(brought[view], mine.rows())
            try:
                found[view] = mine.truth
                for possible in mine.possible() if found[view] is not Truth.NEVER else ():
                    _add_possible(brought[view], mine.columns, possible)
            except UndecidedError:
                found[view] = found.get(view, Truth.POSSIBLE)
                brought[view].is_open = True
        return found

    def _document(self, name: str, brought: dict[str, _Brought]) -> Document:
        """Return a document with everything on its wires that can come over them."""
        root = deepcopy(self.documents[name])
        document = Document(
            root,
            facts=self.model.documents[name].facts,
            views=self.queries[name],
            options=Options(namespaces=self.model.namespaces),
        )
        calls = calls_of(root)
        for wire in self.wires:
            if wire.document == name and wire.stream in calls:
                self._fill(document, wire, brought[wire.view], calls[wire.stream])
        return document

    def _fill(self, document: Document, wire: Wire, brought: _Brought, call: Element) -> None:
        if not self.is_positive:
            return  # a placed row could make a `not` fail: the stream is left open
        if call.get("replace") is not None:
            return  # a placed row could replace another: the stream is left open
        if call.get("deletes", "no") != "only":
            for xml in brought.rows.values():
                document.feed(wire.stream, xml)
        if not brought.is_open:
            document.end(wire.stream)


def _at_once(model: PipelineModel) -> set[str]:
    """Return the views that have rows before anything comes from outside."""
    instances = {name: Instances(model, name) for name in model.documents}
    System(model).begin(instances)
    return {str(row.view) for one in instances.values() for row in one.rows()}


def _add(brought: _Brought, rows: list[Row]) -> None:
    for row in rows:
        if len(brought.rows) >= MOST_ROWS:
            brought.is_open = True
            return
        brought.rows.setdefault(row.values_, row_xml(row, is_keyed=False))


def _add_possible(brought: _Brought, columns: tuple[str, ...], possible: Possible) -> None:
    known = possible.row
    if all(isinstance(known.get(column), str) for column in columns):
        _add(brought, [Row(columns, tuple(known[column] for column in columns))])
    else:
        brought.is_open = True


def satisfiability(model: PipelineModel) -> dict[str, Truth]:
    """Return which views of a pipeline can ever have a row, all wires considered together."""
    return Satisfiability(model).verdicts()
