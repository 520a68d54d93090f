"""Law 10: the items of a view are Saxon's answer on the document, after every update.

Our own evaluator must give the same items on the whole document, and the rows before, with the
changes merged by key, must be the rows now. Where Saxon raises an error, items are not compared:
the data decides when an evaluation notices an error.
"""

from __future__ import annotations

from typing import Any

import axlog
from axlog.errors import ValueProblem
from axlog.evaluate.expressions import Evaluator
from axlog.live.internals import maintained
from axlog.query.syntax_tree import Statement
from axlog.query.xquery_parser import XQueryParser
from axlog.views.dataflow.results import item_text
from lab.laws.xquery_cases import XQueryCase
from lab.reference.saxon import same_items, saxon_items, shown


def check_xquery(case: XQueryCase) -> None:
    """Check one case."""
    doc = axlog.parse(case.document)
    view = doc.watch(case.query, "view", language="xquery", maintainer=case.maintainer)
    rows = {row.key_text: row.to_dict() for row in view.rows()}
    parsed = _parsed(case.query)
    _check(doc, view, parsed, "at first")
    for update in case.updates:
        for change in doc.update(update):
            if change.op == "delete":
                assert rows.pop(change.key_text) == change.row.to_dict(), f"{update}: {change}"
            else:
                before = rows.get(change.key_text)
                assert (change.op == "update") == (before is not None), f"{update}: {change}"
                rows[change.key_text] = change.row.to_dict()
        _check(doc, view, parsed, update)
        now = {row.key_text: row.to_dict() for row in view.rows()}
        assert rows == now, f"after {update}: changes give {rows}, rows are {now}"


def _check(doc: axlog.Document, view: Any, query: Statement, when: str) -> None:
    expected = saxon_items(query.text, doc.xml())
    found = view.items()
    if expected is None:
        return
    assert same_items(found, expected), (
        f"after {when}: {shown(found)}; Saxon: {shown(expected)}; {doc.xml()}"
    )
    ours = evaluated(doc, query)
    assert same_items(ours, expected), f"after {when}, evaluated: {shown(ours)}; {shown(expected)}"


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
