"""Law 10: the items of a view are Saxon's answer on the document, after every update.

Our own evaluator, which keeps nothing, must give the same items on the first and the last version
of the document. The rows before, with the changes merged by key, must be the rows now. Where Saxon
raises an error, items are not compared: the data decides when an evaluation notices an error. The
queries of a case are views of one document, so that Saxon reads each version of it once, and are
parsed once for all documents.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import axlog
from axlog.errors import UpdateError, ValueProblem
from axlog.evaluate.expressions import Evaluator
from axlog.live.internals import maintained
from axlog.query.query import Query, parse_query
from axlog.query.syntax_tree import Statement
from axlog.query.xquery_parser import XQueryParser
from axlog.views.change import Change
from axlog.views.dataflow.results import item_text
from lab.laws.xquery_cases import XQueryCase
from lab.reference.saxon import prepared, prepared_items, same_items, shown

_POSITIONS = re.compile(r"\)\[(\d+|last\(\)[^\]]*|position\(\)[^\]]*)\]")


def check_xquery(case: XQueryCase) -> int:
    """Check one case; the number of answers that were compared: Saxon raises no error there."""
    compared = 0
    for history in case.histories:
        doc = axlog.parse(history.document)
        views = [_Compared(doc, text, f"v{n}", case) for n, text in enumerate(case.queries)]
        compared += _compare(doc, views, "at first", is_evaluated=True)
        for number, update in enumerate(history.updates, start=1):
            try:
                changes = doc.update(update)
            except UpdateError:
                changes = []  # such as a second attribute of the same name: nothing was changed
            for view in views:
                view.merge([change for change in changes if change.view == view.name], update)
            is_last = number == len(history.updates)
            compared += _compare(doc, views, update, is_evaluated=is_last)
    return compared


class _Compared:
    """A view, with its rows by key as its changes give them."""

    def __init__(self, doc: axlog.Document, text: str, name: str, case: XQueryCase) -> None:
        self.name, self.text, self._doc = name, text, doc
        self.view = doc.watch(_query(text), name, maintainer=case.maintainer)
        self._rows = {row.key_text: row.to_dict() for row in self.view.rows()}

    def merge(self, changes: list[Change], update: str) -> None:
        """Merge the changes of an update by key; they must lead to the rows now."""
        rows = self._rows
        for change in changes:
            if change.op == "delete":
                assert rows.pop(change.key_text) == change.row.to_dict(), f"{update}: {change}"
            else:
                before = rows.get(change.key_text)
                assert (change.op == "update") == (before is not None), f"{update}: {change}"
                rows[change.key_text] = change.row.to_dict()
        now = {row.key_text: row.to_dict() for row in self.view.rows()}
        assert rows == now, f"{self.text}\nafter {update}: changes give {rows}, rows are {now}"

    def compare(self, expected: list[Any], when: str) -> None:
        """Compare the items with Saxon's."""
        found = self.view.items()
        assert same_items(found, expected), (
            f"{self.text}\nafter {when}: {shown(found)}; Saxon: {shown(expected)}; "
            f"{self._doc.xml()}"
        )

    def compare_evaluated(self, expected: list[Any], when: str, document: Any) -> None:
        """Compare the items of one evaluation of the whole document with Saxon's.

        An error in items that a position leaves out may be noticed or not: Saxon must notice it
        where it evaluates them all.
        """
        ours = evaluated(self._doc, _parsed(self.text))
        whole = _POSITIONS.sub(")", self.text)
        if ours == [None] and whole != self.text and prepared_items(whole, document) is None:
            return
        assert same_items(ours, expected), (
            f"{self.text}\nafter {when}, evaluated: {shown(ours)}; Saxon: {shown(expected)}; "
            f"{self._doc.xml()}"
        )


def _compare(doc: axlog.Document, views: list[_Compared], when: str, is_evaluated: bool) -> int:
    document = prepared(doc.xml())
    compared = 0
    for view in views:
        expected = prepared_items(view.text, document)
        if expected is None:
            view.view.items()
            continue
        compared += 1
        view.compare(expected, when)
        if is_evaluated:
            view.compare_evaluated(expected, when, document)
    return compared


@lru_cache(maxsize=64)
def _query(text: str) -> Query:
    return parse_query(text, language="xquery")


@lru_cache(maxsize=64)
def _parsed(query: str) -> Statement:
    return Statement(XQueryParser(query, {}).parse_query(), query, ())


def evaluated(doc: axlog.Document, query: Statement) -> list[Any]:
    """The items of a query by one evaluation of the whole document."""
    tree = maintained(doc).nodes()
    evaluator = Evaluator(tree, query)
    try:
        items = evaluator.value(query.expression, evaluator.scope())
    except ValueProblem:
        return [None]
    return [item_text(tree, item) for item in items]
